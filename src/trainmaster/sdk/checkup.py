"""What a cluster lacks for training jobs, found out by asking it; changes nothing there."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmaster.api.groups import GROUPS
from trainmaster.api.kubeflow_v1 import KINDS
from trainmaster.api.meta import Resource
from trainmaster.kube.discovery import Served
from trainmaster.sdk.session import Session

OLDEST = (1, 22)      # what the operator needs: apiextensions.k8s.io/v1, and server-side apply
REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview",
                   namespaced=False)
METRICS = "metrics.k8s.io"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: fine, or what is wrong and what to do."""

    what: str
    fine: bool
    told: str


async def checkup(session: Session, called: str) -> list[Finding]:
    """Look at everything. Raises KubeError for a cluster that does not answer."""
    version = str((await session.client.request("GET", "/version")).get("gitVersion", ""))
    kinds = await session.served()
    return [_version(version, called), *_kinds(kinds), await _rights(session), *_helpers(kinds)]


def _version(version: str, called: str) -> Finding:
    found = re.match(r"v?(\d+)\.(\d+)", version)
    fine = found is not None and (int(found[1]), int(found[2])) >= OLDEST
    told = f"Kubernetes {version}, {called}"
    return Finding("cluster", fine, told if fine else f"{told}: is too old. The operator needs 1.22 or newer.")


def _kinds(served: tuple[Served, ...]) -> Iterator[Finding]:
    there = {each.resource for each in served}
    missing = [kind.kind for kind in KINDS if kind.resource not in there]
    if missing:
        yield Finding("kinds", False, f"{', '.join(missing)}: not defined. `trainmaster crds | kubectl apply -f -` "
                      "does that.")
    else:
        yield Finding("kinds", True, ", ".join(kind.kind for kind in KINDS))


async def _rights(session: Session) -> Finding:
    wanted = [("create", "kubeflow.org", kind.resource.plural) for kind in KINDS]
    wanted += [("list", "", "pods"), ("get", "", "pods/log")]
    refused = [f"{verb} {resource}" for verb, group, resource in wanted
               if not await _may(session, verb, group, resource)]
    where = f"in namespace {session.namespace}"
    if refused:
        return Finding("rights", False, f"your account may not {', '.join(refused)} {where}. Ask whoever gives rights "
                       "there.")
    return Finding("rights", True, f"to make jobs and to see their pods and logs {where}")


async def _may(session: Session, verb: str, group: str, resource: str) -> bool:
    name, _, below = resource.partition("/")
    asked = {"namespace": session.namespace, "verb": verb, "group": group, "resource": name, "subresource": below}
    answer = await session.client.create(REVIEWS, {
        "apiVersion": REVIEWS.api_version, "kind": REVIEWS.kind, "spec": {"resourceAttributes": asked}})
    return bool((answer.get("status") or {}).get("allowed"))


def _helpers(served: tuple[Served, ...]) -> Iterator[Finding]:
    """None is a reason not to train: without them jobs start pod by pod, and `top` has no figures."""
    there = {each.resource for each in served}
    groups = [each.group for each in GROUPS if each in there]
    yield Finding("gangs", True, f"by PodGroups of {', '.join(groups)}" if groups else
                  "none: jobs start pod by pod. `trainmaster crds --groups | kubectl apply -f -` and "
                  "`trainmaster scheduler` bring them.")
    yield Finding("metrics", True, "for `trainmaster top`" if any(each.group == METRICS for each in there) else
                  "none, so `trainmaster top` has no figures. Install metrics-server.")
