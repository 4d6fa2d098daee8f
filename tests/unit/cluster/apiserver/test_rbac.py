"""What rules allow and what they cover; no server, no store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.cluster.apiserver import rbac
from trainmaster.cluster.apiserver.rbac import Attributes, Rule

PODS = Rule(("get", "list"), ("",), ("pods",))


@pytest.mark.parametrize(("rule", "wanted", "allowed"), [
    pytest.param(PODS, Attributes("get", "", "pods", name="x"), True, id="a verb of a resource"),
    pytest.param(PODS, Attributes("delete", "", "pods", name="x"), False, id="another verb"),
    pytest.param(PODS, Attributes("get", "apps", "pods"), False, id="the same word in another group"),
    pytest.param(PODS, Attributes("get", "", "pods", "log", name="x"), False, id="a part is not its whole"),
    pytest.param(Rule(("get",), ("",), ("pods/log",)), Attributes("get", "", "pods"), False, id="nor the reverse"),
    pytest.param(Rule(("get",), ("",), ("*/log",)), Attributes("get", "", "pods", "log"), True, id="any part"),
    pytest.param(Rule(("get",), ("",), ("pods/*",)), Attributes("get", "", "pods", "log"), False,
                 id="there is no any part of something"),
    pytest.param(Rule(("*",), ("*",), ("*",)), Attributes("get", "x", "y", "z"), True, id="everything"),
    pytest.param(Rule(("*",), ("*",), ("*",)), Attributes("get", path="/metrics"), False, id="but no path"),
    pytest.param(Rule(("get",), ("",), ("pods",), ("a",)), Attributes("get", "", "pods", name="a"), True, id="a name"),
    pytest.param(Rule(("get",), ("",), ("pods",), ("a",)), Attributes("get", "", "pods", name="b"), False,
                 id="another name"),
    pytest.param(Rule(("list",), ("",), ("pods",), ("a",)), Attributes("list", "", "pods"), False, id="all of a name"),
    pytest.param(Rule(("get",), urls=("/a/*",)), Attributes("get", path="/a/b/c"), True, id="a path below"),
    pytest.param(Rule(("get",), urls=("/a/*",)), Attributes("get", path="/a"), False, id="a path itself"),
    pytest.param(Rule(("get",), urls=("*",)), Attributes("get", "", "pods"), False, id="paths are no resources"),
])
def test_decide(rule: Rule, wanted: Attributes, allowed: bool) -> None:
    assert allowed == rbac.decide([rule], wanted)


@pytest.mark.parametrize(("held", "wanted", "lacking"), [
    pytest.param([PODS], [PODS], [], id="the same"),
    pytest.param([PODS], [Rule(("get", "delete", "watch"), ("",), ("pods",))],
                 ['{APIGroups:[""], Resources:["pods"], Verbs:["delete" "watch"]}'], id="more verbs"),
    pytest.param([PODS], [Rule(("*",), ("",), ("pods",))], ['{APIGroups:[""], Resources:["pods"], Verbs:["*"]}'],
                 id="all verbs are more than any list of them"),
    pytest.param([Rule(("get",), ("",), ("*/log",))], [Rule(("get",), ("",), ("pods/log",))], [], id="a part"),
    pytest.param([Rule(("get",), ("",), ("pods",), ("a",))], [Rule(("get",), ("",), ("pods",), ("a", "b"))],
                 ['{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}'], id="another name"),
    pytest.param([Rule(("get",), ("",), ("pods",), ("a",))], [Rule(("get",), ("",), ("pods",))],
                 ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'], id="every name"),
    pytest.param([Rule(("get",), urls=("/a*",))], [Rule(("get", "post"), urls=("/a/b",))],
                 ['{NonResourceURLs:["/a/b"], Verbs:["post"]}'], id="a path"),
])
def test_missing(held: list[Rule], wanted: list[Rule], lacking: list[str]) -> None:
    assert lacking == [str(rule) for rule in rbac.missing(held, wanted)]


_words = st.lists(st.sampled_from(["a", "b", "c", "*"]), min_size=1, max_size=3, unique=True).map(tuple)
_names = st.lists(st.sampled_from(["x", "y"]), max_size=2, unique=True).map(tuple)
_rules = st.lists(st.builds(Rule, _words, _words, _words, _names), max_size=4)
_questions = st.builds(Attributes, st.sampled_from("abc"), st.sampled_from("abc"), st.sampled_from("abc"),
                       name=st.sampled_from(["", "x", "y"]))


@given(_rules, _rules, _questions)
def test_who_lacks_nothing_may_do_all_of_it(held: list[Rule], wanted: list[Rule], question: Attributes) -> None:
    if not rbac.missing(held, wanted) and rbac.decide(wanted, question):
        assert rbac.decide(held, question)


@given(_rules, _rules)
def test_what_is_missing_is_all_that_is_missing(held: list[Rule], wanted: list[Rule]) -> None:
    assert [] == rbac.missing([*held, *rbac.missing(held, wanted)], wanted)
