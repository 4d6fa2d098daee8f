"""Structural schemas: what is dropped, what is filled in, what is refused and in which words."""


import pytest

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver.schemas import StructuralSchema

PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
QUANTITY = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
SET = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}
MAP = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
       "items": {"type": "object", "required": ["k"], "properties": {"k": TEXT, "v": TEXT}}}


def of(**properties: Json) -> Object:
    return {"type": "object", "properties": properties}


def schema(**properties: Json) -> StructuralSchema:
    return StructuralSchema(of(spec=of(**properties)))


@pytest.mark.parametrize(("properties", "spec", "expected", "dropped"), [
    pytest.param({"a": TEXT}, {"a": "x", "b": 1}, {"a": "x"}, ["spec.b"], id="unknown fields go"),
    pytest.param({"a": of(b=TEXT)}, {"a": {"c": {"d": 1}}}, {"a": {}}, ["spec.a.c"], id="with all below them"),
    pytest.param({"a": {"type": "array", "items": of(b=TEXT)}}, {"a": [{"b": "x"}, {"c": 1}]},
                 {"a": [{"b": "x"}, {}]}, ["spec.a[1].c"], id="in items of a list"),
    pytest.param({"a": {"type": "object", "additionalProperties": of(b=TEXT)}}, {"a": {"any": {"b": "x", "c": 1}}},
                 {"a": {"any": {"b": "x"}}}, ["spec.a.any.c"], id="in values of a map"),
    pytest.param({"a": {"type": "object", **PRESERVE}}, {"a": {"c": {"d": 1}}}, {"a": {"c": {"d": 1}}}, [],
                 id="unless the schema keeps them"),
    pytest.param({"a": {"type": "object", "properties": {"b": of(c=TEXT)}, **PRESERVE}}, {"a": {"b": {"d": 1}, "e": 2}},
                 {"a": {"b": {}, "e": 2}}, ["spec.a.b.d"], id="which ends where the schema goes on"),
    pytest.param({"a": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {}}},
                 {"a": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}}},
                 {"a": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}}, ["spec.a.spec"],
                 id="an embedded object keeps what makes it one"),
    pytest.param({"a": {"type": "string", "default": "x"}}, {}, {"a": "x"}, [], id="a default is filled in"),
    pytest.param({"a": {"type": "object", "default": {}, "properties": {"b": {"type": "integer", "default": 1}}}}, {},
                 {"a": {"b": 1}}, [], id="and what is below a default too"),
    pytest.param({"a": {"type": "string", "default": "x"}}, {"a": ""}, {"a": ""}, [], id="but not over the empty"),
    pytest.param({"a": {"type": "string", "default": "x"}}, {"a": None}, {"a": "x"}, [], id="null counts as nothing"),
    pytest.param({"a": TEXT}, {"a": None}, {}, [], id="also without a default"),
    pytest.param({"a": {"type": "string", "nullable": True}}, {"a": None}, {"a": None}, [], id="unless it may be null"),
    pytest.param({"a": {"type": "object", "properties": {"b": {"type": "boolean", "default": False}}}}, {}, {}, [],
                 id="a default inside something that is not there stays away"),
])
def test_settling(properties: Object, spec: Json, expected: Json, dropped: list[str]) -> None:
    thing = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x"}, "spec": spec}
    unknown = schema(**properties).settle(thing)

    assert (expected, dropped) == (thing["spec"], unknown)
    assert thing["metadata"] == {"name": "x"}


def test_defaults_are_not_shared_between_objects() -> None:
    made = schema(a={"type": "array", "items": TEXT, "default": []})
    first: Object = {"spec": {}}
    second: Object = {"spec": {}}
    made.settle(first)
    first["spec"]["a"].append("x")
    made.settle(second)

    assert second["spec"]["a"] == []


