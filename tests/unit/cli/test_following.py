"""The last words of `run` about a job."""

import pytest

from trainmaster.api.core import PODS
from trainmaster.api.meta import Resource
from trainmaster.cli.following import Following, tell
from trainmaster.cli.view import PlainView
from trainmaster.sdk.follow import Failure, Outcome
from trainmaster.sdk.submit import Submitted

JOB = Submitted(Resource("kubeflow.org", "v1", "tfjobs", "TFJob"), {"metadata": {"name": "a"}}, "created")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        pytest.param(("bad batch",), ["first to fail: worker-0, exit code 3; its last lines:", "    bad batch"],
                     id="what it printed last is shown"),
        pytest.param((), ["first to fail: worker-0, exit code 3; it printed nothing"], id="or that it printed nothing"),
    ],
)
def test_the_first_to_fail_and_its_last_lines(lines: tuple[str, ...], said: list[str],
                                              capsys: pytest.CaptureFixture[str]) -> None:
    code = tell(PlainView(), Outcome(False, "It has failed.", (Failure("worker-0", "exit code 3", lines),)), JOB, 1.0)

    shown = [line.removeprefix("· ") for line in capsys.readouterr().err.splitlines()]
    said = [*said, "all that each replica printed: trainmaster logs a; why it failed: trainmaster explain a"]
    assert (1, [*said, "Failed after 1.0 s: It has failed."]) == (code, shown)


def test_a_package_that_is_missing_is_named_with_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    failure = Failure("worker-0", "exit code 1", ("ModuleNotFoundError: No module named 'einops'",))
    tell(PlainView(), Outcome(False, "It has failed.", (failure,)), JOB, 1.0)

    said = capsys.readouterr().err
    assert "· The replicas have no module 'einops'." in said
    assert "run again with --requirements FILE" in said


async def test_where_there_is_no_job_it_is_said_that_nothing_is_followed(capsys: pytest.CaptureFixture[str]) -> None:
    pod = Submitted(PODS, {"metadata": {"name": "p"}}, "created")
    code = await Following(None, PlainView(), hangs_after=1).run([pod])  # type: ignore[arg-type]  # never asked

    said = capsys.readouterr().err.splitlines()
    assert (0, "· Pod p created") == (code, said[0])
    assert "nothing to follow" in said[1]
