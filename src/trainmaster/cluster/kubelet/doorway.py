"""The shim's door: a Unix socket in the attempt's directory, on which an agent asks what nobody else could tell it.

Two things live in the shim alone. What the container was started with: an agent may be younger than the container, a
ConfigMap has changed since, a secret was never on disk; it is kept in a memory file and handed out. And the other ends
of the container's streams: whoever attaches is shown what is printed from then on, and may type. The directory can be
opened by the owner of the cluster alone.

Visitors never hold the container up. What one does not take is kept for it up to a bound and then left out, and it is
told so; what it types waits until the container reads it. Messages after an attach begin with a byte: the stream
(`talk` has the same numbers), or END. Small standard modules only: the shims carry this one.
"""

import collections
import contextlib
import json
import os
import select
import socket
import struct
import time

from trainmaster.cluster.kubelet.command import Footing, resize

NAME = "shim.sock"
STDIN, STDOUT, STDERR, RESIZE, END = 0, 1, 2, 4, 255
SIZE = struct.Struct(">HH")             # columns, rows
MOST_TYPED = 1 << 15                    # bytes of one message to the container
_MOST_KEPT = 1 << 20                    # bytes that are kept for a visitor who does not take them
_MOST_VISITORS = 32


class Doorway:
    """Listens on the shim's socket. To be made in the cluster's mount namespace, before the root changes."""

    def __init__(self, directory: int, footing: Footing) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.fchdir(directory)               # an address holds no more than 107 bytes
        self._listener.bind(NAME)
        self._listener.listen(16)
        self._listener.setblocking(False)
        self._memory = os.memfd_create("footing", os.MFD_CLOEXEC)
        with open(self._memory, "wb", closefd=False) as file:
            file.write(json.dumps(footing).encode())
        self._visitors: dict[int, _Visitor] = {}
        self._poller: select.poll | None = None
        self._input = -1
        self._waiting = b""                # typed, and not yet read by the container
        self._terminal = False
        self._once = False

    def attend(self, poller: select.poll, stdin: int, *, terminal: bool, once: bool) -> None:
        """Begin to answer. `stdin` is where typed bytes go, -1 for nowhere; `once`: its first visitor's end ends it."""
        self._poller, self._input, self._terminal, self._once = poller, stdin, terminal, once
        if stdin >= 0:
            os.set_blocking(stdin, False)
        poller.register(self._listener, select.POLLIN)

    def handle(self, fd: int, events: int) -> None:
        """Something happened on a descriptor that may be one of ours."""
        if fd == self._listener.fileno():
            self._admit()
        elif fd == self._input and events & (select.POLLOUT | select.POLLERR):
            self._type(b"")
        elif fd in self._visitors:
            visitor = self._visitors[fd]
            try:
                if events & select.POLLOUT:
                    visitor.flush()
                if events & ~select.POLLOUT:
                    self._hear(visitor)
                self._watch(visitor)
            except OSError:
                self._dismiss(visitor)

    def show(self, stream: int, data: bytes) -> None:
        """What the container printed."""
        for visitor in [*self._visitors.values()]:
            if visitor.attached:
                try:
                    visitor.show(stream, data)
                    self._watch(visitor)
                except OSError:
                    self._dismiss(visitor)

    def lost(self, fd: int) -> None:
        """Nothing more comes from a descriptor of the container; of a terminal, nothing can be typed either."""
        if fd == self._input:
            self._input = -1

    def farewell(self, seconds: float) -> None:
        """Let visitors take what was kept for them, but do not wait for ever."""
        until = time.monotonic() + seconds
        while (slow := [each for each in self._visitors.values() if each.behind]) and time.monotonic() < until:
            ready = select.select([], slow, [], max(0.0, until - time.monotonic()))[1]
            for visitor in ready:
                try:
                    visitor.flush()
                except OSError:
                    self._visitors.pop(visitor.fileno(), None)

    def _admit(self) -> None:
        with contextlib.suppress(OSError):
            caller, _ = self._listener.accept()
            caller.setblocking(False)
            if len(self._visitors) >= _MOST_VISITORS:
                caller.close()
                return
            visitor = self._visitors[caller.fileno()] = _Visitor(caller)
            self._watch(visitor)

    def _hear(self, visitor: "_Visitor") -> None:
        """Raises OSError when the visitor is gone or has got what it wanted."""
        said = visitor.socket.recv(MOST_TYPED + 1)
        if not said:
            raise ConnectionResetError
        if not visitor.attached:
            self._greet(visitor, said)
        elif said[0] == STDIN:
            self._type(said[1:])
        elif said[0] == END:
            visitor.types = False
            self._end_input()
        elif said[0] == RESIZE and self._terminal and self._input >= 0 and len(said) == 1 + SIZE.size:
            resize(self._input, *SIZE.unpack(said[1:]))

    def _greet(self, visitor: "_Visitor", said: bytes) -> None:
        try:
            wish = json.loads(said)
        except ValueError:
            wish = {}
        if wish.get("do") == "attach":
            visitor.attached, visitor.types = True, bool(wish.get("stdin")) and self._input >= 0
            visitor.socket.send(b"{}")
            return
        if wish.get("do") == "footing":
            socket.send_fds(visitor.socket, [b"{}"], [self._memory])
        raise ConnectionResetError          # that was all

    def _type(self, data: bytes) -> None:
        """Bytes for the container's input, as far as it takes them; the rest waits, and so do those who type."""
        self._waiting += data
        try:
            while self._waiting and self._input >= 0:
                self._waiting = self._waiting[os.write(self._input, self._waiting):]
        except BlockingIOError:
            pass
        except OSError:
            self._waiting = b""
            self._drop_input()             # the container will read no more
        if self._poller is not None and self._input >= 0:
            self._poller.register(self._input, (select.POLLOUT if self._waiting else 0)
                                  | (select.POLLIN if self._terminal else 0))
            if not self._waiting and not self._terminal:
                self._poller.unregister(self._input)
        for visitor in self._visitors.values():
            self._watch(visitor)

    def _watch(self, visitor: "_Visitor") -> None:
        if self._poller is not None:
            listening = 0 if visitor.types and self._waiting else select.POLLIN
            self._poller.register(visitor.socket, listening | (select.POLLOUT if visitor.behind else 0))

    def _dismiss(self, visitor: "_Visitor") -> None:
        if self._visitors.pop(visitor.fileno(), None) is None:
            return
        if self._poller is not None:
            self._poller.unregister(visitor.socket)
        visitor.socket.close()
        if visitor.types:
            self._end_input()

    def _end_input(self) -> None:
        """Somebody who typed is done. A terminal has no such end."""
        if self._once and not self._terminal:
            self._drop_input()

    def _drop_input(self) -> None:
        if self._input >= 0 and not self._terminal:
            if self._poller is not None:
                with contextlib.suppress(KeyError):
                    self._poller.unregister(self._input)
            os.close(self._input)
            self._input = -1


class _Visitor:
    """An agent at the door."""

    def __init__(self, caller: socket.socket) -> None:
        self.socket = caller
        self.attached = False
        self.types = False
        self._kept: collections.deque[bytes] = collections.deque()
        self._size = 0
        self._missed = 0

    def fileno(self) -> int:
        return self.socket.fileno()

    @property
    def behind(self) -> bool:
        return bool(self._kept)

    def show(self, stream: int, data: bytes) -> None:
        """Raises OSError when the visitor is gone."""
        if self._size + len(data) > _MOST_KEPT:
            self._missed += len(data)
            return
        if self._missed:
            note = f"\r\n[{self._missed} bytes were printed too fast to be shown here; the log has them]\r\n"
            self._kept.append(bytes([STDERR]) + note.encode())
            self._size += len(note)
            self._missed = 0
        self._kept.append(bytes([stream]) + data)
        self._size += len(data) + 1
        self.flush()

    def flush(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._kept:
                self.socket.send(self._kept[0])
                self._size -= len(self._kept.popleft())
        if not self._kept:
            self._size = 0
