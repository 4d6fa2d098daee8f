"""Selectors as functions."""

import pytest

from trainmaster.cluster.apiserver.failures import Failure
from trainmaster.cluster.apiserver.selectors import parse_fields, parse_labels, selector

LABELS = {"app": "x", "tier": "back", "example.com/n": "5"}
THING = {"metadata": {"name": "p", "namespace": "ns", "labels": LABELS}, "spec": {"unschedulable": True, "n": 3}}


@pytest.mark.parametrize(("text", "expected"), [
    ("", True), (",", True), ("app", True), ("!app", False), ("! none", True), ("app=x", True), ("app==x", True),
    ("app = x", True), ("app!=x", False), ("none!=x", True), ("app in (x, y)", True), ("app notin (x,y)", False),
    ("none notin (x)", True), ("app in ()", False), ("app=", False), ("none in (x)", False), ("example.com/n=5", True),
    ("example.com/n>4", True), ("example.com/n<4", False), ("app>4", False), ("app=x,tier=back", True),
    ("app=x,tier=front", False), ("app=x,app=x,", True), ("app,!none,tier in (back)", True), ("app in(x)", True),
])
def test_labels(text: str, expected: bool) -> None:
    assert expected is all(term.holds(LABELS) for term in parse_labels(text))


@pytest.mark.parametrize("text", ["a b", "=x", "a=b=c", "a in x", "a in (x", "(a)", "a!", "-a=b", "a=" + "b" * 64,
                                  "a" * 64, "/a", "a/b/c", "a=b;c=d"])
def test_labels_that_cannot_be_read(text: str) -> None:
    with pytest.raises(Failure) as raised:
        parse_labels(text)

    assert 400 == raised.value.code


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