def test_without_a_schema_everything_is_kept() -> None:
    thing = {"spec": {"a": {"b": 1}}, "more": 2}

    assert StructuralSchema(None).settle(thing) == []
    assert thing == {"spec": {"a": {"b": 1}}, "more": 2}


@pytest.mark.parametrize(("properties", "spec", "expected"), [
    pytest.param({"n": NUMBER}, {"n": "x"},
                 'spec.n: Invalid value: "string": spec.n in body must be of type integer: "string"', id="wrong type"),
    pytest.param({"n": NUMBER}, {"n": 1.5},
                 'spec.n: Invalid value: "number": spec.n in body must be of type integer: "number"', id="a fraction"),
    pytest.param({"a": {**of(b=TEXT), "required": ["b"]}}, {"a": {}}, "spec.a.b: Required value", id="a missing field"),
    pytest.param({"m": {"type": "string", "enum": ["A", "B"]}}, {"m": "C"},
                 'spec.m: Unsupported value: "C": supported values: "A", "B"', id="none of the choices"),
    pytest.param({"n": {"type": "integer", "minimum": 1}}, {"n": 0},
                 "spec.n: Invalid value: 0: spec.n in body should be greater than or equal to 1", id="too small"),
    pytest.param({"n": {"type": "integer", "maximum": 1, "exclusiveMaximum": True}}, {"n": 1},
                 "spec.n: Invalid value: 1: spec.n in body should be less than 1", id="not below the bound"),
    pytest.param({"s": {"type": "string", "pattern": "^a+$"}}, {"s": "b"},
                 "spec.s: Invalid value: \"b\": spec.s in body should match '^a+$'", id="not of the pattern"),
    pytest.param({"s": {"type": "string", "minLength": 2}}, {"s": "b"},
                 'spec.s: Invalid value: "b": spec.s in body should be at least 2 chars long', id="too short"),
    pytest.param({"s": {"type": "string", "maxLength": 2}}, {"s": "abc"},
                 "spec.s: Too long: may not be more than 2 bytes", id="too long"),
    pytest.param({"s": {"type": "string", "maxLength": -1}}, {"s": "abc"},
                 "spec.s: Too long: may not be more than 0 bytes", id="text where none is short enough"),
    pytest.param({"l": {"type": "array", "items": TEXT, "maxItems": 1}}, {"l": ["a", "b"]},
                 "spec.l: Too many: 2: must have at most 1 item", id="too many"),
    pytest.param({"l": {"type": "array", "items": of(n=NUMBER)}}, {"l": [{"n": 1}, {"n": True}]},
                 'spec.l[1].n: Invalid value: "boolean": spec.l[1].n in body must be of type integer: "boolean"',
                 id="in an item of a list"),
    pytest.param({"s": {"type": "string", "format": "date-time"}}, {"s": "soon"},
                 'spec.s: Invalid value: "soon": spec.s in body must be of type date-time: "soon"', id="no moment"),
    pytest.param({"n": {"type": "integer", "format": "int32"}}, {"n": 2**31},
                 "spec.n: Invalid value: 2147483648: spec.n in body should be less than or equal to 2147483647",
                 id="more than 32 bits"),
    pytest.param({"l": SET}, {"l": ["a", "b", "a"]}, 'spec.l[2]: Duplicate value: "a"', id="a set with a repeat"),
    pytest.param({"l": MAP}, {"l": [{"k": "a"}, {"k": "a", "v": "x"}]}, 'spec.l[1]: Duplicate value: {"k":"a"}',
                 id="a list that is a map, with a repeat"),
    pytest.param({"e": {"type": "object", "x-kubernetes-embedded-resource": True, **PRESERVE}}, {"e": {"kind": "Pod"}},
                 "spec.e.apiVersion: Required value", id="an embedded object without a version"),
    pytest.param({"q": QUANTITY}, {"q": []},
                 'spec.q: Invalid value: "array": spec.q in body must be of type integer,string: "array"',
                 id="neither number nor text"),
])
def test_faults_are_told_with_their_path(properties: Object, spec: Json, expected: str) -> None:
    assert [expected] == [str(cause) for cause in schema(**properties).check({"spec": spec}, None)]


