"""What the status of a namespace says while it is emptied."""

from datetime import timedelta

import pytest

from trainmaster.api.core import LEASES, PODS
from trainmaster.api.meta import Object
from trainmaster.cluster.controllers.emptying import Remains, combined, conditions
from trainmaster.testing.clock import NOON

TYPES = [
    "NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure", "NamespaceContentRemaining", "NamespaceFinalizersRemaining",
]


@pytest.mark.parametrize(
    ("found", "type_", "reason", "words"),
    [
        pytest.param(Remains(undiscovered={"metrics.k8s.io/v1": "it does not answer"}), TYPES[0], "DiscoveryFailed",
                     "1 of the API groups cannot be asked which kinds they have: metrics.k8s.io/v1: it does not answer",
                     id="a group that does not answer"),
        pytest.param(Remains(failures=["secrets.: no room", "pods.: no room"]), TYPES[2], "ContentDeletionFailed",
                     "2 kinds could not be deleted: pods.: no room, secrets.: no room", id="kinds that cannot go"),
        pytest.param(Remains({PODS: 2, LEASES: 1}), TYPES[3], "SomeResourcesRemain",
                     "Objects are left: leases.coordination.k8s.io has 1 resource instances, "
                     "pods. has 2 resource instances", id="objects that are left"),
        pytest.param(Remains({PODS: 1}, {"example.com/hold": 1}), TYPES[4], "SomeFinalizersRemain",
                     "Finalizers hold objects back: example.com/hold in 1 resource instances", id="finalizers"),
        pytest.param(Remains(failures=[f"kind-{n:02}" for n in range(13)]), TYPES[2], "ContentDeletionFailed",
                     "13 kinds could not be deleted: "
                     + ", ".join(f"kind-{n:02}" for n in range(10)) + ", and 3 more", id="of many, the first few"),
    ],
)
def test_a_problem_is_told(found: Remains, type_: str, reason: str, words: str) -> None:
    told = {condition["type"]: condition for condition in conditions(found, [], NOON)}

    assert TYPES == list(told)
    assert ("True", reason, words) == (told[type_]["status"], told[type_]["reason"], told[type_]["message"])


def test_when_all_is_well_every_condition_says_so() -> None:
    told = conditions(Remains(), [], NOON)

    assert TYPES == [condition["type"] for condition in told]
    assert {"False"} == {condition["status"] for condition in told}
    assert [
        "ResourcesDiscovered", "ParsedGroupVersions", "ContentDeleted", "ContentRemoved", "ContentHasNoFinalizers",
    ] == [condition["reason"] for condition in told]


def test_a_moment_changes_only_with_the_truth_and_others_conditions_stay() -> None:
    later = NOON + timedelta(minutes=1)
    theirs: Object = {"type": "Theirs", "status": "True"}
    first = conditions(Remains({PODS: 2}), [theirs], NOON)
    second = conditions(Remains({PODS: 1}), first, later)
    third = conditions(Remains(), second, later)

    since = [[c["lastTransitionTime"] for c in told if c["type"] == TYPES[3]] for told in (first, second, third)]
    assert [["2030-01-01T12:00:00Z"], ["2030-01-01T12:00:00Z"], ["2030-01-01T12:01:00Z"]] == since
    assert theirs == third[0]


@pytest.mark.parametrize(
    ("found", "nothing", "troubled"),
    [
        pytest.param(Remains(), True, False, id="empty"),
        pytest.param(Remains({PODS: 1}), False, False, id="something is left"),
        pytest.param(Remains(failures=["x"]), False, True, id="nobody knows what is left"),
        pytest.param(Remains(undiscovered={"g/v1": "x"}), False, True, id="nobody knows what there could be"),
    ],
)
def test_when_a_namespace_is_empty(found: Remains, nothing: bool, troubled: bool) -> None:
    assert (nothing, troubled) == (found.nothing, found.troubled)


def test_looks_at_several_kinds_add_up() -> None:
    whole = combined([
        Remains({PODS: 2}, {"f": 1}), Remains({LEASES: 1}, {"f": 2}), Remains(failures=["x"]),
        Remains(undiscovered={"g/v1": "y"}),
    ])

    assert Remains({PODS: 2, LEASES: 1}, {"f": 3}, {"g/v1": "y"}, ["x"]) == whole
