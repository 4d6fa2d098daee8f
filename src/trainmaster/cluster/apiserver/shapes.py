"""The JSON types of the fields that code looks at, as tables; a body that does not fit them is a 400.

Kubernetes decodes into Go types and so never meets a number where a name should be. We keep objects as dictionaries,
and these tables give the code that reads them the same certainty. Only fields that something here, in the scheduler,
the controllers or the node reads are listed; others pass through as they are.
"""

import re
from typing import Any, TypeAlias

from trainmaster.api.meta import Json
from trainmaster.cluster.apiserver import causes

# A type; a one-item list for "list of"; a dict for "object with at least these fields"; or one of the words below.
Shape: TypeAlias = Any

STRINGS = "a map of text to text"
QUANTITIES = "a map of resource names to quantities"
INT_OR_TEXT = "a whole number or text"
TIME = "a moment such as 2006-01-02T15:04:05Z"

_QUANTITY = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,2}|[KMGTPE]i|[numkMGTPE])?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")
_WORDS = {str: "text", int: "a whole number", bool: "true or false", dict: "an object", float: "a number"}


def fault(value: Json, shape: Shape, path: str = "") -> str:
    """What does not fit, as `path must be ..., not ...`, or the empty string. `null` fits any field of an object."""
    match shape:
        case dict():
            if not isinstance(value, dict):
                return _said(path, "an object", value)
            for name, found in value.items():      # not over the shape, which is far longer than most objects
                inner = shape.get(name)
                if inner is not None and found is not None:
                    said = fault(found, inner, f"{path}.{name}" if path else name)
                    if said:
                        return said
            return ""
        case list():
            if not isinstance(value, list):
                return _said(path, "a list", value)
            return next((said for at, item in enumerate(value) if (said := fault(item, shape[0], f"{path}[{at}]"))), "")
        case type():
            return "" if _is(value, shape) else _said(path, _WORDS[shape], value)
        case _:
            return _special(value, shape, path)


def is_quantity(value: Json) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float) or (isinstance(value, str) and _QUANTITY.fullmatch(value) is not None)


def _special(value: Json, shape: str, path: str) -> str:
    fits = False
    if shape in {STRINGS, QUANTITIES}:
        if not isinstance(value, dict):
            return _said(path, shape, value)
        for key, item in value.items():
            if shape is STRINGS and not isinstance(item, str):
                return _said(f"{path}.{key}", "text", item)
            if shape is QUANTITIES and not is_quantity(item):
                return (f"{path}.{key}: quantities must match the regular expression "
                        r"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
        return ""
    if shape is INT_OR_TEXT:
        fits = _is(value, int) or isinstance(value, str)
    elif shape is TIME:
        fits = isinstance(value, str) and _TIME.fullmatch(value) is not None
    return "" if fits else _said(path, shape, value)


def _is(value: Json, wanted: type) -> bool:
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, wanted)


def _said(path: str, wanted: str, value: Json) -> str:
    return f"{path or 'the object'} must be {wanted}, not {causes.type_name(value)}"


OWNER: Shape = {"apiVersion": str, "kind": str, "name": str, "uid": str, "controller": bool, "blockOwnerDeletion": bool}
METADATA: Shape = {
    "name": str, "generateName": str, "namespace": str, "selfLink": str, "uid": str, "resourceVersion": str,
    "generation": int, "creationTimestamp": TIME, "deletionTimestamp": TIME, "deletionGracePeriodSeconds": int,
    "labels": STRINGS, "annotations": STRINGS, "ownerReferences": [OWNER], "finalizers": [str], "managedFields": [dict],
}
CONDITION: Shape = {"type": str, "status": str, "reason": str, "message": str}
_SELECTOR: Shape = {"matchLabels": STRINGS, "matchExpressions": [{"key": str, "operator": str, "values": [str]}]}

