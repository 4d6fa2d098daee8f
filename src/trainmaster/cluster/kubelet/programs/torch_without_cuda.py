"""Make the CUDA build of PyTorch importable on a machine without a GPU, without the gigabytes of NVIDIA's libraries.

PyTorch's package comes for GPUs only. Its libraries name NVIDIA's (cuDNN, cuBLAS, NCCL and others), so the loader wants
them all, although on a machine without a GPU none is ever called; the one that is asked whether there is a GPU, the
CUDA runtime, is small and installed. This program takes the names of the libraries that are not there out of PyTorch's
own and marks what they would have provided as optional (a weak symbol), in place: no byte moves. Empty libraries in
their stead would do too, but making them takes a compiler.

Runs in the new environment, once, after the installation. Nothing is changed where nothing is missing.
"""

import mmap
import os
import re
import struct
import sys
from importlib.util import find_spec
from pathlib import Path

NVIDIA = re.compile(r"lib(cuda|cu[a-zA-Z]+|nccl|nvrtc|nvshmem_host|nvJitLink|nvToolsExt)\.so(\.\d+)*")
# Numbers of the ELF format.
NEEDED, STRTAB, VERSYM, VERNEED, VERNEEDNUM = 1, 5, 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF
NOTHING = 0x6FFFFEF0                # a tag of the range that loaders skip
LOAD, DYNAMIC = 1, 2
DYNAMIC_SYMBOLS = 11
GLOBAL, WEAK = 1, 2
ANY_VERSION = 1
SYMBOL = struct.Struct("<IBBHQQ")
WORD = struct.Struct("<QQ")


class Library:
    """One ELF file, as its loader sees it."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        start, size, count = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54)
        headers = [struct.unpack_from("<IIQQQQQQ", data, start + size * number) for number in range(count)]
        self.segments = [(at, offset, length) for kind, _, offset, at, _, length, *_ in headers if kind == LOAD]
        self.dynamic = []            # (position in the file, tag, value)
        for kind, _, offset, _, _, length, *_ in headers:
            if kind == DYNAMIC:
                entries = ((place, *WORD.unpack_from(data, place)) for place in range(offset, offset + length, 16))
                self.dynamic = [entry for entry in entries if entry[1]]
        self.table = {tag: value for _, tag, value in self.dynamic}

    def place(self, address: int) -> int:
        """Where in the file the byte of this address is."""
        for at, offset, length in self.segments:
            if at <= address < at + length:
                return offset + address - at
        raise ValueError(f"no segment holds address {address:#x}")

    def text(self, offset: int) -> str:
        start = self.place(self.table[STRTAB]) + offset
        return self.data[start:self.data.find(b"\0", start)].decode()

    def needed(self) -> dict[int, str]:
        return {place: self.text(value) for place, tag, value in self.dynamic if tag == NEEDED}

    def _symbols(self) -> tuple[int, int]:
        """Place and length of the table of symbols; the loader's own tables do not say how long it is."""
        (start,) = struct.unpack_from("<Q", self.data, 40)
        size, count = struct.unpack_from("<HH", self.data, 58)
        for number in range(count):
            _, kind, _, _, offset, length = struct.unpack_from("<IIQQQQ", self.data, start + size * number)
            if kind == DYNAMIC_SYMBOLS:
                return offset, length
        raise ValueError("no table of symbols")

    def forget(self, names: set[str]) -> None:
        """No longer need these libraries."""
        gone = self._forget_versions(names)
        for place, name in self.needed().items():
            if name in names:
                WORD.pack_into(self.data, place, NOTHING, 0)
        versions = self.place(self.table[VERSYM])
        symbols, length = self._symbols()
        table = self.data[symbols:symbols + length]
        for number, (name, info, other, section, value, size) in enumerate(SYMBOL.iter_unpack(table)):
            if section or info >> 4 != GLOBAL:
                continue
            (version,) = struct.unpack_from("<H", self.data, versions + 2 * number)
            if version <= ANY_VERSION or version in gone:
                optional = (name, WEAK << 4 | info & 15, other, section, value, size)
                SYMBOL.pack_into(self.data, symbols + number * SYMBOL.size, *optional)
                struct.pack_into("<H", self.data, versions + 2 * number, ANY_VERSION)

    def _forget_versions(self, names: set[str]) -> set[int]:
        """Take these libraries out of the chain of versions that are asked for; gives the numbers of what was asked."""
        gone: set[int] = set()
        kept: list[int] = []
        place = self.place(self.table[VERNEED])
        for _ in range(self.table[VERNEEDNUM]):
            _, count, file, first, following = struct.unpack_from("<HHIII", self.data, place)
            if self.text(file) not in names:
                kept.append(place)
            else:
                at = place + first
                for _ in range(count):
                    _, _, number, _, step = struct.unpack_from("<IHHII", self.data, at)
                    gone.add(number)
                    at += step
            place += following
        for one, after in zip(kept, [*kept[1:], None], strict=True):
            struct.pack_into("<I", self.data, one + 12, after - one if after else 0)
        moved = kept[0] - self.place(self.table[VERNEED])
        for at, tag, value in self.dynamic:
            if tag in (VERNEED, VERNEEDNUM):
                WORD.pack_into(self.data, at, tag, value + moved if tag == VERNEED else len(kept))
        return gone


def main() -> int:
    found = find_spec("torch")
    if found is None or found.origin is None:
        print("PyTorch is not installed here", file=sys.stderr)
        return 1
    torch = Path(found.origin).parent
    present = {path.name for path in torch.parent.glob("nvidia/*/lib/*")} | set(os.listdir(torch / "lib"))
    for path in sorted((torch / "lib").glob("*.so*")):
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
            library = Library(data)
            missing = {name for name in library.needed().values() if NVIDIA.fullmatch(name)} - present
            if missing:
                library.forget(missing)
                print(f"{path.name} no longer needs {', '.join(sorted(missing))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
