"""Whom a pod's volumes belong to: fsGroup and runAsUser, so that a container that is not root can write its volumes.

An ordinary user's node has one user to give things to, who has them already: there nothing is changed.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from trainmaster.api.meta import Object
from trainmaster.cluster.kubelet.containers import own_containers
from trainmaster.cluster.kubelet.environment import security_of

READ, WRITE = 0o440, 0o660      # what the group may do with files, as the kubelet
_FOR_DIRECTORIES = 0o2110        # may be entered, and hand their group on


@dataclass(frozen=True, slots=True)
class Owner:
    """-1 where the pod says nothing."""

    user: int
    group: int
    shared: bool                 # by fsGroup: the group gets its rights on everything that is there
    only_if_needed: bool = False


def owner_of(pod: Object) -> Owner | None:
    """Who should own the volumes of a pod; None where nothing is asked, or nothing can be done."""
    if os.geteuid() != 0:
        return None
    context = pod["spec"].get("securityContext") or {}
    group = context.get("fsGroup")
    users = {_number(security_of(pod, container).get("runAsUser")) for container in own_containers(pod)}
    user = users.pop() if len(users) == 1 else -1
    if group is None and user <= 0:
        return None
    own = _number(context.get("runAsGroup"))
    return Owner(
        max(user, -1), _number(group) if group is not None else own, group is not None,
        context.get("fsGroupChangePolicy") == "OnRootMismatch",
    )


def give(place: Path, owner: Owner, rights: int, *, below: bool = True, first: bool = True) -> None:
    """Make a directory the owner's. `first`: nobody has used it yet, so the user owns it too.

    The group of an fsGroup gets its rights on everything inside, and whatever is made there later is the group's.
    """
    if not (owner.shared or first):
        return
    if owner.only_if_needed and not first and _has(place.lstat(), owner.group, rights):
        return
    user = owner.user if first else -1
    more = rights if owner.shared else 0
    if below:
        # By descriptors: others may be at work in there, and a link they put in our way must not lead us out.
        for _, directories, names, folder in os.fwalk(place):
            for name in (*directories, *names):
                _hand_over(name, user, owner.group, more, folder)
    _hand_over(place, user, owner.group, more, None)


def _hand_over(name: str | Path, user: int, group: int, rights: int, folder: int | None) -> None:
    try:
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return                                 # somebody deleted it meanwhile
    try:
        facts = os.fstat(handle)
        os.chown(name, user, group, dir_fd=folder, follow_symlinks=False)
        if rights and not stat.S_ISLNK(facts.st_mode):
            more = rights | (_FOR_DIRECTORIES if stat.S_ISDIR(facts.st_mode) else 0)
            Path(f"/proc/self/fd/{handle}").chmod(stat.S_IMODE(facts.st_mode) | more)
    finally:
        os.close(handle)


def _has(facts: os.stat_result, group: int, rights: int) -> bool:
    wanted = rights | _FOR_DIRECTORIES
    return facts.st_gid == group and stat.S_IMODE(facts.st_mode) & wanted == wanted


def _number(value: object) -> int:
    return int(str(value)) if value is not None else -1
