"""Where volumes come from: StorageClass, and what drivers say of themselves, their nodes and their work."""

from collections import Counter
from collections.abc import Iterator

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, checks, names, other_columns, volume_sources
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.rows import row

_LIVES = ("Persistent", "Ephemeral")
_GROUP_POLICIES = ("File", "None", "ReadWriteOnceWithFSType")
_LONGEST_NODE_ID = 256
_MOST_PARAMETERS, _LARGEST_PARAMETERS = 512, 256 * 1024
_SHORTEST_TOKEN, _LONGEST_TOKEN = 600, 2**32
_SHORTEST_PERIOD = 10
_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def _class_defaults(thing: Object) -> None:
    thing.setdefault("reclaimPolicy", "Delete")
    thing.setdefault("volumeBindingMode", "Immediate")


def _class_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    provisioner = (thing.get("provisioner") or "").lower()
    if not provisioner:
        yield causes.required("provisioner")
    else:
        yield from names.refused("provisioner", provisioner, names.qualified(provisioner))
    yield from _parameter_rules(thing.get("parameters") or {})
    if thing["reclaimPolicy"]:
        yield from checks.choice(thing["reclaimPolicy"], "reclaimPolicy", ("Delete", "Retain"))
    yield from checks.choice(thing["volumeBindingMode"], "volumeBindingMode", ("Immediate", "WaitForFirstConsumer"))
    yield from _topology_rules(thing.get("allowedTopologies") or [])
    if old is not None:
        for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
            yield from checks.unchanged(thing.get(field), old.get(field), field)


def _parameter_rules(parameters: Object) -> Iterator[Cause]:
    if len(parameters) > _MOST_PARAMETERS:
        yield causes.too_long("parameters", _MOST_PARAMETERS)
        return
    if "" in parameters:
        yield causes.invalid("parameters", "", "field can not be empty.")
    if sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items()) > _LARGEST_PARAMETERS:
        yield causes.too_long("parameters", _LARGEST_PARAMETERS)


def _topology_rules(terms: list[Object]) -> Iterator[Cause]:
    """Where volumes may be made. Two terms that say the same are one too many, and so is one that says nothing."""
    # A real server compares with as many empty terms as there are terms, and complains of each.
    seen = Counter({frozenset[tuple[str, frozenset[str]]](): len(terms)})
    for index, term in enumerate(terms):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        said: dict[str, set[str]] = {}
        for at, wanted in enumerate(term.get("matchLabelExpressions") or ()):
            yield from _expression_rules(wanted, f"{path}[{at}]", said)
        whole = frozenset((key, frozenset(values)) for key, values in said.items())
        for _ in range(seen[whole]):
            yield causes.duplicate(path, "")
        seen[whole] += 1


def _expression_rules(wanted: Object, path: str, said: dict[str, set[str]]) -> Iterator[Cause]:
    """The faults of one expression, which is noted in what the term said so far."""
    key, values = wanted.get("key") or "", wanted.get("values") or []
    if not values:
        yield causes.required(f"{path}.values")
    taken: set[str] = set()
    for index, value in enumerate(values):
        if value in taken:
            yield causes.duplicate(f"{path}.values[{index}]", value)
        taken.add(value)
    yield from names.refused(f"{path}.key", key, names.qualified(key))
    if key in said:
        yield causes.duplicate(f"{path}.key", key)
    said[key] = set(values)


def _driver_defaults(driver: Object) -> None:
    spec = driver.setdefault("spec", {})
    for field, value in (("attachRequired", True), ("podInfoOnMount", False), ("storageCapacity", False),
                         ("fsGroupPolicy", "ReadWriteOnceWithFSType"), ("requiresRepublish", False),
                         ("seLinuxMount", False)):
        spec.setdefault(field, value)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _driver_rules(driver: Object, old: Object | None) -> Iterator[Cause]:
    spec = driver["spec"]
    yield from checks.choice(spec["fsGroupPolicy"], "spec.fsGroupPolicy", _GROUP_POLICIES)
    yield from _token_rules(spec.get("tokenRequests") or [])
    for mode in spec["volumeLifecycleModes"]:
        yield from checks.choice(mode, "spec.volumeLifecycleModes", _LIVES)
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < _SHORTEST_PERIOD:
        yield causes.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period,
                             f"must be greater than or equal to {_SHORTEST_PERIOD} seconds")
    secret = spec.get("serviceAccountTokenInSecrets")
    if secret is not None and not spec.get("tokenRequests"):
        yield causes.invalid("spec.serviceAccountTokenInSecrets", secret,
                             "serviceAccountTokenInSecrets is set but no tokenRequests are specified")
    if old is not None:
        was = old["spec"]
        # The first path is misspelt in Kubernetes too, and clients see it.
        yield from checks.unchanged(spec["attachRequired"], was.get("attachRequired"), "spec.attachedRequired")
        yield from checks.unchanged(spec["volumeLifecycleModes"], was.get("volumeLifecycleModes"),
                                    "spec.volumeLifecycleModes")