_ACTION: Shape = {
    "exec": {"command": [str]}, "httpGet": {"path": str, "port": INT_OR_TEXT, "host": str, "scheme": str},
    "tcpSocket": {"port": INT_OR_TEXT, "host": str}, "grpc": {"port": int}, "sleep": {"seconds": int},
}
_PROBE: Shape = {
    **_ACTION, "initialDelaySeconds": int, "timeoutSeconds": int, "periodSeconds": int, "successThreshold": int,
    "failureThreshold": int, "terminationGracePeriodSeconds": int,
}
_CONTAINER: Shape = {
    "name": str, "image": str, "command": [str], "args": [str], "workingDir": str, "imagePullPolicy": str,
    "env": [{"name": str, "value": str, "valueFrom": dict}],
    "envFrom": [{"prefix": str, "configMapRef": {"name": str}, "secretRef": {"name": str}}],
    "ports": [{"name": str, "containerPort": int, "hostPort": int, "protocol": str, "hostIP": str}],
    "resources": {"requests": QUANTITIES, "limits": QUANTITIES},
    "volumeMounts": [{"name": str, "mountPath": str, "subPath": str, "readOnly": bool}],
    "livenessProbe": _PROBE, "readinessProbe": _PROBE, "startupProbe": _PROBE,
    "lifecycle": {"postStart": _ACTION, "preStop": _ACTION}, "restartPolicy": str,
    "terminationMessagePath": str, "terminationMessagePolicy": str, "securityContext": dict,
    "stdin": bool, "stdinOnce": bool, "tty": bool,
}
_STATE: Shape = {
    "waiting": {"reason": str, "message": str}, "running": {"startedAt": TIME},
    "terminated": {"exitCode": int, "signal": int, "reason": str, "message": str, "startedAt": TIME,
                   "finishedAt": TIME},
}
_CONTAINER_STATUS: Shape = {
    "name": str, "ready": bool, "started": bool, "restartCount": int, "image": str, "imageID": str, "containerID": str,
    "state": _STATE, "lastState": _STATE,
}
_ITEMS: Shape = [{"key": str, "path": str, "mode": int}]
_VOLUME: Shape = {
    "name": str, "emptyDir": {"medium": str, "sizeLimit": INT_OR_TEXT}, "hostPath": {"path": str, "type": str},
    "configMap": {"name": str, "items": _ITEMS, "defaultMode": int, "optional": bool},
    "secret": {"secretName": str, "items": _ITEMS, "defaultMode": int, "optional": bool},
    "persistentVolumeClaim": {"claimName": str, "readOnly": bool},
    "downwardAPI": {"items": [{"path": str, "fieldRef": dict}], "defaultMode": int},
    "projected": {"sources": [dict], "defaultMode": int},
}
_POD_SPEC: Shape = {
    "containers": [_CONTAINER], "initContainers": [_CONTAINER], "ephemeralContainers": [_CONTAINER],
    "volumes": [_VOLUME], "restartPolicy": str, "dnsPolicy": str, "nodeName": str, "nodeSelector": STRINGS,
    "schedulerName": str, "priorityClassName": str, "priority": int, "preemptionPolicy": str,
    "terminationGracePeriodSeconds": int, "activeDeadlineSeconds": int, "hostname": str, "subdomain": str,
    "setHostnameAsFQDN": bool, "serviceAccountName": str, "serviceAccount": str, "automountServiceAccountToken": bool,
    "hostNetwork": bool, "hostPID": bool, "hostIPC": bool, "shareProcessNamespace": bool, "enableServiceLinks": bool,
    "tolerations": [{"key": str, "operator": str, "value": str, "effect": str, "tolerationSeconds": int}],
    "imagePullSecrets": [{"name": str}], "readinessGates": [{"conditionType": str}], "schedulingGates": [{"name": str}],
    "hostAliases": [{"ip": str, "hostnames": [str]}], "securityContext": dict,
    "affinity": {"nodeAffinity": dict, "podAffinity": dict, "podAntiAffinity": dict}, "overhead": QUANTITIES,
    "topologySpreadConstraints": [{"topologyKey": str, "maxSkew": int, "whenUnsatisfiable": str,
                                   "labelSelector": _SELECTOR}],
}
POD: Shape = {
    "spec": _POD_SPEC,
    "status": {
        "phase": str, "reason": str, "message": str, "podIP": str, "hostIP": str, "startTime": TIME, "qosClass": str,
        "nominatedNodeName": str, "podIPs": [{"ip": str}], "conditions": [CONDITION],
        "containerStatuses": [_CONTAINER_STATUS], "initContainerStatuses": [_CONTAINER_STATUS],
        "ephemeralContainerStatuses": [_CONTAINER_STATUS],
    },
}
NODE: Shape = {
    "spec": {"unschedulable": bool, "podCIDR": str, "providerID": str,
             "taints": [{"key": str, "value": str, "effect": str}]},
    "status": {"capacity": QUANTITIES, "allocatable": QUANTITIES, "conditions": [CONDITION],
               "addresses": [{"type": str, "address": str}], "nodeInfo": dict},
}
NAMESPACE: Shape = {"spec": {"finalizers": [str]}, "status": {"phase": str, "conditions": [CONDITION]}}
SERVICE: Shape = {
    "spec": {
        "type": str, "selector": STRINGS, "clusterIP": str, "clusterIPs": [str], "externalName": str,
        "externalIPs": [str], "sessionAffinity": str, "ipFamilies": [str], "ipFamilyPolicy": str,
        "publishNotReadyAddresses": bool, "internalTrafficPolicy": str,
        "ports": [{"name": str, "port": int, "targetPort": INT_OR_TEXT, "protocol": str, "nodePort": int}],
    },
    "status": {"loadBalancer": {"ingress": [{"ip": str, "hostname": str}]}, "conditions": [CONDITION]},
}
_ADDRESS: Shape = {"ip": str, "hostname": str, "nodeName": str, "targetRef": dict}
ENDPOINTS: Shape = {"subsets": [{"addresses": [_ADDRESS], "notReadyAddresses": [_ADDRESS],
                                 "ports": [{"name": str, "port": int, "protocol": str}]}]}
