"""Selectors as functions."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver.failures import Failure
from trainmaster.cluster.apiserver.selector_syntax import Requirement
from trainmaster.cluster.apiserver.selectors import Selector, Term, parse_fields, parse_labels, selector

LABELS = {"app": "x", "tier": "back", "example.com/n": "5"}
THING = {"metadata": {"name": "p", "namespace": "ns", "labels": LABELS}, "spec": {"unschedulable": True, "n": 3}}


@pytest.mark.parametrize(("text", "expected"), [
    ("", True), (" ", True), ("app", True), ("!app", False), ("! none", True), ("app=x", True), ("app==x", True),
    ("app = x", True), ("app!=x", False), ("none!=x", True), ("app in (x, y)", True), ("app notin (x,y)", False),
    ("none notin (x)", True), ("app in ()", False), ("app=", False), ("none in (x)", False), ("example.com/n=5", True),
    ("example.com/n>4", True), ("example.com/n<4", False), ("app>4", False), ("app=x,tier=back", True),
    ("app=x,tier=front", False), ("app=x,app=x", True), ("app,!none,tier in (back)", True), ("app in(x)", True),
    ("app in (,x)", True),
])
def test_labels(text: str, expected: bool) -> None:
    assert expected is all(term.holds(LABELS) for term in parse_labels(text))


# In the words of a real kube-apiserver.
_SIGNS = "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_FORM = (f"must consist of {_SIGNS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
         "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")
_VALUE = (f"a valid label must be an empty string or consist of {_SIGNS} (e.g. 'MyValue',  or 'my_value',  or '12345', "
          "regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")
_PREFIXED = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
_NUMBER = "for 'Gt', 'Lt' operators, the value must be an integer"
_TOO_LONG = f'unable to parse requirement: values[0][a]: Invalid value: "{"b" * 64}": must be no more than 63 bytes'


@pytest.mark.parametrize(("text", "why"), [
    ("///", f'unable to parse requirement: <nil>: Invalid value: "///": a valid label key {_FORM}{_PREFIXED}'),
    ("/a", 'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty'),
    ("a/", f'unable to parse requirement: <nil>: Invalid value: "a/": name part must be non-empty; name part {_FORM}'),
    ("-a=b", f'unable to parse requirement: <nil>: Invalid value: "-a": name part {_FORM}'),
    ("a=b=c", "found '=', expected: ',' or 'end of string'"),
    ("a in (b,-c)", f'unable to parse requirement: values[0][a]: Invalid value: "-c": {_VALUE}'),
    ("a=" + "b" * 64, _TOO_LONG),
    ("a>b", f'unable to parse requirement: values[0]: Invalid value: "b": {_NUMBER}'),
    ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
    ("a in b", "unable to parse requirement: found 'b' expected: '('"),
    ("a in", "unable to parse requirement: found '' expected: '('"),
    ("a notin (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
    ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
    ("a in (b) c", "found 'c', expected: ',' or 'end of string'"),
    ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
    (",", "found ',', expected: !, identifier, or 'end of string'"),
    ("a,,b", "found ',', expected: identifier after ','"),
    ("a,", "found '', expected: identifier after ','"),
    ("!", "unable to parse requirement: found '', expected: identifier"),
    ("!a=b", "found '=', expected: ',' or 'end of string'"),
    ("a=>b", "unable to parse requirement: found '>', expected: identifier"),
])
def test_labels_that_cannot_be_read(text: str, why: str) -> None:
    with pytest.raises(Failure) as raised:
        parse_labels(text)

    assert (400, why) == (raised.value.code, raised.value.message)


@pytest.mark.parametrize(("text", "expected"), [
    ("metadata.name=p", True), ("metadata.name==p", True), ("metadata.name!=p", False), ("metadata.namespace=ns", True),
    ("spec.n=3", True), ("spec.unschedulable=true", True), ("spec.unschedulable=false", False),
    ("spec.hostNetwork=false", True),
    ("status.phase=", True), ("status.phase!=Failed,metadata.name=p,", True), ("metadata.name=p\\,q", False),
])
def test_fields(text: str, expected: bool) -> None:
    assert expected is all(term.holds(THING) for term in parse_fields(text))


def test_only_known_fields_can_be_selected_by() -> None:
    with pytest.raises(Failure) as raised:
        selector("", "spec.secret=x", ("spec.nodeName",))

    assert (400, "field label not supported: spec.secret") == (raised.value.code, raised.value.message)


def test_long_nonsense_is_refused_quickly() -> None:
    with pytest.raises(Failure):
        parse_labels("a" * 30_000 + "!")
    with pytest.raises(Failure):
        parse_labels("a in (" + "x," * 10_000)


TEXTS = st.sampled_from(["", "a", "b", "app", "x.y/app", "1", "true", 'say "a"', "ä"])
OBJECTS = st.fixed_dictionaries({
    "metadata": st.fixed_dictionaries({"name": TEXTS}, optional={
        "labels": st.dictionaries(st.sampled_from(["a", "app", "x.y/app"]), st.sampled_from(["", "a", "b", "1"]))}),
    "spec": st.fixed_dictionaries({}, optional={"nodeName": TEXTS, "n": st.sampled_from([1, True, False, None])}),
})
REQUIREMENTS = st.builds(
    Requirement, st.sampled_from(["a", "app", "x.y/app"]), st.sampled_from(["in", "notin", "exists", "absent", "gt"]),
    st.frozensets(st.sampled_from(["", "a", "b", "1"]), min_size=1))
TERMS = st.builds(Term, st.sampled_from(["metadata.name", "spec.nodeName", "spec.n", "spec.hostNetwork"]), TEXTS,
                  st.booleans())


@given(st.builds(Selector, st.lists(REQUIREMENTS, max_size=2).map(tuple), st.lists(TERMS, max_size=2).map(tuple)),
       OBJECTS)
def test_what_is_told_apart_unparsed_is_what_the_selector_says(chosen: Selector, thing: Object) -> None:
    assert chosen.holds(thing) == chosen.selects(orjson.dumps(thing))
