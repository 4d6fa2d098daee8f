"""The words of the store: what it keeps, what it tells, what it is asked to do, and how it says no.

A step is a value, so that several of them can be one transaction and a single write is just a transaction of one.
"""

from collections.abc import Callable
from dataclasses import dataclass

Encode = Callable[[int], bytes]  # the revision that the write got -> the bytes to keep


@dataclass(frozen=True, slots=True)
class Record:
    """One object as it was written at `revision`."""

    key: str
    value: bytes
    revision: int
    created: int  # revision of its creation


@dataclass(frozen=True, slots=True)
class Change:
    """One write as a watcher sees it.

    `value` is None when the object was deleted; `before` is then its last state: the final bytes that the deletion was
    given (they carry the deletion's revision), or the bytes it had when none were given.
    """

    revision: int
    key: str
    value: bytes | None
    before: bytes | None


@dataclass(frozen=True, slots=True)
class Create:
    key: str
    encode: Encode


@dataclass(frozen=True, slots=True)
class Update:
    """`urgent`: part of a deletion (a deletion timestamp, a finalizer taken off), so it may use the disk reserve."""

    key: str
    encode: Encode
    expected: int
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    key: str
    expected: int
    encode: Encode | None = None


Step = Create | Update | Delete


class Stale(Exception):
    """Somebody else wrote first, or the object is (not) there. `current` is what is stored now."""

    def __init__(self, key: str, current: Record | None) -> None:
        what = "does not exist" if current is None else f"is at revision {current.revision}"
        super().__init__(f"{key} {what}")
        self.key = key
        self.current = current


class Compacted(Exception):
    """The revision asked for is forgotten; `oldest` is the oldest still known."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"revision {asked} is no longer kept; the oldest that is kept is {oldest}")
        self.asked = asked
        self.oldest = oldest


class Ahead(Exception):
    """The revision asked for has not happened yet: it comes from another cluster, or from a copy that was restored."""

    def __init__(self, asked: int, newest: int) -> None:
        super().__init__(f"revision {asked} has not happened yet; the newest is {newest}")
        self.asked = asked
        self.newest = newest


class Lagged(Exception):
    """A subscriber read so slowly that the next change for it is forgotten. It must list again."""

    def __init__(self, progress: int, oldest: int) -> None:
        super().__init__(f"read up to revision {progress}, but changes up to {oldest} are no longer kept; list again")
        self.progress = progress
        self.oldest = oldest


class Refused(Exception):
    """The disk cannot take this write now. Nothing was changed; `reason` is a sentence for people."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Closed(Exception):
    """The store was closed."""

    def __init__(self) -> None:
        super().__init__("the store is closed")


class Unusable(Exception):
    """The file cannot be opened; the message says why and what to do. It was not changed."""


class Newer(Unusable):
    """The file was written by a newer version of Trainmaster."""


class Damaged(Unusable):
    """The file is not one of ours, or what is in it cannot be read."""


class Locked(Unusable):
    """Another process has the file open."""
