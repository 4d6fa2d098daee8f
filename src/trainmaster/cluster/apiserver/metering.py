"""The metrics API: what pods and nodes use, as `kubectl top` and autoscalers ask for it.

In Kubernetes a server of its own collects this and is reached through the API server. Here the nodes are asked at the
moment somebody wants to know; nothing is kept. Where the server has no way to a node, the API is not offered.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

import orjson

from trainmaster.api.meta import Object, Resource
from trainmaster.cluster.apiserver.kind import Kind
from trainmaster.kube.errors import KubeError
from trainmaster.kube.transport import Request, Transport

GROUP = "metrics.k8s.io"
_VERBS = ("get", "list")
NODES = Kind(Resource(GROUP, "v1beta1", "nodes", "NodeMetrics", namespaced=False), verbs=_VERBS, virtual=True)
PODS = Kind(Resource(GROUP, "v1beta1", "pods", "PodMetrics"), verbs=_VERBS, virtual=True)
KINDS = (NODES, PODS)
# Seconds in which a node must have measured.
_PATIENCE = 20.0


async def measured(nodes: Sequence[str], node: Callable[[str], Transport]) -> list[Object]:
    """What each of these nodes says of itself and its pods; one that does not answer says nothing."""
    async def one(name: str) -> Object | None:
        try:
            async with asyncio.timeout(_PATIENCE):
                answer = await node(name).send(Request("GET", "/stats/summary"))
            found: Object = orjson.loads(answer.body) if answer.status == 200 else {}
        except (KubeError, TimeoutError, orjson.JSONDecodeError):
            return None
        return found if (found.get("node") or {}).get("nodeName") == name else None

    answers = await asyncio.gather(*(one(name) for name in nodes))
    return [answer for answer in answers if answer is not None]


def of_nodes(summaries: Sequence[Object], nodes: Mapping[str, Object]) -> list[Object]:
    """NodeMetrics of those that are known."""
    return [
        {**_head(NODES, nodes[summary["node"]["nodeName"]], summary), "usage": _usage(summary["node"])}
        for summary in summaries if summary["node"]["nodeName"] in nodes
    ]


def of_pods(summaries: Sequence[Object], pods: Mapping[str, Object]) -> list[Object]:
    """PodMetrics of those that are known, by their uid."""
    return [
        {**_head(PODS, pods[found["podRef"]["uid"]], summary),
         "containers": [{"name": each["name"], "usage": _usage(each)} for each in found["containers"]]}
        for summary in summaries for found in summary.get("pods") or () if found["podRef"]["uid"] in pods
    ]


def as_list(kind: Kind, items: Sequence[Object]) -> Object:
    return {"kind": kind.list_kind, "apiVersion": kind.resource.api_version, "metadata": {}, "items": list(items)}


def _head(kind: Kind, thing: Object, summary: Object) -> Object:
    meta, when = thing["metadata"], summary["node"]["cpu"]["time"]
    about: Object = {"name": meta["name"], "creationTimestamp": when}
    if kind.resource.namespaced:
        about["namespace"] = meta["namespace"]
    if meta.get("labels"):
        about["labels"] = meta["labels"]
    return {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version, "metadata": about, "timestamp": when,
            "window": summary.get("window") or "1s"}


def _usage(found: Object) -> Object:
    return {"cpu": f"{int(found['cpu']['usageNanoCores'])}n",
            "memory": f"{int(found['memory']['workingSetBytes']) // 1024}Ki"}
