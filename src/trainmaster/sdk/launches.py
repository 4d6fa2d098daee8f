"""From a script and a number of workers to the objects of a job. Pure.

The pods unpack the code into their working directory and become the script: a small program in the command line does
it, so that any image with Python will do, and what happens is in the manifest for everybody to read. An image built for
each change was rejected (minutes instead of milliseconds), and so was mounting the code: ConfigMaps are read-only, and
scripts write beside themselves.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trainmaster.api.kubeflow_v1 import JAX_JOB, MX_JOB, PADDLE_JOB, PYTORCH_JOB, TF_JOB, XGBOOST_JOB, JobKind
from trainmaster.api.membership import INDEX, ROLE
from trainmaster.api.meta import Json, Object
from trainmaster.sdk.parcels import BadOption, Parcel, config_maps

CODE, WORK = "/var/trainmaster/code", "/workspace"
PACKAGES, REQUIREMENTS = "/tmp/trainmaster-packages", ".trainmaster-requirements.txt"  # noqa: S108  of the pod
PYTHON = "python"                # plain Python: no framework
GPU = "nvidia.com/gpu"
LONGEST_NAME = 40                # of those that we choose; leaves room for what roles and indexes add
MOST_LETTERS = 52                # of those that a person chooses: a pod's name with its role and index has 63 at most
SCRIPT = "trainmaster.dev/script"     # annotation of a job: what was run

# Runs in the pod, isolated from the environment that is meant for the script (`-I`, `-S`).
UNPACK = f"""\
import os, sys, zlib
parts = sorted(part for part in os.listdir("{CODE}") if part.startswith("part-"))
code = zlib.decompress(b"".join(open("{CODE}/" + part, "rb").read() for part in parts))
at = 0
while at < len(code):
    begin = code.index(b"\\n", at) + 1
    name, content = map(int, code[at:begin].split())
    path, at = os.fsdecode(code[begin:begin + name]), begin + name + content
    if "/" in path:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(code[begin + name:at])
