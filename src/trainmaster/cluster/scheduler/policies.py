"""The rules of `door` that need no look at other objects, as admission policies: any Kubernetes judges by them itself.

A webhook of our own beside `trainmaster scheduler` was rejected: a Service, a certificate and a process in the way of
every write, for a handful of comparisons. What remains (a parent that is not there, a queue with others below it, a
group for a closed queue) needs no refusal to be safe: the scheduler starts nothing in such queues and says why.

    python -m trainmaster.cluster.scheduler.policies > deploy/scheduler/policies.yaml
"""

import sys

import yaml

from trainmaster.api.groups import VOLCANO_GROUPS, VOLCANO_QUEUES
from trainmaster.api.meta import Object, Resource
from trainmaster.cluster.scheduler.dialects import DEFAULT_QUEUE, HIERARCHY, HIERARCHY_WEIGHTS, QUEUE_NAME, ROOT
from trainmaster.cluster.scheduler.door import KEPT

GROUP = "admissionregistration.k8s.io"
HEAD = """\
# Volcano's rules for queues and groups as admission policies, for clusters that run `trainmaster scheduler` and not
# Volcano's own webhooks; by `python -m trainmaster.cluster.scheduler.policies`. Refusals: Kubernetes 1.30 and later;
# what is filled in: 1.36 and later.
"""
_AMOUNTS = {"guarantee": "object.spec.?guarantee.?resource", "deserved": "object.spec.?deserved",
            "capability": "object.spec.?capability"}
_PLACE, _WEIGHTS = (f"object.metadata.?annotations[?'{key}'].orValue('')" for key in (HIERARCHY, HIERARCHY_WEIGHTS))


def policies() -> list[Object]:
    """The policies and what binds them."""
    queues, groups = "queues.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh"
    root = f"{_PLACE}.split('/')[0] != '{ROOT}'"
    return [
        *_policy("Validating", "v1", queues, VOLCANO_QUEUES, ["CREATE", "UPDATE", "DELETE"], {"validations": [
            {"expression": "request.operation != 'DELETE' || !(request.name in "
                           f"[{', '.join(repr(name) for name in KEPT)}])",
             "messageExpression": "'`' + request.name + '` queue can not be deleted'"},
            *(_at_most(low, high) for low, high in (
                ("deserved", "capability"), ("guarantee", "deserved"), ("guarantee", "capability"))),
            {"expression": _unless_deleted(f"{_PLACE}.split('/').size() == {_WEIGHTS}.split('/').size()"),
             "message": f"{HIERARCHY} and {HIERARCHY_WEIGHTS} must have the same length"},
            {"expression": _unless_deleted(
                f"{_WEIGHTS} == '' || {_WEIGHTS}.split('/').all(weight, weight.matches('^[0-9]+([.][0-9]+)?$'))"),
             "message": f"{HIERARCHY_WEIGHTS} must be numbers with slashes between them"},
        ]}),
        *_policy("Mutating", "v1", queues, VOLCANO_QUEUES, ["CREATE"], {"reinvocationPolicy": "Never", "mutations": [
            _patch(f"object.metadata.name != '{ROOT}' && object.?spec.?parent.orValue('') == ''",
                   _set_in("spec", "parent", f"'{ROOT}'")),
            _patch(f"{_PLACE} != '' && {root}", ", ".join(
                f"JSONPatch{{op: 'replace', path: '/metadata/annotations/' + jsonpatch.escapeKey('{key}'), "
                f"value: '{start}/' + object.metadata.annotations['{key}']}}"
                for key, start in ((HIERARCHY, ROOT), (HIERARCHY_WEIGHTS, "1"))))]}),
        *_policy("Mutating", "v1", groups, VOLCANO_GROUPS, ["CREATE"], {"reinvocationPolicy": "Never", "mutations": [
            _patch(f"object.?spec.?queue.orValue('') in ['', '{DEFAULT_QUEUE}'] && "
                   f"namespaceObject.metadata.?annotations[?'{QUEUE_NAME}'].orValue('') != ''",
                   _set_in("spec", "queue", f"namespaceObject.metadata.annotations['{QUEUE_NAME}']"))]}),
    ]


def _at_most(low: str, high: str) -> Object:
    small, large = _AMOUNTS[low], _AMOUNTS[high]
    compared = (f"!(name in {large}.orValue({{}})) || quantity(string({small}.orValue({{}})[name]))"
                f".compareTo(quantity(string({large}.orValue({{}})[name]))) <= 0")
    return {"expression": _unless_deleted(f"!has(object.spec) || {small}.orValue({{}}).all(name, {compared})"),
            "message": f"{low} should less equal than {high}"}


def _unless_deleted(expression: str) -> str:
    return f"request.operation == 'DELETE' || ({expression})"


def _patch(when: str, patches: str) -> Object:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": f"{when} ? [{patches}] : []"}}


def _set_in(part: str, name: str, value: str) -> str:
    return (f"has(object.{part}) ? JSONPatch{{op: 'add', path: '/{part}/{name}', value: {value}}} : "
            f"JSONPatch{{op: 'add', path: '/{part}', value: {{'{name}': {value}}}}}")


def _policy(kind: str, version: str, name: str, resource: Resource, operations: list[str], rules: Object
            ) -> list[Object]:
    rule = {"apiGroups": [resource.group], "apiVersions": [resource.version], "operations": operations,
            "resources": [resource.plural]}
    bound: Object = {"policyName": name} | ({"validationActions": ["Deny"]} if kind == "Validating" else {})
    return [
        {"apiVersion": f"{GROUP}/{version}", "kind": f"{kind}AdmissionPolicy", "metadata": {"name": name},
         "spec": {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]}, **rules}},
        {"apiVersion": f"{GROUP}/{version}", "kind": f"{kind}AdmissionPolicyBinding", "metadata": {"name": name},
         "spec": bound},
    ]


def text() -> str:
    return HEAD + yaml.safe_dump_all(policies(), sort_keys=False, width=110)


if __name__ == "__main__":
    sys.stdout.write(text())
