"""TensorBoard's event files."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.progress.events import LARGEST_READ, NotEvents, Scalar, scalars


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def record(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + b"ccch" + data + b"ccch"


def event(step: int, value: bytes) -> bytes:
    wall_time = b"\x09" + struct.pack("<d", 1.7e9)
    return record(wall_time + b"\x10" + varint(step) + field(5, field(1, value)))


def simple(tag: str, value: float) -> bytes:
    return field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)


def tensor(tag: str, content: bytes) -> bytes:
    return field(1, tag.encode()) + field(8, b"\x08\x01" + field(4, content)) + field(9, field(1, field(1, b"scalars")))


FILE = (record(field(3, b"brain.Event:2")) + event(7, simple("loss", 0.5))
        + event(300, tensor("acc", struct.pack("<f", 2))))


def test_scalars_in_both_ways_of_writing_them() -> None:
    assert ([Scalar(7, "loss", 0.5), Scalar(300, "acc", 2.0)], len(FILE)) == scalars(FILE)


def test_tensors_that_are_no_scalars_are_passed_over() -> None:
    assert [] == scalars(event(1, tensor("picture", bytes(16))))[0]


def test_a_large_record_is_passed_over_before_it_has_come() -> None:
    """Keras writes the graph of a model between its first scalars, and it may be longer than what is read at once."""
    graph = record(bytes(LARGEST_READ + 1))
    begun = FILE + graph[:20]

    assert len(FILE + graph) == scalars(begun)[1]
    assert [Scalar(8, "loss", 0.25)] == scalars((FILE + graph + event(8, simple("loss", 0.25)))[len(FILE):])[0]


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_what_is_cut_off_is_left_for_the_next_time(cut: int) -> None:
    found, whole = scalars(FILE[:-cut])
    rest, _ = scalars(FILE[whole:])

    assert [Scalar(7, "loss", 0.5), Scalar(300, "acc", 2.0)] == [*found, *rest]


@given(st.binary(max_size=200))
def test_anything_else_is_said_to_be_something_else(content: bytes) -> None:
    for data in (content, record(content)):
        try:
            scalars(data)
        except NotEvents:
            continue
