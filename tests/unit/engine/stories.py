"""Random stories for properties: a job, and what nodes, people and time do to it, in random order."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from tests.unit.engine.world import World

from trainmaster.api.kubeflow_v1 import kind_named
from trainmaster.api.meta import Object
from trainmaster.api.policy import ON_REPLICA_FAILURE
from trainmaster.frameworks.framework import Site

CODES = (0, 1, 2, 127, 128, 130, 137, 143, 255)


@dataclass(frozen=True)
class Deed:
    """One thing that happens."""

    verb: str
    target: str = "*"
    value: Any = None

    def happen(self, world: World) -> None:
        match self.verb:
            case "end":
                if self.value == 0:
                    world.succeed(self.target)
                else:
                    world.fail(self.target, code=self.value)
            case "run" | "evict" | "mark" | "vanish" | "remove":
                getattr(world, self.verb)(self.target)
            case "restart":
                world.run(self.target, restarts=self.value)
            case "suspend":
                world.edit(runPolicy={"suspend": self.value})
            case "scale":
                role, count = self.value
                field = world.job.framework.kind.replica_field
                if role in world.thing["spec"][field] and role not in world.job.framework.kind.single:
                    world.edit(**{field: {role: {"replicas": count}}})
            case "phase":
                world.phase(self.value)
            case "lose beside":
                world.beside.clear()
            case "clean":
                world.edit(runPolicy={"cleanPodPolicy": self.value})
            case "lose service":
                world.services.pop(self.target, None)
            case "wait":
                world.pass_time(self.value)
            case _:
                raise AssertionError(self.verb)


def job_of(kind: str, **changes: Any) -> Object:
    """A job as people write it; `roles` maps roles to (replicas, restart policy), the rest are fields of the spec."""
    known = kind_named(kind)
    assert known is not None
    roles: dict[str, tuple[int, str]] = changes.pop("roles", {"Worker": (2, "Never")})
    specs = {}
    for role, (replicas, policy) in roles.items():
        template = {"spec": {"containers": [{"name": known.container, "image": "example/train:1"}]}}
        specs[role] = {"replicas": replicas, "restartPolicy": policy, "template": template}
    policy = changes.pop("policy", {})
    required = {"jobMode": "MXTrain"} if "jobMode" in known.required else {}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": "mnist", "namespace": "ns", "uid": "job-1"},
        "spec": {known.replica_field: specs, "runPolicy": policy, **required, **changes},
    }


def tfjob(**changes: Any) -> Object:
    return job_of("TFJob", **changes)


restart_policies = st.sampled_from(["Never", "OnFailure", "Always", "ExitCode"])
run_policies = st.fixed_dictionaries({}, optional={
    "cleanPodPolicy": st.sampled_from(["None", "Running", "All"]),
    "backoffLimit": st.integers(0, 4),
    "activeDeadlineSeconds": st.integers(0, 100),
    "ttlSecondsAfterFinished": st.integers(0, 100),
    "suspend": st.booleans(),
})


@st.composite
def tfjobs(draw: st.DrawFn) -> Object:
    chief = draw(st.sampled_from(["", "Chief", "Master"]))
    helpers = draw(st.lists(st.sampled_from(["PS", "Evaluator"]), unique=True))
    names = [name for name in (chief, "Worker", *helpers) if name]
    roles = {name: (draw(st.integers(0 if name == "PS" else 1, 3)), draw(restart_policies)) for name in names}
    extra = draw(st.fixed_dictionaries({}, optional={
        "enableDynamicWorker": st.booleans(), "successPolicy": st.sampled_from(["", "AllWorkers"]),
    }))
    return tfjob(roles=roles, policy=draw(run_policies), **extra)


@st.composite
def other_jobs(draw: st.DrawFn) -> Object:
    """A job of any other kind, with those roles of it that make sense together."""
    kind, sets = draw(st.sampled_from([
        ("PyTorchJob", [["Master"], ["Worker"], ["Master", "Worker"]]),
        ("XGBoostJob", [["Master"], ["Master", "Worker"]]),
        ("MXJob", [["Worker"], ["Scheduler", "Server", "Worker"], ["TunerTracker", "TunerServer", "Tuner"]]),
        ("PaddleJob", [["Worker"], ["Master", "Worker"]]),
        ("JAXJob", [["Worker"]]),
    ]))
    known = kind_named(kind)
    assert known is not None
    roles = {name: (1 if name in known.single else draw(st.integers(1, 3)), draw(restart_policies))
             for name in draw(st.sampled_from(sets))}
    elastic = kind == "PyTorchJob" and "Worker" in roles and draw(st.booleans())
    extra: Object = {"elasticPolicy": {"metrics": [{"type": "Resource"}]}} if elastic else {}
    thing = job_of(kind, roles=roles, policy=draw(run_policies), **extra)
    thing["metadata"]["annotations"] = draw(st.sampled_from([
        {}, {}, {ON_REPLICA_FAILURE: "RestartAll"}, {ON_REPLICA_FAILURE: "FailAll"},
    ]))
    return thing


def jobs() -> st.SearchStrategy[Object]:
    return st.one_of(tfjobs(), other_jobs())


sites = st.sampled_from([Site(), Site(), Site(gang_scheduler="volcano"), Site(gang_scheduler="kube-batch")])
targets = st.sampled_from(["*", "*-worker-*", "*-0", "*-worker-0", "*-worker-1", "*-chief-0", "*-master-0", "*-ps-0",
                           "*-scheduler-0", "*-tuner-*"])
deeds = st.one_of(
    st.builds(Deed, st.just("run"), targets),
    st.builds(Deed, st.just("end"), targets, st.sampled_from(CODES)),
    st.builds(Deed, st.just("restart"), targets, st.integers(0, 3)),
    st.builds(Deed, st.sampled_from(["evict", "mark", "vanish", "remove"]), targets),
    st.builds(Deed, st.just("suspend"), st.just("*"), st.booleans()),
    st.builds(Deed, st.just("scale"), st.just("*"), st.tuples(st.sampled_from(["Worker", "PS"]), st.integers(0, 4))),
    st.builds(Deed, st.just("clean"), st.just("*"), st.sampled_from(["None", "Running", "All"])),
    st.builds(Deed, st.just("phase"), st.just("*"), st.sampled_from(["", "Pending", "Inqueue", "Running"])),
    st.builds(Deed, st.just("lose beside")),
    st.builds(Deed, st.just("lose service"), st.sampled_from(["mnist-worker-0", "mnist-ps-0"])),
    st.builds(Deed, st.just("wait"), st.just("*"), st.integers(1, 60)),
)
stories = st.lists(deeds, max_size=12)
