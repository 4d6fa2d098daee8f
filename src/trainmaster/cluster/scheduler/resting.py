"""Groups that have all they want, and what was found about them, kept until they or their pods change.

Most groups of a busy cluster are of this sort. No decision changes them, so the next one need not look at them again,
nor write about them; only what they hold counts.
"""

from dataclasses import dataclass

from trainmaster.cluster.scheduler import dialects
from trainmaster.cluster.scheduler.census import Census
from trainmaster.cluster.scheduler.gangs import COMPLETED, RUNNING, Gang
from trainmaster.cluster.scheduler.settings import Verdict
from trainmaster.cluster.scheduler.snapshot import Group, Snapshot


@dataclass(frozen=True, slots=True)
class Rest:
    gang: Gang           # nothing in it changes while it rests
    verdict: Verdict


def known(snapshot: Snapshot, group: Group, census: Census, priority: int) -> Rest | None:
    """What was kept about a group that is as it was."""
    found = snapshot.resting.get(group.key)
    assert found is None or isinstance(found, Rest)
    if found is None or found.gang.group is not group or found.gang.census is not census \
            or found.gang.priority != priority:
        return None
    return found


def keep(snapshot: Snapshot, gang: Gang, verdict: Verdict) -> None:
    """Note what was found about a gang if it rests: all of its pods have a place or are done, and it is neither asked
    about at the entrance nor promised anything."""
    entering = dialects.by_name(gang.group.key.dialect).enqueues and gang.pending
    over = verdict.phase == COMPLETED or (verdict.phase == RUNNING and verdict.ready)
    if over and not gang.census.line and not gang.promised and not entering and not verdict.events:
        snapshot.resting[gang.group.key] = Rest(gang, verdict)
