"""Pods: what is filled in when one is created, and who checks it.

What a spec may say at all is in `pod_rules`: templates of other kinds follow the same rules.
"""

from collections.abc import Iterable, Iterator

from trainmaster.api import quantity
from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, pod_resources, pod_rules, pod_updates, volume_sources
from trainmaster.cluster.apiserver.causes import Cause

QOS_RESOURCES = ("cpu", "memory")
GRACE = 30

_CONTAINER_DEFAULTS: Object = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_PROBE_DEFAULTS: Object = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_PORT_DEFAULTS: Object = {"protocol": "TCP"}
_HTTP_DEFAULTS: Object = {"path": "/", "scheme": "HTTP"}
_REFERENCE_DEFAULTS: Object = {"apiVersion": "v1"}
_NOTHING = (None, "")
# What every pod spec gets, also that of a template; and what only a pod gets.
_SPEC_DEFAULTS: Object = {
    "restartPolicy": "Always", "terminationGracePeriodSeconds": GRACE, "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
_POD_DEFAULTS: Object = {
    "serviceAccountName": "default", "priority": 0, "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
}
# Kinds of volume source that carry file modes: rw-r--r--.
_WITH_MODES = ("configMap", "secret", "projected", "downwardAPI")
_MODE = 0o644
_TOKEN_SECONDS = 3600

_TROUBLES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_STAYS = 300      # seconds


def begin(pod: Object) -> None:
    """A new pod is Pending, whatever status it was sent with.

    No tolerations of nodes that are lost for a while are added: here nobody evicts pods from such a node.
    """
    pod["status"] = {"phase": "Pending"}


def defaults(pod: Object) -> None:
    spec = pod.setdefault("spec", {})
    _account_defaults(spec)
    for name, value in _POD_DEFAULTS.items():
        spec.setdefault(name, value)
    spec_defaults(spec)
    seconds = spec["terminationGracePeriodSeconds"]
    if isinstance(seconds, int) and seconds < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for container in _containers(spec):
        resources = container.setdefault("resources", {})
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    pod_resources.fill(spec)
    status = pod.get("status") or {}
    if "qosClass" not in status:
        pod["status"] = {**status, "qosClass": qos(spec)}      # a copy: the old object may share it


def spec_defaults(spec: Object) -> None:
    """What is filled in wherever a pod is described: in pods and in the templates of other kinds."""
    _fill(spec, _SPEC_DEFAULTS)
    spec.setdefault("securityContext", {})
    _account_defaults(spec)
    for container in (*_containers(spec), *(spec.get("ephemeralContainers") or ())):
        container_defaults(container, host_network=bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes") or ():
        _volume_defaults(volume)


def _fill(thing: Object, values: Object) -> None:
    """Say what is not said; an empty text says nothing."""
    for name, value in values.items():
        if thing.get(name) in _NOTHING:
            thing[name] = value


def _account_defaults(spec: Object) -> None:
    """Keep the old name of a field in step with the new one, which wins."""
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def rules(pod: Object, old: Object | None) -> Iterator[Cause]:
    spec = pod["spec"]
    if annotations := pod["metadata"].get("annotations"):
        yield from pod_rules.annotation_rules(annotations, spec)
    if old is not None and spec == old.get("spec"):
        return      # it was right when it was written
    yield from pod_rules.spec_rules(spec, "spec", pod=str(pod["metadata"].get("name") or ""))
    yield from pod_rules.host_network_rules(spec, "spec", in_pod=True)
    yield from pod_rules.only_in_pods(spec, "spec")
    if old is not None:
        yield from pod_updates.rules(spec, old.get("spec") or {})
        return
    if spec.get("ephemeralContainers"):
        yield causes.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("nodeName") and spec.get("schedulingGates"):
        yield causes.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def grace(pod: Object, asked: int | None) -> int:
    """Seconds the node has to stop a pod. One that no node has, or that has ended, needs none."""
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return 0
    return int(spec.get("terminationGracePeriodSeconds", GRACE)) if asked is None else asked


def qos(spec: Object) -> str:
    """Guaranteed: every container is limited in cpu and memory to what it asks for. BestEffort: none asks for any."""
    asked = [(container.get("resources") or {}) for container in [*(spec.get("containers") or ()),
                                                                 *(spec.get("initContainers") or ())]]
    figures = [{**(each.get("requests") or {}), **(each.get("limits") or {})} for each in asked]
    if not any(name in found for found in figures for name in QOS_RESOURCES):
        return "BestEffort"
    return "Guaranteed" if all(_pinned(each) for each in asked) else "Burstable"


def _pinned(resources: Object) -> bool:
    limits = resources.get("limits") or {}
    requests = {**limits, **(resources.get("requests") or {})}
    return all(name in limits and (limits[name] == requests[name]
                                   or quantity.parse(limits[name]) == quantity.parse(requests[name]))
               for name in QOS_RESOURCES)


def _containers(spec: Object) -> Iterable[Object]:
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def container_defaults(container: Object, *, host_network: bool) -> None:
    _fill(container, _CONTAINER_DEFAULTS)
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(str(container.get("image") or ""))
    container.setdefault("resources", {})
    for port in container.get("ports") or ():
        _fill(port, _PORT_DEFAULTS)
        if host_network and "containerPort" in port and not port.get("hostPort"):
            port["hostPort"] = port["containerPort"]
    for variable in container.get("env") or ():
        reference = (variable.get("valueFrom") or {}).get("fieldRef")
        if isinstance(reference, dict):
            _fill(reference, _REFERENCE_DEFAULTS)
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(probe), dict):
            _probe_defaults(container[probe])
    for moment in ("postStart", "preStop"):
        _http_defaults((container.get("lifecycle") or {}).get(moment) or {})


def pull_policy(image: str) -> str:
    """A moving tag is pulled each time; a fixed tag or a digest is not."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "IfNotPresent" if digest or (tag and tag != "latest") else "Always"


def _probe_defaults(probe: Object) -> None:
    for name, value in _PROBE_DEFAULTS.items():
        if not probe.get(name):
            probe[name] = value
    _http_defaults(probe)
    if isinstance(probe.get("grpc"), dict):
        probe["grpc"].setdefault("service", "")


def _http_defaults(action: Object) -> None:
    if isinstance(action.get("httpGet"), dict):
        _fill(action["httpGet"], _HTTP_DEFAULTS)


def _volume_defaults(volume: Object) -> None:
    if set(volume) <= {"name"}:
        volume["emptyDir"] = {}
    volume_sources.defaults(volume)
    if isinstance(volume.get("image"), dict) and not volume["image"].get("pullPolicy"):
        volume["image"]["pullPolicy"] = pull_policy(str(volume["image"].get("reference") or ""))
    for source in _WITH_MODES:
        if isinstance(volume.get(source), dict):
            volume[source].setdefault("defaultMode", _MODE)
    projected = (volume.get("projected") or {}).get("sources") or []
    for source in projected:
        if isinstance(source.get("serviceAccountToken"), dict):
            source["serviceAccountToken"].setdefault("expirationSeconds", _TOKEN_SECONDS)
    for described in (volume, *projected):
        for item in (described.get("downwardAPI") or {}).get("items") or ():
            if isinstance(item.get("fieldRef"), dict):
                _fill(item["fieldRef"], _REFERENCE_DEFAULTS)
    claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if isinstance(claim, dict):
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def tolerate(spec: Object) -> None:
    """Let a pod stay for a while on a node in trouble, unless it says itself how long; twice changes nothing."""
    said = [(each.get("key") or "", each.get("effect") or "") for each in spec.get("tolerations") or ()]
    lacking = [key for key in _TROUBLES
               if not any(mine in {key, ""} and effect in {"NoExecute", ""} for mine, effect in said)]
    if lacking:
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *(
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _STAYS} for key in lacking)]
