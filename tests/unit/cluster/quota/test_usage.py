"""What objects use, and under which names of a quota."""

from datetime import UTC, datetime
from typing import Any

import pytest

from trainmaster.api.core import CLAIMS, CONFIG_MAPS, PODS, SERVICES
from trainmaster.api.meta import Object, Resource
from trainmaster.cluster.quota.amounts import shown
from trainmaster.cluster.quota.usage import names_of, usage

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
JOBS = Resource("batch", "v1", "jobs", "Job")


def container(**resources: Any) -> Object:
    return {"name": "c", "resources": resources}


def pod(*containers: Object, init: tuple[Object, ...] = (), status: Object | None = None, **meta: Any) -> Object:
    return {"metadata": meta, "spec": {"containers": list(containers), "initContainers": list(init)},
            "status": status or {}}


def requests(**amounts: str) -> Object:
    return container(requests={name.replace("_", "-"): text for name, text in amounts.items()})


def sidecar(**amounts: str) -> Object:
    return {**requests(**amounts), "restartPolicy": "Always"}


@pytest.mark.parametrize(("resource", "thing", "expected"), [
    pytest.param(CONFIG_MAPS, {}, {"count/configmaps": "1", "configmaps": "1"}, id="a kind with an old name"),
    pytest.param(JOBS, {}, {"count/jobs.batch": "1"}, id="a kind of a group"),
    pytest.param(PODS, pod(requests(cpu="500m", memory="100Mi"), requests(cpu="600m", memory="100Mi")),
                 {"count/pods": "1", "pods": "1", "cpu": "1100m", "requests.cpu": "1100m", "memory": "200Mi",
                  "requests.memory": "200Mi"}, id="containers together"),
    pytest.param(PODS, pod(container(limits={"cpu": "2"})), {"count/pods": "1", "pods": "1", "limits.cpu": "2"},
                 id="limits alone"),
    pytest.param(PODS, pod(requests(cpu="1"), init=(requests(cpu="3"),)),
                 {"count/pods": "1", "pods": "1", "cpu": "3", "requests.cpu": "3"}, id="the hungriest init container"),
    pytest.param(PODS, pod(requests(cpu="1"), init=(sidecar(cpu="1"), requests(cpu="3"))),
                 {"count/pods": "1", "pods": "1", "cpu": "4", "requests.cpu": "4"},
                 id="an init container beside those that stay"),
    pytest.param(PODS, pod(container(requests={"nvidia.com/gpu": "2"})),
                 {"count/pods": "1", "pods": "1", "requests.nvidia.com/gpu": "2"}, id="a resource that was added"),
    pytest.param(PODS, pod(requests(cpu="1"), status={"phase": "Succeeded"}), {"count/pods": "1"},
                 id="a pod that has ended is only stored"),
    pytest.param(PODS, pod(requests(cpu="1"), deletionTimestamp="2026-01-01T11:59:00Z", deletionGracePeriodSeconds=30),
                 {"count/pods": "1"}, id="a pod that should be gone"),
    pytest.param(SERVICES, {"spec": {"type": "NodePort", "ports": [{}, {}]}},
                 {"count/services": "1", "services": "1", "services.nodeports": "2", "services.loadbalancers": "0"},
                 id="a service with ports on the nodes"),
    pytest.param(SERVICES, {"spec": {"type": "LoadBalancer", "ports": [{"nodePort": 1}, {}],
                                     "allocateLoadBalancerNodePorts": False}},
                 {"count/services": "1", "services": "1", "services.nodeports": "1", "services.loadbalancers": "1"},
                 id="a balancer with one port that was asked for"),
    pytest.param(CLAIMS, {"spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "10Gi"}}}},
                 {"count/persistentvolumeclaims": "1", "persistentvolumeclaims": "1", "requests.storage": "10Gi",
                  "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
                  "gold.storageclass.storage.k8s.io/requests.storage": "10Gi"}, id="storage, in all and by class"),
])
def test_an_object_uses(resource: Resource, thing: Object, expected: dict[str, str]) -> None:
    assert expected == shown(usage(resource, thing, NOON))


@pytest.mark.parametrize(("resource", "expected"), [
    pytest.param(PODS, ["pods", "requests.cpu", "requests.nvidia.com/gpu"], id="pods"),
    pytest.param(CLAIMS, ["gold.storageclass.storage.k8s.io/requests.storage"], id="claims"),
    pytest.param(SERVICES, ["services.nodeports"], id="services"),
    pytest.param(CONFIG_MAPS, [], id="maps"),
    pytest.param(JOBS, ["count/jobs.batch"], id="jobs"),
])
def test_a_kind_is_counted_under(resource: Resource, expected: list[str]) -> None:
    names = ["pods", "requests.cpu", "requests.nvidia.com/gpu", "gold.storageclass.storage.k8s.io/requests.storage",
             "services.nodeports", "count/jobs.batch"]

    assert expected == names_of(resource, names)
