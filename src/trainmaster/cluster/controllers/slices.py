"""The EndpointSlices of a service: what to create, change and delete. Pure.

An endpoint stays in the slice it is in, so that one pod that comes or goes changes one slice. A slice that nobody needs
any more becomes the next that is needed, as in Kubernetes: the empty one that a service begins with is filled when its
first pod is there, and is empty again after the last. Names follow from the service, the ports and a number: a creation
whose answer was lost is found instead of repeated.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainmaster.api.core import ENDPOINT_SLICES
from trainmaster.api.meta import Object, labels_of, metadata, name_of, namespace_of, uid_of
from trainmaster.cluster.controllers.backing import (
    HEADLESS,
    Port,
    address,
    counts,
    hostname,
    is_headless,
    port_of,
    ports,
    target,
)

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"
# The default of kube-controller-manager's --max-endpoints-per-slice.
MOST_ENDPOINTS = 100
_SIGNS = "bcdfghjklmnpqrstvwxz2456789"    # those of generated names: no vowels, nothing that can be misread


@dataclass(frozen=True, slots=True)
class Group:
    """Endpoints that may share a slice: of one family of addresses, with the same ports."""

    family: str
    ports: tuple[Port, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """In this order they can be carried out at any time. Who stays with the same ports is never missing in between."""

    create: Sequence[Object] = ()
    update: Sequence[Object] = ()
    delete: Sequence[Object] = ()


def changes(service: Object, pods: Iterable[Object], existing: Iterable[Object]) -> Changes:
    """What brings the slices of a service up to date."""
    wanted = _wanted(service, pods)
    here: dict[Group, list[Object]] = {}
    delete = []
    known = sorted(existing, key=name_of)
    taken = {name_of(one) for one in known}
    for one in known:
        if _is_of(one, service) and group_of(one) in wanted:
            here.setdefault(group_of(one), []).append(one)
        else:
            delete.append(one)
    create: list[Object] = []
    update: list[Object] = []
    for group, endpoints in wanted.items():
        made, changed, emptied = _filled(service, group, endpoints, here.get(group, []), taken)
        create += made
        update += changed
        delete += emptied
    return _reused(service, Changes(create, update, delete))


def _reused(service: Object, todo: Changes) -> Changes:
    """The same, where what would be deleted takes the place of what would be created. A slice's family is for ever."""
    create, update, delete = list(todo.create), list(todo.update), []
    for old in todo.delete:
        same_family = (one for one in create if one["addressType"] == old.get("addressType"))
        new = next(same_family, None) if _is_of(old, service) else None
        if new is None:
            delete.append(old)
        else:
            create.remove(new)
            update.append({**new, "metadata": {**metadata(old), "labels": labels_of(new)}})
    return Changes(create, update, delete)


def group_of(one: Object) -> Group:
    return Group(
        one.get("addressType", ""), tuple(port_of(port, port.get("port") or 0) for port in one.get("ports") or ())
    )


def _wanted(service: Object, pods: Iterable[Object]) -> dict[Group, dict[str, Object]]:
    """Endpoints by group and pod. A family without any still has one empty group, to say that nobody is there."""
    families = service["spec"].get("ipFamilies") or ["IPv4"]
    found: dict[Group, dict[str, Object]] = {}
    for pod in sorted(pods, key=name_of):
        for family in families if counts(pod, ending=True) else ():
            if at := address(pod, ipv6=family == "IPv6"):
                found.setdefault(Group(family, ports(service, pod)), {})[uid_of(pod)] = _endpoint(service, pod, at)
    for family in families:
        if not any(group.family == family for group in found):
            found[Group(family, ())] = {}
    return found


