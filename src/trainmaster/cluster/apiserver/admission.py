"""What stands between a valid object and the store: the rules that need to know other objects.

A namespace must be there and alive, a service gets an address, a definition its names. Each rule has a counterpart for
the way back (a write that failed, an object that is gone), so that nothing stays taken.
"""

from datetime import datetime
from functools import lru_cache

import orjson

from trainmaster.api.claims import claims_of
from trainmaster.api.core import DEFINITIONS, NAMESPACES, PERSISTENT_VOLUMES, PODS, SERVICES
from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import (
    account_admission,
    causes,
    chosen,
    definitions,
    failures,
    limits,
    pods,
    quotas,
    runtime_admission,
    services,
    storage,
)
from trainmaster.cluster.apiserver.catalog import Catalog
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.kinds import PERMANENT
from trainmaster.cluster.store import Store

CLAIMS = "/core/persistentvolumeclaims/"
_ACCOUNTS = "/core/serviceaccounts/"
_STORAGE_CLASSES = "/storage.k8s.io/storageclasses/"
_RUNTIMES = "/node.k8s.io/runtimeclasses/"
_PRIORITIES = "/scheduling.k8s.io/priorityclasses/"
MOST_READ = 512
LONGEST_AMOUNTS = 2048                   # bytes of what containers ask for, that are remembered with what came of it


