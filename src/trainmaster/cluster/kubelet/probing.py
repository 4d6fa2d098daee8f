"""When a container is looked at, and what the looks together mean: the kubelet's rules. Pure.

A startup probe comes first and alone; once it has succeeded, liveness and readiness are asked. One look decides nothing
before as many in a row agree as the threshold says.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.observed import ContainerSeen

Kind: TypeAlias = Literal["startup", "liveness", "readiness"]
KINDS: tuple[Kind, ...] = ("startup", "liveness", "readiness")


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe of a container, with the API's defaults."""

    kind: Kind
    handler: Object                     # exec, httpGet, tcpSocket or grpc
    delay: timedelta
    period: timedelta
    timeout: timedelta
    successes: int
    failures: int


@dataclass(frozen=True, slots=True)
class Tally:
    """What the looks so far came to."""

    outcome: bool | None = None         # what counts; None: nothing yet
    last: bool | None = None
    run: int = 0                        # looks in a row with the last outcome

    def after(self, probe: Probe, well: bool) -> "Tally":
        """One more look."""
        run = self.run + 1 if well is self.last else 1
        needed = probe.successes if well else probe.failures
        return replace(self, outcome=well if run >= needed else self.outcome, last=well, run=run)


def probe_of(container: Object, kind: Kind) -> Probe | None:
    found = container.get(f"{kind}Probe")
    if not found:
        return None

    def number(name: str, otherwise: int) -> int:
        return int(found.get(name) or otherwise)

    return Probe(
        kind, found, timedelta(seconds=number("initialDelaySeconds", 0)),
        timedelta(seconds=max(1, number("periodSeconds", 10))), timedelta(seconds=max(1, number("timeoutSeconds", 1))),
        max(1, number("successThreshold", 1)), max(1, number("failureThreshold", 3)),
    )


def wanted(container: Object, state: ContainerSeen, *, deleted: bool) -> list[Probe]:
    """The probes to be asked of a container as it is now. One that is being deleted is asked only whether it is ready:
    it may not be restarted any more, but its service should know."""
    if not state.running or state.beginning or state.verdict:
        return []
    kinds: tuple[Kind, ...] = ("liveness", "readiness") if state.started else ("startup",)
    if deleted:
        kinds = ("readiness",) if state.started else ()
    return [probe for kind in kinds if (probe := probe_of(container, kind)) is not None]


def settled(probe: Probe, tally: Tally) -> bool:
    """Whether nothing is left to ask of this attempt: it is started, or must end."""
    if probe.kind == "startup":
        return tally.outcome is not None
    return probe.kind == "liveness" and tally.outcome is False


def next_look(due: datetime, now: datetime, period: timedelta) -> datetime:
    """The next beat of the period after a look that was due then; beats that passed meanwhile are skipped."""
    missed = max(0, (now - due) // period)
    return due + period * (missed + 1)
