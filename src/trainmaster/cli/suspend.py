"""`trainmaster suspend JOB`: its pods go, the job stays."""

from trainmaster.cli.pausing import pausing

command = pausing("suspend", "suspended", "Take the pods of jobs away; the jobs stay, and go on when they are resumed.")
