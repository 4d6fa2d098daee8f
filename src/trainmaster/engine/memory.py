"""What must be remembered about pods that are gone or going, and how that stays small.

It lives in `status.postMortem`. Per member one UID and one number, so nothing is counted twice however often the same
pod is looked at; per role the indexes that succeeded, as ranges; and how replicas ended, in words, for the first few
and the last few. The first end of a gang is usually the cause and the others follow from it; the last ones show
whether it is still happening; what lies between is dropped. Counting restarts in the pods themselves was rejected: a
count that lives in a pod dies with it.
"""

from collections.abc import Iterable
from datetime import datetime

from msgspec.structs import replace

from trainmaster.api.policy import EndedReplica, JobStatus, PostMortem, ReplicaMemory
from trainmaster.api.validation import MOST_REPLICAS
from trainmaster.engine.observed import Pod

KEPT_FIRST = 5
KEPT_LAST = 5
# Enough for a Python traceback; ten of these are a twentieth of what etcd takes per object.
LAST_WORDS = 2048

_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
            10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM"}
EMPTY = PostMortem()


def recall(status: JobStatus) -> PostMortem:
    return status.post_mortem or EMPTY


def keep(status: JobStatus, memory: PostMortem) -> JobStatus:
    """The status with this memory; without the field as long as there is nothing to remember."""
    return replace(status, post_mortem=memory if memory != EMPTY else None)


def noted(memory: PostMortem, pod: Pod) -> bool:
    """Whether this very pod's bad end has been written down."""
    known = memory.replicas.get(pod.member)
    return known is not None and known.uid == pod.uid


def note_end(memory: PostMortem, pod: Pod, *, comes_back: bool) -> PostMortem:
    """The memory with this pod's bad end in it; counts its restart if it comes back. Nothing the second time."""
    if noted(memory, pod):
        return memory
    before = memory.replicas.get(pod.member)
    restarts = (before.restarts if before else 0) + pod.restarts + (1 if comes_back else 0)
    ended = (*memory.ended, _post_mortem(pod))
    if len(ended) > KEPT_FIRST + KEPT_LAST:
        ended = (*ended[:KEPT_FIRST], *ended[-KEPT_LAST:])
    known = {**memory.replicas, pod.member: ReplicaMemory(uid=pod.uid, restarts=restarts)}
    return replace(memory, ended=ended, replicas=known)


def restarts(memory: PostMortem) -> int:
    """How often replicas were started again whose pods are no longer there to tell."""
    return sum(known.restarts for known in memory.replicas.values())


def completed(memory: PostMortem, role: str) -> frozenset[int]:
    return indexes(memory.completed.get(role, ""))


def note_completed(memory: PostMortem, role: str, done: Iterable[int]) -> PostMortem:
    """The memory with exactly these indexes of the role completed."""
    others = {name: text for name, text in memory.completed.items() if name != role}
    text = ranges(done)
    return replace(memory, completed={**others, role: text} if text else others)


def ranges(numbers: Iterable[int]) -> str:
    """Indexes as people write them: `0-3,7`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and runs[-1][-1] == number - 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join("-".join(str(end) for end in run) for run in runs)


def indexes(text: str) -> frozenset[int]:
    """The indexes that such a text names. It stands in a status, where somebody may have written anything."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        found.update(range(int(first), min(int(last or first), MOST_REPLICAS) + 1))
    return frozenset(found)


def in_words(code: int | None, reason: str = "") -> str:
    """What an exit code means, for people who do not know them by heart."""
    if reason == "OOMKilled":
        return "killed: out of memory"
    if reason in _NEVER_RAN:
        return "could not be started"
    if reason not in _OF_THE_PROGRAM:
        return f"ended by its node: {reason}"
    if code is None:
        return "ended without an exit code"
    if code > 128 and code - 128 in _SIGNALS:
        return f"killed by {_SIGNALS[code - 128]}"
    return _WORDS.get(code, f"exited with code {code}")


_NEVER_RAN = ("StartError", "ContainerCannotRun")
_OF_THE_PROGRAM = ("", "Error", "Completed")      # reasons that say no more than the exit code
_WORDS = {
    0: "exited well",
    126: "the command could not be executed",
    127: "the command was not found",
}


def _post_mortem(pod: Pod) -> EndedReplica:
    return EndedReplica(
        pod=pod.name,
        uid=pod.uid,
        exit_code=pod.exit_code,
        reason=pod.reason,
        says="deleted while it ran" if pod.phase == "Running" else in_words(pod.exit_code, pod.reason),
        node=pod.node,
        started_at=_seconds(pod.started),
        finished_at=_seconds(pod.finished),
        last_words=pod.last_words[-LAST_WORDS:],
    )


def _seconds(when: datetime | None) -> datetime | None:
    """As it will be when it is read again."""
    return when.replace(microsecond=0) if when else None
