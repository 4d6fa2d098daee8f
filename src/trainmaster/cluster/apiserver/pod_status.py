"""What the status of a pod may say, and which way its containers may go. Pure.

Nodes write it, and nothing is written more often: each rule first asks whether there is anything to look at. What is
as it was in the status before is not looked at again.
"""

import re
from collections.abc import Iterator

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import causes, checks, names
from trainmaster.cluster.apiserver.causes import Cause

_KNOWN = frozenset({"PodScheduled", "Ready", "Initialized", "ContainersReady", "PodReadyToStartContainers",
                    "DisruptionTarget"})
_CONTAINERS = (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers"),
               ("ephemeralContainerStatuses", ""))
# Nearly all addresses, without the time that it takes to read one.
_IPV4 = re.compile(r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(?:\.(?!$)|$)){4}")
_NO_COUNT = "must be a non-negative integer"


def carry(pod: Object, old: Object) -> None:
    """A node may leave out the class of service, which is the server's, and one of the two places of an address.

    Who owns the pod is not its business: old nodes are known to have written that wrong.
    """
    meta, owners = pod["metadata"], old["metadata"].get("ownerReferences")
    if meta.get("ownerReferences") != owners:
        pod["metadata"] = {**meta, "ownerReferences": owners or []}
    status, was = pod.get("status") or {}, old.get("status") or {}
    given: Object = {}
    if not status.get("qosClass") and was.get("qosClass"):
        given["qosClass"] = was["qosClass"]
    one, many = status.get("podIP"), status.get("podIPs")
    if one and (not many or many[0].get("ip") != one):
        given["podIPs"] = [{"ip": one}]
    elif many and not one:
        given["podIP"] = many[0].get("ip")
    if given:
        pod["status"] = {**status, **given}


def rules(pod: Object, old: Object) -> Iterator[Cause]:
    status, was = pod.get("status") or {}, old.get("status") or {}
    for index, condition in enumerate(status.get("conditions") or ()):
        if condition.get("observedGeneration", 0) < 0 or condition.get("type") not in _KNOWN:
            yield from _condition_rules(condition, f"status.conditions[{index}]")
    node, before = status.get("nominatedNodeName"), was.get("nominatedNodeName")
    if node and node != before:
        yield from names.refused("status.nominatedNodeName", node, names.subdomain(node))
        if (old.get("spec") or {}).get("nodeName"):
            yield causes.forbidden("status.nominatedNodeName",
                                   "may not be set on pods that are already bound to a node")
    if status.get("observedGeneration", 0) < 0:
        yield causes.invalid("status.observedGeneration", status["observedGeneration"], _NO_COUNT)
    if status.get("qosClass") != was.get("qosClass"):
        yield from checks.unchanged(status.get("qosClass"), was.get("qosClass"), "status.qosClass")
    for field, described in _CONTAINERS:
        if (found := was.get(field)) and found != status.get(field):
            yield from _ended_rules(status.get(field) or [], found, old, field, described)
    for one, many in (("podIP", "podIPs"), ("hostIP", "hostIPs")):
        if (found := status.get(many)) and found != was.get(many):
            yield from _address_rules(found, was.get(many) or [], one, many, status)


def _condition_rules(condition: Object, path: str) -> Iterator[Cause]:
    if condition.get("observedGeneration", 0) < 0:
        yield causes.invalid(f"{path}.observedGeneration", condition["observedGeneration"], _NO_COUNT)
    if condition.get("type") not in _KNOWN:
        name = condition.get("type") or ""
        yield from names.refused(f"{path}.Type", name, names.qualified(name))


def _ended_rules(now: list[Object], before: list[Object], pod: Object, field: str, described: str) -> Iterator[Cause]:
    """A container that has ended runs again only where the pod wants that."""
    running = {each.get("name") for each in now if not (each.get("state") or {}).get("terminated")}
    spec = pod.get("spec") or {}
    for index, each in enumerate(before):
        end = (each.get("state") or {}).get("terminated")
        if end and each.get("name") in running and not _restarts(spec, described, each.get("name"), end):
            yield causes.forbidden(f"status.{field}[{index}].state", "may not be transitioned to non-terminated state")


def _restarts(spec: Object, described: str, name: Json, end: Object) -> bool:
    everybody = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    if described and any(rule.get("action") == "RestartAllContainers"
                         for each in everybody for rule in each.get("restartPolicyRules") or ()):
        return True
    container = next((each for each in spec.get(described) or () if each.get("name") == name), None)
    if container is None:
        return False
    code = int(end.get("exitCode") or 0)
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        if rule.get("action") == "Restart" and (code in (codes.get("values") or ())) == (codes.get("operator") == "In"):
            return True
    policy = container.get("restartPolicy") or spec.get("restartPolicy") or "Always"
    return bool(policy == "Always" or (policy == "OnFailure" and code))


def _address_rules(found: list[Object], before: list[Object], one: str, many: str, status: Object) -> Iterator[Cause]:
    """Addresses of a pod and of its host: at most one of each family."""
    if one == "hostIP" and status.get(one) != found[0].get("ip"):
        yield causes.invalid(f"status.{many}[0].ip", found[0].get("ip") or "", f"must be equal to `{one}`")
    known = {each.get("ip") for each in before}
    for index, each in enumerate(found):
        if each.get("ip") not in known and not _family(each):
            yield causes.invalid(f"status.{many}[{index}]", each.get("ip") or "", checks.NOT_AN_ADDRESS)
    if len(found) > 1 and sorted(map(_family, found)) != [4, 6]:
        yield causes.invalid(f"status.{many}", [{"IP": each.get("ip") or ""} for each in found],
                             "may specify no more than one IP for each IP family")


def _family(each: Object) -> int:
    """4 or 6, or 0 for what is no address."""
    text = each.get("ip") or ""
    return 4 if _IPV4.fullmatch(text) else getattr(checks.address(text), "version", 0)