class Admission:
    """Knows the store and the catalog; changes objects that are about to be written, or refuses them."""

    def __init__(self, store: Store, catalog: Catalog,
                 choose: account_admission.Suffix = chosen.suffix) -> None:
        """`choose` makes up the end of a name, by chance."""
        self._store = store
        self._choose = choose
        self._catalog = catalog
        self._addresses = services.Addresses()
        self._ports = services.NodePorts()

    def start(self) -> None:
        """Take in what earlier runs left in the store."""
        for record in self._store.scan("/apiextensions.k8s.io/customresourcedefinitions/"):
            self._catalog.install(orjson.loads(record.value))
        stored = [orjson.loads(record.value) for record in self._store.scan("/core/services/")]
        self._addresses = services.Addresses(map(_address, stored))
        self._ports = services.NodePorts(port for service in stored for port in services.node_ports(service))

    async def housed(self, kind: Kind, thing: Object) -> None:
        """Raises Failure 403 or 404 when the namespace of a new object is not there, or is ending.

        A refusal is told when the state it speaks of is durable; nothing is awaited otherwise. A namespace that is
        still on its way will do: what is written after it is durable only if it is.
        """
        while kind.resource.namespaced and (refusal := self._homeless(kind, thing)) is not None:
            if await self._store.durable(f"/core/namespaces/{thing['metadata']['namespace']}"):
                raise refusal

    async def placed(self, kind: Kind, thing: Object) -> None:
        """Whether there can be a new object at all. Asked again after whatever took its time. Raises Failure."""
        await self.housed(kind, thing)
        self._check_definition(kind)

    def _check_definition(self, kind: Kind) -> None:
        if not kind.custom:
            return
        definition = self._catalog.definition_of(kind)
        if definition is None:
            raise failures.unknown_resource()
        if definition["metadata"].get("deletionTimestamp"):
            raise failures.Failure(405, "MethodNotAllowed",
                                   "create not allowed while custom resource definition is terminating")

    def completing(self, kind: Kind, thing: Object) -> None:
        """Fill in what other objects say about a new one; doing it twice changes nothing. Raises Failure 403."""
        if kind.resource == PODS:
            self._set_priority(thing)
            self._give_account(thing)
            pods.tolerate(thing["spec"])
            self._limit(kind, thing)
            self._fit_runtime(thing)
        elif kind.prefix == CLAIMS:
            self._give_class(thing)
            self._limit(kind, thing)

    def creating(self, kind: Kind, thing: Object, now: datetime) -> None:
        """Raises Failure 403, 404 or 422."""
        self._check_definition(kind)
        self.completing(kind, thing)
        if kind.resource == SERVICES:
            self._give_address(kind, thing)
            self._give_ports(kind, thing, {})
        elif kind.resource == DEFINITIONS:
            thing["status"] = definitions.accepted(thing, self._catalog.definitions(), now)

    def replacing(self, kind: Kind, thing: Object) -> None:
        """Fill in again what a new state of a whole object may have left out, before it is compared with the old."""
        if kind.resource == PODS and thing.get("spec"):
            pods.tolerate(thing["spec"])

    def changing(self, kind: Kind, old: Object, thing: Object, now: datetime) -> None:
        if kind.resource == DEFINITIONS and "deletionTimestamp" not in thing["metadata"]:
            thing["status"] = definitions.accepted(thing, self._catalog.definitions(), now)
        if kind.resource == SERVICES:
            if not _address(old):
                self._give_address(kind, thing)
            self._give_ports(kind, thing, old)
        if kind.resource == PERSISTENT_VOLUMES:
            storage.stamp(thing, old, now)
        if kind.resource == PODS and thing["spec"] is not old["spec"] and limits.amounts(thing) != limits.amounts(old):
            self._stay_within(kind, thing)
        if kind.prefix == CLAIMS and storage.grows(thing, old):
            self._expand(kind, thing)
        if kind.resource == PODS and thing["spec"].get("ephemeralContainers") != old["spec"].get("ephemeralContainers"):
            account_admission.check(thing, self._account_of(thing))

    def changed(self, kind: Kind, old: Object, thing: Object) -> None:
        """A change is stored; called with the two swapped, it takes back one that is not."""
        if kind.resource == SERVICES:
            self._ports.release(services.node_ports(old) - services.node_ports(thing))
            if _address(old) != _address(thing):
                self._addresses.release(_address(old))

    def deleting(self, kind: Kind, name: str) -> None:
        if kind.resource == NAMESPACES and name in PERMANENT:
            raise failures.forbidden(kind.resource, name, "this namespace may not be deleted")

    def ending(self, kind: Kind, thing: Object) -> Object:
        """The object that a deletion starts from: a claim that nobody uses needs no protection."""
        if kind.prefix == CLAIMS and not self._in_use(thing["metadata"]["namespace"], thing["metadata"]["name"]):
            return storage.unprotected(thing)
        return thing

    def freed(self, kind: Kind, thing: Object) -> list[str]:
        """The claims that wait for their deletion and were held by this object alone, which is gone."""
        if kind.resource != PODS:
            return []
        namespace, found = thing["metadata"]["namespace"], []
        for name in claims_of(thing):
            record = self._store.latest(f"{CLAIMS}{namespace}/{name}")
            if record is not None and b'"deletionTimestamp"' in record.value and not self._in_use(namespace, name):
                found.append(name)
        return found

    def _in_use(self, namespace: str, claim: str) -> bool:
        quoted = orjson.dumps(claim)
        stored = (record.value for record in self._store.scan(f"/core/pods/{namespace}/"))
        return any(storage.uses(orjson.loads(value), claim) for value in stored
                   if quoted in value or b'"ephemeral"' in value)

    def failed(self, kind: Kind, thing: Object) -> None:
        """A creation that was admitted did not happen."""
        self.removed(kind, thing)

    def removed(self, kind: Kind, thing: Object) -> None:
        if kind.resource == SERVICES:
            self._addresses.release(_address(thing))
            self._ports.release(services.node_ports(thing))

    def _homeless(self, kind: Kind, thing: Object) -> failures.Failure | None:
        name = thing["metadata"]["namespace"]
        record = self._store.latest(f"/core/namespaces/{name}")
        if record is None:
            return failures.not_found(NAMESPACES, name)
        # Parsing every namespace on every creation would cost more than the creation: look only when it may be ending.
        if b'"deletionTimestamp"' in record.value and orjson.loads(record.value)["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {name} because it is being terminated"
            cause = Cause("metadata.namespace", "NamespaceTerminating", f"namespace {name} is being terminated")
            return failures.forbidden(kind.resource, thing["metadata"].get("name", ""), why, [cause])
        return None

    def _give_address(self, kind: Kind, service: Object) -> None:
        spec = service["spec"]
        wanted = str(spec.get("clusterIP") or "")
        if spec["type"] == "ExternalName" or wanted == services.HEADLESS:
            return
        try:
            spec["clusterIP"] = self._addresses.reserve(wanted)
        except ValueError as error:
            fault = causes.invalid("spec.clusterIPs", [wanted], str(error))
            raise failures.invalid(kind.resource, service["metadata"]["name"], [fault]) from error
        spec["clusterIPs"] = [spec["clusterIP"]]

    def _give_ports(self, kind: Kind, service: Object, old: Object) -> None:
        """Node ports for those that want one. A failure gives back everything that this write took."""
        spec = service["spec"]
        had, took = services.node_ports(old), set[int]()
        wants, shared = services.wants_node_ports(spec), services.shared_node_ports(spec)
        for index, port in enumerate(spec.get("ports") or ()):
            if not port.get("nodePort") and wants and (found := shared.get(port.get("port") or 0)):
                port["nodePort"] = found
            wanted = int(port.get("nodePort") or 0)
            if wanted in had or wanted in took or (not wanted and not wants):
                continue      # two protocols may share a number
            try:
                port["nodePort"] = self._ports.take(wanted)
            except ValueError as error:
                self._give_back(service, old, took)
                fault = causes.invalid(f"spec.ports[{index}].nodePort", wanted, str(error))
                raise failures.invalid(kind.resource, service["metadata"]["name"], [fault]) from error
            took.add(port["nodePort"])
            shared.setdefault(port.get("port") or 0, port["nodePort"])
        wanted = int(spec.get("healthCheckNodePort") or 0)
        if services.needs_health_check(spec) and (not wanted or wanted not in had):
            try:
                spec["healthCheckNodePort"] = self._ports.take(wanted)
            except ValueError as error:
                self._give_back(service, old, took)
                what = f"requested HealthCheck NodePort {wanted}" if wanted else "a HealthCheck NodePort 0"
                raise failures.internal(f"failed to allocate {what}: {error}") from error

    def _give_back(self, service: Object, old: Object, ports: set[int]) -> None:
        self._ports.release(ports)
        if _address(service) != _address(old):
            self._addresses.release(_address(service))

    def _limit(self, kind: Kind, thing: Object) -> None:
        """Apply the LimitRanges of the namespace."""
        records = self._store.scan(f"/core/limitranges/{thing['metadata']['namespace']}/")
        if not records:
            return
        texts = tuple(record.value for record in records)
        if kind.resource == PODS and len(amounts := limits.amounts(thing)) <= LONGEST_AMOUNTS and _fit(texts, amounts):
            return
        ranges = [_read(text) for text in texts]
        if limits.fill(thing, ranges):
            thing["status"] = {**(thing.get("status") or {}), "qosClass": pods.qos(thing["spec"])}
        self._stay_within(kind, thing)

    def _stay_within(self, kind: Kind, thing: Object) -> None:
        records = self._store.scan(f"/core/limitranges/{thing['metadata']['namespace']}/")
        if said := limits.broken(thing, [_read(record.value) for record in records]):
            told = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
            raise failures.forbidden(kind.resource, thing["metadata"].get("name", ""), told)

    def _give_account(self, pod: Object) -> None:
        account_admission.admit(pod, self._account_of(pod), self._choose)

    def _account_of(self, pod: Object) -> Object | None:
        record = self._store.latest(f"{_ACCOUNTS}{pod['metadata']['namespace']}/{account_admission.name_of(pod)}")
        return None if record is None else _read(record.value)

    def _give_class(self, claim: Object) -> None:
        """A claim that names no class gets the default one, if there is one."""
        marked = (orjson.loads(record.value) for record in self._store.scan(_STORAGE_CLASSES))
        if found := storage.class_for(claim, marked):
            claim["spec"]["storageClassName"] = found

    def _set_priority(self, pod: Object) -> None:
        """A pod's priority is that of its class; without one, that of the class for all, or zero."""
        spec, name = pod["spec"], pod["metadata"].get("name", "")
        wanted = spec.get("priorityClassName") or ""
        found = self._priority_class(wanted)
        if found is None and wanted:
            raise failures.forbidden(PODS, name, f"no PriorityClass with name {wanted} was found")
        value = int((found or {}).get("value") or 0)
        if spec.get("priority") not in {0, None, value}:
            raise failures.forbidden(PODS, name, (
                f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority "
                f"admission controller computed {value} from the given PriorityClass name"))
        spec["priority"] = value
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
            spec["preemptionPolicy"] = found.get("preemptionPolicy", "PreemptLowerPriority")

    def _expand(self, kind: Kind, claim: Object) -> None:
        record = self._store.latest(f"{_STORAGE_CLASSES}{claim['spec'].get('storageClassName') or ''}")
        if record is None or not _read(record.value).get("allowVolumeExpansion"):
            raise failures.forbidden(kind.resource, claim["metadata"]["name"], (
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
                "support resize"))

    def _fit_runtime(self, pod: Object) -> None:
        wanted = pod["spec"].get("runtimeClassName")
        if wanted or pod["spec"].get("overhead") is not None:
            record = self._store.latest(f"{_RUNTIMES}{wanted}") if wanted else None
            runtime_admission.complete(pod, None if record is None else _read(record.value))

    def _priority_class(self, name: str) -> Object | None:
        if name in quotas.SYSTEM_PRIORITIES:
            return {"metadata": {"name": name}, "value": quotas.SYSTEM_PRIORITIES[name]}
        if name:
            record = self._store.latest(f"{_PRIORITIES}{name}")
            return None if record is None else _read(record.value)
        for record in self._store.scan(_PRIORITIES):
            if b'"globalDefault":true' in record.value:
                return _read(record.value)
        return None


@lru_cache(MOST_READ)
def _read(value: bytes) -> Object:
    """An object that many others are measured by and nobody changes: parsed once for each time it was written."""
    found: Object = orjson.loads(value)
    return found


@lru_cache(MOST_READ)
def _fit(ranges: tuple[bytes, ...], amounts: bytes) -> bool:
    """Whether LimitRanges leave a pod as it is: those of a namespace seldom change, and its pods ask for the same."""
    return limits.fit(orjson.loads(amounts), [_read(text) for text in ranges])


def _address(service: Object) -> str:
    return str((service.get("spec") or {}).get("clusterIP") or "")
