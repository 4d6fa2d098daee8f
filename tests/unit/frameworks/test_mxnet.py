"""MXJob: who is told what, byte for byte, and when it has succeeded. No recordings: the peer dropped it."""

import pytest
from tests.unit.frameworks.groups import job, pairs, told, words

from trainmaster.api.meta import Object

TRAIN = {"Scheduler": 1, "Server": 1, "Worker": 2}
TUNE = {"TunerTracker": 1, "TunerServer": 1, "Tuner": 1}


def test_everybody_knows_everybody() -> None:
    assert (
        'MX_CONFIG={"cluster":{"scheduler":[{"url":"m-scheduler-0","port":9091}],'
        '"server":[{"url":"m-server-0","port":9091}],'
        '"worker":[{"url":"m-worker-0","port":9091},{"url":"m-worker-1","port":9091}]},'
        '"labels":{"scheduler":"","server":"","worker":""},"task":{"type":"worker","index":1}} '
        "DMLC_PS_ROOT_PORT=9091 DMLC_PS_ROOT_URI=m-scheduler-0 DMLC_NUM_SERVER=1 DMLC_NUM_WORKER=2 DMLC_ROLE=worker "
        "DMLC_USE_KUBERNETES=1 DMLC_WORKER_ID=1"
    ) == pairs(job("MXJob", TRAIN), "Worker", 1)


def test_only_workers_have_a_number() -> None:
    assert "DMLC_USE_KUBERNETES" == told(job("MXJob", TRAIN), "Server")[-1]["name"]


def test_a_tuner_knows_what_its_servers_are_for_and_no_scheduler() -> None:
    made = job("MXJob", TUNE, jobMode="MXTune")
    made.roles[1].template["metadata"] = {"annotations": {"tuner-server-key": "2080ti"}}

    assert (
        'MX_CONFIG={"cluster":{"tuner":[{"url":"m-tuner-0","port":9091}],'
        '"tunerserver":[{"url":"m-tunerserver-0","port":9091}],'
        '"tunertracker":[{"url":"m-tunertracker-0","port":9091}]},'
        '"labels":{"tuner":"","tunerserver":"2080ti","tunertracker":""},"task":{"type":"tuner","index":0}} '
        "DMLC_PS_ROOT_PORT=0 DMLC_PS_ROOT_URI= DMLC_NUM_SERVER=0 DMLC_NUM_WORKER=0 DMLC_ROLE=tuner "
        "DMLC_USE_KUBERNETES=1"
    ) == pairs(made, "Tuner")


@pytest.mark.parametrize(("roles", "states", "expected"), [
    pytest.param(TRAIN, {"Worker": {"active": 2}}, None, id="workers run, but no scheduler"),
    pytest.param(TRAIN, {"Scheduler": {"active": 1}}, ("Running", "MXJob m is running."), id="the scheduler runs"),
    pytest.param(TRAIN, {"Scheduler": {"succeeded": 1}}, ("Succeeded", "MXJob m is successfully completed."),
                 id="the scheduler is done"),
    pytest.param(TRAIN, {"Scheduler": {"succeeded": 1}, "Worker": {"failed": 1}},
                 ("Succeeded", "MXJob m is successfully completed."), id="B-11: as a worker fails: success"),
    pytest.param(TRAIN, {"Scheduler": {"active": 1}, "Worker": {"failed": 1}},
                 ("Failed", "mxjob m is failed because 1 Worker replica(s) failed."), id="a worker failed"),
    pytest.param({"Worker": 1}, {"Worker": {"active": 1}}, ("Running", "MXJob m is running."), id="one worker runs"),
    pytest.param({"Worker": 1}, {"Worker": {"succeeded": 1}}, ("Succeeded", "MXJob m is successfully completed."),
                 id="one worker is done"),
    pytest.param(TUNE, {"TunerServer": {"active": 1}}, ("Running", "MXJob m is running."), id="B-31: a tuning runs"),
    pytest.param(TUNE, {"Tuner": {"succeeded": 1}, "TunerServer": {"active": 1}},
                 ("Succeeded", "MXJob m is successfully completed."), id="B-31: the tuners are done"),
])
def test_what_the_states_mean(roles: dict[str, int], states: Object, expected: tuple[str, str] | None) -> None:
    assert expected == words(job("MXJob", roles), states)
