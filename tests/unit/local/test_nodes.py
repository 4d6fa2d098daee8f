"""Which nodes a machine is."""

import os
from pathlib import Path

import pytest

from trainmaster.cluster.kubelet import records
from trainmaster.local.home import Home
from trainmaster.local.nodes import names, nodes, settle, settled
from trainmaster.local.parts import StartError
from trainmaster.local.up import members


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    made.make()
    return made


@pytest.mark.parametrize(
    ("hostname", "expected"),
    [("laptop", "laptop"), ("My_Mac.local", "my-mac.local"), ("-", "local"), ("ü", "local"), ("a" * 80, "a" * 63)],
)
def test_a_node_is_named_after_its_machine(hostname: str, expected: str) -> None:
    assert [expected] == names(hostname, 1)


@pytest.mark.parametrize(("expected", "hostname", "count"), [
    pytest.param(["box", "box-2", "box-3"], "box", 3, id="the first as if it were alone"),
    pytest.param(["a" * 60, "a" * 60 + "-2"], "a" * 60 + "-bc", 2, id="a long name is cut, and not within a dash"),
])
def test_names_of_several(expected: list[str], hostname: str, count: int) -> None:
    assert expected == names(hostname, count)


def test_no_two_nodes_share_what_is_their_own(home: Home) -> None:
    made = settle(home, 12)

    assert made == nodes(home)
    for own in ("name", "user", "kubeconfig", "socket_name"):
        assert 12 == len({getattr(node, own) for node in made})


def test_a_record_that_cannot_be_read_is_none(home: Home) -> None:
    (home.run / "nodes.json").write_text("{")

    assert settled(home) is None
    assert 1 == len(nodes(home))


@pytest.mark.parametrize(("expected", "before", "wanted", "running"), [
    pytest.param(1, None, None, False, id="one, if nobody says otherwise"),
    pytest.param(3, None, 3, False, id="as many as are asked for"),
    pytest.param(3, 3, None, False, id="as many as there were, until it is taken down"),
    pytest.param(3, 3, None, True, id="as many as there are"),
    pytest.param(3, 3, 2, True, id="what runs stays as it is"),
    pytest.param(2, 3, 2, False, id="where no pod runs the number may change"),
    pytest.param(1, None, 4, True, id="what an earlier release started is one"),
])
def test_how_many_there_will_be(
    expected: int, before: int | None, wanted: int | None, running: bool, home: Home
) -> None:
    if before is not None:
        settle(home, before)

    assert expected == len(members(home, wanted, running=running))
    assert expected == len(nodes(home))


def test_pods_that_run_keep_their_nodes(home: Home) -> None:
    """Any process that lives may be their holder: here, our own."""
    settle(home, 2)
    proc = os.open("/proc", os.O_RDONLY)
    records.write(str(home.run), records.HOLDER, records.identity_of_caller(proc))
    os.close(proc)

    assert 2 == len(members(home, None, running=False))
    with pytest.raises(StartError, match="run on 2 nodes, so there cannot be 1 node now"):
        members(home, 1, running=False)
