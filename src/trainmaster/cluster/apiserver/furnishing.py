"""What a namespace is born with: the account `default`, in the same transaction.

A pod needs an account, and most are content with this one. Kubernetes makes it a moment later and refuses pods until
then, so that every program that makes a namespace and a pod has to try twice. Here there is no such moment: whoever
sees the namespace sees the account. One that is deleted is made anew by `controllers/everywhere`; meanwhile pods are
refused. Rejected: letting pods without an account run (they had no token, and nothing told why), and waiting for the
account in the middle of a write.
"""

import uuid
from collections.abc import Iterator
from datetime import datetime

from trainmaster.api.core import NAMESPACES, SERVICE_ACCOUNTS
from trainmaster.api.meta import Object, timestamp
from trainmaster.cluster.apiserver.account_admission import DEFAULT
from trainmaster.cluster.apiserver.catalog import Catalog
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.store import Create, Store


def steps(kind: Kind, thing: Object, store: Store, catalog: Catalog, now: datetime) -> Iterator[Create]:
    """What is stored together with a new object."""
    if kind.resource != NAMESPACES:
        return
    accounts = catalog.find(SERVICE_ACCOUNTS.group, SERVICE_ACCOUNTS.version, SERVICE_ACCOUNTS.plural)
    assert accounts is not None
    key = accounts.key(thing["metadata"]["name"], DEFAULT)
    if store.latest(key) is not None:
        return
    account = {"metadata": {"name": DEFAULT, "namespace": thing["metadata"]["name"], "uid": str(uuid.uuid4()),
                            "creationTimestamp": timestamp(now)}}

    def encode(revision: int) -> bytes:
        account["metadata"]["resourceVersion"] = str(revision)
        return accounts.encode(account)

    yield Create(key, encode)
