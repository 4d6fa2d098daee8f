"""Objects and revisions, durable: what etcd is to Kubernetes, for one machine.

Everything current lives in memory as bytes and is read from there; one SQLite file is the durable copy. The event loop
decides on the newest state including writes that are still on their way to the disk; one thread commits them in
batches; a revision becomes visible, and its writer is answered, only after its commit. The store knows keys, bytes and
revisions, nothing of kinds or JSON. Only the API server may touch it. docs/design/store.md has the reasons.
"""

from trainmaster.cluster.store.history import Window
from trainmaster.cluster.store.records import (
    Ahead,
    Change,
    Closed,
    Compacted,
    Create,
    Damaged,
    Delete,
    Lagged,
    Locked,
    Newer,
    Record,
    Refused,
    Stale,
    Step,
    Unusable,
    Update,
)
from trainmaster.cluster.store.store import Store
from trainmaster.cluster.store.subscriptions import Batch, Subscription

__all__ = [
    "Ahead",
    "Batch",
    "Change",
    "Closed",
    "Compacted",
    "Create",
    "Damaged",
    "Delete",
    "Lagged",
    "Locked",
    "Newer",
    "Record",
    "Refused",
    "Stale",
    "Step",
    "Store",
    "Subscription",
    "Unusable",
    "Update",
    "Window",
]
