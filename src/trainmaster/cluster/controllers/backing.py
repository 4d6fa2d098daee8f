"""Which pods back a service, at which ports, and what its Endpoints say. Pure.

Rules are those of Kubernetes: a pod counts from the moment it has an address until it has ended; whether it is ready
decides where it is listed, and `publishNotReadyAddresses` lifts that. Objects come in as the informers keep them
(`pod_kept`, `service_kept`), so that a change of anything else is no change here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trainmaster.api.meta import Key, Object, being_deleted, labels_of, metadata, name_of, namespace_of, uid_of

HEADLESS = "service.kubernetes.io/headless"
MANAGED_BY = "endpoints.kubernetes.io/managed-by"
MANAGER = "endpoint-controller"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
# Of an Endpoints object, as in Kubernetes; slices have no such limit.
MOST_ADDRESSES = 1000
_ABOUT = ("name", "namespace", "uid", "resourceVersion", "labels", "deletionTimestamp")
_POD_SPEC = ("nodeName", "hostname", "subdomain")
_SERVICE_SPEC = ("selector", "ports", "clusterIP", "type", "ipFamilies", "publishNotReadyAddresses")


@dataclass(frozen=True, slots=True, order=True)
class Port:
    """A port of a service, as one pod has it."""

    name: str
    protocol: str
    number: int
    app_protocol: str = ""


def pod_kept(pod: Object) -> Object:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    containers = [*(spec.get("containers") or ()), *filter(_runs_along, spec.get("initContainers") or ())]
    named = [port for container in containers for port in container.get("ports") or () if port.get("name")]
    return {
        "metadata": _some(metadata(pod), _ABOUT),
        "spec": {**_some(spec, _POD_SPEC), "ports": named},
        "status": {
            "phase": status.get("phase"),
            "addresses": [each["ip"] for each in status.get("podIPs") or () if each.get("ip")]
            or [each for each in [status.get("podIP")] if each],
            "ready": any(
                one.get("type") == "Ready" and one.get("status") == "True" for one in status.get("conditions") or ()
            ),
        },
    }


def service_kept(service: Object) -> Object:
    return {
        "apiVersion": "v1", "kind": "Service", "metadata": _some(metadata(service), _ABOUT),
        "spec": _some(service.get("spec") or {}, _SERVICE_SPEC),
    }


def unchanged(before: Object, after: Object) -> bool:
    """Whether nothing that is kept changed."""
    return {**before, "metadata": {**before["metadata"], "resourceVersion": ""}} == {
        **after, "metadata": {**after["metadata"], "resourceVersion": ""}
    }


def is_backed(service: Object) -> bool:
    """Whether pods are looked for at all: somebody else fills the endpoints of a service without a selector."""
    return bool(service["spec"].get("selector")) and service["spec"].get("type") != "ExternalName"


def is_headless(service: Object) -> bool:
    return service["spec"].get("clusterIP", "") in ("", "None")


def counts(pod: Object, *, ending: bool) -> bool:
    """Whether a pod is part of a service that selects it; `ending`: also while it is being deleted."""
    status = pod["status"]
    over = status["phase"] in ("Succeeded", "Failed")
    return bool(status["addresses"]) and not over and (ending or not being_deleted(pod))


def ports(service: Object, pod: Object) -> tuple[Port, ...]:
    """The ports of a service on one pod; a named target that the pod lacks is left out."""
    found = ((port, _number(port, pod)) for port in service["spec"].get("ports") or ())
    return tuple(port_of(port, number) for port, number in found if number is not None)


def port_of(port: Mapping[str, object], number: int) -> Port:
    return Port(
        str(port.get("name") or ""), str(port.get("protocol") or "TCP"), number, str(port.get("appProtocol") or "")
    )


def address(pod: Object, *, ipv6: bool) -> str:
    """The pod's address of a family, or ""."""
    return next((each for each in pod["status"]["addresses"] if (":" in each) == ipv6), "")


def hostname(service: Object, pod: Object) -> str:
    """The pod's own name below the service, if it asked for one there."""
    named = pod["spec"].get("hostname") and pod["spec"].get("subdomain") == name_of(service)
    return str(pod["spec"]["hostname"]) if named else ""


