"""Whether a job that runs does anything: what its replicas printed last, and what they use of the CPU.

A job hangs if all of its replicas are silent and idle. One that is only silent may compute: without figures of the CPU
nothing is claimed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object, moment, moment_if_any, name_of, namespace_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import KubeError
from trainmaster.progress.curves import lasting
from trainmaster.sdk.replicas import replica_of
from trainmaster.sdk.usage import Usage

MOST = 64              # replicas that are asked for their last line
QUIET = 300.0          # seconds of silence after which a job is suspected
WORTH_SAYING = 30.0    # seconds of silence
IDLE = 0.05            # cores


@dataclass(frozen=True, slots=True)
class Pulse:
    """One replica: seconds since its last line (or since it started), and cores in use if that is known."""

    replica: str
    silent: float
    cpu: float | None = None


def hangs(pulses: Sequence[Pulse], quiet: float = QUIET) -> bool:
    return bool(pulses) and all(each.silent >= quiet and each.cpu is not None and each.cpu < IDLE for each in pulses)


def told(pulses: Sequence[Pulse], quiet: float = QUIET) -> Iterator[str]:
    """What is worth saying about the silence of a job."""
    if not pulses:
        return
    last = min(pulses, key=lambda each: each.silent)
    if last.silent < quiet:
        if last.silent >= WORTH_SAYING:
            yield (f"{last.replica} printed nothing for {lasting(last.silent)}; a hang is suspected after "
                   f"{lasting(quiet)} (--quiet says otherwise)")
        return
    yield f"nothing was printed for {lasting(last.silent)}; {last.replica} was the last to say something"
    known = [each.cpu for each in pulses if each.cpu is not None]
    if len(known) < len(pulses):
        yield "whether it computes is not known: the cluster has no figures of CPU use for it"
    elif not hangs(pulses, quiet):
        yield f"but it computes: {sum(known):.1f} CPUs are in use"


async def pulses(client: Client, pods: Sequence[Object], used: dict[str, Usage] | None, now: datetime,
                 quiet: float = QUIET) -> list[Pulse]:
    """Of the replicas that run. As soon as one has just spoken the others need not be asked."""
    found: list[Pulse] = []
    for pod in pods[:MOST]:
        replica = replica_of(pod)
        started = _started(pod)
        if replica.state != "Running" or started is None:
            continue
        spoken = await _last_line(client, pod)
        cpu = used[replica.pod].cpu if used and replica.pod in used else None
        found.append(Pulse(replica.name, max(0.0, (now - max(started, spoken or started)).total_seconds()), cpu))
        if found[-1].silent < quiet:
            break
    return found


def _started(pod: Object) -> datetime | None:
    starts = [moment(running["startedAt"]) for each in (pod.get("status") or {}).get("containerStatuses") or ()
              if (running := (each.get("state") or {}).get("running") or {}).get("startedAt")]
    return min(starts, default=None)


async def _last_line(client: Client, pod: Object) -> datetime | None:
    text = await last_lines(client, pod, 1, timestamps=True)
    return moment_if_any(text.partition(" ")[0])


async def last_lines(client: Client, pod: Object, count: int, *, timestamps: bool = False) -> str:
    """The end of a pod's log; nothing if it cannot be had."""
    query = [("tailLines", str(count)), ("container", str(pod["spec"]["containers"][0]["name"]))]
    if timestamps:
        query.append(("timestamps", "true"))
    try:
        stream = await client.stream(PODS.path(namespace_of(pod), name_of(pod), "log"), query)
        try:
            return b"".join([chunk async for chunk in stream.chunks()]).decode(errors="replace")
        finally:
            await stream.close()
    except KubeError:
        return ""
