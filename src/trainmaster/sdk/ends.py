"""Bad ends of a job's replicas: which came first, in what words, and which only followed from it. Pure.

When one replica of a gang dies the others soon do too, with louder words: a lost connection, a signal. What a person
must read is the first; the rest is told as what it is.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from trainmaster.api.meta import Object, moment, name_of, uid_of
from trainmaster.api.policy import EndedReplica
from trainmaster.sdk.replicas import OOM, STOPPED, exit_in_words, replica_of

LAST_WORDS = 10         # lines
SOON = 120.0            # seconds within which a later end is taken for a consequence
_FAR = datetime.max.replace(tzinfo=UTC)
# What libraries of collective communication, RPC and sockets say when the other side has gone.
_LOST_PEER = re.compile(
    r"connection (?:reset|refused|closed|aborted)|broken pipe|socket closed|closed by peer|unavailableerror|"
    r"nccl|gloo|process group|rendezvous|heartbeat|coordination service|peer .{0,40}(?:lost|gone|failed)|"
    r"end of file|eoferror|barrier", re.IGNORECASE)

_OF_THE_PROGRAM = ("", "Error", "Completed", OOM)      # ends that are told by what the program printed
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.-]+)'")


@dataclass(frozen=True, slots=True)
class End:
    """How one replica ended badly."""

    pod: str
    exit_code: int | None = None
    reason: str = ""
    says: str = ""
    node: str = ""
    at: datetime | None = None
    last_words: str = ""

    def told(self) -> str:
        code = "" if self.exit_code is None else f"exit code {exit_in_words(self.exit_code)}"
        reason = "" if self.reason in ("", "Error") or self.reason in self.says else self.reason
        parts = ["" if self.says else code, self.says, reason,
                 f"on node {self.node}" if self.node else ""]
        return ", ".join(part for part in parts if part) or "no reason was given"


def ends_of(remembered: Sequence[EndedReplica], pods: Sequence[Object]) -> list[End]:
    """All bad ends, the first first: of pods that are gone, and of those that are still there."""
    found = {each.uid: End(each.pod, each.exit_code, each.reason, each.says, each.node, each.finished_at,
                           each.last_words) for each in remembered}
    for pod in pods:
        if uid_of(pod) not in found and (end := _end(pod)) is not None:
            found[uid_of(pod)] = end
    return sorted(found.values(), key=lambda each: (each.at or _FAR, each.pod))


def _end(pod: Object) -> End | None:
    status = pod.get("status") or {}
    if status.get("phase") != "Failed":
        return None
    replica = replica_of(pod)
    ended = [each["state"]["terminated"] for each in status.get("containerStatuses") or ()
             if "terminated" in (each.get("state") or {})]
    bad = next((each for each in ended if each.get("exitCode")), ended[0] if ended else {})
    by_node = str(status.get("reason") or "")      # of the whole pod: the cause of how its containers ended
    reason = by_node or str(bad.get("reason") or "")
    said = str(status.get("message") or "").strip() if by_node or not bad else ""
    return End(name_of(pod), bad.get("exitCode", replica.exit_code if bad else None), reason, said,
               str((pod.get("spec") or {}).get("nodeName") or ""),
               moment(bad["finishedAt"]) if bad.get("finishedAt") else None, str(bad.get("message") or ""))


def told(ends: Sequence[End]) -> Iterator[str]:
    """Who failed first, its last words, and what became of the others."""
    if not ends:
        return
    first, rest = ends[0], ends[1:]
    yield f"{first.pod} failed first: {first.told()}"
    yield from words_told(first.last_words, first.reason)
    for other in rest:
        yield f"{other.pod} failed {later(first, other)}: {other.told()}{_verdict(first, other)}"


def words_told(last_words: str, reason: str) -> Iterator[str]:
    """What a replica printed last, and what to do about it."""
    if last_words:
        yield "its last words:" if reason in _OF_THE_PROGRAM else "the node says:"
        yield from (f"  {line}" for line in last_words.splitlines()[-LAST_WORDS:])
    if advice := remedy(last_words, reason):
        yield advice


def remedy(words: str, reason: str = "") -> str:
    """What to do about an end that nearly always means one thing; nothing if nothing is that clear."""
    if reason == OOM:
        return ("Give it more memory (resources.limits.memory of its role), or let it hold less: smaller "
                "batches, fewer loaders.")
    if found := _NO_MODULE.search(words):
        return (f"The replicas have no module '{found[1]}'. Scripts: write its package into a file and run again with "
                "--requirements FILE (or --framework, if it belongs to one). Manifests: use an image that has it.")
    return ""


def later(first: End, other: End) -> str:
    if first.at is None or other.at is None:
        return "after it"
    seconds = (other.at - first.at).total_seconds()
    return "in the same second" if seconds < 1 else f"{seconds:.0f} s later"


def _verdict(first: End, other: End) -> str:
    seconds = (other.at - first.at).total_seconds() if first.at and other.at else 0.0
    if other.exit_code in STOPPED:
        return "; it was stopped, a consequence"
    if _LOST_PEER.search(other.last_words):
        return "; it lost its peers, a consequence"
    return "; perhaps a consequence" if 1 <= seconds <= SOON else ""
