"""What a cluster that was not taken down is started with again."""

from pathlib import Path

import pytest

from trainmaster.local.asked import Asked
from trainmaster.local.home import Home
from trainmaster.local.said import NOTHING, SIMULATED, Said, remember, said_before

GPUS = Said(offered={"nvidia.com/gpu": "4"})


@pytest.mark.parametrize(("before", "now", "expected"), [
    pytest.param(GPUS, NOTHING, GPUS, id="what is not said is as it was"),
    pytest.param(NOTHING, GPUS, GPUS, id="what is said counts"),
    pytest.param(Said(gang_scheduler="none"), Said(gang_scheduler="volcano"), Said(gang_scheduler="volcano"),
                 id="what is said overrules, also with what goes without saying"),
    pytest.param(GPUS, Said(offered={"cpu": "8"}), Said(offered={"nvidia.com/gpu": "4", "cpu": "8"}),
                 id="each resource for itself"),
    pytest.param(Said(simulated_nodes=3), Said(simulated_nodes=0), Said(simulated_nodes=0), id="none is a number, too"),
    pytest.param(Said(port=7443), NOTHING, NOTHING, id="but for the port"),
])
def test_the_newer_word_counts(before: Said, now: Said, expected: Said) -> None:
    assert expected == now.over(before)


@pytest.mark.parametrize(("said", "options"), [
    pytest.param(NOTHING, "", id="nothing"),
    pytest.param(Said(port=7443), "", id="a port is not kept, so it is not told"),
    pytest.param(Said(offered={"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "4"}),
                 "--cpus 8 --memory 16Gi --resource nvidia.com/gpu=4", id="what the machine offers"),
    pytest.param(Said(only_apiserver=True), "--only apiserver", id="only the API server"),
    pytest.param(Said(gang_scheduler="none", preempt=True, reclaim=True),
                 "--gang-scheduler-name none --preempt --reclaim", id="how jobs are scheduled"),
    pytest.param(Said(simulated_nodes=3, simulated_offers={"cpu": "1", "memory": "2Gi"}),
                 "--fake-nodes 3 --fake-node cpu=1,memory=2Gi", id="simulated nodes"),
])
def test_it_is_told_as_it_would_be_typed(said: Said, options: str) -> None:
    assert options == said.options()


def test_only_what_was_not_said_again_is_kept() -> None:
    before = Said(preempt=True, gang_scheduler="t9k", offered={"cpu": "8", "nvidia.com/gpu": "4"})
    now = Said(gang_scheduler="none", offered={"cpu": "2"})

    assert "--resource nvidia.com/gpu=4 --preempt" == before.besides(now).options()


def test_what_the_control_plane_is_told() -> None:
    assert Asked() == NOTHING.asked()
    assert SIMULATED == Said(simulated_nodes=1).asked().simulated_offers
    assert {} == Said(simulated_offers={"cpu": "1"}).asked().simulated_offers
    assert Said(gang_scheduler="volcano", simulated_nodes=0).means() == NOTHING.means()
    assert GPUS.means() != NOTHING.means()


def test_it_is_kept_for_as_long_as_the_home_has_run(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.make()
    assert NOTHING == said_before(home)
    remember(home, Said(port=7443, preempt=True, offered={"cpu": "8"}))

    assert Said(preempt=True, offered={"cpu": "8"}) == said_before(home)
    (home.run / "said.json").write_text("{")
    assert NOTHING == said_before(home)