def _endpoint(service: Object, pod: Object, at: str) -> Object:
    serving = bool(pod["status"]["ready"])
    ending = bool(metadata(pod).get("deletionTimestamp"))
    ready = bool(service["spec"].get("publishNotReadyAddresses")) or (serving and not ending)
    entry: Object = {"addresses": [at], "conditions": {"ready": ready, "serving": serving, "terminating": ending}}
    if name := hostname(service, pod):
        entry["hostname"] = name
    if node := pod["spec"].get("nodeName"):
        entry["nodeName"] = node
    return {**entry, "targetRef": target(pod)}


def _filled(
    service: Object, group: Group, endpoints: Mapping[str, Object], existing: Sequence[Object], taken: set[str]
) -> tuple[list[Object], list[Object], list[Object]]:
    """New, changed and superfluous slices of one group."""
    contents, waiting = _placed(endpoints, existing)
    for kept in sorted(contents, key=len, reverse=True):    # the fullest first, so that few stay half empty
        if kept or not any(contents):
            room = MOST_ENDPOINTS - len(kept)
            kept += waiting[:room]
            waiting = waiting[room:]
    created: list[Object] = []
    while waiting or not (existing or created):
        created.append(_new(service, group, waiting[:MOST_ENDPOINTS], taken))
        waiting = waiting[MOST_ENDPOINTS:]
    changed, emptied = [], []
    for number, (one, kept) in enumerate(zip(existing, contents, strict=True)):
        if not kept and (any(contents) or created or number):
            emptied.append(one)
        elif (one.get("endpoints") or []) != kept or labels_of(one) != _labels(service):
            about = {**metadata(one), "labels": _labels(service)}
            changed.append({**one, "metadata": about, "endpoints": kept})
    return created, changed, emptied


def _placed(
    endpoints: Mapping[str, Object], existing: Sequence[Object]
) -> tuple[list[list[Object]], list[Object]]:
    """The endpoints that are in a slice already, slice by slice as they are now, and those that are in none."""
    left = dict(endpoints)
    contents: list[list[Object]] = []
    for one in existing:
        uids = [(entry.get("targetRef") or {}).get("uid", "") for entry in one.get("endpoints") or ()]
        contents.append([left.pop(uid) for uid in uids if uid in left])    # one that is in two stays in the first
    return contents, list(left.values())


def _new(service: Object, group: Group, endpoints: list[Object], taken: set[str]) -> Object:
    name = next(name for number in range(len(taken) + 1) if (name := _name(service, group, number)) not in taken)
    taken.add(name)
    owner = {
        "apiVersion": "v1", "kind": "Service", "name": name_of(service), "uid": uid_of(service),
        "controller": True, "blockOwnerDeletion": True,
    }
    about = {
        "name": name, "namespace": namespace_of(service), "labels": _labels(service), "ownerReferences": [owner],
        "generateName": f"{name_of(service)}-",
    }
    return {
        "apiVersion": ENDPOINT_SLICES.api_version, "kind": ENDPOINT_SLICES.kind, "metadata": about,
        "addressType": group.family, "endpoints": endpoints, "ports": [_port(port) for port in group.ports],
    }


def _name(service: Object, group: Group, number: int) -> str:
    seed = f"{uid_of(service)}\0{group}\0{number}".encode()
    digest = hashlib.blake2b(seed, digest_size=5).digest()
    return f"{name_of(service)}-{''.join(_SIGNS[byte % len(_SIGNS)] for byte in digest)}"


def _labels(service: Object) -> dict[str, str]:
    ours = (HEADLESS, SERVICE_NAME, MANAGED_BY)
    labels = {key: value for key, value in labels_of(service).items() if key not in ours}
    if is_headless(service):
        labels[HEADLESS] = ""
    return {**labels, SERVICE_NAME: name_of(service), MANAGED_BY: MANAGER}


def _port(port: Port) -> Object:
    said: Object = {"name": port.name, "port": port.number, "protocol": port.protocol}
    return {**said, "appProtocol": port.app_protocol} if port.app_protocol else said


def _is_of(one: Object, service: Object) -> bool:
    return any(ref.get("uid") == uid_of(service) for ref in metadata(one).get("ownerReferences") or ())
