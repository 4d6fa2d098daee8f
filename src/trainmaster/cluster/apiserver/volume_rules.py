"""What the volumes of a pod may be made of. A table: each source with the rule for what it says."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from trainmaster.api import quantity
from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import (
    causes,
    checks,
    container_rules,
    field_references,
    names,
    storage,
    volume_sources,
)
from trainmaster.cluster.apiserver.causes import Cause

_Rule: TypeAlias = Callable[[Object, str], Iterator[Cause]]

_LARGEST_MODE = 0o777
_NO_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_SHORTEST_TOKEN, _LONGEST_TOKEN = 600, 2**32
_LONGEST_PORTAL = 64
_LARGEST_LUN = 255
_PROJECTED = ("secret", "configMap", "downwardAPI", "serviceAccountToken")
_TWICE = "conflicting duplicate paths"


def judged(volumes: Sequence[Object], path: str, pod: str) -> tuple[dict[str, Object], list[Cause]]:
    """The volumes without a fault, by name, and the faults of the others.

    `pod` is the name of the pod, if it is known: claims that are made for it are called after it.
    """
    sound: dict[str, Object] = {}
    faults: list[Cause] = []
    made = {f"{pod}-{each.get('name') or ''}" for each in volumes if pod and each.get("ephemeral") is not None}
    for index, volume in enumerate(volumes):
        at, name = f"{path}[{index}]", volume.get("name") or ""
        found = [*_source_rules(volume, at, pod), *_name_rules(name, f"{at}.name", sound)]
        if found:
            faults += found
        else:
            sound[name] = volume
        claimed = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claimed in made:
            faults.append(causes.invalid(f"{at}.persistentVolumeClaim.claimName", claimed,
                                         "must not reference a PVC that gets created for an ephemeral volume"))
    return sound, faults


def _name_rules(name: str, path: str, taken: dict[str, Object]) -> Iterator[Cause]:
    if not name:
        yield causes.required(path)
    else:
        yield from names.refused(path, name, names.label(name))
    if name in taken:
        yield causes.duplicate(path, name)


def _source_rules(volume: Object, path: str, pod: str) -> Iterator[Cause]:
    found = [source for source in _SOURCES if volume.get(source) is not None]
    if not found:
        yield causes.required(path, "must specify a volume type")
    for source in found[:1]:
        yield from _SOURCES[source](volume[source], f"{path}.{_SAID_OF.get(source, source)}")
    for source in found[1:]:
        yield causes.forbidden(f"{path}.{_SAID_OF_SECOND.get(source, source)}",
                               "may not specify more than 1 volume type")
    name = volume.get("name") or ""
    if "iscsi" in found and volume["iscsi"].get("initiatorName") is not None \
            and len(f"{name}:{volume['iscsi'].get('targetPortal') or ''}") > _LONGEST_PORTAL:
        yield causes.invalid(f"{path}.name", name, "Total length of <volume name>:<iscsi.targetPortal> must be under "
                             "64 characters if iscsi.initiatorName is specified.")
    if found[:1] == ["ephemeral"] and pod and name:
        for fault in names.subdomain(f"{pod}-{name}"):
            yield causes.invalid(f"{path}.name", name, f'PVC name "{pod}-{name}": {fault}')


def _needing(*fields: str) -> _Rule:
    """The rule of a source that must say these."""
    def rule(source: Object, path: str) -> Iterator[Cause]:
        for field in fields:
            if not source.get(field):
                yield causes.required(f"{path}.{field}")

    return rule


def _empty(source: Object, path: str) -> Iterator[Cause]:
    limit = source.get("sizeLimit")
    if limit is not None and quantity.parse(limit) < 0:
        yield causes.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _git(source: Object, path: str) -> Iterator[Cause]:
    yield from _needing("repository")(source, path)
    yield from checks.below(source.get("directory") or "", f"{path}.directory")


def _mode_rules(source: Object, path: str, field: str = "defaultMode") -> Iterator[Cause]:
    mode = source.get(field)
    if mode is not None and not 0 <= mode <= _LARGEST_MODE:
        yield causes.invalid(f"{path}.{field}", mode, _NO_MODE)


def _keyed(field: str) -> _Rule:
    """The rule of a ConfigMap or Secret, called by `field`, of which all keys or some become files."""
    def rule(source: Object, path: str) -> Iterator[Cause]:
        if not source.get(field):
            yield causes.required(f"{path}.{field}")
        yield from _mode_rules(source, path)
        for index, item in enumerate(source.get("items") or ()):
            yield from _item_rules(item, f"{path}.items[{index}]")

    return rule


def _item_rules(item: Object, path: str) -> Iterator[Cause]:
    for field in ("key", "path"):
        if not item.get(field):
            yield causes.required(f"{path}.{field}")
    yield from _file_rules(item.get("path") or "", f"{path}.path")
    yield from _mode_rules(item, path, "mode")


def _file_rules(where: str, path: str) -> Iterator[Cause]:
    """A file within the volume whose name is not one of those that the node needs itself."""
    yield from checks.below(where, path)
    if where.startswith("..") and not where.startswith("../"):
        yield causes.invalid(path, where, "must not start with '..'")


def _described(source: Object, path: str) -> Iterator[Cause]:
    yield from _mode_rules(source, path)
    for item in source.get("items") or ():
        yield from _description_rules(item, path)


def _description_rules(item: Object, path: str) -> Iterator[Cause]:
    if not item.get("path"):
        yield causes.required(f"{path}.path")
    yield from _file_rules(item.get("path") or "", f"{path}.path")
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        yield from field_references.field_rules(field, f"{path}.fieldRef", field_references.IN_FILES)
        if resource is not None:
            yield causes.invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif resource is not None:
        yield from field_references.resource_rules(resource, f"{path}.resourceFieldRef", in_file=True)
    else:
        yield causes.required(path, "one of fieldRef and resourceFieldRef is required")
    yield from _mode_rules(item, path, "mode")


def _projected(source: Object, path: str) -> Iterator[Cause]:
    yield from _mode_rules(source, path)
    taken: set[str] = set()
    for index, part in enumerate(source.get("sources") or ()):
        at = f"{path}.sources[{index}]"
        for field in ("secret", "configMap"):
            if (keyed := part.get(field)) is not None:
                if not keyed.get("name"):
                    yield causes.required(f"{at}.{field}.name")
                for number, item in enumerate(keyed.get("items") or ()):
                    yield from _item_rules(item, f"{at}.{field}.items[{number}]")
                    yield from _once(item.get("path") or "", path, keyed.get("name") or "", taken)
        for item in (part.get("downwardAPI") or {}).get("items") or ():
            yield from _description_rules(item, f"{at}.downwardAPI")
            yield from _once(item.get("path") or "", path, item.get("path") or "", taken)
        if (token := part.get("serviceAccountToken")) is not None:
            yield from _token_rules(token, path, f"{at}.serviceAccountToken")
        if sum(part.get(field) is not None for field in _PROJECTED) > 1:
            yield causes.forbidden(at, "may not specify more than 1 volume type per source")


def _once(where: str, path: str, told: str, taken: set[str]) -> Iterator[Cause]:
    if where in taken:
        yield causes.invalid(path, told, _TWICE)
    elif where:
        taken.add(where)


def _token_rules(token: Object, volume: str, path: str) -> Iterator[Cause]:
    seconds = token.get("expirationSeconds") or 0
    if seconds < _SHORTEST_TOKEN:
        yield causes.invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    elif seconds > _LONGEST_TOKEN:
        yield causes.invalid(f"{path}.expirationSeconds", seconds,
                             "may not specify a duration larger than 2^32 seconds")
    if not token.get("path"):
        yield causes.required(f"{volume}.path")
    else:
        yield from _file_rules(token["path"], f"{volume}.path")


def _template(source: Object, path: str) -> Iterator[Cause]:
    """A claim that is made for the pod: what it asks for, and no other metadata than labels and annotations."""
    template, at = source.get("volumeClaimTemplate"), f"{path}.volumeClaimTemplate"
    if template is None:
        yield causes.required(at)
        return
    about = template.get("metadata") or {}
    yield from names.annotations(about.get("annotations") or {}, f"{at}.metadata.annotations")
    yield from names.labels(about.get("labels") or {}, f"{at}.metadata.labels")
    for field, value in about.items():
        if field not in {"annotations", "labels"} and value:
            yield causes.forbidden(f"{at}.metadata.{field}", "cannot be set")
    yield from storage.claim_rules(template.get("spec") or {}, f"{at}.spec")


def _iscsi(source: Object, path: str) -> Iterator[Cause]:
    yield from _needing("targetPortal", "iqn")(source, path)
    if name := source.get("iqn"):
        yield from _iscsi_name(name, f"{path}.iqn")
    if not 0 <= (source.get("lun") or 0) <= _LARGEST_LUN:
        yield causes.invalid(f"{path}.lun", source["lun"], "must be between 0 and 255, inclusive")
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        yield causes.required(f"{path}.secretRef")
    if source.get("initiatorName") is not None:
        yield from _iscsi_name(source["initiatorName"], f"{path}.initiatorname")


def _iscsi_name(name: str, path: str) -> Iterator[Cause]:
    if not name.startswith(tuple(volume_sources.INITIATORS)):
        yield causes.invalid(path, name, "must be valid format starting with iqn, eui, or naa")
    else:
        yield from volume_sources.initiator_rules(name, path)


def _with_secret(*fields: str) -> _Rule:
    """The rule of a source that must say these, and whose secret, if there is one, has a name."""
    def rule(source: Object, path: str) -> Iterator[Cause]:
        yield from _needing(*fields)(source, path)
        if source.get("secretRef") is not None and not source["secretRef"].get("name"):
            yield causes.required(f"{path}.secretRef.name")

    return rule


def _storage_os(source: Object, path: str) -> Iterator[Cause]:
    yield from _needing("volumeName")(source, path)
    for field in ("volumeName", "volumeNamespace"):
        if source.get(field):
            yield from names.refused(f"{path}.{field}", source[field], names.label(source[field]))
    yield from _with_secret()(source, path)


def _driver(source: Object, path: str) -> Iterator[Cause]:
    yield from volume_sources.driver_rules(source.get("driver") or "", f"{path}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is not None and not secret.get("name"):
        yield causes.required(f"{path}.nodePublishSecretRef.name")
    elif secret is not None:
        yield from names.refused(f"{path}.name", secret["name"], names.subdomain(secret["name"]))


def _image(source: Object, path: str) -> Iterator[Cause]:
    yield from container_rules.pull_policy_rules(source.get("pullPolicy") or "", f"{path}.pullPolicy")


def _like(*sources: str) -> dict[str, _Rule]:
    """Those of which a pod says the same as a PersistentVolume."""
    return {source: volume_sources.SOURCES[source] for source in sources}


# In the order in which Kubernetes looks at them: of two, the first counts.
_SOURCES: dict[str, _Rule] = {
    "emptyDir": _empty, **_like("hostPath"), "gitRepo": _git, **_like("gcePersistentDisk", "awsElasticBlockStore"),
    "secret": _keyed("secretName"), **_like("nfs"), "iscsi": _iscsi, **_like("glusterfs", "flocker"),
    "persistentVolumeClaim": _needing("claimName"), **_like("rbd"), "cinder": _with_secret("volumeID"),
    **_like("cephfs", "quobyte"), "downwardAPI": _described, **_like("fc", "flexVolume"), "configMap": _keyed("name"),
    **_like("azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk"),
    "storageos": _storage_os, "projected": _projected, **_like("scaleIO"), "csi": _driver, "ephemeral": _template,
    "image": _image,
}
# Where Kubernetes says another word than the field's.
_SAID_OF = {"gcePersistentDisk": "persistentDisk"}
_SAID_OF_SECOND = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
