"""Where the data of a PersistentVolume is: a directory, a server, a driver, a disk of some cloud. One source each.

Most of these have not been served by anybody for years; a manifest that has one is taken or refused all the same.
"""

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, checks, names
from trainmaster.cluster.apiserver.causes import Cause

Rules: TypeAlias = Callable[[Object, str], Iterator[Cause]]

PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_LONGEST_DRIVER = 63
_LONGEST_TENANT, _LONGEST_PORTAL = 64, 64
INITIATORS = {
    "iqn": re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.[A-Za-z0-9.-]+:[^,;*&$|\s]+$", re.ASCII),
    "eui": re.compile(r"eui.[A-Za-z0-9]{16}", re.ASCII), "naa": re.compile(r"naa.[A-Za-z0-9]{32}", re.ASCII),
}
_PAIRS = "must be a host:port pair or multiple pairs separated by commas"
_CSI_SECRETS = ("controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef",
                "nodeExpandSecretRef")
_MANAGED = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def defaults(spec: Object) -> None:
    """Also those of the sources of a pod's volume."""
    for source, values in _DEFAULTS.items():
        found = spec.get(source)
        if not isinstance(found, dict):
            continue
        for field, value in values.items():
            # An empty text is none, except where Kubernetes tells the two apart.
            if found.get(field) is None or (found[field] == "" and source != "azureDisk"):
                found[field] = value


def rules(spec: Object, path: str, name: str) -> Iterator[Cause]:
    """The faults of the source in the spec of the volume `name`: there is one, one only, and it is sound."""
    there = [source for source in SOURCES if spec.get(source) is not None]
    first = True
    for source in there:
        # An old mistake of Kubernetes, which clients may rely on by now: this one is taken beside others.
        if first or source == "flexVolume":
            yield from SOURCES[source](spec[source], f"{path}.{_SPELT.get(source, source)}")
            yield from _more_rules(source, spec, path, name)
        else:
            yield causes.forbidden(f"{path}.{_SPELT_BESIDE.get(source, source)}",
                                   "may not specify more than 1 volume type")
        first = False
    if not there:
        yield causes.required(path, "must specify a volume type")


def driver_rules(driver: str, path: str) -> Iterator[Cause]:
    """The faults in the name of a CSI driver."""
    if not driver:
        yield causes.required(path)
        return
    if len(driver.encode("utf-8", "replace")) > _LONGEST_DRIVER:
        yield causes.too_long(path, _LONGEST_DRIVER)
    yield from names.refused(path, driver, names.subdomain(driver.lower()))


def _more_rules(source: str, spec: Object, path: str, name: str) -> Iterator[Cause]:
    """What a source asks of the rest of the volume."""
    if source == "local" and spec.get("nodeAffinity") is None:
        yield causes.required(f"{path}.nodeAffinity", "Local volume requires node affinity")
    portal, named = spec[source].get("targetPortal") or "", spec[source].get("initiatorName") is not None
    if source == "iscsi" and named and len(f"{name}:{portal}") > _LONGEST_PORTAL:
        yield causes.invalid(f"{path}.iscsi.targetportal", portal, "Total length of <volume name>:<iscsi.targetPortal> "
                             "must be under 64 characters if iscsi.initiatorName is specified.")


def _path_rules(source: Object, path: str) -> Iterator[Cause]:
    where = source.get("path") or ""
    if not where:
        yield causes.required(f"{path}.path")
        return
    yield from checks.no_steps_back(where, f"{path}.path")
    yield from checks.choice(source.get("type"), f"{path}.type", PATH_TYPES)


def _nfs_rules(source: Object, path: str) -> Iterator[Cause]:
    yield from _required(source, path, "server", "path")
    where = source.get("path") or ""
    if not where.startswith("/"):
        yield causes.invalid(f"{path}.path", where, "must be an absolute path")


