"""What is read with a record of owners that came before is what would have been read without one."""

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trainmaster.api.meta import Json
from trainmaster.cluster.apiserver import bodies, managed_fields

NASTY = st.sampled_from(["f:}],", "f:}]", 'k:{"name":"}]"}', 'v:"}]"', '"managedFields":[', "managedFields", '}],"',
                         "\\"])
WORDS = NASTY | st.text(max_size=5)
SETS: st.SearchStrategy[Json] = st.recursive(
    st.just({}), lambda inner: st.dictionaries(WORDS, inner, max_size=3), max_leaves=8)
ENTRIES = st.fixed_dictionaries({"manager": WORDS, "operation": st.just("Update"), "fieldsV1": SETS},
                                optional={"subresource": st.just("status")})
META = st.fixed_dictionaries({"name": WORDS}, optional={
    "managedFields": st.lists(ENTRIES, max_size=2), "labels": st.dictionaries(WORDS, WORDS, max_size=2),
    "resourceVersion": st.just("7")})
SPECS = st.dictionaries(WORDS, st.none() | st.lists(ENTRIES, max_size=1) | WORDS, max_size=2)
THINGS = st.fixed_dictionaries({"spec": SPECS, "metadata": META}) | st.fixed_dictionaries(
    {"metadata": META, "spec": SPECS})
ENTRY = {"manager": "m", "operation": "Update", "fieldsV1": {"f:spec": {"f:}],": {}}}}


@given(thing=THINGS)
@example(thing={"metadata": {"managedFields": [ENTRY]}})
@example(thing={"metadata": {"managedFields": []}, "spec": {"managedFields": [{"fieldsV1": {}}]}})
@example(thing={"spec": {"managedFields": [{"fieldsV1": {}}]}, "metadata": {"managedFields": []}})
@example(thing={"spec": {"managedFields": [{"fieldsV1": {}}]}, "metadata": {}})
def test_an_object_is_read_as_it_is(thing: Json) -> None:
    value = orjson.dumps(thing)

    for _ in range(2):
        assert managed_fields.read(value) == thing
        assert bodies.read_json(value).value == thing


def thing(**fields: Json) -> bytes:
    return orjson.dumps({"metadata": {"name": "p", "managedFields": [{"fieldsV1": {"f:spec": {"f:a": {}}}}]}, **fields})


def test_the_same_record_is_read_once() -> None:
    things = [*(managed_fields.read(thing(spec=number)) for number in (1, 2)), bodies.read_json(thing(spec=3)).value]
    [one], [other], [sent] = (each["metadata"]["managedFields"] for each in things)

    assert one["fieldsV1"] is other["fieldsV1"] is sent["fieldsV1"]
    del one["fieldsV1"]
    assert other == sent, "an entry is everybody's own"


@pytest.mark.parametrize("body", [
    pytest.param(b'{"metadata":{"managedFields": []},"spec":{"managedFields":%s}}', id="a record in another place"),
    pytest.param(b'{"spec":{"managedFields":%s},"metadata":{"managed\\u0046ields":[]}}', id="a name in disguise"),
    pytest.param(b'{"metadata":{"managedFields":%s,"managedFields" :[]}}', id="twice, once with a blank"),
    pytest.param(b'{"metadata":{"managedFields":%s,"managedFields":[]}}', id="twice"),
])
def test_a_known_record_is_taken_for_no_other(body: bytes) -> None:
    value = thing()
    managed_fields.read(value)
    sent = body % orjson.dumps(orjson.loads(value)["metadata"]["managedFields"])

    assert bodies.read_json(sent).value == orjson.loads(sent)


def test_a_long_record_is_not_remembered() -> None:
    entry: Json = {"fieldsV1": {f"f:{number}": {} for number in range(managed_fields.LONGEST // 8)}}
    value = orjson.dumps({"metadata": {"managedFields": [entry]}})

    assert managed_fields.read(value) == orjson.loads(value)
    assert managed_fields.without(value) is None


def test_as_many_are_remembered_as_was_said() -> None:
    for number in range(3 * managed_fields.MOST):
        managed_fields.read(orjson.dumps({"metadata": {"managedFields": [{"fieldsV1": {f"f:{number}": {}}}]}}))

    assert managed_fields.without(orjson.dumps({"metadata": {"managedFields": [{"fieldsV1": {"f:0": {}}}]}})) is None


@pytest.mark.parametrize(("after", "wrong"), [
    pytest.param(b"", "not valid JSON", id="a body that ends in the middle"),
    pytest.param(b"," + b'"a":' + b"[" * 200 + b"]" * 200 + b"}", "nested more than", id="too deep a body"),
])
def test_what_is_wrong_with_the_rest_is_told(after: bytes, wrong: str) -> None:
    value = thing()
    managed_fields.read(value)

    with pytest.raises(Exception, match=wrong):
        bodies.read_json(value[:-1] + after)


def test_a_key_that_is_there_twice_is_found_beside_a_known_record() -> None:
    value = thing()
    managed_fields.read(value)

    assert bodies.read_json(value[:-1] + b',"a":1,"a":2}').repeats is not None
