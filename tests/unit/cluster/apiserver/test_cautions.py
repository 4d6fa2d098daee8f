"""What is warned of, in the words of a real server."""

import pytest
from tests.unit.cluster.apiserver.api import PODS, Api, pod

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import cautions

TWICE = {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}
HIDES = 'env[1]: hides previous definition of "A", which may be dropped when using apply'
DOTS = "which can result in surprising behavior; a DNS label is recommended: [must not contain dots]"
PART = 'fractional byte value "100m" is invalid, must be an integer'


def of(name: str = "p", container: Object | None = None, **spec: Json) -> Object:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", **(container or {})}], **spec}}


@pytest.mark.parametrize(("kind", "thing", "said"), [
    pytest.param("Pod", of(), [], id="nothing"),
    pytest.param("Pod", of("a.b"), [f"metadata.name: this is used in the Pod's hostname, {DOTS}"], id="a dotted name"),
    pytest.param("Pod", of(container=TWICE), [f"spec.containers[0].{HIDES}"], id="a variable twice"),
    pytest.param("Pod", of(nodeSelector={"beta.kubernetes.io/os": "linux"}),
                 ['spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'],
                 id="an old label"),
    pytest.param("Pod", of(container={"resources": {"requests": {"memory": "100m", "cpu": "100m"}}}),
                 [f"spec.containers[0].resources.requests[memory]: {PART}"], id="a tenth of a byte"),
    pytest.param("Pod", of(imagePullSecrets=[{"name": ""}, {"name": "a"}, {"name": "a"}]),
                 ['spec.imagePullSecrets[0].name: invalid empty name ""',
                  'spec.imagePullSecrets[2].name: duplicate name "a"'], id="secrets for images"),
    pytest.param("Pod", of(container={"ports": [{"containerPort": 80}, {"containerPort": 80}]}),
                 ["spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"],
                 id="a port twice"),
    pytest.param("Pod", of(container={"ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 80}]}),
                 ["spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]"],
                 id="a port in two ways"),
    pytest.param("Pod", of(topologySpreadConstraints=[{"maxSkew": 1}]),
                 ["spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod"],
                 id="pods spread without a selector"),
    pytest.param("Pod", of(volumes=[{"name": "v", "gitRepo": {}}]),
                 ["spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+"],
                 id="a repository"),
    pytest.param("Job", {"metadata": {"name": "j.k"}, "spec": {"template": of(container=TWICE)}},
                 [f"metadata.name: this is used in Pod names and hostnames, {DOTS}",
                  f"spec.template.spec.containers[0].{HIDES}"], id="a template"),
    pytest.param("DaemonSet", {"metadata": {"name": "j.k"}, "spec": {"template": of()}}, [],
                 id="the name of what numbers no pods"),
    pytest.param("Service", {"metadata": {}, "spec": {"clusterIP": "None", "sessionAffinity": "ClientIP"}},
                 ["spec.SessionAffinity is ignored for headless services"], id="a headless service"),
    pytest.param("PersistentVolumeClaim", {"metadata": {}, "spec": {"resources": {"requests": {"storage": "100m"}}}},
                 [f"spec.resources.requests[storage]: {PART}"],
                 id="a claim of a tenth of a byte"),
])
def test_what_is_said(kind: str, thing: Object, said: list[str]) -> None:
    assert said == cautions.told(kind, thing)


def test_changes() -> None:
    job = {"metadata": {"name": "j.k"}, "spec": {"template": of()}}
    assert [] == cautions.told("Job", job, job)
    assert [] == cautions.told("Pod", of("a.b"), of())
    assert cautions.told("Job", job, {"spec": {}})


async def test_kubectl_is_told(api: Api) -> None:
    answer = await api.post(PODS, pod("a.b"))

    assert [f'299 - "metadata.name: this is used in the Pod\'s hostname, {DOTS}"'] == answer.warnings