os.execvp(sys.argv[1], sys.argv[1:])
"""

# The same, where no environment was made beforehand.
INSTALL = f"""\
import os, subprocess, sys
pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", "{PACKAGES}"]
subprocess.check_call([*pip, "--requirement", "{REQUIREMENTS}"])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, ["{PACKAGES}", os.environ.get("PYTHONPATH")]))
os.execvp(sys.argv[1], sys.argv[1:])
"""


@dataclass(frozen=True, slots=True)
class Profile:
    """How scripts of one framework are run."""

    kind: JobKind
    image: str                        # on the embedded cluster, whose catalog explains it
    modules: tuple[str, ...] = ()     # by which a script is recognised
    servers: str = ""                 # the role that `--ps` counts
    lead: str = ""                    # a role of one replica that is one of the workers
    beside: str = ""                  # a role of one replica that the job needs beside the workers
    spec: Mapping[str, Json] = field(default_factory=dict)


PROFILES: Mapping[str, Profile] = {
    "pytorch": Profile(PYTORCH_JOB, "pytorch/pytorch",
                       ("torch", "lightning", "pytorch_lightning", "transformers", "accelerate", "deepspeed")),
    "tensorflow": Profile(TF_JOB, "tensorflow/tensorflow", ("tensorflow", "keras", "tf_keras"), servers="PS",
                          spec={"successPolicy": "AllWorkers"}),
    "jax": Profile(JAX_JOB, "trainmaster.dev/jax", ("jax", "flax", "optax")),
    "xgboost": Profile(XGBOOST_JOB, "trainmaster.dev/xgboost", ("xgboost",), lead="Master"),
    "lightgbm": Profile(XGBOOST_JOB, "trainmaster.dev/lightgbm", ("lightgbm",), lead="Master"),
    "paddle": Profile(PADDLE_JOB, "paddlepaddle/paddle", ("paddle",), servers="Master"),
    "mxnet": Profile(MX_JOB, "trainmaster.dev/mxnet", ("mxnet",), servers="Server", beside="Scheduler",
                     spec={"jobMode": "MXTrain"}),
    PYTHON: Profile(PYTORCH_JOB, "python"),
}


@dataclass(frozen=True, slots=True)
class Launch:
    """What somebody asked for."""

    name: str
    parcel: Parcel
    script: str                                  # its path in the parcel
    framework: str = PYTHON
    workers: int = 1
    servers: int = 0
    gpus: int = 0                                # of each worker
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: Sequence[str] = ()
    queue: str = ""
    priority: str = ""
    image: str = ""                              # instead of the framework's own
    output: str = ""                             # a folder of the machine that gets the working directories

    @property
    def profile(self) -> Profile:
        return PROFILES[self.framework]


def guessed(imports: Sequence[str]) -> str:
    """The framework of a script by what it imports; the first that is known counts."""
    for module in imports:
        for name, profile in PROFILES.items():
            if module in profile.modules:
                return name
    return PYTHON


def job_name(script: str) -> str:
    """A name that Kubernetes allows, from that of a script or folder."""
    letters = re.sub(r"[^a-z0-9]+", "-", script.lower().removesuffix(".py").removesuffix(".sh")).strip("-")
    return (letters if letters[:1].isalpha() else f"job-{letters}".strip("-"))[:LONGEST_NAME].rstrip("-")


def is_job_name(name: str) -> bool:
    return re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", name) is not None and len(name) <= MOST_LETTERS


def objects(launch: Launch) -> list[Object]:
    """The code, then the job. Raises BadOption for what the framework does not have."""
    parts = config_maps(launch.parcel, launch.name)
    return [*parts, _job(launch, [part["metadata"]["name"] for part in parts])]


def _job(launch: Launch, code: Sequence[str]) -> Object:
    profile, kind = launch.profile, launch.profile.kind
    scheduling = {name: value for name, value in (("queue", launch.queue), ("priorityClass", launch.priority)) if value}
    policy: Object = {"cleanPodPolicy": "Running", **({"schedulingPolicy": scheduling} if scheduling else {})}
    roles = {role: {"replicas": count, "restartPolicy": "Never", "template": _template(launch, role, code)}
             for role, count in _roles(launch)}
    processes = {"nprocPerNode": str(max(1, launch.gpus))} if kind is PYTORCH_JOB else {}
    return {
        "apiVersion": kind.resource.api_version, "kind": kind.kind,
        "metadata": {"name": launch.name, "annotations": {SCRIPT: launch.script}},
        "spec": {"runPolicy": policy, **profile.spec, **processes, kind.replica_field: roles},
    }


def _roles(launch: Launch) -> Iterator[tuple[str, int]]:
    profile = launch.profile
    if launch.servers and not profile.servers:
        having = ", ".join(name for name, each in PROFILES.items() if each.servers)
        raise BadOption("servers", f"jobs of {launch.framework} have no parameter servers; those of {having} have.")
    if profile.beside:
        yield profile.beside, 1
    if profile.lead:
        yield profile.lead, 1
    servers = launch.servers or (1 if profile.beside else 0)
    if servers:
        yield profile.servers, servers
    if workers := launch.workers - (1 if profile.lead else 0):
        yield "Worker", workers


def _template(launch: Launch, role: str, code: Sequence[str]) -> Object:
    profile = launch.profile
    container: Object = {
        "name": profile.kind.container,
        "image": launch.image or profile.image,
        "command": ["python3", "-I", "-S", "-c", UNPACK, *_program(launch),
                    *map(_literal, (launch.script, *launch.arguments))],
        "workingDir": WORK,
        "env": _environment(launch),
        "volumeMounts": [{"name": "code", "mountPath": CODE, "readOnly": True}, _work_mount(launch)],
    }
    if launch.gpus and role not in (profile.servers, profile.beside):
        container["resources"] = {"limits": {GPU: launch.gpus}}
    work: Object = {"hostPath": {"path": launch.output, "type": "DirectoryOrCreate"}} if launch.output else {
        "emptyDir": {}}
    return {"spec": {"containers": [container], "volumes": [
        {"name": "code", "projected": {"sources": [{"configMap": {"name": name}} for name in code]}},
        {"name": "work", **work},
    ]}}


def _work_mount(launch: Launch) -> Object:
    """Each replica has a working directory of its own."""
    own = {"subPathExpr": "$(REPLICA_ROLE)-$(REPLICA_INDEX)"} if launch.output else {}
    return {"name": "work", "mountPath": WORK, **own}


def _program(launch: Launch) -> list[str]:
    install = ["python3", "-c", INSTALL] if REQUIREMENTS in launch.parcel.files else []
    if launch.script.endswith(".sh"):
        return [*install, "sh"]
    several = launch.framework == "pytorch" and launch.gpus > 1
    return [*install, "python3", "-u", *(["-m", "torch.distributed.run"] if several else ())]


def _environment(launch: Launch) -> list[Object]:
    """What the operator does not tell: who is who where there is no torchrun, and what the person said."""
    # A crash in native code, and SIGABRT to one that hangs, leave the Python stack in the log.
    told: list[Object] = [_label("REPLICA_ROLE", ROLE), _label("REPLICA_INDEX", INDEX),
                          _value("PYTHONFAULTHANDLER", "1")]
    if launch.profile.kind is PYTORCH_JOB:
        first, port = f"{launch.name}-worker-0", str(launch.profile.kind.port)
        if launch.gpus > 1:      # torchrun asks for these, and tells its processes the rest
            told += [_value("PET_MASTER_ADDR", first), _value("PET_MASTER_PORT", port),
                     _label("PET_NODE_RANK", INDEX)]
        else:
            told += [_value("MASTER_ADDR", first), _value("MASTER_PORT", port),
                     _value("WORLD_SIZE", str(launch.workers)), _label("RANK", INDEX), _value("LOCAL_RANK", "0"),
                     _value("LOCAL_WORLD_SIZE", "1")]
    own = [_value(name, _literal(value)) for name, value in launch.environment.items()]
    return [*(each for each in told if each["name"] not in launch.environment), *own]


def _literal(text: str) -> str:
    """As it is: in manifests $(NAME) is replaced, and two dollars are one."""
    return text.replace("$", "$$")


def _value(name: str, value: str) -> Object:
    return {"name": name, "value": value}


def _label(name: str, label: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}}
