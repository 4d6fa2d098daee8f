"""What a cluster would say later about manifests that it takes now.

Definitions of jobs let pod templates pass, so that they fit every Kubernetes: a template that no server takes as a pod
fails the job after it was made. So each is tried as the pod that it becomes, as a dry run. And what a template names,
such as a claim, may not be there: then its pods wait, and nobody knows for what.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainmaster.api.core import CLAIMS, CONFIG_MAPS, PODS, PRIORITY_CLASSES, SECRETS
from trainmaster.api.groups import KUBE_BATCH_QUEUES, T9K_QUEUES, VOLCANO_QUEUES
from trainmaster.api.meta import Object, Resource, name_of, namespace_of
from trainmaster.kube.client import Client
from trainmaster.kube.errors import ApiError, Invalid, NotFound
from trainmaster.sdk.manifests import Manifest

QUEUES = (VOLCANO_QUEUES, KUBE_BATCH_QUEUES, T9K_QUEUES)
# Made by those who schedule, or by the cluster itself.
GIVEN = {"Queue": {"", "default"}, "PriorityClass": {"", "system-cluster-critical", "system-node-critical"}}


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that a manifest names and that is not there."""

    manifest: Manifest
    field: str
    what: str            # PersistentVolumeClaim 'data'
    waits: bool = True   # for it; else the job does without

    def __str__(self) -> str:
        then = "The job waits until there is one" if self.waits else "The job runs as if it had not been asked for"
        return (f"{self.manifest.place(self.field)}: {self.field}: there is no {self.what}. {then}. Create it, or "
                "correct the name.")


def as_pod(template: Object) -> Object:
    """The pod that a template becomes; its name and what the operator writes over are not judged."""
    meta = template.get("metadata")
    kept = {name: value for name, value in meta.items() if name != "name"} if isinstance(meta, dict) else {}
    spec = {**template["spec"], "restartPolicy": "Never"}
    return {**template, "apiVersion": "v1", "kind": "Pod", "metadata": {**kept, "name": "template"}, "spec": spec}


def templates(thing: Object) -> Iterator[tuple[str, Object]]:
    """The pod templates of a job, and the field of each."""
    for name, roles in (thing.get("spec") or {}).items() if isinstance(thing.get("spec"), dict) else ():
        if not name.endswith("ReplicaSpecs") or not isinstance(roles, dict):
            continue
        for role, spec in roles.items():
            template = spec.get("template") if isinstance(spec, dict) else None
            if isinstance(template, dict) and isinstance(template.get("spec"), dict):
                yield f"spec.{name}[{role}].template", template


async def refused_later(client: Client, manifests: Sequence[Manifest], namespace: str) -> list[Manifest]:
    """Those of which a template would be refused as a pod."""
    found = []
    for manifest in manifests:
        where = namespace_of(manifest.thing) or namespace
        for _, template in templates(manifest.thing):
            query = [("dryRun", "All"), ("fieldValidation", "Strict")]
            pod = as_pod(template)
            pod["metadata"]["namespace"] = where
            try:
                await client.request("POST", PODS.path(where), query=query, body=pod)
            except Invalid:
                found.append(manifest)
                break
            except ApiError:
                continue      # no right to make pods, no such namespace, no room in a quota: not about the manifest
    return found


async def missing(client: Client, manifests: Sequence[Manifest], namespace: str) -> list[Missing]:
    """What is named and not there, unless it comes with the manifests."""
    coming = {(str(each.thing.get("kind")), name_of(each.thing)) for each in manifests}
    asked: dict[tuple[str, str, str], bool] = {}
    found = []
    for manifest in manifests:
        where = namespace_of(manifest.thing) or namespace
        for field, kinds, name in _named(manifest.thing):
            kind = kinds[0].kind
            if (kind, name) in coming or name in GIVEN.get(kind, ()):
                continue
            place = (kind, where, name)
            if place not in asked:
                asked[place] = await _is_there(client, kinds, name, where)
            if not asked[place]:
                space = f" in namespace {where}" if kinds[0].namespaced else ""
                found.append(Missing(manifest, field, f"{kind} '{name}'{space}", waits=kinds[0] != PRIORITY_CLASSES))
    return found


def _named(thing: Object) -> Iterator[tuple[str, Sequence[Resource], str]]:
    for path, template in templates(thing):
        for number, volume in enumerate(template["spec"].get("volumes") or ()):
            field = f"{path}.spec.volumes[{number}]"
            for source, key, resource in (("persistentVolumeClaim", "claimName", CLAIMS),
                                          ("configMap", "name", CONFIG_MAPS), ("secret", "secretName", SECRETS)):
                named = volume.get(source) if isinstance(volume, dict) else None
                if isinstance(named, dict) and named.get(key) and not named.get("optional"):
                    yield f"{field}.{source}.{key}", (resource,), str(named[key])
    policy = thing.get("spec", {}).get("runPolicy") if isinstance(thing.get("spec"), dict) else None
    scheduling = policy.get("schedulingPolicy") if isinstance(policy, dict) else None
    if isinstance(scheduling, dict):
        if scheduling.get("queue"):
            yield "spec.runPolicy.schedulingPolicy.queue", QUEUES, str(scheduling["queue"])
        if scheduling.get("priorityClass"):
            yield "spec.runPolicy.schedulingPolicy.priorityClass", (PRIORITY_CLASSES,), str(scheduling["priorityClass"])


async def _is_there(client: Client, kinds: Sequence[Resource], name: str, namespace: str) -> bool:
    """In doubt it is: a cluster without the kind, or one that does not let us look, is not asked twice."""
    known = False
    for resource in kinds:
        where = namespace if resource.namespaced else ""
        try:
            await client.get(resource, name, where)
        except NotFound as problem:
            # A server that has no such kind says so without naming an object.
            known = known or bool((problem.status.get("details") or {}).get("name"))
        except ApiError:
            return True
        else:
            return True
    return not known
