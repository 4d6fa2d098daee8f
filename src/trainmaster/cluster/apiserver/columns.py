"""What `kubectl get` prints for built-in kinds: one function per cell, one tuple of columns per kind.

Ages and restart times depend on the moment; cells that need it return a `Since`, and `tables` turns it into words.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver.kind import Column

NONE, UNKNOWN = "<none>", "<unknown>"


@dataclass(frozen=True, slots=True)
class Since:
    """How long ago a moment was, or how long before `until`; `before` and `after` stand around it.

    Without a moment the cell is `other`.
    """

    moment: str
    before: str = ""
    after: str = ""
    other: str = UNKNOWN
    until: str = ""


def name(thing: Object) -> Json:
    return thing["metadata"].get("name", "")


def age(thing: Object) -> Json:
    return Since(str(thing["metadata"].get("creationTimestamp") or ""))


NAME = Column("Name", name, format="name")
AGE = Column("Age", age)


def pod_status(pod: Object) -> str:
    """One word for the state of a pod, as kubectl says it: what holds it up wins over the phase."""
    status = pod.get("status") or {}
    word = status.get("reason") or status.get("phase") or "Unknown"
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            word = "SchedulingGated"
    word = _init_word(pod) or _container_word(status, word)
    if pod["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(word)


def _init_word(pod: Object) -> str:
    statuses = (pod.get("status") or {}).get("initContainerStatuses") or []
    specs = {each.get("name"): each for each in (pod.get("spec") or {}).get("initContainers") or ()}
    for index, each in enumerate(statuses):
        state = each.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        sidecar = (specs.get(each.get("name")) or {}).get("restartPolicy") == "Always"
        if (ended and not ended.get("exitCode")) or (sidecar and each.get("started")):
            continue
        if ended:
            return f"Init:{ended.get('reason') or _exit_word(ended)}"
        if waiting and waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{len(specs)}"
    return ""


def _container_word(status: Object, word: str) -> str:
    running = False
    for each in reversed(status.get("containerStatuses") or []):
        state = each.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        if waiting and waiting.get("reason"):
            word = waiting["reason"]
        elif ended:
            word = ended.get("reason") or _exit_word(ended)
        elif each.get("ready") and state.get("running") is not None:
            running = True
    if word == "Completed" and running:
        return "Running" if "Ready" in _true_conditions(status) else "NotReady"
    return word


def _true_conditions(status: Object) -> set[str]:
    return {str(each.get("type")) for each in status.get("conditions") or () if each.get("status") == "True"}


def _exit_word(ended: Object) -> str:
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _pod_ready(pod: Object) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    total = len((pod.get("spec") or {}).get("containers") or [])
    return f"{sum(1 for each in statuses if each.get('ready'))}/{total}"


def _pod_restarts(pod: Object) -> Json:
    status = pod.get("status") or {}
    statuses = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    count = sum(int(each.get("restartCount") or 0) for each in statuses)
    ends = [str(((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or "") for each in statuses]
    return Since(max(ends), f"{count} (", " ago)") if count and any(ends) else str(count)


def at(*path: str, other: Json = NONE) -> "_Cell":
    return _Cell(path, other)


@dataclass(frozen=True, slots=True)
class _Cell:
    """The value at a path, or something else where there is none."""

    path: tuple[str, ...]
    other: Json

    def __call__(self, thing: Object) -> Json:
        found: Json = thing
        for part in self.path:
            found = found.get(part) if isinstance(found, dict) else None
        return self.other if found in (None, "", [], {}) else found


def _pod_gates(pod: Object) -> str:
    gates = (pod.get("spec") or {}).get("readinessGates") or []
    if not gates:
        return NONE
    met = _true_conditions(pod.get("status") or {})
    return f"{sum(1 for gate in gates if gate.get('conditionType') in met)}/{len(gates)}"


POD = (
    NAME,
    Column("Ready", _pod_ready), Column("Status", pod_status), Column("Restarts", _pod_restarts), AGE,
    Column("IP", at("status", "podIP"), priority=1), Column("Node", at("spec", "nodeName"), priority=1),
    Column("Nominated Node", at("status", "nominatedNodeName"), priority=1),
    Column("Readiness Gates", _pod_gates, priority=1),
)


def _node_status(node: Object) -> str:
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = next((each for each in conditions if each.get("type") == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if (node.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(node: Object) -> str:
    labels = node["metadata"].get("labels") or {}
    prefix = "node-role.kubernetes.io/"
    found = {key.removeprefix(prefix) for key in labels if key.startswith(prefix) and key != prefix}
    return ",".join(sorted(found)) or NONE


def _node_address(kind: str) -> "_Address":
    return _Address(kind)


@dataclass(frozen=True, slots=True)
class _Address:
    type: str

    def __call__(self, node: Object) -> Json:
        found = (node.get("status") or {}).get("addresses") or []
        return next((each.get("address") for each in found if each.get("type") == self.type), NONE)


NODE = (
    NAME, Column("Status", _node_status), Column("Roles", _node_roles), AGE,
    Column("Version", at("status", "nodeInfo", "kubeletVersion", other="")),
    Column("Internal-IP", _node_address("InternalIP"), priority=1),
    Column("External-IP", _node_address("ExternalIP"), priority=1),
    Column("OS-Image", at("status", "nodeInfo", "osImage", other=UNKNOWN), priority=1),
    Column("Kernel-Version", at("status", "nodeInfo", "kernelVersion", other=UNKNOWN), priority=1),
    Column("Container-Runtime", at("status", "nodeInfo", "containerRuntimeVersion", other=UNKNOWN), priority=1),
)

NAMESPACE = (NAME, Column("Status", at("status", "phase", other="")), AGE)


def _service_external(service: Object) -> str:
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName") or NONE)
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    found = [*(each.get("ip") or each.get("hostname") or "" for each in ingress), *(spec.get("externalIPs") or ())]
    if not found and spec.get("type") == "LoadBalancer":
        return "<pending>"
    return ",".join(each for each in found if each) or NONE


def _service_ports(service: Object) -> str:
    found = []
    for port in (service.get("spec") or {}).get("ports") or ():
        exposed = f":{port['nodePort']}" if port.get("nodePort") else ""
        found.append(f"{port.get('port')}{exposed}/{port.get('protocol', 'TCP')}")
    return ",".join(found) or NONE


def _selector(service: Object) -> str:
    found = (service.get("spec") or {}).get("selector") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(found.items())) or NONE


SERVICE = (
    NAME, Column("Type", at("spec", "type", other="")), Column("Cluster-IP", at("spec", "clusterIP")),
    Column("External-IP", _service_external), Column("Port(s)", _service_ports), AGE,
    Column("Selector", _selector, priority=1),
)


def _endpoints(thing: Object) -> str:
    found = [
        f"{address.get('ip')}:{port.get('port')}" if port else str(address.get("ip"))
        for subset in thing.get("subsets") or () for port in (subset.get("ports") or [None])
        for address in subset.get("addresses") or ()]
    return f"{','.join(found[:3])} + {len(found) - 3} more..." if len(found) > 3 else ",".join(found) or NONE


ENDPOINTS = (NAME, Column("Endpoints", _endpoints), AGE)


def count(*fields: str) -> "_Count":
    return _Count(fields)


@dataclass(frozen=True, slots=True)
class _Count:
    fields: tuple[str, ...]

    def __call__(self, thing: Object) -> Json:
        return sum(len(thing.get(field) or ()) for field in self.fields)


CONFIG_MAP = (NAME, Column("Data", count("data", "binaryData")), AGE)
SECRET = (NAME, Column("Type", at("type", other="")), Column("Data", count("data")), AGE)
SERVICE_ACCOUNT = (NAME, AGE)
LEASE = (NAME, Column("Holder", at("spec", "holderIdentity", other="")), AGE)


def _event_last(event: Object) -> Json:
    series = event.get("series") or {}
    return Since(str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
                     or event.get("firstTimestamp") or ""))


def _event_first(event: Object) -> Json:
    return Since(str(event.get("firstTimestamp") or event.get("eventTime") or ""))


def _event_object(event: Object) -> str:
    about = event.get("involvedObject") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _event_source(event: Object) -> str:
    source = event.get("source") or {}
    return ", ".join(_given(source.get("component") or event.get("reportingComponent"),
                            source.get("host") or event.get("reportingInstance")))


def _event_count(event: Object) -> Json:
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)


def _given(*values: Json) -> Iterable[str]:
    return (str(value) for value in values if value)


def _event_message(event: Object) -> str:
    return str(event.get("message") or "").strip()


EVENT = (
    Column("Last Seen", _event_last), Column("Type", at("type", other="")),
    Column("Reason", at("reason", other="")), Column("Object", _event_object),
    Column("Subobject", at("involvedObject", "fieldPath", other=""), priority=1),
    Column("Source", _event_source, priority=1), Column("Message", _event_message),
    Column("First Seen", _event_first, priority=1), Column("Count", _event_count, priority=1),
    Column("Name", name, format="name", priority=1),
)


def _created_at(thing: Object) -> str:
    return str(thing["metadata"].get("creationTimestamp") or UNKNOWN)


# Two columns for kinds that have none of their own: what the real server prints for definitions.
DEFINITION = (NAME, Column("Created At", _created_at, type="date"))
