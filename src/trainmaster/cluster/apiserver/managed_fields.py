"""Reading an object whose `managedFields` were read before: they are the larger half of most, and the same in many.

The record of who owns which field knows no names: the replicas of a job have the same one, byte for byte, and whoever
sends an object back sends it as he got it. So it is cut out of the bytes, and read only the first time; the sets of
fields in it are shared, and never to be changed, as no set is. What is the same is then found to be so at a glance.

Nothing is guessed. The cut is right if both parts are JSON by themselves, and what stands in its place, a word that
nobody can know, is found where the record belongs: a cut at a wrong place goes through a string, and leaves neither.
Then, and for a record that is long or not known, all of the bytes are read as ever.
"""

import secrets
from collections import OrderedDict
from contextlib import suppress

import orjson

from trainmaster.api.meta import Json, Object

MOST = 32                                # records that are remembered
LONGEST = 16 * 1024                      # bytes of one
_NAME = b'"managedFields":['
_HOLE = secrets.token_hex(16)
_IN_PLACE = orjson.dumps(_HOLE)


def read(value: bytes) -> Object:
    """An object in stored form."""
    if (found := _cut(value)) is not None:
        with suppress(orjson.JSONDecodeError):
            thing: Object = orjson.loads(found[0])
            if (meta := _holed(thing)) is not None:
                meta["managedFields"] = _copy(_record(found[1]))
                return thing
    whole: Object = orjson.loads(value)
    return whole


def without(body: bytes) -> tuple[bytes, Json] | None:
    """What a client sent without the record, and the record, if that is known: stored once, it was in order."""
    found = _cut(body)
    record = None if found is None else _KNOWN.get(found[1])
    return None if found is None or record is None else (found[0], record)


def fill(thing: Json, record: Json) -> bool:
    """Put a record where it was cut out. False: it was cut out of somewhere else."""
    if (meta := _holed(thing)) is None:
        return False
    meta["managedFields"] = _copy(record)
    return True


def _cut(value: bytes) -> tuple[bytes, bytes] | None:
    start = value.find(_NAME)
    if start < 0:
        return None
    start += len(_NAME) - 1
    end = value.find(b"}]", start, start + LONGEST) + 2      # there are no lists in it
    return None if end < 2 else (b"".join((value[:start], _IN_PLACE, value[end:])), value[start:end])


def _holed(thing: Json) -> Object | None:
    """The metadata from which a record was cut."""
    meta = thing.get("metadata") if isinstance(thing, dict) else None
    return meta if isinstance(meta, dict) and meta.get("managedFields") == _HOLE else None


def _copy(record: Json) -> Json:
    """Entries of one's own, with sets of fields that are shared."""
    return [dict(entry) if isinstance(entry, dict) else entry for entry in record]


_KNOWN: OrderedDict[bytes, Json] = OrderedDict()       # those that came last


def _record(value: bytes) -> Json:
    found = _KNOWN.get(value)
    if found is None:
        found = _KNOWN[value] = orjson.loads(value)
        if len(_KNOWN) > MOST:
            _KNOWN.popitem(last=False)
    else:
        _KNOWN.move_to_end(value)
    return found
