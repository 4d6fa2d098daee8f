"""The status protocol of Kubeflow Trainer."""

import pytest

from trainmaster.progress.report import BadReport, Report, decoded, encoded


def test_a_report_of_its_clients_is_read() -> None:
    body = (b'{"trainerStatus": {"progressPercentage": 37, "estimatedRemainingSeconds": 120, "metrics": '
            b'[{"name": "loss", "value": "0.25"}, {"name": "lr", "value": "1e-4"}], '
            b'"lastUpdatedTime": "2026-01-01T00:00:00Z", "unheardOf": 1}}')

    assert Report(0.37, 120.0, {"loss": 0.25, "lr": 1e-4}) == decoded(body)


def test_ours_is_one_too() -> None:
    report = Report(0.5, 3.0, {"loss": 0.125})

    assert report == decoded(encoded(report, "2026-01-01T00:00:00Z"))


@pytest.mark.parametrize(("status", "sentence"), [
    pytest.param('{"progressPercentage": 1}', "lastUpdatedTime", id="without a moment"),
    pytest.param('{"lastUpdatedTime": "x", "progressPercentage": 101}', "must be from 0 to 100", id="beyond the end"),
    pytest.param('{"lastUpdatedTime": "x", "estimatedRemainingSeconds": -1}', "must not be negative", id="in the past"),
    pytest.param('{"lastUpdatedTime": "x", "metrics": [{"name": "", "value": "1"}]}', "1 to 64", id="without a name"),
    pytest.param('{"lastUpdatedTime": "x", "metrics": [{"name": "a", "value": "red"}]}', "'red' is not a number",
                 id="a colour"),
    pytest.param('{"lastUpdatedTime": "x", "metrics": [' + ",".join(['{"name": "a", "value": "1"}'] * 257) + "]}",
                 "257 entries", id="too many"),
    pytest.param("1", "not a training status", id="something else"),
])
def test_what_is_no_report_is_refused_with_the_field(status: str, sentence: str) -> None:
    with pytest.raises(BadReport, match=sentence):
        decoded(b'{"trainerStatus": %s}' % status.encode())