CONFIG_MAP: Shape = {"data": STRINGS, "binaryData": STRINGS, "immutable": bool}
SECRET: Shape = {"data": STRINGS, "stringData": STRINGS, "type": str, "immutable": bool}
SERVICE_ACCOUNT: Shape = {"secrets": [{"name": str}], "imagePullSecrets": [{"name": str}],
                          "automountServiceAccountToken": bool}
REFERENCE: Shape = {"kind": str, "namespace": str, "name": str, "uid": str, "apiVersion": str, "resourceVersion": str,
                    "fieldPath": str}
EVENT: Shape = {
    "involvedObject": REFERENCE, "reason": str, "message": str, "type": str, "count": int, "firstTimestamp": TIME,
    "lastTimestamp": TIME, "eventTime": TIME, "source": {"component": str, "host": str}, "reportingComponent": str,
    "reportingInstance": str, "action": str, "series": {"count": int, "lastObservedTime": TIME},
}
LEASE: Shape = {"spec": {"holderIdentity": str, "leaseDurationSeconds": int, "leaseTransitions": int,
                         "acquireTime": TIME, "renewTime": TIME}}
_NAMES: Shape = {"plural": str, "singular": str, "kind": str, "listKind": str, "shortNames": [str], "categories": [str]}
DEFINITION: Shape = {
    "spec": {
        "group": str, "scope": str, "names": _NAMES, "conversion": {"strategy": str}, "preserveUnknownFields": bool,
        "versions": [{
            "name": str, "served": bool, "storage": bool, "deprecated": bool, "deprecationWarning": str,
            "schema": {"openAPIV3Schema": dict},
            "subresources": {"status": dict, "scale": {"specReplicasPath": str, "statusReplicasPath": str,
                                                       "labelSelectorPath": str}},
            "additionalPrinterColumns": [{"name": str, "type": str, "format": str, "description": str, "priority": int,
                                          "jsonPath": str}],
            "selectableFields": [{"jsonPath": str}],
        }],
    },
    "status": {"conditions": [CONDITION], "acceptedNames": _NAMES, "storedVersions": [str]},
}
DELETE_OPTIONS: Shape = {
    "gracePeriodSeconds": int, "propagationPolicy": str, "orphanDependents": bool, "dryRun": [str],
    "preconditions": {"uid": str, "resourceVersion": str},
}
BINDING: Shape = {"target": {"kind": str, "name": str, "namespace": str, "uid": str, "apiVersion": str}}
SCALE: Shape = {"spec": {"replicas": int}}
