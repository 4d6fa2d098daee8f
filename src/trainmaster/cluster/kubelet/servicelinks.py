"""The variables by which containers learn of services: those of the API server always, of their namespace if they want.

The names are Docker's of 2014, and client libraries read the first two of them to find the API server. Pure.
"""

import re
from collections.abc import Iterable

from trainmaster.api.meta import Object, name_of, namespace_of

API = ("default", "kubernetes")


def service_links(pod: Object, services: Iterable[Object], api: tuple[str, int] | None = None) -> dict[str, str]:
    """For the containers of a pod. `api` is where a pod without the cluster's network reaches the API server."""
    found: dict[str, str] = {}
    wanted = pod["spec"].get("enableServiceLinks") is not False
    reached = [one for one in services if _is_reached(one.get("spec") or {})]
    for service in sorted(reached, key=lambda one: ((namespace_of(one), name_of(one)) != API, name_of(one))):
        key, spec = (namespace_of(service), name_of(service)), service["spec"]
        if key == API and api is not None:
            ports = [{**spec["ports"][0], "port": api[1]}]
            found = _variables(key[1], api[0], ports)
        elif key == API or (wanted and key[0] == namespace_of(pod)):
            # A service named kubernetes in the pod's own namespace does not stand in the way to the API server.
            found = {**_variables(key[1], str(spec["clusterIP"]), spec["ports"]), **found}
    return found


def _is_reached(spec: Object) -> bool:
    """Whether it has an address of its own: every replica of a job has a service that has none."""
    return bool(spec.get("clusterIP") and spec["clusterIP"] != "None" and spec.get("ports"))


def _variables(name: str, address: str, ports: list[Object]) -> dict[str, str]:
    prefix = re.sub(r"[^A-Z0-9]", "_", name.upper())
    first = ports[0]
    found = {f"{prefix}_SERVICE_HOST": address, f"{prefix}_SERVICE_PORT": str(first["port"])}
    for port in ports:
        if port.get("name"):
            found[f"{prefix}_SERVICE_PORT_{re.sub(r'[^A-Z0-9]', '_', str(port['name']).upper())}"] = str(port["port"])
    found[f"{prefix}_PORT"] = f"{_protocol(first)}://{address}:{first['port']}"
    for port in ports:
        base = f"{prefix}_PORT_{port['port']}_{_protocol(port).upper()}"
        found |= {
            base: f"{_protocol(port)}://{address}:{port['port']}", f"{base}_PROTO": _protocol(port),
            f"{base}_PORT": str(port["port"]), f"{base}_ADDR": address,
        }
    return found


def _protocol(port: Object) -> str:
    return str(port.get("protocol") or "TCP").lower()
