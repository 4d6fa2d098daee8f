"""The figures: every name there is, and that jobs are counted once whatever restarts in between."""

import re

from tests.unit.engine.stories import tfjob
from tests.unit.operator.stage import stage

from trainmaster.operator import main as operator
from trainmaster.operator.metrics import TABLE, Metrics
from trainmaster.testing.faults import Answer, Delay, on

# What dashboards for kubeflow's operator ask for (specification 8.3).
UPSTREAM = {
    *(f"training_operator_jobs_{word}_total" for word in ("created", "successful", "failed", "restarted", "deleted")),
    "created_pods_total", "deleted_pods_total", "failed_pods_total", "succeeded_service_creation_total",
    "failed_service_creation_total", "created_pod_groups_total", "deleted_pod_groups_total",
    *(f"controller_runtime_{word}" for word in (
        "reconcile_total", "reconcile_errors_total", "reconcile_time_seconds", "max_concurrent_reconciles",
        "active_workers", "webhook_requests_total", "webhook_latency_seconds")),
    *(f"workqueue_{word}" for word in (
        "depth", "adds_total", "retries_total", "queue_duration_seconds", "work_duration_seconds",
        "unfinished_work_seconds", "longest_running_processor_seconds")),
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


def standard(metrics: Metrics) -> dict[str, float]:
    """The figures of the TFJobs' controller that are counts, by name."""
    found = re.findall(r'^(\w+)\{(?:controller|name)="tfjob-controller"\} ([\d.]+)$', metrics.page()[0].decode(),
                       re.MULTILINE)
    return {name: float(value) for name, value in found if not name.endswith(("_sum", "_created"))}


async def test_the_figures_that_every_controller_has() -> None:
    """§8.3: under the names of controller-runtime and client-go, each controller by itself, from the beginning."""
    async with stage() as it:
        metrics = Metrics()
        it.begin_as(lambda client: operator.run(client, it.clock, it.settings, metrics=metrics))
        it.lives[-1].plan = on("POST", "/pods", Delay(5.0), Delay(7.0))
        await it.clock.advance(1)
        quiet = {name for name, value in standard(metrics).items() if not value}
        await it.apply(tfjob())
        await it.clock.advance(3)
        busy = standard(metrics)
        await it.clock.advance(10)
        after = standard(metrics)

        assert {"workqueue_adds_total", "workqueue_retries_total", "workqueue_depth"} <= quiet
        # The job, and while it is looked at the news of its services.
        assert (2, 0, 1) == (busy["workqueue_adds_total"], busy["workqueue_work_duration_seconds_count"],
                             busy["controller_runtime_active_workers"])
        assert 3 == round(busy["workqueue_longest_running_processor_seconds"])
        assert busy["workqueue_unfinished_work_seconds"] == busy["workqueue_longest_running_processor_seconds"]
        assert (0, 0) == (after["workqueue_unfinished_work_seconds"], after["controller_runtime_active_workers"])
        assert after["workqueue_adds_total"] == after["workqueue_work_duration_seconds_count"] >= 2
        assert after["workqueue_adds_total"] == after["workqueue_queue_duration_seconds_count"]


async def test_a_look_that_failed_is_a_retry() -> None:
    async with stage() as it:
        metrics = Metrics()
        it.begin_as(lambda client: operator.run(client, it.clock, it.settings, metrics=metrics))
        it.lives[-1].plan = on("POST", "/pods", Answer(500, "InternalError"))
        await it.apply(tfjob())
        await it.clock.advance(3)

        found = standard(metrics)
        assert (1, 1) == (found["workqueue_retries_total"], found["controller_runtime_reconcile_errors_total"])


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
