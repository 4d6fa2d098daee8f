"""Requests with one mistake each are answered, and not by a failure of the server's own."""

import pytest
from tests.unit.cluster.apiserver.api import (
    DEFINITIONS,
    JOBS,
    MAPS,
    PODS,
    SERVICES,
    Api,
    config_map,
    definition,
    job,
    pod,
    service,
)
from tests.unit.cluster.apiserver.mistakes import THERE, mistakes, sent

from trainmaster.api.meta import Object

_OURS = b"see the log of the server"      # a real server, too, says 500 to some mistakes, with a reason
_SCHEMA: Object = {"type": "object", "properties": {"n": {"type": "integer"}}}
_SELECTED: Object = {"selector": {"matchLabels": {"a": "b"}}, "template": {
    "metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}}
_ENDING: Object = {"template": {"spec": {**pod()["spec"], "restartPolicy": "Never"}}}


@pytest.mark.parametrize(("base", "thing"), [
    pytest.param(MAPS, config_map(THERE), id="of a map"),
    pytest.param(PODS, pod(THERE), id="of a pod"),
    pytest.param(SERVICES, service(THERE), id="of a service"),
    pytest.param(JOBS, job(THERE, n=1), id="of a custom kind"),
    pytest.param("/apis/apps/v1/namespaces/default/deployments",
                 {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": THERE}, "spec": _SELECTED},
                 id="of a deployment"),
    pytest.param("/apis/batch/v1/namespaces/default/jobs",
                 {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": THERE}, "spec": _ENDING},
                 id="of a job"),
    pytest.param("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": THERE}}, id="of a node"),
])
async def test_a_mistake_is_the_client_s(api: Api, base: str, thing: Object) -> None:
    await api.made(DEFINITIONS, definition(_SCHEMA))
    await api.made(base, thing)

    broken = []
    for mistake in mistakes(base, thing):
        answer = await api.send(mistake.method, mistake.path, sent(mistake), query=mistake.query,
                                headers=mistake.headers)
        if _OURS in answer.body:
            broken.append(mistake.what)

    assert broken == []
