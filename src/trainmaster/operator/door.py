"""What is refused at the door: training jobs that break a rule of `api.validation`, before they are stored. Pure.

On a real cluster the API server asks the operator's webhook (`webhook`), on the embedded one it calls `judged` in its
own process; names, paths and words are those of kubeflow's training-operator, so that its configuration fits ours and
whoever greps for a refusal finds it. A job that got in another way is still judged by the controller.

    python -m trainmaster.operator.door > deploy/operator/webhook.yaml
"""

import base64
import sys
from typing import Final

import yaml

from trainmaster.api.kubeflow_v1 import KINDS, JobKind, kind_named
from trainmaster.api.meta import Object
from trainmaster.api.validation import in_one, problems, warnings

NAME: Final = "validator.training-operator.kubeflow.org"


def path_of(kind: JobKind) -> str:
    resource = kind.resource
    return f"/validate-{resource.group.replace('.', '-')}-{resource.version}-{kind.singular}"


def configuration(namespace: str, service: str, authority: bytes = b"") -> Object:
    """The ValidatingWebhookConfiguration that leads to a Service of the operator."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [_entry(kind, namespace, service, authority) for kind in KINDS],
    }


def _entry(kind: JobKind, namespace: str, service: str, authority: bytes) -> Object:
    client: Object = {"service": {"name": service, "namespace": namespace, "path": path_of(kind), "port": 443}}
    if authority:
        client["caBundle"] = base64.b64encode(authority).decode()
    return {
        "name": f"validator.{kind.singular}.training-operator.kubeflow.org", "clientConfig": client,
        "rules": [{"apiGroups": [kind.resource.group], "apiVersions": [kind.resource.version],
                   "operations": ["CREATE", "UPDATE"], "resources": [kind.resource.plural]}],
        "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
    }


def judged(request: Object) -> Object:
    """The `response` to the `request` of an AdmissionReview. What is not ours or is being deleted is let through."""
    allowed: Object = {"uid": request.get("uid", ""), "allowed": True}
    thing, before = request.get("object"), request.get("oldObject")
    if not isinstance(thing, dict) or kind_named(str(thing.get("kind", ""))) is None:
        return allowed
    before = before if isinstance(before, dict) else None
    if before is not None and before.get("spec") == thing.get("spec"):
        return allowed      # a label or a finalizer: a job that was let in under other rules must still be able to go
    if said := warnings(thing):
        allowed["warnings"] = said
    found = problems(thing, before)
    if not found:
        return allowed
    return {**allowed, "allowed": False, "status": {
        "metadata": {}, "message": in_one(found), "reason": "Forbidden", "code": 403}}


def text() -> str:
    """The manifests of a cluster with a webhook: the configuration, and the Secret that the operator fills."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "training-operator-webhook-cert",
                                                                 "namespace": "kubeflow"}}
    head = ("# The validating webhook, by `python -m trainmaster.operator.door`; the operator adds its authority.\n"
            "# Apply it once the operator and its Service `training-operator` (443 to 9443) are there.\n")
    return head + yaml.safe_dump_all([secret, configuration("kubeflow", "training-operator")], sort_keys=False)


if __name__ == "__main__":
    sys.stdout.write(text())
