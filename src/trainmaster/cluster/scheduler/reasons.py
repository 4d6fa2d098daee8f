"""Why a job waits: one structured reason for each, compact enough to be kept on its group, true enough to act on.

A reason names what is short so exactly that adding just that makes the job start (a property of the tests). Texts for
people are made from it where they are shown, so that the words can change without another decision.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from trainmaster.cluster.scheduler.amounts import PODS, Amounts, shown


class Code(StrEnum):
    QUEUE_MISSING = "QueueMissing"
    QUEUE_CLOSED = "QueueClosed"
    QUEUE_FOREIGN = "QueueForeign"            # it is for other namespaces
    QUEUE_INNER = "QueueInner"                # it has queues below it: jobs go into those
    QUEUE_FULL = "QueueFull"                  # the queue may not have so much now
    QUOTA_SHORT = "QuotaShort"                # a ResourceQuota of its namespace leaves too little
    CLUSTER_FULL = "ClusterFull"              # Volcano's overcommit check: its pods may not even be made
    TOO_FEW_MEMBERS = "TooFewMembers"         # not enough pods exist
    NO_NODE_FITS = "NoNodeFits"
    BEING_FREED = "BeingFreed"                # fits as soon as pods that are ending are gone
    IN_LINE = "InLine"                        # room is kept for somebody who waits longer


@dataclass(frozen=True, slots=True)
class Reason:
    code: Code
    least: int = 0                                        # members that must start together
    fitting: int = 0                                      # of them: those for whom there is room
    queue: str = ""
    quota: str = ""                                       # the ResourceQuota that leaves too little
    position: int = 0                                     # in its queue, from 1
    short: Amounts = field(default_factory=dict)          # what is missing in all
    largest: Amounts = field(default_factory=dict)        # of what is missing: the largest free piece on one node
    each: Amounts = field(default_factory=dict)           # of what is missing: what one member needs on one node
    filters: Mapping[str, int] = field(default_factory=dict)   # obstacle -> number of nodes
    nodes: int = 0
    holders: tuple[tuple[str, Amounts], ...] = ()         # jobs that hold what is missing, and how much
    ever: bool = True                                     # whether it would fit if nothing else ran

    def told(self) -> str:
        """One sentence for people."""
        line = f"; number {self.position} in queue {self.queue}" if self.position > 1 else ""
        return self._cause() + line

    def _cause(self) -> str:
        match self.code:
            case Code.QUEUE_MISSING:
                return f"queue {self.queue} does not exist; create it or name another"
            case Code.QUEUE_CLOSED:
                return f"queue {self.queue} is closed and starts nothing new"
            case Code.QUEUE_FOREIGN:
                return f"queue {self.queue} is not for this namespace; name another, or have its selector widened"
            case Code.QUEUE_INNER:
                return f"queue {self.queue} has queues below it and starts nothing itself; name one of those"
            case Code.QUEUE_FULL:
                so_much = "not have so much now" if self.ever else "never have so much"
                return self._shortage(f"queue {self.queue} may {so_much}")
            case Code.QUOTA_SHORT:
                left = "leaves too little now" if self.ever else "never leaves enough"
                return self._shortage(f"quota {self.quota} {left}")
            case Code.TOO_FEW_MEMBERS:
                return f"{self.fitting} of {self.least} members exist; it starts when all are there"
            case Code.BEING_FREED:
                return "fits as soon as the pods that are ending are gone"
            case Code.IN_LINE:
                return "room is kept for a job that has waited longer"
            case Code.CLUSTER_FULL:
                return self._shortage("the cluster is too full to begin")
        return self._shortage(f"{self.fitting} of {self.least} members fit")

    def _shortage(self, start: str) -> str:
        text = start
        if self.short:
            text += f": {_amounts(self.short)} short"
        else:
            told = ", ".join(f"{count} {what}" for what, count in sorted(self.filters.items()))
            text += f": {told}" if told else ""
        pieces = {name: amount for name, amount in self.largest.items() if 0 < amount < self.each.get(name, 0)}
        if pieces:      # there is some, but not in one place
            text += (f" (each needs {_amounts({name: self.each[name] for name in pieces})} on one node; "
                     f"the most that is free on one is {_amounts(pieces)})")
        if not self.ever:
            said = self.code in {Code.QUEUE_FULL, Code.QUOTA_SHORT}
            text += "" if said else "; it would not fit even if nothing else ran"
        elif self.holders:
            text += f"; held by {', '.join(f'{name} ({_amounts(held)})' for name, held in self.holders)}"
        return text

    def compact(self) -> dict[str, Any]:
        """For an annotation: only what says something."""
        said: dict[str, Any] = {"code": str(self.code)}
        for name in ("least", "fitting", "queue", "quota", "position", "nodes"):
            if value := getattr(self, name):
                said[name] = value
        for name in ("short", "largest", "each"):
            if value := getattr(self, name):
                said[name] = {what: shown(what, amount) for what, amount in value.items()}
        if self.filters:
            said["filters"] = dict(sorted(self.filters.items()))
        if self.holders:
            said["holders"] = {name: {what: shown(what, amount) for what, amount in held.items()}
                               for name, held in self.holders}
        if not self.ever:
            said["ever"] = False
        return said


def _amounts(amounts: Amounts) -> str:
    return ", ".join(f"{shown(name, amount)} {'places for pods' if name == PODS else name}"
                     for name, amount in sorted(amounts.items()) if amount > 0)
