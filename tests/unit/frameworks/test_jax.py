"""JAXJob: who is told what, byte for byte, and when it has succeeded."""

import pytest
from tests.unit.frameworks.groups import job, pairs, words

from trainmaster.api.meta import Object


def test_everybody_knows_the_coordinator() -> None:
    """The address is without the port (B-65)."""
    assert (
        "PYTHONUNBUFFERED=1 COORDINATOR_PORT=6666 COORDINATOR_ADDRESS=m-worker-0 NUM_PROCESSES=3 PROCESS_ID=2"
    ) == pairs(job("JAXJob", {"Worker": 3}), "Worker", 2)


@pytest.mark.parametrize(("states", "expected"), [
    pytest.param({}, None, id="nobody runs"),
    pytest.param({"Worker": {"active": 1}}, ("Running", "JAXJob ns1/m is running."), id="one runs"),
    pytest.param({"Worker": {"succeeded": 1, "active": 1}}, ("Running", "JAXJob ns1/m is running."), id="one is done"),
    pytest.param({"Worker": {"succeeded": 2}}, ("Succeeded", "JAXJob ns1/m successfully completed."), id="all are"),
    pytest.param({"Worker": {"failed": 1, "active": 1}},
                 ("Failed", "JAXJob m is failed because 1 Worker replica(s) failed."), id="one failed"),
])
def test_what_the_states_mean(states: Object, expected: tuple[str, str] | None) -> None:
    assert expected == words(job("JAXJob", {"Worker": 2}), states)
