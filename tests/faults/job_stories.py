"""What happens to jobs of every kind: the stories in which operators die, and networks fail, at every point.

A story is told to a theatre: the real operator on the embedded server (`tests.unit.operator.stage`), or the engine
alone in a world of dictionaries (`OnPaper`), which is many times faster. Both have the same hands.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tests.unit.engine.stories import job_of
from tests.unit.engine.world import World

from trainmaster.api.kubeflow_v1 import kind_named
from trainmaster.api.meta import Object
from trainmaster.api.policy import ON_REPLICA_FAILURE
from trainmaster.frameworks.framework import ANYWHERE, Site
from trainmaster.testing.faults import Died


class Theatre(Protocol):
    """Hands of the people, the nodes and the time in a story."""

    hold: bool

    async def settle(self) -> None: ...
    async def run(self, pattern: str = "*") -> None: ...
    async def succeed(self, pattern: str = "*") -> None: ...
    async def fail(self, pattern: str = "*", code: int = 1, message: str = "") -> None: ...
    async def evict(self, pattern: str = "*") -> None: ...
    async def patch(self, **spec: Any) -> None: ...
    async def delete(self) -> None: ...
    async def lose(self, pod: str) -> None: ...
    async def phase(self, phase: str) -> None: ...
    async def wait(self, minutes: float) -> None: ...


Story = Callable[[Theatre], Awaitable[None]]


@dataclass(frozen=True)
class Case:
    """A job, what happens to it, and the cluster it is in."""

    name: str
    thing: Object
    story: Story
    site: Site = ANYWHERE

    @property
    def deletes(self) -> bool:
        """Whether the job itself goes, with what it owns."""
        return self.story in DELETING or "ttlSecondsAfterFinished" in self.thing["spec"]["runPolicy"]


# Of every kind: roles, and the pods that decide.
CASTS: dict[str, tuple[dict[str, int], str]] = {
    "TFJob": ({"PS": 1, "Worker": 2}, "*-worker-*"),
    "PyTorchJob": ({"Master": 1, "Worker": 2}, "*-master-*"),
    "XGBoostJob": ({"Master": 1, "Worker": 2}, "*-master-*"),
    "MXJob": ({"Scheduler": 1, "Server": 1, "Worker": 2}, "*-scheduler-*"),
    "PaddleJob": ({"Worker": 3}, "*-worker-*"),
    "JAXJob": ({"Worker": 3}, "*-worker-*"),
}


def success_of(decides: str) -> Story:
    async def success(it: Theatre) -> None:
        await it.run()
        await it.settle()
        await it.succeed(decides)
    return success


def success_later_of(decides: str) -> Story:
    async def success_and_a_long_time(it: Theatre) -> None:
        await success_of(decides)(it)
        await it.settle()
        await it.wait(minutes=10)
    return success_and_a_long_time


async def failure(it: Theatre) -> None:
    await it.run()
    await it.settle()
    await it.fail("*-worker-1", code=1, message="ValueError: shapes do not match")


async def failure_that_comes_back(it: Theatre) -> None:
    await it.run()
    await it.settle()
    await it.fail("*-worker-1", code=137, message="Killed")
    await it.settle()
    await it.run()
    await it.settle()
    await it.fail("*-worker-1", code=143)
    await it.settle()
    await it.run()
    await it.settle()
    await it.succeed()


async def eviction(it: Theatre) -> None:
    await it.run()
    await it.settle()
    await it.evict("*-worker-0")
    await it.settle()
    await it.run()


async def failures_until_the_limit(it: Theatre) -> None:
    for _ in range(4):
        await it.run()
        await it.settle()
        await it.fail("*-worker-1", code=137)
        await it.settle()


async def pause(it: Theatre) -> None:
    await it.run()
    await it.settle()
    await it.patch(runPolicy={"suspend": True})
    await it.settle()
    await it.patch(runPolicy={"suspend": False})
    await it.settle()
    await it.run()
    await it.settle()
    await it.succeed()


async def pause_before_the_start(it: Theatre) -> None:
    await it.settle()
    await it.patch(runPolicy={"suspend": False})
    await it.settle()
    await it.run()


async def hasty_pause(it: Theatre) -> None:
    """Resumed before the old pods are gone."""
    await it.run()
    await it.settle()
    it.hold = True
    await it.patch(runPolicy={"suspend": True})
    await it.settle()
    await it.patch(runPolicy={"suspend": False})
    await it.settle()
    it.hold = False
    await it.settle()
    await it.run()


async def deletion(it: Theatre) -> None:
    await it.run()
    await it.settle()
    await it.delete()


async def deletion_at_once(it: Theatre) -> None:
    await it.delete()


async def a_long_time(it: Theatre) -> None:
    await it.run()
    await it.settle()
    await it.wait(minutes=10)


def growth_of(field: str) -> Story:
    async def growth(it: Theatre) -> None:
        await it.run()
        await it.settle()
        await it.patch(**{field: {"Worker": {"replicas": 4}}})
        await it.settle()
        await it.run()
        await it.settle()
        await it.patch(**{field: {"Worker": {"replicas": 1}}})
    return growth


async def a_lost_pod(it: Theatre) -> None:
    """Somebody deletes a running pod."""
    await it.run()
    await it.settle()
    await it.lose("mnist-worker-1")
    await it.settle()
    await it.run()


async def admission(it: Theatre) -> None:
    """The gang scheduler takes its time."""
    await it.phase("Pending")
    await it.settle()
    await it.phase("Inqueue")
    await it.settle()
    await it.run()
    await it.settle()
    await it.phase("Running")
    await it.settle()
    await it.succeed()


async def pause_at_the_door(it: Theatre) -> None:
    await it.settle()
    await it.patch(runPolicy={"suspend": True})
    await it.settle()
    await it.patch(runPolicy={"suspend": False})
    await it.settle()
    await it.phase("Inqueue")
    await it.settle()
    await it.run()


async def stretching(it: Theatre) -> None:
    """An elastic job grows, its bounds change, it pauses, and one worker is enough."""
    await it.run()
    await it.settle()
    await it.patch(pytorchReplicaSpecs={"Worker": {"replicas": 3}}, elasticPolicy={"maxReplicas": 5})
    await it.settle()
    await it.patch(runPolicy={"suspend": True})
    await it.settle()
    await it.patch(runPolicy={"suspend": False})
    await it.settle()
    await it.run()
    await it.settle()
    await it.succeed("*-worker-0")


DELETING = (deletion, deletion_at_once)
# How these end depends on when the operator looks: what it misses is gone, on a good day too.
DEPENDS_ON_TIME = (a_lost_pod, hasty_pause)
VOLCANO, PLUGINS = Site(gang_scheduler="volcano"), Site(gang_scheduler="scheduler-plugins-scheduler")
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


def cases(kind: str) -> list[Case]:
    known = kind_named(kind)
    assert known is not None
    roles, decides = CASTS[kind]
    success = success_of(decides)

    def job(restart: str = "Never", *, together: str = "", **policy: Any) -> Object:
        made = job_of(kind, roles={role: (count, restart) for role, count in roles.items()}, policy=policy)
        if together:
            made["metadata"]["annotations"] = {ON_REPLICA_FAILURE: together}
        return made

    return [
        Case("success, everything stays", job(), success),
        Case("success, what runs goes", job(cleanPodPolicy="Running"), success),
        Case("success, everything goes", job(cleanPodPolicy="All"), success),
        Case("failure, everything stays", job(), failure),
        Case("failure, what runs goes", job(cleanPodPolicy="Running"), failure),
        Case("failure, everything goes", job(cleanPodPolicy="All"), failure),
        Case("exit code that is for good", job("ExitCode"), failure),
        Case("exit code that is for good, everything goes", job("ExitCode", cleanPodPolicy="All"), failure),
        Case("exit codes that are worth another try", job("ExitCode"), failure_that_comes_back),
        Case("on failure", job("OnFailure"), failure_that_comes_back),
        Case("always", job("Always"), failure_that_comes_back),
        Case("evicted, never again", job(), eviction),
        Case("evicted, on failure", job("OnFailure"), eviction),
        Case("evicted, always", job("Always"), eviction),
        Case("evicted, by exit code", job("ExitCode"), eviction),
        Case("back-off limit", job("ExitCode", backoffLimit=3), failures_until_the_limit),
        Case("back-off limit, what runs goes", job("OnFailure", backoffLimit=2, cleanPodPolicy="Running"),
             failures_until_the_limit),
        Case("back-off limit, everything goes", job("ExitCode", backoffLimit=3, cleanPodPolicy="All"),
             failures_until_the_limit),
        Case("suspend and resume", job(), pause),
        Case("suspend and resume, everything goes at the end", job(cleanPodPolicy="All"), pause),
        Case("made suspended, then resumed", job(suspend=True), pause_before_the_start),
        Case("resume before the old pods are gone", job(), hasty_pause),
        Case("deleted while it runs", job(), deletion),
        Case("deleted while it is made", job(), deletion_at_once),
        Case("deadline", job(activeDeadlineSeconds=60, cleanPodPolicy="Running"), a_long_time),
        Case("deadline, everything goes", job(activeDeadlineSeconds=60, cleanPodPolicy="All"), a_long_time),
        Case("time to live", job(ttlSecondsAfterFinished=60), success_later_of(decides)),
        Case("gone at once", job(ttlSecondsAfterFinished=0, cleanPodPolicy="All"), success),
        Case("scaled up and down", job(), growth_of(known.replica_field)),
        Case("a running pod is deleted, and comes back", job("ExitCode"), a_lost_pod),
        Case("a running pod is deleted, and that is a failure", job(), a_lost_pod),
        Case("all restart with one", job("ExitCode", together="RestartAll"), failure_that_comes_back),
        Case("all fail with one", job("OnFailure", together="FailAll"), failure),
        Case("a gang waits to be let in", job(), admission, VOLCANO),
        Case("a gang waits, everything goes at the end", job(cleanPodPolicy="All"), admission, VOLCANO),
        Case("a gang that waits is suspended", job(), pause_at_the_door, VOLCANO),
        Case("a gang that waits in the scheduler", job(), admission, PLUGINS),
        Case("a gang is suspended and resumed", job(), pause, PLUGINS),
        Case("a gang comes back", job("ExitCode"), failure_that_comes_back, PLUGINS),
        *([
            Case("elastic", job_of(kind, roles={"Worker": (2, "OnFailure")}, elasticPolicy={
                "minReplicas": 1, "maxReplicas": 3, "metrics": [CPU]}), stretching),
        ] if kind == "PyTorchJob" else []),
    ]


CASES = [case for kind in CASTS for case in cases(kind)]


class Mortal(World):
    """A world whose engine dies after so many writes, and is started again."""

    def look(self) -> bool:
        try:
            return super().look()
        except Died:
            return True


class Writes(list[str]):
    """What was done; the last thing in a life kills."""

    dies_after: int | None = None

    def append(self, write: str) -> None:
        super().append(write)
        if len(self) == self.dies_after:
            raise Died(write)


class OnPaper:
    """The engine alone."""

    def __init__(self, case: Case, dies_after: int | None = None) -> None:
        self.world = Mortal(case.thing, site=case.site, writes=Writes())
        assert isinstance(self.world.writes, Writes)
        self.world.writes.dies_after = dies_after

    @property
    def hold(self) -> bool:
        return self.world.hold

    @hold.setter
    def hold(self, hold: bool) -> None:
        self.world.hold = hold
        if not hold:
            self.world.vanish()

    async def settle(self) -> None:
        self.world.settle()

    async def run(self, pattern: str = "*") -> None:
        self.world.run(pattern)

    async def succeed(self, pattern: str = "*") -> None:
        self.world.succeed(pattern)

    async def fail(self, pattern: str = "*", code: int = 1, message: str = "") -> None:
        self.world.fail(pattern, code, message=message)

    async def evict(self, pattern: str = "*") -> None:
        self.world.evict(pattern)

    async def patch(self, **spec: Any) -> None:
        self.world.edit(**spec)

    async def delete(self) -> None:
        """With everything it owns, as the garbage collector does."""
        self.world.gone = True
        self.world.pods.clear()
        self.world.services.clear()
        self.world.beside.clear()

    async def lose(self, pod: str) -> None:
        self.world.mark(pod)
        self.world.settle()
        self.world.vanish(pod)

    async def phase(self, phase: str) -> None:
        self.world.phase(phase)

    async def wait(self, minutes: float) -> None:
        self.world.pass_time(60 * minutes)
        if not self.world.gone:
            self.world.settle()
