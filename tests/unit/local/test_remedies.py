"""What to write instead; that every sort of mistake has its sentence is tried by tests/unit/cli/mistakes.yaml."""

import pytest

from trainmaster.local.remedies import at, near, remedy

POD = {"spec": {"containers": [{"name": "c", "volumeMounts": [{"name": "data"}], "tty": 1.5}],
                "volumes": [{"name": "date"}]}}


@pytest.mark.parametrize(("field", "what", "expected"), [
    pytest.param("spec.containers[0].volumeMounts[0].name", 'Not found: "data"', "(there are: date)",
                 id="volumes that are there are named"),
    pytest.param("spec.containers[0].tty", "must be text, not number", 'Put it in quotes: "1.5".',
                 id="a number in quotes"),
    pytest.param("spec.x", "in body must be of type boolean: ", "Write true or false, without quotes.",
                 id="the form of a type"),
    pytest.param("spec.x", 'Unsupported value: "b": supported values: "red", "blue"', "Write one of these.",
                 id="nothing that is near"),
    pytest.param("spec.x", "Invalid value: it is what it is", "", id="nothing to add to what nobody foresaw"),
])
def test_a_finding_has_its_remedy(field: str, what: str, expected: str) -> None:
    assert expected in remedy(field, what, POD)
    assert bool(expected) == bool(remedy(field, what, POD))


def test_the_same_word_in_another_case_is_nearer_than_one_that_is_alike() -> None:
    assert ("emptyDir", "Worker", "") == (near("emptydir", ["emptyDi", "emptyDir"]), near("Wroker", ["PS", "Worker"]),
                                          near("x", ["Worker"]))


def test_what_is_at_no_place_is_nothing() -> None:
    assert (None, None, "date") == (at(POD, "spec.containers[7].name"), at(POD, "spec.containers.name"),
                                    at(POD, "spec.volumes[0].name"))
