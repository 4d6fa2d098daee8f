"""Errors: told apart by what the caller should do."""

import pytest

from trainmaster.kube.errors import Unreachable, from_status, is_transient


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(Unreachable("x"), True, id="no answer"),
        pytest.param(from_status(409, {"reason": "Conflict"}), True, id="changed meanwhile"),
        pytest.param(from_status(409, {"reason": "AlreadyExists"}), False, id="already there"),
        pytest.param(from_status(410, {}), True, id="too old"),
        pytest.param(from_status(429, {}), True, id="too many"),
        pytest.param(from_status(500, {}), True, id="the server failed"),
        pytest.param(from_status(504, {}), True, id="the server was too slow"),
        pytest.param(from_status(404, {}), False, id="not there"),
        pytest.param(from_status(403, {}), False, id="not allowed"),
        pytest.param(from_status(422, {}), False, id="never valid"),
        pytest.param(ValueError(), False, id="our bug"),
    ],
)
def test_what_may_well_succeed_later(error: Exception, expected: bool) -> None:
    assert expected == is_transient(error)


@pytest.mark.parametrize(
    ("status", "header", "expected"),
    [
        pytest.param({}, None, None, id="not asked"),
        pytest.param({"details": {"retryAfterSeconds": 3}}, None, 3.0, id="in the status"),
        pytest.param({"details": {"retryAfterSeconds": 3}}, 5.0, 5.0, id="the header wins"),
    ],
)
def test_how_long_the_server_asked_us_to_wait(
    status: dict[str, object], header: float | None, expected: float | None
) -> None:
    assert expected == from_status(429, status, header=header).retry_after