def _token_rules(requests: list[Object]) -> Iterator[Cause]:
    taken = set()
    for index, request in enumerate(requests):
        path, audience = f"spec.tokenRequests[{index}]", request.get("audience") or ""
        if audience in taken:
            yield causes.duplicate(f"{path}.audience", audience)
            continue
        taken.add(audience)
        seconds = request.get("expirationSeconds")
        if seconds is not None and seconds < _SHORTEST_TOKEN:
            yield causes.invalid(f"{path}.expirationSeconds", seconds,
                                 "may not specify a duration less than 10 minutes")
        elif seconds is not None and seconds > _LONGEST_TOKEN:
            yield causes.invalid(f"{path}.expirationSeconds", seconds,
                                 "may not specify a duration larger than 2^32 seconds")


def _node_drivers_rules(thing: Object, _old: Object | None) -> Iterator[Cause]:
    taken = set()
    for index, driver in enumerate((thing.get("spec") or {}).get("drivers") or ()):
        path, name, identity = f"spec.drivers[{index}]", driver.get("name") or "", driver.get("nodeID") or ""
        yield from volume_sources.driver_rules(name, f"{path}.name")
        if not identity:
            yield causes.required(f"{path}.nodeID")
        elif len(identity) > _LONGEST_NODE_ID:
            yield causes.invalid(f"{path}.nodeID", identity, f"must be {_LONGEST_NODE_ID} characters or less")
        yield from checks.not_negative(driver.get("allocatable") or {}, f"{path}.allocatable", "count")
        if name in taken:
            yield causes.duplicate(f"{path}.name", name)
        taken.add(name)
        yield from _topology_key_rules(driver.get("topologyKeys") or [], path)


def _topology_key_rules(keys: list[str], path: str) -> Iterator[Cause]:
    for index, key in enumerate(keys):
        if not key:
            yield causes.required(path)
        if key in keys[:index]:
            yield causes.duplicate(path, key)
        yield from names.refused(path, key, names.qualified(key))


def _attachment_rules(thing: Object, old: Object | None) -> Iterator[Cause]:
    spec = thing.get("spec") or {}
    yield from volume_sources.driver_rules(spec.get("attacher") or "", "spec.attacher")
    source = spec.get("source") or {}
    volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if volume is None and inline is None:
        yield causes.required("spec.source", _ONE_SOURCE)
    elif volume is not None and inline is not None:
        yield causes.forbidden("spec.source", _ONE_SOURCE)
    elif volume == "":
        yield causes.required("spec.source.persistentVolumeName", "must specify non empty persistentVolumeName")
    node = spec.get("nodeName") or ""
    yield from names.refused("spec.nodeName", node, names.subdomain(node))
    if volume is not None:
        yield from names.refused("spec.source.persistentVolumeName", volume, names.subdomain(volume))
    if old is not None and spec != old.get("spec"):
        told = {"Attacher": spec.get("attacher"), "Source": {
            "PersistentVolumeName": source.get("persistentVolumeName"),
            "InlineVolumeSpec": source.get("inlineVolumeSpec")}, "NodeName": node}
        yield causes.invalid("spec", told, checks.IMMUTABLE)


KINDS: tuple[Kind, ...] = (
    row("storage.k8s.io/v1", "storageclasses", answers_object=True, defaults=_class_defaults, rules=_class_rules,
        columns=other_columns.STORAGE_CLASS),
    row("storage.k8s.io/v1", "csidrivers", answers_object=True, defaults=_driver_defaults, rules=_driver_rules,
        columns=other_columns.DRIVER),
    row("storage.k8s.io/v1", "csinodes", answers_object=True, rules=_node_drivers_rules,
        columns=other_columns.NODE_DRIVERS),
    row("storage.k8s.io/v1", "volumeattachments", answers_object=True, status_only=True, rules=_attachment_rules,
        columns=other_columns.ATTACHMENT),
)
