"""The init container that waits, and the operator's template for another one."""

import pytest

from trainmaster.frameworks.framework import Site
from trainmaster.frameworks.waiting import for_host, template_problem

TEMPLATE = """
- name: wait
  image: {{.InitContainerImage}}
  command: ['sh', '-c', 'i=0; until getent hosts {{ .MasterAddr }} && [ $i -lt {{.MaxTries}} ]; do sleep 1; done']
"""
LOOK = ("err=1;for i in $(seq 100); do if nslookup m-master-0; then err=0 && break; fi;"
        "echo waiting for master; sleep 2; done; exit $err")


def test_as_it_comes() -> None:
    """B-56: kept on clusters, where an image and DNS are there."""
    assert [{
        "name": "init-pytorch", "image": "alpine:3.10", "imagePullPolicy": "IfNotPresent",
        "resources": {"limits": {"cpu": "100m", "memory": "20Mi"}, "requests": {"cpu": "50m", "memory": "10Mi"}},
        "command": ["sh", "-c", LOOK],
    }] == list(for_host("m-master-0", Site()))


def test_image_and_patience_can_be_chosen() -> None:
    found, = for_host("m-master-0", Site(init_image="registry/busybox:1", init_tries=7))

    assert ("registry/busybox:1", True) == (found["image"], "$(seq 7)" in found["command"][2])


def test_a_template_replaces_it_as_plain_text() -> None:
    """B-57: upstream writes `&amp;&amp;`."""
    found, = for_host("m-master-0", Site(init_template=TEMPLATE))

    assert {"name": "wait", "image": "alpine:3.10", "command": [
        "sh", "-c", "i=0; until getent hosts m-master-0 && [ $i -lt 100 ]; do sleep 1; done",
    ]} == found


def test_nobody_has_to_wait() -> None:
    assert [] == list(for_host("m-master-0", Site(init_template="[]")))


@pytest.mark.parametrize(("template", "problem"), [
    pytest.param("- name: [", "it is not YAML", id="not YAML"),
    pytest.param("name: wait", "it must be a list of containers", id="one container, not a list"),
    pytest.param("- image: a", "it must be a list of containers, each with a name", id="a container without a name"),
    pytest.param(TEMPLATE, "", id="fine"),
])
def test_what_can_be_wrong_with_it(template: str, problem: str) -> None:
    assert template_problem(template).startswith(problem)
    assert bool(problem) == bool(template_problem(template))


def test_a_template_that_makes_no_sense_is_not_used() -> None:
    assert ["init-pytorch"] == [found["name"] for found in for_host("m-master-0", Site(init_template="name: wait"))]
