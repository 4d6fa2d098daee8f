"""What each reason means that a job, a pod or a group can have, and what to do about it.

Reasons are part of the user interface, so they are found in the code (`told_in_code`) and explained in reasons.yaml; a
test fails where somebody adds one and says nothing about it. Those of a family have a place for the kind: `{}Running`.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

SOURCE = Path(__file__).parents[1] / "src" / "trainmaster"
PACKAGES = ("engine", "operator", "cluster/scheduler", "cluster/kubelet", "cluster/simulated")
# Functions and records that take a reason.
TELLING = {"ImageError", "_block", "_hold_back", "normal", "warning", "Condition", "Told", "event", "_condition", "put",
           "_failed", "Event"}
NO_REASON = {"Normal", "Warning", "True", "False", "PodScheduled", "DisruptionTarget"}
_REASON = re.compile(r"(\{\})?[A-Z][A-Za-z]*(\{\})?")


@dataclass(frozen=True, slots=True)
class Reason:
    on: str          # job, pod, group, container
    means: str
    do: str = ""


def meanings() -> dict[str, Reason]:
    """What is written about each, in `reasons.yaml`."""
    written = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())
    return {name: Reason(each["of"], each["means"], each.get("do", "")) for name, each in written.items()}


def told_in_code() -> dict[str, str]:
    """The reasons that the code tells, and where."""
    return {reason: place for package in PACKAGES for path in sorted((SOURCE / package).rglob("*.py"))
            if "programs" not in path.parts
            for reason, place in _told(path) if reason not in NO_REASON}


def _told(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in TELLING:
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                if (text := _text(argument)) and _REASON.fullmatch(text) and text != "{}":
                    yield text, f"{path.relative_to(SOURCE)}:{node.lineno}"


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value) if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""
