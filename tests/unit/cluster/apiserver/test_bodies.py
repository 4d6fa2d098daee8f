"""How deep a body may be is found without walking through it, and nothing that is written in it hides a level."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.cluster.apiserver import bodies
from trainmaster.cluster.apiserver.failures import Failure

# One level each, and beside the next one things that look like levels, or like the end of one.
LEVELS = ['{"a":%s}', "[%s]", '{"}":%s}', '{"]{":%s}', '{"{}":{},"b":%s}', '[[],{},%s,"[]"]', '{"\\"}":%s,"c":"\\\\"}',
          '{"a":[1],"b":%s}', '[ { } ,%s]']


@given(st.lists(st.sampled_from(LEVELS), min_size=bodies.DEEPEST - 2, max_size=bodies.DEEPEST + 2))
def test_only_what_is_too_deep_is_refused(levels: list[str]) -> None:
    text = "1"
    for level in levels:
        text = level.replace("%s", text)
    # What stands beside the innermost value is one level deeper than that.
    depth = len(levels) + (levels[0] in LEVELS[4:6] or levels[0] in LEVELS[7:])

    if depth <= bodies.DEEPEST:
        assert bodies.read_json(text.encode()).repeats is None
    else:
        with pytest.raises(Failure, match="nested more than 128 levels deep"):
            bodies.read_json(text.encode())
