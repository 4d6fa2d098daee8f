"""What `kubectl get` prints for volumes, networks, access and limits."""

from collections.abc import Callable

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import labels
from trainmaster.cluster.apiserver.columns import AGE, NAME, NONE, at
from trainmaster.cluster.apiserver.kind import Column

_UNSET = "<unset>"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(found: Json) -> str:
    there = set(found or ())
    return ",".join(short for mode, short in _MODES.items() if mode in there)


def _volume_status(thing: Object) -> Json:
    if thing["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return (thing.get("status") or {}).get("phase") or ""


def _class(thing: Object) -> Json:
    old = (thing["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    return old or (thing.get("spec") or {}).get("storageClassName") or ""


def _claim(volume: Object) -> Json:
    about = (volume.get("spec") or {}).get("claimRef") or {}
    return f"{about.get('namespace', '')}/{about.get('name', '')}" if about else ""


_VOLUME_MODE = Column("VolumeMode", at("spec", "volumeMode", other=_UNSET), priority=1)
_ATTRIBUTES = Column("VolumeAttributesClass", at("spec", "volumeAttributesClassName", other=_UNSET))

VOLUME = (
    NAME, Column("Capacity", at("spec", "capacity", "storage", other="")),
    Column("Access Modes", lambda thing: _modes((thing.get("spec") or {}).get("accessModes"))),
    Column("Reclaim Policy", at("spec", "persistentVolumeReclaimPolicy", other="")), Column("Status", _volume_status),
    Column("Claim", _claim), Column("StorageClass", _class), _ATTRIBUTES,
    Column("Reason", at("status", "reason", other="")), AGE, _VOLUME_MODE,
)


def _is_bound(claim: Object) -> bool:
    return bool((claim.get("spec") or {}).get("volumeName"))


CLAIM = (
    NAME, Column("Status", _volume_status), Column("Volume", at("spec", "volumeName", other="")),
    Column("Capacity", lambda thing: at("status", "capacity", "storage", other="")(thing) if _is_bound(thing) else ""),
    Column("Access Modes",
           lambda thing: _modes((thing.get("status") or {}).get("accessModes")) if _is_bound(thing) else ""),
    Column("StorageClass", _class), _ATTRIBUTES, AGE, _VOLUME_MODE,
)


def _class_name(thing: Object) -> Json:
    default = (thing["metadata"].get("annotations") or {}).get("storageclass.kubernetes.io/is-default-class")
    return f"{thing['metadata'].get('name', '')}{' (default)' if default == 'true' else ''}"


STORAGE_CLASS = (
    Column("Name", _class_name, format="name"), Column("Provisioner", at("provisioner", other="")),
    Column("ReclaimPolicy", at("reclaimPolicy", other="Delete")),
    Column("VolumeBindingMode", at("volumeBindingMode", other="Immediate")),
    Column("AllowVolumeExpansion", lambda thing: bool(thing.get("allowVolumeExpansion"))), AGE,
)


def _flag(*path: str) -> Callable[[Object], Json]:
    return at(*path, other=False)


def _tokens(driver: Object) -> Json:
    found = (driver.get("spec") or {}).get("tokenRequests") or ()
    return ",".join(str(each.get("audience", "")) for each in found) or _UNSET


def _lives(driver: Object) -> Json:
    return ",".join((driver.get("spec") or {}).get("volumeLifecycleModes") or ()) or NONE


DRIVER = (
    NAME, Column("AttachRequired", at("spec", "attachRequired", other=True), type="boolean"),
    Column("PodInfoOnMount", _flag("spec", "podInfoOnMount"), type="boolean"),
    Column("StorageCapacity", _flag("spec", "storageCapacity"), type="boolean"), Column("TokenRequests", _tokens),
    Column("RequiresRepublish", _flag("spec", "requiresRepublish"), type="boolean"), Column("Modes", _lives), AGE,
)
NODE_DRIVERS = (
    NAME, Column("Drivers", lambda thing: len((thing.get("spec") or {}).get("drivers") or ()), type="integer"), AGE,
)
ATTACHMENT = (
    NAME, Column("Attacher", at("spec", "attacher", other=""), format="name"),
    Column("PV", at("spec", "source", "persistentVolumeName", other="")),
    Column("Node", at("spec", "nodeName", other="")), Column("Attached", _flag("status", "attached"), type="boolean"),
    AGE,
)


def _used(quota: Object, *, limits: bool) -> str:
    status = quota.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in sorted(hard)
                     if name.startswith("limits.") is limits)


QUOTA = (
    NAME, Column("Request", lambda quota: _used(quota, limits=False)),
    Column("Limit", lambda quota: _used(quota, limits=True)), AGE,
)
PRIORITY = (
    NAME, Column("Value", at("value", other=0), type="integer"),
    Column("Global-Default", _flag("globalDefault"), type="boolean"), AGE,
    Column("PreemptionPolicy", at("preemptionPolicy", other="")),
)
RUNTIME = (NAME, Column("Handler", at("handler", other="")), AGE)


def _subjects(kind: str) -> Column:
    def cell(binding: Object) -> Json:
        found = [each for each in binding.get("subjects") or () if each.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{each.get('namespace', '')}/{each.get('name')}" for each in found)
        return ", ".join(str(each.get("name")) for each in found)

    return Column(f"{kind}s", cell, priority=1)


def _role(binding: Object) -> Json:
    about = binding.get("roleRef") or {}
    return f"{about.get('kind', '')}/{about.get('name', '')}"


BINDING = (NAME, Column("Role", _role), AGE, _subjects("User"), _subjects("Group"), _subjects("ServiceAccount"))
NETWORK_POLICY = (
    NAME, Column("Pod-Selector", lambda thing: labels.text((thing.get("spec") or {}).get("podSelector")) or NONE), AGE,
)


def _hosts(ingress: Object) -> Json:
    found = [rule["host"] for rule in (ingress.get("spec") or {}).get("rules") or () if rule.get("host")]
    return ",".join(found[:3]) + (f" + {len(found) - 3} more..." if len(found) > 3 else "") if found else "*"


def _ingress_class(ingress: Object) -> Json:
    old = (ingress["metadata"].get("annotations") or {}).get("kubernetes.io/ingress.class")
    return old or (ingress.get("spec") or {}).get("ingressClassName") or NONE


def _ingress_address(ingress: Object) -> Json:
    found = ((ingress.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return ",".join(str(each.get("ip") or each.get("hostname") or "") for each in found)


INGRESS = (
    NAME, Column("Class", _ingress_class), Column("Hosts", _hosts), Column("Address", _ingress_address),
    Column("Ports", lambda thing: "80, 443" if (thing.get("spec") or {}).get("tls") else "80"), AGE,
)


def _parameters(thing: Object) -> Json:
    found = (thing.get("spec") or {}).get("parameters")
    if not found:
        return NONE
    group = found.get("apiGroup")
    return f"{found.get('kind', '')}{f'.{group}' if group else ''}/{found.get('name', '')}"


INGRESS_CLASS = (NAME, Column("Controller", at("spec", "controller", other="")), Column("Parameters", _parameters), AGE)


def _few(found: list[str], none: str) -> str:
    return ",".join(found[:3]) + (f" + {len(found) - 3} more..." if len(found) > 3 else "") if found else none


def _slice_ports(thing: Object) -> Json:
    found = thing.get("ports")
    if not found:
        return "*" if found is None else _UNSET
    return _few([str(port.get("port") or port.get("name") or "*") for port in found], _UNSET)


def _slice_endpoints(thing: Object) -> Json:
    return _few([address for each in thing.get("endpoints") or () for address in each.get("addresses") or ()], _UNSET)


SLICE = (
    NAME, Column("AddressType", at("addressType", other="")), Column("Ports", _slice_ports),
    Column("Endpoints", _slice_endpoints), AGE,
)
