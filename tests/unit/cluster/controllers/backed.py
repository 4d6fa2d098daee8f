"""Pods and services for the tests of endpoints: as they come from the server, and as the controllers keep them."""

from typing import Any

from trainmaster.api.meta import Object
from trainmaster.cluster.controllers.backing import pod_kept, service_kept
from trainmaster.testing.builders import pod

WEB = {"app": "web"}


def running(
    number: int = 1, *, ready: bool = True, labels: dict[str, str] | None = None, ports: list[Object] | None = None,
    phase: str = "Running", ip: str | None = None, deleted: bool = False, **spec: Any,
) -> Object:
    """A pod with an address, as its kubelet reports it."""
    made = pod(f"p-{number}", uid=f"u-{number}", labels=WEB if labels is None else labels, node="n", **spec)
    made["spec"]["containers"][0]["ports"] = ports or []
    at = f"10.88.{number // 250}.{number % 250 + 1}" if ip is None else ip
    made["status"] = {
        "phase": phase, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        **({"podIP": at, "podIPs": [{"ip": at}]} if at else {}),
    }
    if deleted:
        made["metadata"]["deletionTimestamp"] = "2030-01-01T12:00:00Z"
    return made


def kept(*args: Any, **fields: Any) -> Object:
    return pod_kept(running(*args, **fields))


def service(
    name: str = "web", *, ports: list[Object] | None = None, selector: dict[str, str] | None = None,
    labels: dict[str, str] | None = None, uid: str = "", **spec: Any,
) -> Object:
    about: Object = {"name": name, "namespace": "default", "labels": labels or {}}
    wanted = [{"port": 80, "protocol": "TCP", "targetPort": 8080}] if ports is None else ports
    chosen = WEB if selector is None else selector
    made: Object = {"metadata": about, "spec": {"ports": wanted, "selector": chosen, **spec}}
    if uid:
        about["uid"] = uid
        made["spec"].setdefault("clusterIP", "10.96.0.7")
    return made


def service_here(*args: Any, **fields: Any) -> Object:
    return service_kept(service(*args, uid="svc", **fields))
