"""The few rules of success and failure that the frameworks choose from.

A rule goes through the roles in order and stops at the first terminal word, so that what happens in the same moment has
one outcome: the role that decides is asked before the ones that only can fail.
"""

from collections.abc import Callable, Mapping

from trainmaster.frameworks.framework import Failed, Group, Outcome, Running, Succeeded, Tally

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


def running(group: Group) -> Running:
    return Running(f"{group.kind.kind} {group.namespace}/{group.job} is running.")


def succeeded(group: Group) -> Succeeded:
    return Succeeded(f"{group.kind.kind} {group.namespace}/{group.job} successfully completed.")


def failed(group: Group, tally: Tally) -> Failed:
    return Failed(
        f"{group.kind.kind} {group.namespace}/{group.job} has failed because "
        f"{tally.failed} {tally.role.name} replica(s) failed."
    )
