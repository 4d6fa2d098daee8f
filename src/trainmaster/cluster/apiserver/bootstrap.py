"""The roles and bindings that every cluster has from its start, made and kept as Kubernetes does.

They stand in `kubernetes_roles.json`, read from a real server by `tools/kubernetes_roles.py`. At each start what is
missing is made, and what lost rules or subjects gets them back; what somebody added stays, and one that is annotated
`autoupdate: "false"` is left alone.
"""

import asyncio
import uuid
from collections.abc import Mapping
from datetime import datetime
from functools import cache, partial
from pathlib import Path

import orjson

from trainmaster.api.meta import Object, timestamp
from trainmaster.api.roles import gathered
from trainmaster.cluster.apiserver import failures, own_roles, rbac
from trainmaster.cluster.apiserver.catalog import Catalog
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.cluster.apiserver.options import Options
from trainmaster.cluster.apiserver.resources import Resources
from trainmaster.cluster.store import Create, Store

FILE = Path(__file__).with_name("kubernetes_roles.json")
GROUP = "rbac.authorization.k8s.io"
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"


@cache
def _file() -> bytes:
    return FILE.read_bytes()


def shipped() -> dict[str, list[Object]]:
    """The objects by the plural of their kind. Gathered rules are in place, so that nobody has to wait for them."""
    found: dict[str, list[Object]] = orjson.loads(_file())
    for plural, ours in own_roles.roles().items():
        found[plural] += ours
    for _ in range(3):      # `admin` gathers from `edit`, which gathers from `view`; they may stand in any order
        for role in found["clusterroles"]:
            if role.get("aggregationRule"):
                role["rules"] = gathered(role, found["clusterroles"])
    return found


def reconciled(found: Object, wanted: Object) -> Object | None:
    """What is there with what is missing from it, or None if nothing is."""
    if _annotation(found) == "false":
        return None
    meta = {**found["metadata"]}
    for field in ("labels", "annotations"):
        meta[field] = {**(wanted["metadata"].get(field) or {}), **(meta.get(field) or {})}
    made = {**found, "metadata": meta}
    if wanted.get("aggregationRule"):
        made["aggregationRule"] = found.get("aggregationRule") or wanted["aggregationRule"]
    elif wanted.get("rules") != found.get("rules"):
        lacking = rbac.missing(rbac.rules_of(found), rbac.rules_of(wanted))
        made["rules"] = [*(found.get("rules") or ()), *(rule.document() for rule in lacking)]
    subjects = found.get("subjects") or []
    if lost := [each for each in wanted.get("subjects") or () if each not in subjects]:
        made["subjects"] = [*subjects, *lost]
    return None if made == found else made


async def reconcile(store: Store, catalog: Catalog, resources: Resources, now: datetime) -> None:
    """Make what is missing, put right what is not. A first start writes all of it at once: nobody can interfere yet."""
    creations, changes = [], []
    for plural, wanted in shipped().items():
        kind = catalog.find(GROUP, "v1", plural)
        assert kind is not None
        for thing in wanted:
            key = kind.key(thing["metadata"].get("namespace", ""), thing["metadata"]["name"])
            record = store.latest(key)
            if record is None:
                creations.append(Create(key, partial(_encoded, kind, created(thing, now, str(uuid.uuid4())))))
            elif (better := reconciled(orjson.loads(record.value), thing)) is not None:
                changes.append(_replace(resources, kind, better, thing))
    if creations:
        await store.transact(*creations)
    await asyncio.gather(*changes)


def created(thing: Object, now: datetime, uid: str) -> Object:
    """As an ordinary creation would make it (a test compares the two), at a tenth of its cost."""
    meta = thing["metadata"]
    about = {"name": meta["name"], **({"namespace": meta["namespace"]} if "namespace" in meta else {}), "uid": uid,
             "creationTimestamp": timestamp(now), "labels": meta["labels"], "annotations": meta["annotations"]}
    return {**thing, "metadata": about}


def _encoded(kind: Kind, thing: Object, revision: int) -> bytes:
    thing["metadata"]["resourceVersion"] = str(revision)
    return kind.encode(thing)


async def _replace(resources: Resources, kind: Kind, better: Object, wanted: Object) -> object:
    meta = better["metadata"]
    namespace, name = meta.get("namespace", ""), meta["name"]
    if (wanted.get("roleRef") or {}) != (better.get("roleRef") or {}):
        return None      # somebody made another binding of this name: it is theirs
    try:
        return await resources.change(kind, namespace, name, "", lambda _newest: better, Options())
    except failures.Failure as failure:
        if failure.code == 404:
            return None
        raise


def _annotation(thing: Mapping[str, Object]) -> str:
    return str((thing["metadata"].get("annotations") or {}).get(AUTOUPDATE, ""))
