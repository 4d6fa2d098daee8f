"""Sets of completion indexes as they are written down."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.api.meta import Object
from trainmaster.cluster.controllers.workloads.indexes import INDEX, index_of, read, written


@pytest.mark.parametrize(("indexes", "expected"), [
    pytest.param([], "", id="none"),
    pytest.param([3], "3", id="one"),
    pytest.param([3, 4], "3,4", id="two neighbours are written apart"),
    pytest.param([5, 3, 4], "3-5", id="three are a run, in whatever order they came"),
    pytest.param([0, 1, 2, 5, 7, 8], "0-2,5,7,8", id="runs and others"),
])
def test_how_they_are_written(indexes: list[int], expected: str) -> None:
    assert expected == written(indexes)


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("", set(), id="nothing"),
    pytest.param("0-2,5", {0, 1, 2, 5}, id="a run and one"),
    pytest.param("8-99999999999", {8, 9}, id="a run beyond the end is not counted out"),
    pytest.param("10,12-14", set(), id="none that is small enough"),
    pytest.param("1,x,-3,4-,5-y,2", {1, 2}, id="parts that cannot be read are left out"),
    pytest.param("4-2", set(), id="a run that goes backwards"),
])
def test_how_they_are_read(text: str, expected: set[int]) -> None:
    assert expected == read(text, 10)


@given(st.sets(st.integers(0, 200)))
def test_what_was_written_is_read_back(indexes: set[int]) -> None:
    assert indexes == read(written(indexes), 201)


@pytest.mark.parametrize(("about", "expected"), [
    pytest.param({"annotations": {INDEX: "2"}}, 2, id="its annotation says so"),
    pytest.param({"labels": {INDEX: "2"}}, 2, id="its label does"),
    pytest.param({}, None, id="none does"),
    pytest.param({"annotations": {INDEX: "-1"}}, None, id="a number that is none of ours"),
])
def test_the_index_of_a_pod(about: Object, expected: int | None) -> None:
    assert expected == index_of({"metadata": about})
