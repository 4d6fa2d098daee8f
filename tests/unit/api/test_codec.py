"""JSON to typed records and back."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.api import codec
from trainmaster.api.kubeflow_v1 import TF_JOB, TFJobSpec
from trainmaster.api.policy import CleanPodPolicy, JobStatus

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def spec(**fields: Any) -> TFJobSpec:
    made = codec.decode_spec({"tfReplicaSpecs": {}, **fields}, TF_JOB)
    assert isinstance(made, TFJobSpec)
    return made


def test_fields_are_in_camel_case_on_the_wire() -> None:
    assert spec(enableDynamicWorker=True).enable_dynamic_worker


def test_words_become_enumerations() -> None:
    assert CleanPodPolicy.ALL is spec(runPolicy={"cleanPodPolicy": "All"}).run_policy.clean_pod_policy


def test_null_is_as_good_as_absent() -> None:
    assert spec() == spec(runPolicy=None, successPolicy=None)


@pytest.mark.parametrize("raw", [
    pytest.param({"tfReplicaSpecs": {}, "newField": {"a": [1]}}, id="in the spec"),
    pytest.param({"runPolicy": {"newField": 1}}, id="in a record inside"),
    pytest.param({"tfReplicaSpecs": {"Worker": {"label": "2080ti"}}}, id="in a record inside a map"),
    pytest.param({"*": 1, "unknown": 2}, id="even with the strangest names"),
])
def test_what_we_do_not_know_is_carried(raw: dict[str, Any]) -> None:
    again = codec.encode(codec.decode_spec(raw, TF_JOB))

    assert {key: value for key, value in raw.items() if value != {}} == again


@given(st.dictionaries(st.text(), json_values))
@settings(deadline=None)
def test_a_status_of_the_future_survives_us(unknown: dict[str, Any]) -> None:
    known = {"conditions", "replicaStatuses", "startTime", "completionTime", "lastReconcileTime", "postMortem"}
    raw = {key: value for key, value in unknown.items() if key not in known}

    assert raw == codec.encode(codec.decode_status(raw))


def test_moments_are_written_in_whole_seconds() -> None:
    status = JobStatus(start_time=datetime(2030, 1, 1, 12, 0, 0, 999_999, tzinfo=UTC))

    assert {"startTime": "2030-01-01T12:00:00Z"} == codec.encode(status)


def test_a_role_without_any_count_is_still_there() -> None:
    raw: dict[str, Any] = {"replicaStatuses": {"Worker": {}}}

    assert raw == codec.encode(codec.decode_status(raw))


@pytest.mark.parametrize(("raw", "field"), [
    pytest.param({"tfReplicaSpecs": {"Worker": {"replicas": "two"}}}, "spec.tfReplicaSpecs[*].replicas", id="a number"),
    pytest.param({"tfReplicaSpecs": []}, "spec.tfReplicaSpecs", id="a map"),
    pytest.param({"runPolicy": {"suspend": "yes"}}, "spec.runPolicy.suspend", id="a truth value"),
    pytest.param([], "spec", id="not an object at all"),
])
def test_the_place_of_a_wrong_type_is_named(raw: Any, field: str) -> None:
    with pytest.raises(codec.Malformed) as caught:
        codec.decode_spec(raw, TF_JOB)

    assert field == caught.value.field
