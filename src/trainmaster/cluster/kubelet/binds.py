"""Places of the host that a container shows: its volumes, and parts of them, opened for a container that is to be made.

What is in a volume belongs to its pods, so between a look at a subPath and its use it may have become something else.
So it is looked up once, by the kernel's rules, and what was found is held open. That comes before the attempt counts as
made: what is not there now, or leads out, is tried again later, as a kubelet does, whatever the restartPolicy.
"""

import contextlib
import errno
import os
import stat
from typing import NamedTuple, NotRequired, TypedDict

from trainmaster.cluster.kubelet import linux
from trainmaster.cluster.kubelet.records import Step

SUB_PATH = "prepare the subPath"      # how the step begins that fails when a place in a volume is not what it should be


class Bind(TypedDict):
    """Something of the host shown in the container."""

    source: str
    target: str
    readonly: bool
    within: NotRequired[str]      # the source is a place in this volume, made if it is missing


class Opened(NamedTuple):
    """A volume, ready to be put in its place."""

    target: str
    tree: int
    is_directory: bool


def opened(binds: list[Bind]) -> list[Opened]:
    """All of them, in their order. Raises Failed."""
    return [_opened(bind) for bind in binds]


def _opened(bind: Bind) -> Opened:
    with Step(f"{SUB_PATH if bind.get('within') else 'open the volume'} for {bind['target']}"):
        handle = open_source(bind)
        try:
            tree = linux.clone_tree(handle, _attributes(bind))
            return Opened(bind["target"], tree, stat.S_ISDIR(os.fstat(handle).st_mode))
        finally:
            os.close(handle)


def open_source(bind: Bind) -> int:
    """The source of a bind. A subPath is looked up here and never before: what is in a volume belongs to its pods, who
    could put a link to somewhere else in its place as soon as it was found to be none."""
    volume = bind.get("within")
    if not volume:
        return os.open(bind["source"], os.O_PATH | os.O_CLOEXEC)
    root = os.open(volume, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _beneath(root, os.path.relpath(bind["source"], volume).split("/"))
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise OSError(errno.EXDEV, "it leads out of its volume", bind["source"]) from error
        raise
    finally:
        os.close(root)


def _beneath(root: int, parts: list[str]) -> int:
    """A place in a volume; missing folders are made, for whoever may write the volume."""
    facts = os.fstat(root)
    above = os.dup(root)
    for number, name in enumerate(parts):
        try:
            found = linux.open_beneath(root, "/".join(parts[:number + 1]))
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=above)
            made = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
            with contextlib.suppress(OSError):      # an owner who has no number in our user namespace
                os.fchown(made, facts.st_uid, facts.st_gid)
            os.fchmod(made, stat.S_IMODE(facts.st_mode))
            os.close(made)
            found = linux.open_beneath(above, name)
        finally:
            os.close(above)
        above = found
    return above


def _attributes(bind: Bind) -> int:
    return linux.ATTR_NODEV | linux.ATTR_NOSUID | (linux.ATTR_RDONLY if bind["readonly"] else 0)
