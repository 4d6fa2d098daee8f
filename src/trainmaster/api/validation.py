"""Every rule a job must meet, with the field, what is wrong and what to write instead.

Used by admission, by the operator where no webhook is installed, by the command line and by the embedded server. The
texts of the rules that upstream has too are upstream's, byte for byte: people search for them, tools compare them.
Rules of ours (upstream accepts such jobs and then never finishes them) say in a sentence what to write.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from trainmaster.api import codec
from trainmaster.api.kubeflow_v1 import (
    MX_JOB,
    MX_JOB_MODES,
    PADDLE_JOB,
    PYTORCH_JOB,
    TF_JOB,
    TF_SUCCESS_POLICIES,
    JobKind,
    kind_named,
)
from trainmaster.api.meta import Json, Object, metadata, name_of
from trainmaster.api.policy import (
    HOST_PORTS,
    MANAGERS,
    ON_REPLICA_FAILURE,
    POD_ENDS_WITH,
    CleanPodPolicy,
    HostPorts,
    OnReplicaFailure,
    PodEndsWith,
    RestartPolicy,
)

_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_NAME_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_NUMBER = re.compile(r"[+-]?[0-9]+")
# What torchrun knows by itself. Images may bring more of both, so others are not refused.
_PROCESSES, _RENDEZVOUS = ("auto", "cpu", "gpu", "xpu"), ("c10d", "etcd", "etcd-v2", "static")
# Of a label value, of a service name, and of a pod's host name.
LONGEST_NAME = 63
# Of one job. Far above any real one, and low enough that a typing mistake cannot keep the operator from other jobs.
MOST_REPLICAS = 10_000


class _Port(msgspec.Struct, rename="camel"):
    container_port: int
    name: str | None = None
    protocol: str | None = None


class _Container(msgspec.Struct):
    name: str | None = None
    image: str | None = None
    ports: list[_Port] | None = None
    env: list[dict[str, Json]] | None = None


class _Pod(msgspec.Struct, rename="camel"):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None
    restart_policy: str | None = None


class _Metadata(msgspec.Struct):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None


class _Template(msgspec.Struct):
    metadata: _Metadata | None = None
    spec: _Pod | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an object. Printed as API servers print it."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def problems(thing: Object, before: Object | None = None) -> list[Problem]:
    """Everything wrong with an object of our kinds; with `before`, also what may not change. Empty if it is fine."""
    kind = kind_named(str(thing.get("kind", "")))
    if kind is None:
        return []
    spec = thing.get("spec")
    if not isinstance(spec, dict) or spec.get(kind.replica_field) is None:
        # The map is what a job is about; without it there is nothing else to look at but the name.
        return [*_name(thing), _required(f"spec.{kind.replica_field}", "must be required")]
    try:
        codec.decode_spec(_without_words(spec, kind), kind)
    except codec.Malformed as malformed:
        return [*_name(thing), Problem(malformed.field, f"Invalid value: {malformed.message}")]
    return [
        *_name(thing),
        *_annotations(thing),
        *_run_policy(spec.get("runPolicy") or {}),
        *(_immutable(spec, before.get("spec") or {}) if before is not None else ()),
        *_roles(spec[kind.replica_field], kind),
        *_replicas(name_of(thing), spec[kind.replica_field], kind),
        *(_tensorflow(spec) if kind is TF_JOB else ()),
        *(_pytorch(spec, kind) if kind is PYTORCH_JOB else ()),
        *(_elastic(spec) if kind in (PYTORCH_JOB, PADDLE_JOB) else ()),
        *(_mxnet(spec) if kind is MX_JOB else ()),
    ]


def warnings(thing: Object) -> list[str]:
    """What API servers say beside their answer: the object is taken, but one day it will not be."""
    elastic = (thing.get("spec") or {}).get("elasticPolicy")
    if thing.get("kind") == PYTORCH_JOB.kind and isinstance(elastic, dict) and elastic.get("nProcPerNode") is not None:
        return ["spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead"]
    return []


def advice(thing: Object) -> list[str]:
    """What is allowed and almost never meant. For people who ask; nobody is stopped."""
    kind = kind_named(str(thing.get("kind", "")))
    specs = (thing.get("spec") or {}).get(kind.replica_field) if kind else None
    if kind is None or not isinstance(specs, dict):
        return []
    policies = {kind.role(key): (given or {}).get("restartPolicy") for key, given in specs.items()}
    decides = next((role for role in kind.deciding if role in policies), None)
    found = _of_torchrun(thing["spec"]) if kind is PYTORCH_JOB else []
    if policies.get(decides) == RestartPolicy.ALWAYS:
        where = f"spec.{kind.replica_field}[{decides}].restartPolicy"
        found.append(f"{where} is Always: a {decides} that ends well is started again, so the job never succeeds; "
                     "OnFailure restarts only those that fail")
    return found


def _of_torchrun(spec: Mapping[str, Json]) -> list[str]:
    """Words that torchrun does not know unless somebody has taught it."""
    elastic = spec.get("elasticPolicy")
    backend = elastic.get("rdzvBackend") if isinstance(elastic, dict) else None
    processes = spec.get("nprocPerNode")
    if isinstance(processes, str) and _NUMBER.fullmatch(processes):
        processes = None
    return [
        (f"{field} is {_quoted(said)}: torchrun knows {', '.join(words)}{more}; another word works only if the image "
         "brings what it stands for")
        for field, said, words, more in (
            ("spec.nprocPerNode", processes, _PROCESSES, " and numbers"),
            ("spec.elasticPolicy.rdzvBackend", backend, _RENDEZVOUS, ""),
        )
        if said and said not in words
    ]


def in_one(found: Iterable[Problem]) -> str:
    """Several problems as one sentence, as API servers write them."""
    texts = [str(problem) for problem in found]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _name(thing: Object) -> Iterator[Problem]:
    name = name_of(thing)
    if not name and metadata(thing).get("generateName"):
        return  # the server makes it up, and checks what it made
    if not _DNS_1035.fullmatch(name):
        yield Problem("metadata.name", f"Invalid value: {_quoted(name)}: should match: {_NAME_RULE}")
    elif len(name) > LONGEST_NAME:
        rule = f"must be no more than {LONGEST_NAME} characters"
        yield Problem("metadata.name", f"Invalid value: {_quoted(name)}: should match: {rule}")


def _annotations(thing: Object) -> Iterator[Problem]:
    annotations = metadata(thing).get("annotations") or {}
    for name, word in ((ON_REPLICA_FAILURE, OnReplicaFailure), (POD_ENDS_WITH, PodEndsWith), (HOST_PORTS, HostPorts)):
        if (said := annotations.get(name)) and said not in word.supported():
            yield _unsupported(f"metadata.annotations[{name}]", said, word.supported())


def _run_policy(policy: Mapping[str, Json]) -> Iterator[Problem]:
    where = "spec.runPolicy"
    manager = policy.get("managedBy")
    if manager is not None and manager not in MANAGERS:
        yield _unsupported(f"{where}.managedBy", manager, MANAGERS)
    cleaning = policy.get("cleanPodPolicy")
    if cleaning and cleaning not in CleanPodPolicy.supported():
        yield _unsupported(f"{where}.cleanPodPolicy", cleaning, CleanPodPolicy.supported())
    for field in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"):
        yield from _not_negative(f"{where}.{field}", policy.get(field))
    scheduling = policy.get("schedulingPolicy") or {}
    for field in ("minAvailable", "scheduleTimeoutSeconds"):
        yield from _not_negative(f"{where}.schedulingPolicy.{field}", scheduling.get(field))


def _immutable(spec: Mapping[str, Json], before: Mapping[str, Json]) -> Iterator[Problem]:
    new, old = spec.get("runPolicy") or {}, before.get("runPolicy") or {}
    if new.get("managedBy") != old.get("managedBy"):
        value = _quoted(new.get("managedBy"))
        yield Problem("spec.runPolicy.managedBy", f"Invalid value: {value}: field is immutable")
    queue, old_queue = ((policy.get("schedulingPolicy") or {}).get("queue") for policy in (new, old))
    if queue and old_queue and queue != old_queue:
        where = "spec.runPolicy.schedulingPolicy.queue"
        yield Problem(where, f"Invalid value: {_quoted(queue)}: {where} is immutable")


def _roles(specs: Mapping[str, Json], kind: JobKind) -> Iterator[Problem]:
    """The map as a whole, and the template of each role."""
    where = f"spec.{kind.replica_field}"
    for role in kind.needed:
        if not any(kind.role(key) == role for key in specs):
            yield _required(f"{where}[{role}]", "must be present")
    chiefs = [key for key in specs if kind is TF_JOB and kind.role(key) in ("Chief", "Master")]
    if len(chiefs) > 1:
        yield Problem(where, "Forbidden: must not have more than 1 Chief or Master role")
    for key, replica_spec in specs.items():
        if kind.role(key) is None:
            yield _unsupported(f"{where}[{key}]", key, kind.roles)
        elif shapeless := _shape(f"{where}[{key}].template", (replica_spec or {}).get("template") or {}):
            yield shapeless
        else:
            yield from _containers(f"{where}[{key}].template.spec.containers", replica_spec or {}, kind)
    spelled = [kind.role(key) for key in specs]
    for role in kind.roles:
        if spelled.count(role) > 1:
            yield Problem(where, f"Forbidden: {role} is there more than once, spelled differently; keep one of them")


def _shape(where: str, template: Json) -> Problem | None:
    """What is wrong with the types of those parts of a pod template that we read. The others are the API server's."""
    try:
        msgspec.convert(template, _Template)
    except msgspec.ValidationError as problem:
        what, place = codec.place_of(problem)
        return Problem(where + place, f"Invalid value: {what}")
    return None