@pytest.mark.parametrize(("properties", "spec"), [
    pytest.param({"q": QUANTITY}, {"q": 1}, id="int-or-string as a number"),
    pytest.param({"s": {"type": "string", "minLength": -1, "enum": []}}, {"s": "a"}, id="bounds that bound nothing"),
    pytest.param({"n": {"type": "number", "exclusiveMinimum": True}}, {"n": 0}, id="the exclusion of no bound"),
    pytest.param({"a": {**of(b=TEXT), "required": ["b", "b"]}}, {"a": {"b": "x"}}, id="a field required twice"),
    pytest.param({"q": QUANTITY}, {"q": "100m"}, id="int-or-string as text"),
    pytest.param({"s": {"type": "string", "nullable": True, "enum": ["a"]}}, {"s": None}, id="null where it may be"),
    pytest.param({"s": {"type": "string", "format": "date-time"}}, {"s": "2024-01-01T00:00:00Z"}, id="a moment"),
    pytest.param({"l": SET}, {"l": ["a", "b"]}, id="a set"),
    pytest.param({"l": MAP}, {"l": [{"k": "a"}, {"k": "b"}]}, id="a list that is a map"),
    pytest.param({"e": {"type": "object", "x-kubernetes-embedded-resource": True, **PRESERVE}},
                 {"e": {"apiVersion": "v1", "kind": "Pod"}}, id="an embedded object"),
    pytest.param({"n": {"type": "integer", "format": "int32"}}, {"n": 2**31 - 1}, id="the largest number of 32 bits"),
])
def test_what_fits(properties: Object, spec: Json) -> None:
    assert [] == list(schema(**properties).check({"spec": spec}, None))


FIXED = {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "queue is immutable"}]}


@pytest.mark.parametrize(("old", "new", "expected"), [
    pytest.param({"q": "a"}, {"q": "b"}, ['spec.q: Invalid value: "b": queue is immutable'], id="changed"),
    pytest.param({"q": "a"}, {"q": "a"}, [], id="the same"),
    pytest.param({}, {"q": "b"}, [], id="set for the first time"),
    pytest.param({"q": "a"}, {}, [], id="taken away"),
])
def test_fields_that_may_not_change(old: Json, new: Json, expected: list[str]) -> None:
    assert expected == [str(cause) for cause in schema(q=FIXED).check({"spec": new}, {"spec": old})]


@pytest.mark.parametrize(("old", "new", "expected"), [
    pytest.param(["a", "a"], ["a", "a", "b"], [], id="a repeat that was there before is let be"),
    pytest.param(["a"], ["a", "a"], ['spec.l[1]: Duplicate value: "a"'], id="a new one is not"),
])
def test_repeats_in_updates(old: Json, new: Json, expected: list[str]) -> None:
    assert expected == [str(cause) for cause in schema(l=SET).check({"spec": {"l": new}}, {"spec": {"l": old}})]


@pytest.mark.parametrize(("wrong", "told"), [
    pytest.param({"a": "many", "q": "x"}, True, id="a value of the wrong type"),
    pytest.param({"q": "x"}, True, id="a field that is missing"),
    pytest.param({"a": 0, "q": "x"}, False, id="a number that is too small"),
])
def test_faults_that_keep_rules_from_being_checked_say_so(wrong: Object, told: bool) -> None:
    number = {**NUMBER, "minimum": 1}
    ruled = StructuralSchema(of(spec={**of(a=number, q=FIXED), "required": ["a"]}))
    plain = StructuralSchema(of(spec={**of(a=number, q=TEXT), "required": ["a"]}))

    assert told == ("<nil>" in [cause.field for cause in ruled.check({"spec": wrong}, None)])
    assert "<nil>" not in [cause.field for cause in plain.check({"spec": wrong}, None)]