def _csi_rules(source: Object, path: str) -> Iterator[Cause]:
    yield from driver_rules(source.get("driver") or "", f"{path}.driver")
    yield from _required(source, path, "volumeHandle")
    for field in _CSI_SECRETS:
        if source.get(field) is not None:
            yield from _secret_rules(source[field], f"{path}.{field}")


def _secret_rules(secret: Object, path: str) -> Iterator[Cause]:
    for field, rule in (("name", names.subdomain), ("namespace", names.label)):
        value = secret.get(field) or ""
        if not value:
            yield causes.required(f"{path}.{field}")
        else:
            yield from names.refused(f"{path}.{field}", value, rule(value))


def _iscsi_rules(source: Object, path: str) -> Iterator[Cause]:
    yield from _required(source, path, "targetPortal", "iqn")
    if source.get("iqn"):
        yield from initiator_rules(source["iqn"], f"{path}.iqn")
    yield from _byte_rules(source.get("lun") or 0, f"{path}.lun")
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        yield causes.required(f"{path}.secretRef")
    if source.get("secretRef") is not None:
        yield from _required(source["secretRef"], f"{path}.secretRef", "name")
    if source.get("initiatorName") is not None:
        yield from initiator_rules(source["initiatorName"], f"{path}.initiatorname")


def initiator_rules(name: str, path: str) -> Iterator[Cause]:
    """The faults in what a target of iSCSI, or who asks it, is called."""
    form = INITIATORS.get(name[:3])
    if form is None or not form.fullmatch(name):
        yield causes.invalid(path, name, "must be valid format")


def _byte_rules(number: Json, path: str, *, said: str = "must be between 0 and 255, inclusive") -> Iterator[Cause]:
    if not 0 <= number <= 255:
        yield causes.invalid(path, number, said)


def _fibre_rules(source: Object, path: str) -> Iterator[Cause]:
    targets, ids = source.get("targetWWNs") or [], source.get("wwids") or []
    if not targets and not ids:
        yield causes.required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both")
    if targets and ids:
        yield causes.invalid(f"{path}.targetWWNs", targets,
                             "targetWWNs and wwids can not be specified simultaneously")
    if targets and source.get("lun") is None:
        yield causes.required(f"{path}.lun", "lun is required if targetWWNs is specified")
    elif targets:
        yield from _byte_rules(source["lun"], f"{path}.lun")


def _disk_rules(field: str) -> Rules:
    """A disk of a cloud, of which a partition may be meant."""
    def faults(source: Object, path: str) -> Iterator[Cause]:
        yield from _required(source, path, field)
        yield from _byte_rules(source.get("partition") or 0, f"{path}.partition",
                               said="must be between 1 and 255, inclusive")

    return faults


def _gluster_rules(source: Object, path: str) -> Iterator[Cause]:
    yield from _required(source, path, "endpoints", "path")
    space = source.get("endpointsNamespace")
    if space == "":
        yield causes.invalid(f"{path}.endpointsNamespace", space,
                             "if the endpointnamespace is set, it must be a valid namespace name")
    elif space is not None:
        yield from names.refused(f"{path}.endpointsNamespace", space, names.label(space))


def _flocker_rules(source: Object, path: str) -> Iterator[Cause]:
    name, uid = source.get("datasetName") or "", source.get("datasetUUID") or ""
    if not name and not uid:
        yield causes.required(path, "one of datasetName and datasetUUID is required")
    if name and uid:
        yield causes.invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in name:
        yield causes.invalid(f"{path}.datasetName", name, "must not contain '/'")


def _quobyte_rules(source: Object, path: str) -> Iterator[Cause]:
    registry, tenant = source.get("registry") or "", source.get("tenant") or ""
    if not registry:
        yield causes.required(f"{path}.registry", _PAIRS)
    elif len(tenant) > _LONGEST_TENANT:
        yield causes.required(f"{path}.tenant",
                              f"must be a UUID and may not exceed a length of {_LONGEST_TENANT} characters")
    else:
        for pair in registry.split(","):
            if pair.count(":") != 1 and not re.fullmatch(r"\[[^][]*\]:[^][:]*", pair):
                yield causes.invalid(f"{path}.registry", registry, _PAIRS)
    yield from _required(source, path, "volume")


