"""The base of every typed record that crosses the wire.

Fields are written in snake case here and in camel case there. What a newer version of the API has put into an object is
kept in `unknown` and written back with it: a frozen record that silently dropped fields would undo other people's work
at every status update. Plain dictionaries would keep them too, but then nothing inside could be checked.
"""

from enum import StrEnum
from typing import Annotated, TypeAlias

import msgspec

from trainmaster.api.meta import Json

# The name under which `unknown` travels between `codec` and msgspec: no field of an API can be called so.
UNKNOWN = "*"

Int32: TypeAlias = Annotated[int, msgspec.Meta(extra={"format": "int32"})]
Int64: TypeAlias = Annotated[int, msgspec.Meta(extra={"format": "int64"})]
Raw: TypeAlias = dict[str, Json]  # an object of a kind that we only pass on
PodTemplate: TypeAlias = Annotated[Raw, msgspec.Meta(extra={"schema": "PodTemplate"})]
Resources: TypeAlias = Annotated[Raw, msgspec.Meta(extra={"schema": "Resources"})]
Metric: TypeAlias = Annotated[Raw, msgspec.Meta(extra={"schema": "Metric"})]


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A record of the API. Equal when all fields are, the unknown ones included."""

    unknown: dict[str, Json] = msgspec.field(name=UNKNOWN, default_factory=dict)


class Word(StrEnum):
    """An enumeration of the API whose empty member means that nothing was said."""

    @classmethod
    def supported(cls) -> list[str]:
        return [word.value for word in cls if word.value]
