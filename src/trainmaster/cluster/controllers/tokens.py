"""Secrets of type `kubernetes.io/service-account-token`: the old way to get a token of an account that does not end.

Such a secret names its account and is filled with a token, the authority's certificate and the namespace. The token is
an ordinary one, bound to the secret: it ends with the secret or the account. Tokens in a form of their own without an
end, as Kubernetes signs them here, were rejected: a second kind to verify, for nobody who looks inside. A secret whose
account is not there, or is another of the name, is removed, as in Kubernetes.
"""

import asyncio
import base64
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from trainmaster.api.core import SECRETS, SERVICE_ACCOUNTS
from trainmaster.api.meta import Key, Object, being_deleted, key_of, metadata, namespace_of, revision_of, uid_of
from trainmaster.cluster.controllers.graph import Item
from trainmaster.cluster.controllers.inventory import Inventory
from trainmaster.kube.client import Client
from trainmaster.kube.errors import NotFound
from trainmaster.runtime.clock import Clock
from trainmaster.runtime.controller import Controller
from trainmaster.runtime.informer import Informer

TYPE = "kubernetes.io/service-account-token"
NAME, UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
LONGEST = 1 << 32    # seconds: 136 years
OF_ACCOUNT = "account"


async def run(client: Client, clock: Clock, inventory: Inventory, authority: bytes) -> None:
    """Fill them until cancelled."""
    filler = Filler(client, clock, inventory, authority)
    async with asyncio.TaskGroup() as group:
        group.create_task(filler.secrets.run())
        group.create_task(filler.controller.run())


def account_of(secret: Object) -> str:
    return str((metadata(secret).get("annotations") or {}).get(NAME) or "")


def is_of(secret: Object, account: Object) -> bool:
    """Whether this is the account that a secret means, and not the next one of the name."""
    wanted = (metadata(secret).get("annotations") or {}).get(UID)
    return wanted in (None, "", uid_of(account))


def lacking(secret: Object, authority: str) -> bool:
    """Whether something is not in it that should be."""
    data = secret.get("data") or {}
    return (not data.get("token") or data.get("ca.crt") != authority or not data.get("namespace")
            or not (metadata(secret).get("annotations") or {}).get(UID))


class Filler:
    """A key is that of a secret."""

    def __init__(self, client: Client, clock: Clock, inventory: Inventory, authority: bytes) -> None:
        self._client = client
        self._authority = _packed(authority)
        self.secrets = Informer(client, SECRETS, clock=clock, fields=f"type={TYPE}", indexes={OF_ACCOUNT: _accounts})
        self.controller: Controller[Key] = Controller(
            "account-tokens", self.reconcile, clock=clock, workers=2, informers=[self.secrets])
        self.secrets.on_change(lambda before, after: self.controller.queue.add(key_of(after or before or {})))
        inventory.on_change(self._something_changed)

    def _something_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None and item.resource == SERVICE_ACCOUNTS and (before is None or after is None):
            for secret in self.secrets.copy.by(OF_ACCOUNT, str(item.key)):
                self.controller.queue.add(key_of(secret))

    async def reconcile(self, key: Key) -> datetime | None:
        secret = self.secrets.copy.get(key.namespace, key.name)
        if secret is None or being_deleted(secret):
            return None
        with suppress(NotFound):    # it went, and its watch is about to tell
            account = await self._account(key.namespace, secret)
            if account is None:
                await self._client.delete(SECRETS, key.name, key.namespace, uid=uid_of(secret),
                                          revision=revision_of(secret))
            elif lacking(secret, self._authority):
                await self._fill(secret, account)
        return None

    async def _account(self, namespace: str, secret: Object) -> Object | None:
        try:
            account = await self._client.get(SERVICE_ACCOUNTS, account_of(secret), namespace)
        except NotFound:
            return None
        return account if is_of(secret, account) else None

    async def _fill(self, secret: Object, account: Object) -> None:
        about, data = metadata(secret), dict(secret.get("data") or {})
        if not data.get("token"):
            data["token"] = _packed((await self._token(secret, account)).encode())
        data["ca.crt"] = self._authority
        data["namespace"] = data.get("namespace") or _packed(namespace_of(secret).encode())
        annotations = {**(about.get("annotations") or {}), UID: uid_of(account)}
        await self._client.replace(SECRETS, {**secret, "metadata": {**about, "annotations": annotations}, "data": data})

    async def _token(self, secret: Object, account: Object) -> str:
        bound = {"apiVersion": "v1", "kind": "Secret", "name": metadata(secret)["name"], "uid": uid_of(secret)}
        wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                  "spec": {"expirationSeconds": LONGEST, "boundObjectRef": bound}}
        answer = await self._client.create(SERVICE_ACCOUNTS, wanted, namespace=namespace_of(account),
                                           name=metadata(account)["name"], subresource="token")
        return str(answer["status"]["token"])


def _accounts(secret: Object) -> Iterable[str]:
    return [str(Key(namespace_of(secret), account_of(secret)))]


def _packed(content: bytes) -> str:
    return base64.b64encode(content).decode()