def _containers(where: str, replica_spec: Mapping[str, Json], kind: JobKind) -> Iterator[Problem]:
    template = replica_spec.get("template") or {}
    containers = (template.get("spec") or {}).get("containers") or []
    if not containers:
        yield _required(where, "must be specified")
    for number, container in enumerate(containers):
        if not container.get("image"):
            yield _required(f"{where}[{number}].image", "must be required")
    if not any(container.get("name") == kind.container for container in containers):
        name = f'"{kind.container}"' if kind is PADDLE_JOB else kind.container
        yield _required(where, f"must have at least one container with name {name}")


def _replicas(job: str, specs: Mapping[str, Json], kind: JobKind) -> Iterator[Problem]:
    """Counts, restart policies and the names that follow from them."""
    where = f"spec.{kind.replica_field}"
    counts = {}
    for key, replica_spec in specs.items():
        role = kind.role(key)
        if role is None:
            continue
        count = (replica_spec or {}).get("replicas")
        counts[role] = 1 if count is None else count
        yield from _count(f"{where}[{key}].replicas", role, counts[role], kind)
        policy = (replica_spec or {}).get("restartPolicy")
        if policy and policy not in RestartPolicy.supported():
            yield _unsupported(f"{where}[{key}].restartPolicy", policy, RestartPolicy.supported())
        longest = f"{job}-{role.lower()}-{max(counts[role] - 1, 0)}"
        if job and len(job) <= LONGEST_NAME < len(longest):
            limit = LONGEST_NAME - (len(longest) - len(job))
            yield Problem("metadata.name", f"Invalid value: {_quoted(job)}: its pods would have names like {longest}, "
                          f"longer than {LONGEST_NAME} characters; use at most {limit}")
    if (total := sum(counts.values())) > MOST_REPLICAS:
        yield Problem(where, f"Invalid value: {total}: a job may have at most {MOST_REPLICAS} replicas in all")
    decides = next((role for role in kind.deciding if role in counts), None)
    if decides is not None and counts[decides] == 0 and decides not in (*kind.single, *kind.never_empty):
        yield Problem(f"{where}[{decides}].replicas", "Invalid value: 0: must be at least 1, because the job succeeds "
                      f"when {decides} does; to pause it set spec.runPolicy.suspend")


