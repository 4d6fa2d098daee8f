"""What is wrong with pods that have not ended: a container that died or cannot start, a pod that nobody schedules.

Told as warnings on the job, because that is where people look first. They describe a state, so each is told once per
pod and sentence however often the job is looked at.
"""

from collections.abc import Mapping

from trainmaster.api.meta import Json
from trainmaster.engine.actions import Event, warning
from trainmaster.engine.observed import Observed, Pod


def of(seen: Observed) -> list[Event]:
    return [event for pod in seen.pods.values() if not pod.ended and not pod.deleting for event in _of_pod(pod)]


def _of_pod(pod: Pod) -> list[Event]:
    """Containers if there are any to look at, else init containers, else the newest condition."""
    status = (pod.raw or {}).get("status") or {}
    containers = status.get("containerStatuses") or status.get("initContainerStatuses")
    if containers:
        return [event for found in containers for event in _of_container(pod, found)]
    newest = max(status.get("conditions") or (), key=lambda found: found.get("lastTransitionTime") or "", default=None)
    if newest is None or newest.get("status") == "True" or not newest.get("reason"):
        return []
    return [warning(newest["reason"], f"Error pod {pod.name} condition message: {newest.get('message', '')}", pod.uid)]


def _of_container(pod: Pod, found: Mapping[str, Json]) -> list[Event]:
    state = found.get("state") or {}
    where = f"Error pod {pod.name} container {found.get('name')}"
    over, waiting = state.get("terminated") or {}, state.get("waiting") or {}
    if over.get("exitCode"):
        message = f"{where} exitCode: {over['exitCode']} terminated message: {over.get('message', '')}"
        return [warning(over.get("reason") or "Error", message, pod.uid)]
    if waiting.get("message"):
        message = f"{where} waiting message: {waiting['message']}"
        return [warning(waiting.get("reason") or "Waiting", message, pod.uid)]
    return []
