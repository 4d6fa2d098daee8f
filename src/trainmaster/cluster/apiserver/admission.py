"""What stands between a valid object and the store: the rules that need to know other objects.

A namespace must be there and alive, a service gets an address, a definition its names. Each rule has a counterpart for
the way back (a write that failed, an object that is gone), so that nothing stays taken.
"""

from datetime import datetime

import orjson

from trainmaster.api.core import DEFINITIONS, NAMESPACES, SERVICES
from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, definitions, failures, services
from trainmaster.cluster.apiserver.catalog import Catalog
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.kinds import PERMANENT
from trainmaster.cluster.store import Store


class Admission:
    """Knows the store and the catalog; changes objects that are about to be written, or refuses them."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._addresses = services.Addresses()

    def start(self) -> None:
        """Take in what earlier runs left in the store."""
        for record in self._store.scan("/apiextensions.k8s.io/customresourcedefinitions/"):
            self._catalog.install(orjson.loads(record.value))
        stored = [orjson.loads(record.value) for record in self._store.scan("/core/services/")]
        self._addresses = services.Addresses(map(_address, stored))

    def creating(self, kind: Kind, thing: Object, now: datetime) -> None:
        """Raises Failure 403, 404 or 422."""
        if kind.resource.namespaced:
            self._check_namespace(kind, thing)
        definition = self._catalog.definition_of(kind)
        if definition is not None and definition["metadata"].get("deletionTimestamp"):
            raise failures.Failure(405, "MethodNotAllowed",
                                   "create not allowed while custom resource definition is terminating")
        if kind.resource == SERVICES:
            self._give_address(kind, thing)
        elif kind.resource == DEFINITIONS:
            thing["status"] = definitions.accepted(thing, self._catalog.definitions(), now)

    def changing(self, kind: Kind, old: Object, thing: Object, now: datetime) -> None:
        if kind.resource == DEFINITIONS and "deletionTimestamp" not in thing["metadata"]:
            thing["status"] = definitions.accepted(thing, self._catalog.definitions(), now)
        if kind.resource == SERVICES and not _address(old):
            self._give_address(kind, thing)

    def changed(self, kind: Kind, old: Object, thing: Object) -> None:
        """A change is stored; called with the two swapped, it takes back one that is not."""
        if kind.resource == SERVICES and _address(old) != _address(thing):
            self._addresses.release(_address(old))

    def deleting(self, kind: Kind, name: str) -> None:
        if kind.resource == NAMESPACES and name in PERMANENT:
            raise failures.forbidden(kind.resource, name, "this namespace may not be deleted")

    def failed(self, kind: Kind, thing: Object) -> None:
        """A creation that was admitted did not happen."""
        self.removed(kind, thing)

    def removed(self, kind: Kind, thing: Object) -> None:
        if kind.resource == SERVICES:
            self._addresses.release(_address(thing))

    def _check_namespace(self, kind: Kind, thing: Object) -> None:
        name = thing["metadata"]["namespace"]
        record = self._store.latest(f"/core/namespaces/{name}")
        if record is None:
            raise failures.not_found(NAMESPACES, name)
        # Parsing every namespace on every creation would cost more than the creation: look only when it may be ending.
        if b'"deletionTimestamp"' in record.value and orjson.loads(record.value)["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {name} because it is being terminated"
            cause = Cause("metadata.namespace", "NamespaceTerminating", f"namespace {name} is being terminated")
            raise failures.forbidden(kind.resource, thing["metadata"]["name"], why, [cause])

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


def _address(service: Object) -> str:
    return str((service.get("spec") or {}).get("clusterIP") or "")