def _count(where: str, role: str, count: int, kind: JobKind) -> Iterator[Problem]:
    if role in kind.single:
        if count != 1:
            yield Problem(where, "Forbidden: must be 1")
    elif role in kind.never_empty:
        if count < 1:
            yield Problem(where, "Forbidden: must be at least 1")
    else:
        yield from _not_negative(where, count)


def _pytorch(spec: Mapping[str, Json], kind: JobKind) -> Iterator[Problem]:
    processes, elastic = spec.get("nprocPerNode"), spec.get("elasticPolicy")
    if processes and _NUMBER.fullmatch(processes) and int(processes) < 1:
        yield Problem("spec.nprocPerNode", f"Invalid value: {_quoted(processes)}: must be at least 1")
    if elastic is None:
        return
    if not any(kind.role(key) == "Worker" for key in spec[kind.replica_field]):
        yield _required(f"spec.{kind.replica_field}[Worker]", "must be configured if elastic policy is used")
    if spec.get("nprocPerNode") and elastic.get("nProcPerNode") is not None:
        yield Problem("spec.elasticPolicy.nProcPerNode", "Forbidden: must not be used with spec.nprocPerNode")


def _elastic(spec: Mapping[str, Json]) -> Iterator[Problem]:
    elastic = spec.get("elasticPolicy") or {}
    for field in ("minReplicas", "maxReplicas", "maxRestarts", "rdzvPort", "nProcPerNode"):
        yield from _not_negative(f"spec.elasticPolicy.{field}", elastic.get(field))
    least, most = elastic.get("minReplicas"), elastic.get("maxReplicas")
    if least is not None and most is not None and least > most:
        yield Problem("spec.elasticPolicy.minReplicas", f"Invalid value: {least}: must not be more than maxReplicas, "
                      f"which is {most}")


