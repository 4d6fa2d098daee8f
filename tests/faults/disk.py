"""A disk beneath SQLite that can be watched, slowed down, filled up, broken, and pulled out.

It wraps the file operations of the SQLite library that Python itself uses, for the whole process, while installed. The
code under test is the code that ships and knows nothing of it. Real processes are killed and real file systems are
filled elsewhere; here the moment can be chosen: the n-th write, the sync of the log, half a page.
"""

import _sqlite3
import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

OK = 0
FULL = 13
IO_ERROR_WRITE = 778
IO_ERROR_SYNC = 1034


@dataclass(frozen=True, slots=True)
class Operation:
    kind: str  # write, sync, truncate, delete
    file: str  # name without the folder
    offset: int = 0
    data: bytes = b""
    size: int = 0  # of the file, before a write; after a truncate


Before = Callable[[Operation], int]  # OK lets it happen, anything else is SQLite's code for the failure

_pointer = ctypes.c_void_p
_int64 = ctypes.c_int64
_int = ctypes.c_int
_WRITE = ctypes.CFUNCTYPE(_int, _pointer, _pointer, _int, _int64)
_TRUNCATE = ctypes.CFUNCTYPE(_int, _pointer, _int64)
_SYNC = ctypes.CFUNCTYPE(_int, _pointer, _int)
_SIZE = ctypes.CFUNCTYPE(_int, _pointer, ctypes.POINTER(_int64))
_OPEN = ctypes.CFUNCTYPE(
    _int, _pointer, _pointer, _pointer, _int, ctypes.POINTER(_int)
)  # SQLite keeps the name's address
_DELETE = ctypes.CFUNCTYPE(_int, _pointer, ctypes.c_char_p, _int)


class _Methods(ctypes.Structure):
    """sqlite3_io_methods"""

    _fields_ = [
        ("version", _int),
        ("close", _pointer),
        ("read", _pointer),
        ("write", _pointer),
        ("truncate", _pointer),
        ("sync", _pointer),
        ("size", _pointer),
        *((f"other{number}", _pointer) for number in range(12)),
    ]


class _Vfs(ctypes.Structure):
    """sqlite3_vfs"""

    _fields_ = [
        ("version", _int),
        ("file_size", _int),
        ("path_limit", _int),
        ("next", _pointer),
        ("name", ctypes.c_char_p),
        ("data", _pointer),
        ("open", _pointer),
        ("delete", _pointer),
        *((f"other{number}", _pointer) for number in range(14)),
    ]


_INSTALLED: list["Disk"] = []  # SQLite has the addresses of what they hold


class Disk:
    """Calls `before` ahead of every operation that changes something."""

    def __init__(self, before: Before) -> None:
        self.before = before
        self._sqlite = ctypes.CDLL(_sqlite3.__file__)  # finds the library that this module is linked with
        self._sqlite.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        self._real: _Vfs = self._sqlite.sqlite3_vfs_find(None).contents
        self._names: dict[int, str] = {}
        self._original: dict[int, _Methods] = {}  # by file
        self._wrapped: dict[int, _Methods] = {}  # by address of the original methods
        self._callbacks = [_WRITE(self._write), _TRUNCATE(self._truncate), _SYNC(self._sync)]
        self._open_callback = _OPEN(self._open)
        self._delete_callback = _DELETE(self._delete)
        self._vfs = _Vfs.from_buffer_copy(self._real)
        self._vfs.name = b"faults"
        self._vfs.open = ctypes.cast(self._open_callback, _pointer)
        self._vfs.delete = ctypes.cast(self._delete_callback, _pointer)

    def install(self) -> None:
        """For the rest of the process."""
        _INSTALLED.append(self)
        self._sqlite.sqlite3_vfs_register(ctypes.byref(self._vfs), 1)

    @contextmanager
    def installed(self) -> Iterator[None]:
        self.install()
        try:
            yield
        finally:
            self._sqlite.sqlite3_vfs_unregister(ctypes.byref(self._vfs))
            self._sqlite.sqlite3_vfs_register(ctypes.byref(self._real), 1)

    def _open(self, _vfs: int, name: int | None, file: int, flags: int, out: "ctypes._Pointer[ctypes.c_int]") -> int:
        code: int = _OPEN(self._real.open)(ctypes.addressof(self._real), name, file, flags, out)
        if code == OK and name is not None:
            slot = ctypes.cast(file, ctypes.POINTER(_pointer))
            address = slot[0]
            assert address is not None
            self._names[file] = Path(ctypes.string_at(name).decode()).name
            self._original[file] = _Methods.from_address(address)
            if address not in self._wrapped:
                methods = _Methods.from_buffer_copy(self._original[file])
                methods.write, methods.truncate, methods.sync = (
                    ctypes.cast(callback, _pointer) for callback in self._callbacks
                )
                self._wrapped[address] = methods
            slot[0] = ctypes.addressof(self._wrapped[address])
        return code

    def _delete(self, _vfs: int, name: bytes, sync: int) -> int:
        code = self.before(Operation("delete", Path(name.decode()).name))
        return code or int(_DELETE(self._real.delete)(ctypes.addressof(self._real), name, sync))

    def _write(self, file: int, data: int, amount: int, offset: int) -> int:
        content = ctypes.string_at(data, amount)
        code = self.before(Operation("write", self._names[file], offset, content, self._size(file)))
        return code or int(_WRITE(self._original[file].write)(file, data, amount, offset))

    def _truncate(self, file: int, size: int) -> int:
        code = self.before(Operation("truncate", self._names[file], size=size))
        return code or int(_TRUNCATE(self._original[file].truncate)(file, size))

    def _sync(self, file: int, _flags: int) -> int:
        """Reported, not done: nobody pulls a real plug here, and a real sync is most of the time a test takes."""
        return self.before(Operation("sync", self._names[file]))

    def _size(self, file: int) -> int:
        size = _int64()
        _SIZE(self._original[file].size)(file, ctypes.byref(size))
        return size.value