def _flex_rules(source: Object, path: str) -> Iterator[Cause]:
    yield from _required(source, path, "driver")
    for key in source.get("options") or ():
        if f".{key.partition('/')[0].lower()}".endswith((".kubernetes.io", ".k8s.io")):
            yield causes.invalid(f"{path}.options[{key}]", key, "kubernetes.io and k8s.io namespaces are reserved")


def _azure_file_rules(source: Object, path: str) -> Iterator[Cause]:
    yield from _required(source, path, "secretName", "shareName")
    if source.get("secretNamespace") == "":
        yield causes.required(f"{path}.secretNamespace")


def _azure_disk_rules(source: Object, path: str) -> Iterator[Cause]:
    yield from _required(source, path, "diskName", "diskURI")
    yield from checks.choice(source.get("cachingMode"), f"{path}.cachingMode", ("None", "ReadOnly", "ReadWrite"))
    kind, address = source.get("kind"), source.get("diskURI") or ""
    yield from checks.choice(kind, f"{path}.kind", ("Dedicated", "Managed", "Shared"))
    if kind == "Managed" and not address.startswith("/subscriptions/"):
        yield causes.unsupported(f"{path}.diskURI", address, (_MANAGED,))
    elif kind not in {None, "Managed"} and not address.startswith("https://"):
        yield causes.unsupported(f"{path}.diskURI", address, (_BLOB,))


def _storageos_rules(source: Object, path: str) -> Iterator[Cause]:
    yield from _required(source, path, "volumeName")
    for field in ("volumeName", "volumeNamespace"):
        if source.get(field):
            yield from names.refused(f"{path}.{field}", source[field], names.label(source[field]))
    if source.get("secretRef") is not None:
        yield from _required(source["secretRef"], f"{path}.secretRef", "name", "namespace")


def _cinder_rules(source: Object, path: str) -> Iterator[Cause]:
    yield from _required(source, path, "volumeID")
    if source.get("secretRef") is not None:
        yield from _required(source["secretRef"], f"{path}.secretRef", "name", "namespace")


def _with(*fields: str) -> Rules:
    """A source that must have these, and says no more."""
    return lambda source, path: _required(source, path, *fields)


def _required(source: Object, path: str, *fields: str) -> Iterator[Cause]:
    for field in fields:
        if not source.get(field):
            yield causes.required(f"{path}.{field}")


# In the order in which a real server looks at them: it is the first that is not one too many.
SOURCES: dict[str, Rules] = {
    "hostPath": _path_rules, "gcePersistentDisk": _disk_rules("pdName"),
    "awsElasticBlockStore": _disk_rules("volumeID"), "glusterfs": _gluster_rules, "flocker": _flocker_rules,
    "nfs": _nfs_rules, "rbd": _with("monitors", "image"), "quobyte": _quobyte_rules, "cephfs": _with("monitors"),
    "iscsi": _iscsi_rules, "cinder": _cinder_rules, "fc": _fibre_rules, "flexVolume": _flex_rules,
    "azureFile": _azure_file_rules, "vsphereVolume": _with("volumePath"), "photonPersistentDisk": _with("pdID"),
    "portworxVolume": _with("volumeID"), "azureDisk": _azure_disk_rules,
    "scaleIO": _with("gateway", "system", "volumeName"), "local": _path_rules, "storageos": _storageos_rules,
    "csi": _csi_rules,
}
# Two paths are misspelt in Kubernetes, and clients see them.
_SPELT = {"gcePersistentDisk": "persistentDisk"}
_SPELT_BESIDE = {"cephfs": "cephFS"}
_DEFAULTS: dict[str, Object] = {
    "hostPath": {"type": ""}, "iscsi": {"iscsiInterface": "default"},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}
