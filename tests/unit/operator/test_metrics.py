"""The figures: every name there is, and that jobs are counted once whatever restarts in between."""

import re

from tests.unit.engine.stories import tfjob
from tests.unit.operator.stage import stage

from trainmaster.operator import main as operator
from trainmaster.operator.metrics import TABLE, Metrics

# What dashboards for kubeflow's operator ask for (specification 8.3).
UPSTREAM = {
    *(f"training_operator_jobs_{word}_total" for word in ("created", "successful", "failed", "restarted", "deleted")),
    "created_pods_total", "deleted_pods_total", "failed_pods_total", "succeeded_service_creation_total",
    "failed_service_creation_total", "created_pod_groups_total", "deleted_pod_groups_total",
    "controller_runtime_reconcile_total", "controller_runtime_reconcile_errors_total", "workqueue_depth",
    "rest_client_requests_total", "leader_election_master_status",
}


def figures(metrics: Metrics) -> dict[str, float]:
    """Those that are not zero, by name, of jobs and what is made for them."""
    found = re.findall(r"^(training_operator\w+|\w+_pods_total|\w+_creation_total)(?:\{.*\})? ([\d.]+)$",
                       metrics.page()[0].decode(), re.MULTILINE)
    return {name: float(value) for name, value in found if float(value)}


def test_every_name_of_upstream_is_there() -> None:
    assert UPSTREAM <= {name for name, *_ in TABLE}


async def test_a_life_and_the_life_after_it() -> None:
    """Upstream counts every job again when it is restarted (B-26)."""
    async with stage() as it:
        first = Metrics()
        it.begin_as(lambda client: operator.run(client, it.clock, it.settings, metrics=first))
        await it.apply(tfjob(roles={"Worker": (2, "ExitCode")}))
        await it.settle()
        await it.run()
        await it.settle()
        await it.fail("*-worker-1", code=137)
        await it.settle()
        assert {
            "training_operator_jobs_created_total": 1, "training_operator_jobs_restarted_total": 1,
            "created_pods_total": 3, "deleted_pods_total": 1, "succeeded_service_creation_total": 2,
        } == figures(first)

        await it.end()
        second = Metrics()
        it.begin_as(lambda client: operator.run(client, it.clock, it.settings, metrics=second))
        await it.settle()
        assert {} == figures(second)
        await it.run()
        await it.settle()
        await it.succeed()
        await it.settle()

        assert {"training_operator_jobs_successful_total": 1} == figures(second)


async def test_a_limit_is_a_failure() -> None:
    """Upstream counts only failures of its status step (B-27)."""
    async with stage() as it:
        metrics = Metrics()
        it.begin_as(lambda client: operator.run(client, it.clock, it.settings, metrics=metrics))
        await it.apply(tfjob(policy={"activeDeadlineSeconds": 30}))
        await it.settle()
        await it.run()
        await it.clock.advance(60)

        assert 1 == figures(metrics)["training_operator_jobs_failed_total"]
