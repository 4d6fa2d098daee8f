"""`trainmaster resume JOB`: go on after `suspend`."""

from trainmaster.cli.pausing import pausing

command = pausing("resume", "resumed", "Let suspended jobs go on.")
