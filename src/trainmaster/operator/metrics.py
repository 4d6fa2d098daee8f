"""What Prometheus can ask: the names that dashboards for kubeflow's operator use, and what they leave in the dark.

The counters of jobs follow the stored status, never the number of looks: a job is created, succeeds or fails once,
whatever restarts in between. A registry per operator instead of the library's global one, so that two can live in one
process. Names and labels are in `TABLE`, from which the page in the manual is written and tested.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from trainmaster.api.meta import Key
from trainmaster.api.policy import ConditionType, JobStatus
from trainmaster.kube.transport import Request, Response, Stream, Transport

JOB: Final = ("job_namespace", "framework")
TABLE: Final[tuple[tuple[str, type[Counter | Gauge | Histogram], tuple[str, ...], str], ...]] = (
    ("training_operator_jobs_created_total", Counter, JOB, "Jobs that were seen for the first time."),
    ("training_operator_jobs_successful_total", Counter, JOB, "Jobs that succeeded."),
    ("training_operator_jobs_failed_total", Counter, JOB, "Jobs that failed, at a limit or by a deadline too."),
    ("training_operator_jobs_restarted_total", Counter, JOB, "Replicas that failed and were started again."),
    ("training_operator_jobs_deleted_total", Counter, JOB, "Finished jobs whose time to live was over."),
    ("created_pods_total", Counter, (), "Pods that were created."),
    ("deleted_pods_total", Counter, (), "Pods that were deleted."),
    ("failed_pods_total", Counter, (), "Pods that could not be created."),
    ("succeeded_service_creation_total", Counter, (), "Services that were created."),
    ("failed_service_creation_total", Counter, (), "Services that could not be created."),
    ("created_pod_groups_total", Counter, (), "Pod groups that were created."),
    ("deleted_pod_groups_total", Counter, (), "Pod groups that were deleted."),
    ("controller_runtime_reconcile_total", Counter, ("controller", "result"),
     "Looks at jobs, by how they ended: success, requeue_after or error."),
    ("controller_runtime_reconcile_errors_total", Counter, ("controller",), "Looks that have to be repeated."),
    ("controller_runtime_reconcile_time_seconds", Histogram, ("controller",), "Seconds that a look took."),
    ("controller_runtime_max_concurrent_reconciles", Gauge, ("controller",), "Looks that may be under way at once."),
    ("controller_runtime_active_workers", Gauge, ("controller",), "Looks that are under way."),
    ("workqueue_depth", Gauge, ("name",), "Jobs that wait to be looked at."),
    ("workqueue_adds_total", Counter, ("name",), "Jobs that were to be looked at, those that waited already left out."),
    ("workqueue_retries_total", Counter, ("name",), "Jobs that are looked at again because a look failed."),
    ("workqueue_queue_duration_seconds", Histogram, ("name",), "Seconds that a job waited to be looked at."),
    ("workqueue_work_duration_seconds", Histogram, ("name",), "Seconds that a job was looked at."),
    ("workqueue_unfinished_work_seconds", Gauge, ("name",), "Age of all looks that are under way, added up."),
    ("workqueue_longest_running_processor_seconds", Gauge, ("name",), "Age of the oldest look that is under way."),
    ("controller_runtime_webhook_requests_total", Counter, ("webhook", "code"), "Answers of the webhook, by its path."),
    ("controller_runtime_webhook_latency_seconds", Histogram, ("webhook",), "Seconds that an answer of it took."),
    ("rest_client_requests_total", Counter, ("code", "host", "method"), "Requests to the API server, by its answer."),
    ("leader_election_master_status", Gauge, ("name",), "1 while this process leads."),
    ("trainmaster_objects", Gauge, ("kind",), "Objects in the local copies."),
    ("trainmaster_events_waiting", Gauge, (), "Events that are not written yet."),
    ("trainmaster_events_written_total", Counter, (), "Events that were written."),
    ("trainmaster_events_lost_total", Counter, (), "Events that the API server did not take."),
)
# Upstream counts from 5 ms to a minute; a look that needs no request takes less than one.
BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


TURNS: Final = (
    (ConditionType.CREATED, "created"), (ConditionType.SUCCEEDED, "successful"), (ConditionType.FAILED, "failed"),
)


class Metrics:
    """The figures of one operator."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}
        for name, sort, labels, help_text in TABLE:
            if sort is Counter:
                self._counters[name] = Counter(name, help_text, labels, registry=self.registry)
            elif sort is Gauge:
                self._gauges[name] = Gauge(name, help_text, labels, registry=self.registry)
            else:
                self._histograms[name] = Histogram(name, help_text, labels, buckets=BUCKETS, registry=self.registry)
        self._bound: dict[tuple[str, ...], Counter] = {}

    def count(self, name: str, *labels: str, by: int = 1) -> None:
        key = (name, *labels)
        counter = self._bound.get(key)
        if counter is None:
            counter = self._counters[name].labels(*labels) if labels else self._counters[name]
            self._bound[key] = counter
        counter.inc(by)

    def show(self, name: str, value: Callable[[], float], *labels: str) -> None:
        """A gauge that is read when somebody asks."""
        gauge = self._gauges[name]
        (gauge.labels(*labels) if labels else gauge).set_function(value)

    def stored(self, framework: str, namespace: str, before: JobStatus, after: JobStatus) -> None:
        """A status was stored in place of another."""
        for condition, name in TURNS:
            if after.says(condition) and not before.says(condition):
                self.count(f"training_operator_jobs_{name}_total", namespace, framework)
        if (more := _restarts(after) - _restarts(before)) > 0:
            self.count("training_operator_jobs_restarted_total", namespace, framework, by=more)

    def measured(
        self, controller: str, reconcile: Callable[[Key], Awaitable[datetime | None]]
    ) -> Callable[[Key], Awaitable[datetime | None]]:
        """The same, counted and timed."""
        took = self._histograms["controller_runtime_reconcile_time_seconds"].labels(controller)

        async def look(key: Key) -> datetime | None:
            began, result = time.perf_counter(), "error"
            try:
                again = await reconcile(key)
                result = "success" if again is None else "requeue_after"
                return again
            finally:
                took.observe(time.perf_counter() - began)
                self.count("controller_runtime_reconcile_total", controller, result)
                if result == "error":
                    self.count("controller_runtime_reconcile_errors_total", controller)

        return look

    def answered(self, path: str, code: int, seconds: float) -> None:
        """The webhook has answered."""
        self.count("controller_runtime_webhook_requests_total", path, str(code))
        self._histograms["controller_runtime_webhook_latency_seconds"].labels(path).observe(seconds)

    def queue(self, name: str) -> "Queue":
        """Who counts what happens in a queue."""
        for counter in ("workqueue_adds_total", "workqueue_retries_total"):
            self.count(counter, name, by=0)     # there from the beginning, as dashboards expect
        waited, worked = (self._histograms[f"workqueue_{what}_duration_seconds"] for what in ("queue", "work"))
        return Queue(self, name, waited.labels(name), worked.labels(name))

    def page(self) -> tuple[bytes, str]:
        """What to answer, and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST


@dataclass(frozen=True, slots=True)
class Queue:
    """The figures of one queue, under the names that client-go gives them."""

    metrics: Metrics
    name: str
    waits: Histogram
    works: Histogram

    def added(self) -> None:
        self.metrics.count("workqueue_adds_total", self.name)

    def retried(self) -> None:
        self.metrics.count("workqueue_retries_total", self.name)

    def taken(self, waited: float) -> None:
        self.waits.observe(waited)

    def done(self, worked: float) -> None:
        self.works.observe(worked)


class Counted:
    """A transport whose answers are counted."""

    def __init__(self, inner: Transport, metrics: Metrics, host: str) -> None:
        self._inner = inner
        self._metrics = metrics
        self._host = host

    async def send(self, request: Request) -> Response:
        code = "<error>"    # client-go's word for an answer that did not come
        try:
            answer = await self._inner.send(request)
            code = str(answer.status)
        finally:
            self._metrics.count("rest_client_requests_total", code, self._host, request.method)
        return answer

    async def open(self, request: Request) -> Stream:
        code = "<error>"
        try:
            stream = await self._inner.open(request)
            code = str(stream.status)
        finally:
            self._metrics.count("rest_client_requests_total", code, self._host, request.method)
        return stream

    async def close(self) -> None:
        await self._inner.close()


def _restarts(status: JobStatus) -> int:
    return sum(known.restarts for known in status.post_mortem.replicas.values()) if status.post_mortem else 0
