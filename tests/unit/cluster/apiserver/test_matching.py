"""Whom a webhook concerns."""

import pytest

from trainmaster.api.meta import Object, Resource
from trainmaster.cluster.apiserver.matching import CONNECT, CREATE, DELETE, UPDATE, candidates, hooks_of

PODS = Resource("", "v1", "pods", "Pod")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
JOBS, NEWER = (Resource("kubeflow.org", version, "tfjobs", "TFJob") for version in ("v1", "v2"))


def rule(operations: str = "CREATE", groups: str = "-", versions: str = "v1", resources: str = "pods",
         scope: str = "*") -> Object:
    """Words become lists; a dash is the core group."""
    return {"operations": operations.split(), "apiGroups": [word.replace("-", "") for word in groups.split()],
            "apiVersions": versions.split(), "resources": resources.split(), "scope": scope}


def concerned(rules: list[Object], operation: str, resource: Resource, part: str = "",
              others: tuple[Resource, ...] = (), **more: str) -> str:
    """The resource as which the webhook sees the request, or nothing."""
    configuration = {"metadata": {"name": "c"}, "webhooks": [{"name": "a.b.c", "rules": rules, **more}]}
    found = candidates(hooks_of(configuration), operation, resource, part, others)
    return " ".join(f"{each.seen_as.api_version} {each.seen_as.plural}" for each in found)


@pytest.mark.parametrize(("rules", "operation", "resource", "part", "expected"), [
    pytest.param([rule()], CREATE, PODS, "", True, id="everything as the rule says"),
    pytest.param([], CREATE, PODS, "", False, id="no rules, no requests"),
    pytest.param([rule()], UPDATE, PODS, "", False, id="another operation"),
    pytest.param([rule(operations="CREATE DELETE")], DELETE, PODS, "", True, id="the second operation"),
    pytest.param([rule(operations="*", resources="pods/exec")], CONNECT, PODS, "exec", True, id="any operation"),
    pytest.param([rule(groups="apps")], CREATE, PODS, "", False, id="another group"),
    pytest.param([rule(groups="*", resources="*")], CREATE, DEPLOYMENTS, "", True, id="any group"),
    pytest.param([rule(versions="v2")], CREATE, PODS, "", False, id="another version"),
    pytest.param([rule(versions="*")], CREATE, PODS, "", True, id="any version"),
    pytest.param([rule(resources="services")], CREATE, PODS, "", False, id="another resource"),
    pytest.param([rule(resources="*")], CREATE, PODS, "", True, id="any resource"),
    pytest.param([rule(resources="*")], CREATE, PODS, "status", False, id="any resource is no subresource"),
    pytest.param([rule(resources="pods")], CREATE, PODS, "binding", False, id="a resource is not its subresources"),
    pytest.param([rule(resources="pods/*")], CREATE, PODS, "binding", True, id="any subresource of one"),
    pytest.param([rule(resources="pods/*")], CREATE, PODS, "", True, id="any subresource, and the resource itself"),
    pytest.param([rule(resources="*/binding")], CREATE, PODS, "binding", True, id="one subresource of any"),
    pytest.param([rule(resources="*/*", groups="*")], CREATE, DEPLOYMENTS, "scale", True, id="everything"),
    pytest.param([rule(scope="Namespaced")], CREATE, PODS, "", True, id="in a namespace"),
    pytest.param([rule(scope="Cluster")], CREATE, PODS, "", False, id="not of the whole cluster"),
    pytest.param([rule(scope="Cluster", resources="*")], CREATE, NAMESPACES, "", True,
                 id="a namespace belongs to the cluster"),
    pytest.param([rule(scope="Namespaced", resources="*")], CREATE, NAMESPACES, "", False,
                 id="a namespace is in no namespace"),
    pytest.param([rule(groups="apps"), rule()], CREATE, PODS, "", True, id="the second rule"),
])
def test_rules(rules: list[Object], operation: str, resource: Resource, part: str, expected: bool) -> None:
    assert expected is bool(concerned(rules, operation, resource, part))


@pytest.mark.parametrize(("versions", "policy", "expected"), [
    pytest.param("v1", "Equivalent", "kubeflow.org/v1 tfjobs", id="the version itself"),
    pytest.param("v2", "Equivalent", "kubeflow.org/v2 tfjobs", id="an equivalent one"),
    pytest.param("v2 v1", "Equivalent", "kubeflow.org/v1 tfjobs", id="the version itself goes first"),
    pytest.param("v2", "Exact", "", id="only the exact one"),
    pytest.param("v3", "Equivalent", "", id="none of them"),
])
def test_equivalents(versions: str, policy: str, expected: str) -> None:
    rules = [rule(groups="kubeflow.org", versions=versions, resources="tfjobs")]

    assert expected == concerned(rules, CREATE, JOBS, others=(NEWER,), matchPolicy=policy)


@pytest.mark.parametrize(("selectors", "namespace", "things", "expected"), [
    pytest.param({}, {}, [{}], True, id="no selector selects everything"),
    pytest.param({"namespaceSelector": {"matchLabels": {"a": "b"}}}, {"a": "b"}, [{}], True, id="the namespace fits"),
    pytest.param({"namespaceSelector": {"matchLabels": {"a": "b"}}}, {}, [{}], False, id="the namespace does not"),
    pytest.param({"namespaceSelector": {"matchLabels": {"a": "b"}}}, None, [{}], True,
                 id="what is in no namespace is never exempt"),
    pytest.param({"objectSelector": {"matchLabels": {"a": "b"}}}, {}, [{"a": "b"}, None], True, id="the new object"),
    pytest.param({"objectSelector": {"matchLabels": {"a": "b"}}}, {}, [{}, {"a": "b"}], True, id="the old object"),
    pytest.param({"objectSelector": {"matchLabels": {"a": "b"}}}, {}, [{}, {}], False, id="neither"),
    pytest.param({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}, {}, [None, None],
                 False, id="nothing cannot be selected"),
])
def test_selectors(
    selectors: Object, namespace: dict[str, str] | None, things: list[dict[str, str] | None], expected: bool
) -> None:
    [hook] = hooks_of({"metadata": {"name": "c"}, "webhooks": [{"name": "a.b.c", **selectors}]})
    found = [None if labels is None else {"metadata": {"labels": labels}} for labels in things]

    assert expected is hook.selects(namespace, *found)
