"""A pod as a person sees a replica: its short name, one word of state, restarts, and how it ended. Pure."""

import re
import signal
from dataclasses import dataclass

from trainmaster.api.membership import INDEX, ROLE
from trainmaster.api.meta import Object, being_deleted, labels_of, name_of, uid_of

HOPELESS = frozenset({"InvalidImageName"})      # waiting for what no time and nobody else can bring
START_ERRORS = frozenset({"StartError", "ContainerCannotRun"})   # the program never ran, so its log is empty

STOPPED = (137, 143)            # exit codes of those that are told to end
OOM = "OOMKilled"
AGAIN_AND_AGAIN = "CrashLoopBackOff"
_PAUSE = re.compile(r"back-off (\S+) restarting")       # the kubelet's words, which say neither who nor why


@dataclass(frozen=True, slots=True)
class Replica:
    """One member of a job, as shown to people."""

    pod: str
    uid: str
    name: str            # worker-0
    state: str           # Pending, ContainerCreating, Running, Completed, Error, Terminating, CrashLoopBackOff...
    why: str = ""        # what it waits for or how it ended, when that is known
    restarts: int = 0
    exit_code: int | None = None

    @property
    def hopeless(self) -> bool:
        return self.state in HOPELESS

    @property
    def failed(self) -> bool:
        """By itself; one that was stopped because others failed did not."""
        return bool(self.exit_code) and self.state != "Stopped"

    @property
    def ended(self) -> bool:
        return self.exit_code is not None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One life of a container, whose log can be followed."""

    pod: str
    uid: str
    container: str
    number: int


def replica_of(pod: Object) -> Replica:
    labels = labels_of(pod)
    status = pod.get("status", {})
    containers = status.get("containerStatuses") or []
    name = f"{labels[ROLE]}-{labels[INDEX]}" if ROLE in labels and INDEX in labels else name_of(pod)
    restarts = sum(c.get("restartCount", 0) for c in containers)
    state, why, code = _state(pod, containers)
    return Replica(name_of(pod), uid_of(pod), name, state, why, restarts, code)


def attempts_of(pod: Object) -> list[Attempt]:
    """The container lives that have started: what there is to read."""
    return [
        Attempt(name_of(pod), uid_of(pod), c["name"], c.get("restartCount", 0))
        for c in pod.get("status", {}).get("containerStatuses") or ()
        if {"running", "terminated"} & (c.get("state") or {}).keys()
    ]


# What the code or the signal nearly always means.
_CODES = {126: "the command cannot be executed", 127: "the command was not found"}
_SIGNALS = {"SIGKILL": "often for lack of memory", "SIGSEGV": "a crash in native code", "SIGBUS": "often for lack of "
            "shared memory", "SIGABRT": "native code gave up"}


def exit_in_words(code: int) -> str:
    """`1`, `127 (the command was not found)`, `137 (killed by SIGKILL, often for lack of memory)`."""
    if code <= 128:
        return f"{code} ({_CODES[code]})" if code in _CODES else str(code)
    try:
        name = signal.Signals(code - 128).name
    except ValueError:
        return str(code)
    return f"{code} (killed by {name}{f', {_SIGNALS[name]}' if name in _SIGNALS else ''})"


def _state(pod: Object, containers: list[Object]) -> tuple[str, str, int | None]:
    status = pod.get("status", {})
    phase = status.get("phase", "Pending")
    ended = [c["state"]["terminated"] for c in containers if "terminated" in (c.get("state") or {})]
    code = next((t["exitCode"] for t in ended if t["exitCode"]), ended[0]["exitCode"] if ended else None)
    if phase == "Succeeded":
        return "Completed", "", 0
    if phase == "Failed":
        if being_deleted(pod) and code in STOPPED:
            return "Stopped", "", code
        if any(t.get("reason") == OOM for t in ended):
            return OOM, end_in_words(pod, {"reason": OOM}), code
        by_node = str(status.get("message") or "").strip() if status.get("reason") else ""
        why = by_node or (f"exit code {exit_in_words(code)}" if code is not None else status.get("message", ""))
        said = next((t["message"] for t in ended if t.get("reason") in START_ERRORS and t.get("message")), "")
        why = f"{why}: {said}" if said else why
        return status.get("reason") or "Error", why, code if code is not None else 1
    if being_deleted(pod):
        return "Terminating", "", None
    for container in containers:
        waiting = (container.get("state") or {}).get("waiting")
        if waiting:
            return waiting.get("reason", "Waiting"), _waits(pod, waiting), None
    if phase == "Pending":
        return "Pending", _unscheduled(status), None
    last = last_end(pod)
    return str(phase), f"before: {end_in_words(pod, last)}" if last else "", None


def last_end(pod: Object) -> Object | None:
    """How the life before this one ended, of a container that was started again or will be."""
    ends = [end for each in (pod.get("status") or {}).get("containerStatuses") or ()
            if (end := (each.get("lastState") or {}).get("terminated"))]
    return dict(ends[0]) if ends else None


def end_in_words(pod: Object, end: Object) -> str:
    """`out of memory: its limit is 1Gi`, `exit code 1`, `exit code 127 (the command was not found)`."""
    if end.get("reason") == OOM:
        return f"out of memory{_memory_limit(pod)}"
    said = f": {end['message']}" if end.get("reason") in START_ERRORS and end.get("message") else ""
    return f"exit code {exit_in_words(int(end.get('exitCode') or 0))}{said}"


def _waits(pod: Object, waiting: Object) -> str:
    message, last = str(waiting.get("message") or ""), last_end(pod)
    pause = _PAUSE.search(message)
    if waiting.get("reason") != AGAIN_AND_AGAIN or pause is None or last is None:
        return message
    return f"{end_in_words(pod, last)}; is started again after {pause[1]}"


def _memory_limit(pod: Object) -> str:
    limits = {str(limit) for each in (pod.get("spec") or {}).get("containers") or ()
              if (limit := ((each.get("resources") or {}).get("limits") or {}).get("memory"))}
    return f": its limit is {', '.join(sorted(limits))}" if limits else ""


def _unscheduled(status: Object) -> str:
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message", ""))
    return ""
