"""What stands in every namespace: the account `default`, and the certificate of the cluster's authority.

Pods run as that account unless they name another, and verify the API server with that certificate; both are waited for
by whoever makes a namespace and uses it at once. Made with the namespace, made again when deleted, put right when
changed, all from what is there and not from what happened.
"""

import asyncio
from datetime import datetime

from trainmaster.api.core import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS
from trainmaster.api.meta import Key, Object, being_deleted, key_of, name_of, uid_of
from trainmaster.cluster.controllers.refusals import namespace_is_ending
from trainmaster.kube.client import Client
from trainmaster.kube.errors import AlreadyExists, Forbidden, Invalid, NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer

ACCOUNT = "default"
CERTIFICATE = "kube-root-ca.crt"
DESCRIPTION = "The certificate authority that the API server of this cluster is verified with."


async def run(client: Client, clock: Clock, authority: bytes) -> None:
    """Keep them there until cancelled. `authority` is a PEM certificate, or several."""
    furnisher = Furnisher(client, clock, authority.decode())
    async with asyncio.TaskGroup() as group:
        for informer in (furnisher.namespaces, furnisher.accounts, furnisher.certificates):
            group.create_task(informer.run())
        group.create_task(furnisher.controller.run())


class Furnisher:
    """A key is a namespace and the name of one of the two."""

    def __init__(self, client: Client, clock: Clock, authority: str) -> None:
        self._client = client
        self._data = {"ca.crt": authority}
        self.namespaces = Informer(client, NAMESPACES, clock=clock)
        self.accounts = Informer(client, SERVICE_ACCOUNTS, clock=clock, fields=f"metadata.name={ACCOUNT}")
        self.certificates = Informer(client, CONFIG_MAPS, clock=clock, fields=f"metadata.name={CERTIFICATE}")
        informers = (self.namespaces, self.accounts, self.certificates)
        self.controller: Controller[Key] = Controller(
            "everywhere", self.reconcile, clock=clock, workers=4, informers=informers
        )
        self.namespaces.on_change(self._namespace_changed)
        for informer in informers[1:]:
            informer.on_change(self._changed)

    def _namespace_changed(self, _before: Object | None, after: Object | None) -> None:
        for name in (ACCOUNT, CERTIFICATE) if after is not None else ():
            self.controller.queue.add(Key(name_of(after or {}), name))

    def _changed(self, before: Object | None, after: Object | None) -> None:
        self.controller.queue.add(key_of(after or before or {}))

    async def reconcile(self, key: Key) -> datetime | None:
        namespace = self.namespaces.copy.get("", key.namespace)
        if namespace is None or being_deleted(namespace):
            return None
        try:
            if key.name == ACCOUNT:
                await self._account(key)
            else:
                await self._certificate(key)
        except AlreadyExists:
            return None    # its watch is about to show it
        except NotFound:
            return None    # the namespace or the object went; its watch is about to tell
        except Forbidden as error:
            if not namespace_is_ending(error):
                raise
        return None

    async def _account(self, key: Key) -> None:
        if self.accounts.copy.get(key.namespace, key.name) is None:
            await self._client.create(SERVICE_ACCOUNTS, _named("ServiceAccount", key))

    async def _certificate(self, key: Key) -> None:
        found = self.certificates.copy.get(key.namespace, key.name)
        if found is None:
            made = _named("ConfigMap", key)
            made["metadata"]["annotations"] = {"kubernetes.io/description": DESCRIPTION}
            await self._client.create(CONFIG_MAPS, {**made, "data": self._data})
        elif (found.get("data"), found.get("binaryData") or {}) != (self._data, {}) and not being_deleted(found):
            right = {field: value for field, value in found.items() if field != "binaryData"}
            try:
                await self._client.replace(CONFIG_MAPS, {**right, "data": self._data})
            except Invalid:
                # Somebody made it immutable with something else in it: the next one is made when it is gone.
                await self._client.delete(CONFIG_MAPS, key.name, key.namespace, uid=uid_of(found))


def _named(kind: str, key: Key) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": key.name, "namespace": key.namespace}}
