"""§8.4: every event that people and tools know from upstream: its type, reason and words, on the job, from its
controller.

Each row is a small life on the real operator and the embedded server. What could not be done is told as well, in the
words of whoever refused; an API server in trouble is not told on jobs, which cannot help it.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.unit.engine.stories import job_of
from tests.unit.operator.stage import NAMESPACE, Stage, stage

from trainmaster.api.core import PODS
from trainmaster.api.meta import Object, name_of
from trainmaster.frameworks.framework import ANYWHERE, Site
from trainmaster.frameworks.registry import FRAMEWORKS
from trainmaster.operator.config import Settings
from trainmaster.testing.faults import Answer, Plan, nothing, on

POD, LONELY = "mnist-worker-0", {"Worker": (1, "Never")}
MASTERED = {"Master": (1, "Never"), "Worker": (1, "Never")}
VOLCANO = Site(gang_scheduler="volcano")
SHORT = {"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 5}
KINDS = [known.kind.kind for known in FRAMEWORKS]
CASTS = {"XGBoostJob": MASTERED}


def refusing(method: str, part: str) -> Plan:
    """An API server whose administrator allows no such thing."""
    return on(method, part, *[Answer(403, "Forbidden")] * 100)


@dataclass(frozen=True)
class Life:
    """A job, and what happens to it: one word a step."""

    steps: str = ""
    kind: str = "TFJob"
    roles: dict[str, tuple[int, str]] = field(default_factory=lambda: LONELY)
    policy: dict[str, Any] = field(default_factory=dict)
    pod: dict[str, Any] = field(default_factory=dict)        # more in the spec of every template
    site: Site = ANYWHERE

    @property
    def job(self) -> Object:
        thing = job_of(self.kind, roles=self.roles, policy=self.policy)
        for spec in next(value for key, value in thing["spec"].items() if key.endswith("ReplicaSpecs")).values():
            spec["template"]["spec"] |= self.pod
        return thing


async def lived(it: Stage, life: Life, plan: Plan) -> set[tuple[str, str, str]]:
    """All that was told, which must be about the job and come from its controller."""
    it.begin(plan=plan)
    await it.apply(life.job)
    await it.clock.advance(2)
    for step in life.steps.split():
        await happen(it, step)
        await it.clock.advance(2)
    events = await it.events()
    for event in events:
        about, source = event["involvedObject"], event["source"]["component"]
        assert (life.kind, "mnist", f"{life.kind.lower()}-controller") == (about["kind"], about["name"], source)
    return {(event["type"], event["reason"], event["message"]) for event in events}


async def happen(it: Stage, step: str) -> None:
    state: Object = {"name": "tensorflow", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    match step:
        case "run" | "succeed" | "evict":
            await getattr(it, step)()
        case "fail":
            await it.fail()
        case "killed":
            await it.fail(code=137)
        case "suspend" | "resume":
            await it.patch(runPolicy={"suspend": step == "suspend"})
        case "shrink":
            await it.patch(tfReplicaSpecs={"Worker": {"replicas": 1}})
        case "in-queue":
            await it.phase("Inqueue")
        case "later":
            await it.clock.advance(60)
        case "crashed":
            over = {"terminated": {"exitCode": 3, "reason": "OOMKilled", "message": "no memory"}}
            await say(it, {"phase": "Running", "containerStatuses": [state | {"state": over}]})
        case "waiting":
            waits = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
            await say(it, {"phase": "Pending", "containerStatuses": [state | {"state": waits}]})
        case "unschedulable":
            await say(it, {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes fit"}]})
        case _:
            raise AssertionError(step)


async def say(it: Stage, status: Object) -> None:
    for pod in await it.pods():
        await it.client.patch(PODS, name_of(pod), NAMESPACE, {"status": status}, subresource="status")


def row(said: str, life: Life, plan: Plan = nothing, *, name: str) -> Any:
    """`said` is `Type Reason: message`."""
    head, _, message = said.partition(": ")
    kind, _, reason = head.partition(" ")
    return pytest.param(life, plan, (kind, reason, message), id=name)


FORBIDDEN = "Forbidden (injected)"
ROWS = [
    row(f"Normal SuccessfulCreatePod: Created pod: {POD}", Life(), name="a pod is made"),
    row(f"Warning FailedCreatePod: Error creating: {FORBIDDEN}", Life(), refusing("POST", "/pods"),
        name="a pod cannot be made"),
    row(f"Normal SuccessfulDeletePod: Deleted pod: {POD}", Life("run succeed", policy=SHORT), name="a pod is deleted"),
    row(f"Warning FailedDeletePod: Error deleting: {FORBIDDEN}", Life("run succeed", policy=SHORT),
        refusing("DELETE", "/pods/"), name="a pod cannot be deleted"),
    row(f"Normal SuccessfulCreateService: Created service: {POD}", Life(), name="a service is made"),
    row(f"Warning FailedCreateService: Error creating: {FORBIDDEN}", Life(), refusing("POST", "/services"),
        name="a service cannot be made"),
    row("Normal SuccessfulDeleteService: Deleted service: mnist-worker-1",
        Life("run shrink", roles={"Worker": (2, "Never")}), name="a service is deleted"),
    row(f"Warning FailedDeleteService: Error deleting: {FORBIDDEN}", Life("run shrink", roles={"Worker": (2, "Never")}),
        refusing("DELETE", "/services/"), name="a service cannot be deleted"),
    *(row(f"Normal {'SuccessfulDeleteJob' if kind in ('TFJob', 'XGBoostJob') else 'SuccessfulDeletePod'}: "
          "Deleted job: mnist",
          Life("run succeed later", kind, CASTS.get(kind, LONELY), {"ttlSecondsAfterFinished": 5}),
          name=f"{kind}: a job goes when its time is over") for kind in KINDS),
    *(row(f"Warning {'FailedDeleteJob' if kind in ('TFJob', 'XGBoostJob') else 'FailedDeletePod'}: "
          f"Error deleting: {FORBIDDEN}",
          Life("run succeed later", kind, CASTS.get(kind, LONELY), {"ttlSecondsAfterFinished": 5}),
          refusing("DELETE", f"/{kind.lower()}s/"), name=f"{kind}: a job cannot be deleted") for kind in KINDS),
    row("Normal TFJobSucceeded: TFJob default/mnist successfully completed.", Life("run succeed"), name="success"),
    row("Normal TFJobFailed: TFJob default/mnist has failed because 1 Worker replica(s) failed.", Life("run fail"),
        name="B-44: a failure is Normal"),
    row("Normal TFJobFailed: Job mnist has failed because it was active longer than specified deadline",
        Life("run later", policy={"activeDeadlineSeconds": 30}), name="a limit is Normal"),
    row('Warning TFJobFailed: job "mnist" is failing because "Worker" replica(s) failed.',
        Life("run fail", roles={"Worker": (1, "ExitCode")}), name="an exit code that is for good is a Warning"),
    row("Warning TFJobRestarting: job mnist is restarting because Worker replica(s) failed.",
        Life("run killed", roles={"Worker": (1, "ExitCode")}), name="a restart"),
    *(row(f"Normal {kind}Suspended: {kind} mnist is suspended.", Life("run suspend", kind, CASTS.get(kind, LONELY)),
          name=f"{kind}: a pause") for kind in KINDS),
    *(row(f"Normal {kind}Resumed: {kind} mnist is resumed.", Life("suspend resume", kind, CASTS.get(kind, LONELY)),
          name=f"{kind}: the end of a pause") for kind in KINDS),
    *(row(f"Warning {kind}FailedValidation: {kind} failed validation because spec.runPolicy.backoffLimit: "
          "Invalid value: -1: must be greater than or equal to 0",
          Life("", kind, CASTS.get(kind, LONELY), {"backoffLimit": -1}),
          name=f"§3.1, B-32: {kind}: a job that no webhook has looked at") for kind in KINDS),
    row(f"Normal ExitedWithCode: Pod: default.{POD} exited with code 137",
        Life("run killed", roles={"Worker": (1, "ExitCode")}), name="how a program ended"),
    row("Warning SetPodTemplateRestartPolicy: Restart policy in pod template will be overwritten by restart policy in "
        "replica spec", Life(pod={"restartPolicy": "Always"}), name="§4.1: a restart policy in a template"),
    row("Warning SetPodTemplateSchedulerName: Another scheduler is specified when gang-scheduling is enabled and it "
        "will not be overwritten", Life("in-queue", pod={"schedulerName": "mine"}, site=VOLCANO),
        name="§6.3: a scheduler in a template"),
    row("Normal JobTerminated: Job has been terminated. Deleting PodGroup", Life("in-queue run succeed", site=VOLCANO),
        name="§6.3: a gang is over"),
    row("Normal SuccessfulDeletePodGroup: Deleted PodGroup: mnist", Life("in-queue run succeed", site=VOLCANO),
        name="§6.3: its group goes"),
    row(f"Warning FailedDeletePodGroup: Error deleting: {FORBIDDEN}", Life("in-queue run succeed", site=VOLCANO),
        refusing("DELETE", "/podgroups/"), name="§6.3: its group cannot go"),
    row(f"Warning OOMKilled: Error pod {POD} container tensorflow exitCode: 3 terminated message: no memory",
        Life("run crashed"), name="a container ended while its pod goes on"),
    row(f"Warning ImagePullBackOff: Error pod {POD} container tensorflow waiting message: Back-off pulling image",
        Life("waiting"), name="a container waits"),
    row(f"Warning Unschedulable: Error pod {POD} condition message: 0/1 nodes fit", Life("unschedulable"),
        name="a pod that fits nowhere"),
]


@pytest.mark.parametrize(("life", "plan", "said"), ROWS)
async def test_it_is_told(life: Life, plan: Plan, said: tuple[str, str, str]) -> None:
    async with stage(Settings(kinds=(life.kind,), site=life.site)) as it:
        assert said in (told := await lived(it, life, plan)), sorted(told)
