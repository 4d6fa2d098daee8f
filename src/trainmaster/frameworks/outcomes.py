"""The few rules of success and failure that the frameworks choose from, and their words.

A rule goes through the roles in order and stops at the first terminal word, so that what happens in the same moment has
one outcome: the role that decides is asked before the ones that only can fail (B-11, B-12). The words are upstream's,
which has two sets of them: jobs without a leader are named with their namespace, the others without.
"""

from collections.abc import Callable, Mapping

from trainmaster.frameworks.framework import Failed, Group, Outcome, Role, Running, Succeeded, Tally

Judge = Callable[[Group, Tally], Outcome]


def in_order(group: Group, tallies: Mapping[str, Tally], judge: Judge) -> Outcome:
    """The first terminal judgement over the roles in order; else the last one that was not empty."""
    so_far: Outcome = None
    for role in group.roles:
        judged = judge(group, tallies[role.name])
        if isinstance(judged, Succeeded | Failed):
            return judged
        so_far = judged or so_far
    return so_far


def led(group: Group, tallies: Mapping[str, Tally], *, one_is_enough: bool = False) -> Outcome:
    """The master decides if there is one, else all workers, or any of them; whoever fails for good fails the job."""
    led_by_master = group.has("Master")
    decides = "Master" if led_by_master else "Worker"

    def judge(group: Group, tally: Tally) -> Outcome:
        if tally.role.name == decides and is_done(tally, one_is_enough=one_is_enough and not led_by_master):
            return succeeded(group, full=not led_by_master)
        if tally.failed:
            return gave_up(group, tally)
        return running(group, full=not led_by_master) if tally.role.name == decides and tally.active else None

    return in_order(group, tallies, judge)


def is_done(tally: Tally, *, one_is_enough: bool = False) -> bool:
    """Whether a role has succeeded. Upstream takes one with no replicas for a finished one; it never ran (B-01)."""
    return tally.role.replicas > 0 and (tally.left <= 0 or (one_is_enough and tally.succeeded > 0))


def running(group: Group, *, full: bool = True) -> Running:
    return Running(f"{group.kind.kind} {_name(group, full)} is running.")


def succeeded(group: Group, *, full: bool = True) -> Succeeded:
    return Succeeded(f"{group.kind.kind} {_name(group, full)} {'' if full else 'is '}successfully completed.")


def failed(group: Group, tally: Tally) -> Failed:
    return Failed(
        f"{group.kind.kind} {_name(group, full=True)} has failed because "
        f"{tally.failed} {tally.role.name} replica(s) failed."
    )


def gave_up(group: Group, tally: Tally, kind: str = "") -> Failed:
    """The same in the words of every kind but the oldest."""
    who = kind or group.kind.kind
    return Failed(f"{who} {group.job} is failed because {tally.failed} {tally.role.name} replica(s) failed.")


def restarts(group: Group, role: Role, count: int) -> str:
    return f"{group.kind.kind} {group.job} is restarting because {count} {role.name} replica(s) failed."


def _name(group: Group, full: bool) -> str:
    return f"{group.namespace}/{group.job}" if full else group.job
