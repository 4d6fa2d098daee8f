"""Scenarios that were recorded with the Go operator, played on ours and compared step by step.

Scenarios, recordings and the programs that play and compare them are kept beside the checkout, not in it. They see the
operator as a user does, through an API server, and cannot be told what happens inside: a step is over when nothing was
written for a while, so this is the one place where tests wait in real time. On a busy machine a step may be cut short;
what differs is therefore played again, with more patience each time, before it counts.
"""

import importlib.util
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tests.kubernetes.control_plane import free_port

from trainmaster.api.meta import Json, Object
from trainmaster.frameworks.registry import FRAMEWORKS

ROOT = Path(__file__).parents[2]
KIT = ROOT.parent / "shared" / "parity"
ALLOWED = Path(__file__).parent / "parity-allowed.yaml"
TIMEOUT = 1200.0
# How long a step may be quiet before it is over, as a multiple of what was asked, each time that something is played.
PATIENCE = (1, 3, 6)
# What a profile of the scenarios asks of the operator.
FLAGS = {
    "training": (),
    "training-volcano": ("--gang-scheduler-name=volcano",),
    "training-scheduler-plugins": ("--gang-scheduler-name=scheduler-plugins-scheduler",),
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where scenarios are played: the cluster as its administrator sees it, and as our operator does."""

    kubeconfig: Path
    folder: Path
    operator: Sequence[str]                 # the command line, without what the profile asks for
    environment: Mapping[str, str]


@cache
def scenarios() -> dict[str, Object]:
    """Those for the training operator whose kinds we have, by name; none where the recordings are not."""
    ours = {framework.kind.kind for framework in FRAMEWORKS}
    found = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((KIT / "scenarios").glob("*.yaml"))}
    return {
        name: scenario for name, scenario in found.items()
        if scenario["operator"] == "training" and _kinds(scenario) <= ours
    }


def chosen(globs: Iterable[str]) -> list[str]:
    patterns = tuple(globs)
    return [name for name in scenarios() if any(fnmatchcase(name, pattern) for pattern in patterns)]


def allowed() -> list[Object]:
    found: list[Object] = yaml.safe_load(ALLOWED.read_text())
    return found


def differing(
    names: Sequence[str], place: Place, *, settle: float, also: Sequence[Object] = ()
) -> dict[str, list[str]]:
    """What is not as it was recorded, by scenario, but for what is allowed and `also`; empty if all is well."""
    left, wrong = list(names), {}
    for patience in PATIENCE:
        wrong = judged(played(left, place, settle=patience * settle), [*allowed(), *also]) if left else {}
        left = list(wrong)
    return wrong


def played(names: Sequence[str], place: Place, *, settle: float, parallel: int = 12) -> dict[str, Json]:
    """Play scenarios and return what happened in each."""
    output = place.folder / "traces"
    output.mkdir(parents=True, exist_ok=True)
    port = free_port()
    always = ("--metrics-bind-address=0", f"--health-probe-bind-address=127.0.0.1:{port}")
    commands = [
        f"--operator-command={profile}={shlex.join([*place.operator, *always, *flags])}"
        for profile, flags in FLAGS.items()
    ]
    done = subprocess.run(
        [
            sys.executable, "-m", "tests.spec.recording", KIT, "--name=ours", f"--output={output}",
            f"--kubeconfig={place.kubeconfig}", "--repeat=1",
            f"--settle={settle}", f"--parallel={parallel}", f"--log={place.folder}", "--warm-up=0.5",
            f"--ready=http://127.0.0.1:{port}/readyz", *commands,
            *(KIT / "scenarios" / f"{name}.yaml" for name in names),
        ],
        env={**os.environ, **place.environment}, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {name: json.loads((output / f"{name}.json").read_text()) for name in names}


def judged(traces: Mapping[str, Json], permitted: Sequence[Object] | None = None) -> dict[str, list[str]]:
    """Where traces differ from the recordings, but for what is permitted: of our operator, what is `allowed`."""
    compare, may = _program("compare"), list(allowed() if permitted is None else permitted)
    verdicts = {name: compare.judge(recorded(name), trace, may, False) for name, trace in traces.items()}
    return {name: verdict.hard for name, verdict in verdicts.items() if verdict.hard}


def recorded(name: str) -> Json:
    return json.loads((KIT / "golden" / f"{name}.json").read_text())


def _kinds(scenario: Object) -> set[str]:
    return {made["kind"] for made in scenario["manifests"] if made["apiVersion"].startswith("kubeflow.org/")}


@cache
def _program(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"parity_{name}", KIT / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module
