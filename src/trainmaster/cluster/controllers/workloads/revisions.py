"""The ReplicaSets of a Deployment as its revisions: which is the new one, and what annotations say of each. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from trainmaster.api.meta import Json, Object, labels_of, metadata, name_of
from trainmaster.cluster.controllers.workloads.hashing import short_hash
from trainmaster.cluster.controllers.workloads.pods import created, reference

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
# Annotations of a Deployment that say nothing about its template.
_NOT_COPIED = frozenset({
    "kubectl.kubernetes.io/last-applied-configuration", REVISION, HISTORY, DESIRED, MOST,
    "deprecated.deployment.rollback.to",
})
_LONGEST_HISTORY = 2000


def annotations_of(thing: Object) -> dict[str, str]:
    return metadata(thing).get("annotations") or {}


def newest(deployment: Object, sets: Iterable[Object]) -> Object | None:
    """The set that has the deployment's template; if there are several, the oldest of them."""
    template = _unhashed(deployment["spec"]["template"])
    same = [one for one in sets if _unhashed(one["spec"]["template"]) == template]
    return min(same, key=lambda one: (created(one), name_of(one)), default=None)


def revision(thing: Object) -> int:
    return _number(annotations_of(thing).get(REVISION))


def next_revision(old: Iterable[Object]) -> int:
    return max((revision(one) for one in old), default=0) + 1


def desired(one: Object) -> int | None:
    """How many replicas the deployment had when this set was last sized."""
    text = annotations_of(one).get(DESIRED)
    return _number(text) if text is not None else None


def most(one: Object) -> int:
    return _number(annotations_of(one).get(MOST))


def described(one: Object, deployment: Object, number: int, *, copies: bool) -> dict[str, str]:
    """The annotations of the new set. An older revision that becomes the newest again remembers what it was."""
    found = dict(annotations_of(one))
    if copies:
        found |= {key: value for key, value in annotations_of(deployment).items() if key not in _NOT_COPIED}
    was = found.get(REVISION)
    if was is None:
        found[REVISION] = str(number)
    elif _number(was) < number:
        found[REVISION] = str(number)
        past = [each for each in (found.get(HISTORY) or "").split(",") if each]
        while past and len(",".join([*past, was])) > _LONGEST_HISTORY:
            past.pop(0)
        found[HISTORY] = ",".join([*past, was])
    return found


def sized(annotations: Mapping[str, str], replicas: int, surge: int) -> dict[str, str]:
    return {**annotations, DESIRED: str(replicas), MOST: str(replicas + surge)}


def made(deployment: Object, old: Sequence[Object]) -> Object:
    """A new set without replicas. Its name follows from the template."""
    spec = deployment["spec"]
    hash_ = short_hash(spec["template"], (deployment.get("status") or {}).get("collisionCount"))
    template = spec["template"]
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH: hash_}
    selector = spec.get("selector") or {}
    about = metadata(deployment)
    one: Object = {
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": f"{about['name']}-{hash_}", "namespace": about.get("namespace", ""), "labels": labels,
                     "ownerReferences": [reference(deployment)]},
        "spec": {
            "replicas": 0,
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH: hash_}},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }
    if spec.get("minReadySeconds"):
        one["spec"]["minReadySeconds"] = spec["minReadySeconds"]
    one["metadata"]["annotations"] = described(one, deployment, next_revision(old), copies=True)
    return one


def same_template(deployment: Object, one: Object) -> bool:
    return _unhashed(deployment["spec"]["template"]) == _unhashed(one["spec"]["template"])


def _unhashed(template: Object) -> Object:
    about: Json = template.get("metadata") or {}
    labels = {key: value for key, value in labels_of(template).items() if key != HASH}
    return {**template, "metadata": {**about, "labels": labels}}


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() else 0