def _mxnet(spec: Mapping[str, Json]) -> Iterator[Problem]:
    mode = spec.get("jobMode")
    if mode and mode not in MX_JOB_MODES:
        yield _unsupported("spec.jobMode", mode, MX_JOB_MODES)


def _tensorflow(spec: Mapping[str, Json]) -> Iterator[Problem]:
    policy = spec.get("successPolicy")
    if policy and policy not in TF_SUCCESS_POLICIES:
        yield _unsupported("spec.successPolicy", policy, TF_SUCCESS_POLICIES)


def _without_words(spec: Mapping[str, Json], kind: JobKind) -> Object:
    """The spec without the words that have rules of their own: only its types are left to be checked."""
    policy = spec.get("runPolicy")
    specs = spec[kind.replica_field]
    made = dict(spec)
    if isinstance(policy, dict) and isinstance(policy.get("cleanPodPolicy"), str):
        made["runPolicy"] = {key: value for key, value in policy.items() if key != "cleanPodPolicy"}
    if isinstance(specs, dict):
        made[kind.replica_field] = {key: _without_policy(value) for key, value in specs.items()}
    return made


def _without_policy(replica_spec: Json) -> Json:
    if isinstance(replica_spec, dict) and isinstance(replica_spec.get("restartPolicy"), str):
        return {key: value for key, value in replica_spec.items() if key != "restartPolicy"}
    return replica_spec


def _required(field: str, detail: str) -> Problem:
    return Problem(field, f"Required value: {detail}")


def _unsupported(field: str, value: Json, supported: Iterable[str]) -> Problem:
    return Problem(field, f"Unsupported value: {_quoted(value)}: supported values: "
                   + ", ".join(_quoted(word) for word in supported))


def _not_negative(field: str, value: Json) -> Iterator[Problem]:
    if isinstance(value, int) and value < 0:
        yield Problem(field, f"Invalid value: {value}: must be greater than or equal to 0")


def _quoted(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
