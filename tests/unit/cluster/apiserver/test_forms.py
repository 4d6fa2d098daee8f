"""Lists as they go out."""

from datetime import UTC, datetime

import orjson
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.cluster.apiserver import forms, negotiation
from trainmaster.cluster.apiserver.forms import PIECE_BYTES, Listing
from trainmaster.cluster.apiserver.kinds import BUILT_IN

MAP = next(kind for kind in BUILT_IN if kind.resource.plural == "configmaps")
NOW = datetime(2030, 1, 1, tzinfo=UTC)
SIZES = st.lists(st.sampled_from([0, 1, 1000, PIECE_BYTES // 2, PIECE_BYTES - 100, PIECE_BYTES, 3 * PIECE_BYTES]),
                 max_size=9)


@given(sizes=SIZES)
def test_a_list_of_stored_bytes_is_as_long_as_it_said_and_holds_every_object_without_its_kind(sizes: list[int]) -> None:
    things = [{"metadata": {"name": f"m-{at}"}, "data": {"ä": "x" * size}} for at, size in enumerate(sizes)]
    page = Listing([MAP.encode(thing) for thing in things], 7)

    made = forms.many(MAP, page, negotiation.wanted("application/json"), NOW)
    pieces = list(made.pieces)

    whole = b"".join(pieces)
    assert len(whole) == made.length
    assert orjson.loads(whole) == {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"},
                                   "items": things}
    assert all(len(piece) < PIECE_BYTES + max(sizes, default=0) + 1000 for piece in pieces)
