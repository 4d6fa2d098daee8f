"""Which framework runs which kind: the only list of them. A new kind is a type in `api`, a module and a line here."""

from zlib import crc32

from trainmaster.api import codec
from trainmaster.api.defaults import complete
from trainmaster.api.meta import Object, being_deleted, metadata, name_of, namespace_of, uid_of
from trainmaster.api.policy import HOST_PORTS, HostPorts
from trainmaster.frameworks.framework import ANYWHERE, Framework, Group, Role, Site, TrainingJob
from trainmaster.frameworks.jax import JAX
from trainmaster.frameworks.mxnet import MXNET
from trainmaster.frameworks.paddle import PADDLE
from trainmaster.frameworks.pytorch import PYTORCH
from trainmaster.frameworks.tensorflow import TENSORFLOW
from trainmaster.frameworks.xgboost import XGBOOST

FRAMEWORKS: tuple[Framework, ...] = (TENSORFLOW, PYTORCH, XGBOOST, MXNET, PADDLE, JAX)


def framework_of(kind: str) -> Framework | None:
    return next((known for known in FRAMEWORKS if known.kind.kind == kind), None)


def read(thing: Object, framework: Framework, site: Site = ANYWHERE) -> TrainingJob:
    """The job an object describes, completed. Raises `api.codec.Malformed` where the types are wrong."""
    kind = framework.kind
    spec = complete(codec.decode_spec(thing.get("spec") or {}, kind), kind)
    name, namespace = name_of(thing), namespace_of(thing)
    roles = tuple(Role(role, replica_spec) for role, replica_spec in spec.replica_specs.items())
    annotations = metadata(thing).get("annotations") or {}
    # Any number that jobs seldom share will do, as long as it stays the same.
    own_ports = crc32(uid_of(thing).encode()) if annotations.get(HOST_PORTS) == HostPorts.OWN else None
    return TrainingJob(
        framework=framework,
        name=name,
        namespace=namespace,
        uid=uid_of(thing),
        group=Group(name, namespace, kind, spec, roles, site, own_ports),
        status=codec.decode_status(thing.get("status")),
        deleting=being_deleted(thing),
        annotations=annotations,
    )
