"""What a client and a command say to each other, whatever carries it.

kubectl, the Python client and browsers speak three dialects of one thing: what is typed, what is printed on two
streams, the size of a window, and at the end how it went. Here is that one thing; `channels` and `spdy_talk` are the
dialects. Everything is pulled: nothing is read from a client faster than the command takes it, nor from the command
faster than the client does.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import orjson

from trainmaster.api.meta import Object

STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)


@dataclass(frozen=True, slots=True)
class Asked:
    """Which of the streams a client wants, in the words of the API."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False

    @property
    def streams(self) -> set[int]:
        """The streams that the client will open."""
        wanted = {STDIN: self.stdin, STDOUT: self.stdout, STDERR: self.stderr and not self.tty, RESIZE: self.tty}
        return {ERROR} | {stream for stream, is_wanted in wanted.items() if is_wanted}


@dataclass(frozen=True, slots=True)
class Typed:
    """Something for the command's input; nothing: its end."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Resized:
    columns: int
    rows: int


Heard: TypeAlias = Typed | Resized


class Talk(Protocol):
    """The client's side of a conversation. Both methods raise ConnectionError when the client is gone."""

    def heard(self) -> AsyncIterator[Heard]:
        """What comes from the client, until it has gone."""
        ...

    async def say(self, stream: int, data: bytes) -> None: ...

    async def end(self, status: Object) -> None:
        """Tell how it went, and that there is no more."""
        ...

    async def close(self) -> None:
        """Let go of the connection, whatever state it is in."""
        ...


class Gone(ConnectionError):
    """The client has gone, or speaks nonsense."""


SUCCESS: Object = {"metadata": {}, "status": "Success"}


def exited(argv: Sequence[str], code: int) -> Object:
    """How a command ended, as a Status that kubectl takes its own exit code from."""
    if code == 0:
        return SUCCESS
    return {
        "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: error executing command [{' '.join(argv)[:1000]}], "
                   f"exit code {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def failed(what: str) -> Object:
    """What kept a command from being run."""
    return {
        "metadata": {}, "status": "Failure", "reason": "InternalError", "message": f"Internal error occurred: {what}",
        "details": {"causes": [{"message": what}]}, "code": 500,
    }


def size(raw: bytes) -> Resized | None:
    """A message about a window, which is JSON of Kubernetes' making; None for one that makes no sense."""
    try:
        said = orjson.loads(raw)
        return Resized(int(said["Width"]), int(said["Height"]))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return None