def target(pod: Object) -> Object:
    return {"kind": "Pod", "namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)}


def endpoints(service: Object, pods: Iterable[Object], found: Object | None) -> Object:
    """The Endpoints of a service; of those that are there, annotations of others are kept."""
    subsets = _subsets(service, pods)
    full = sum(len(subset.get(field) or ()) for subset in subsets for field in ("addresses", "notReadyAddresses"))
    annotations = {
        key: value for key, value in (metadata(found or {}).get("annotations") or {}).items() if key != OVER_CAPACITY
    }
    if full > MOST_ADDRESSES:
        subsets = _truncated(subsets)
        annotations[OVER_CAPACITY] = "truncated"
    about = dict(metadata(found)) if found else {"name": name_of(service), "namespace": namespace_of(service)}
    about |= {"labels": _labels(service), "annotations": annotations}
    if not annotations:
        del about["annotations"]
    return {"apiVersion": "v1", "kind": "Endpoints", "metadata": about, "subsets": subsets}


def same_endpoints(one: Object, other: Object) -> bool:
    """Whether writing one over the other would change nothing."""
    return (one.get("subsets") or []) == (other.get("subsets") or []) and all(
        (metadata(one).get(field) or {}) == (metadata(other).get(field) or {}) for field in ("labels", "annotations")
    )


def _labels(service: Object) -> dict[str, str]:
    labels = {key: value for key, value in labels_of(service).items() if key != HEADLESS}
    if is_headless(service):
        labels[HEADLESS] = ""
    return {**labels, MANAGED_BY: MANAGER}


def _subsets(service: Object, pods: Iterable[Object]) -> list[Object]:
    """Pods with the same ports together, each sorted, so that the same pods always give the same bytes."""
    unready_too = bool(service["spec"].get("publishNotReadyAddresses"))
    ipv6 = (service["spec"].get("ipFamilies") or ["IPv4"])[0] == "IPv6"
    portless = is_headless(service) and not service["spec"].get("ports")
    groups: dict[tuple[Port, ...], tuple[list[Object], list[Object]]] = {}
    for pod in pods:
        at, reached = address(pod, ipv6=ipv6), ports(service, pod)
        if not at or not counts(pod, ending=unready_too) or not (reached or portless):
            continue
        entry: Object = {"ip": at}
        if name := hostname(service, pod):
            entry["hostname"] = name
        if node := pod["spec"].get("nodeName"):
            entry["nodeName"] = node
        ready, unready = groups.setdefault(reached, ([], []))
        (ready if unready_too or pod["status"]["ready"] else unready).append({**entry, "targetRef": target(pod)})
    found = []
    for reached, lists in sorted(groups.items()):
        subset: Object = {}
        for field, entries in zip(("addresses", "notReadyAddresses"), lists, strict=True):
            if entries:
                subset[field] = sorted(entries, key=lambda entry: (entry["ip"], entry["targetRef"]["uid"]))
        if reached:
            subset["ports"] = [_port(port) for port in reached]
        found.append(subset)
    return found


def _port(port: Port) -> Object:
    said = {
        "name": port.name, "port": port.number, "protocol": port.protocol, "appProtocol": port.app_protocol,
    }
    return {field: value for field, value in said.items() if value}


def _truncated(subsets: Sequence[Object]) -> list[Object]:
    """As many addresses as are allowed, ready ones first."""
    room = MOST_ADDRESSES
    kept: list[Object] = [dict(subset) for subset in subsets]
    for field in ("addresses", "notReadyAddresses"):
        for subset in kept:
            if field in subset:
                subset[field] = subset[field][:room]
                room -= len(subset[field])
                if not subset[field]:
                    del subset[field]
    return [subset for subset in kept if "addresses" in subset or "notReadyAddresses" in subset]


def _number(port: Mapping[str, object], pod: Object) -> int | None:
    wanted = port.get("targetPort") or port.get("port")
    if isinstance(wanted, int):
        return wanted
    for known in pod["spec"]["ports"]:
        if known["name"] == wanted and (known.get("protocol") or "TCP") == (port.get("protocol") or "TCP"):
            return int(known["containerPort"])
    return None


def _runs_along(container: Object) -> bool:
    """An init container that stays: a sidecar."""
    return container.get("restartPolicy") == "Always"


def _some(thing: Mapping[str, object], fields: Sequence[str]) -> Object:
    return {field: thing[field] for field in fields if field in thing}


class Selectors:
    """Which services select a pod, found through one label of each: the one that fewest services share.

    A job may have a service per replica. To try the selectors of all of them at every change of a pod would make a
    thousand replicas cost a million comparisons.
    """

    def __init__(self) -> None:
        self._selectors: dict[Key, tuple[tuple[str, str, str], Mapping[str, str]]] = {}
        self._by_label: dict[tuple[str, str, str], dict[Key, None]] = {}

    def put(self, service: Key, selector: Mapping[str, str]) -> None:
        self.drop(service)
        if selector:
            places = [(service.namespace, key, value) for key, value in sorted(selector.items())]
            place = min(places, key=lambda place: len(self._by_label.get(place, ())))
            self._selectors[service] = (place, selector)
            self._by_label.setdefault(place, {})[service] = None

    def drop(self, service: Key) -> None:
        if (known := self._selectors.pop(service, None)) is not None:
            there = self._by_label[known[0]]
            del there[service]
            if not there:
                del self._by_label[known[0]]

    def selecting(self, namespace: str, labels: Mapping[str, str]) -> list[Key]:
        return [
            service
            for key, value in labels.items()
            for service in self._by_label.get((namespace, key, value), ())
            if self._selectors[service][1].items() <= labels.items()
        ]
