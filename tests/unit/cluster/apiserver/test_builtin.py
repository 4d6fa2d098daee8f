"""The table: every kind leads to types, every type to fields, and what clients rely on most is as Kubernetes has it."""

import time

import pytest

from trainmaster.cluster.apiserver import builtin
from trainmaster.cluster.apiserver.builtin import Field, Many, Type, Zero

# Measured: 3 ms alone on a core. Ten times that on a busy machine still does not delay a start.
LOADS_WITHIN = 0.2
# Measured: 187 kB. Big enough for a release or two more, small enough to be read in a review.
MOST_BYTES = 600_000


def shape(api_version: str, kind: str) -> Type:
    found = builtin.shape_of(api_version, kind)
    assert found is not None, f"{api_version} {kind}"
    return found


def field(api_version: str, kind: str, path: str) -> Field:
    """The field at a dotted path; lists and maps are looked through."""
    *above, last = path.split(".")
    found = shape(api_version, kind)
    for name in above:
        inner = found.fields[name].type
        assert inner is not None, name
        found = inner
    return found.fields[last]


def all_types() -> list[Type]:
    return [builtin.type_named(name) for name in builtin._table()["types"]]


def test_the_table_is_small_and_quick_to_read() -> None:
    builtin._table.cache_clear()
    began = time.process_time()
    builtin.shape_of("v1", "Pod")

    assert builtin.FILE.stat().st_size < MOST_BYTES
    assert time.process_time() - began < LOADS_WITHIN


def test_every_field_has_a_known_word_or_a_type_that_exists() -> None:
    for found in all_types():
        for each in found.fields.values():
            assert (each.word in builtin.WORDS) != (each.type is not None), f"{found.name}.{each.name}"


def test_no_two_fields_of_a_type_have_the_same_place_on_the_wire() -> None:
    for found in all_types():
        places = [each.numbers for each in found.fields.values() if each.numbers]
        assert len(set(places)) == len(places), found.name


def test_lists_of_maps_have_keys_that_are_fields_of_their_items() -> None:
    for found in all_types():
        for each in found.fields.values():
            if each.list_type == "map":
                assert each.type is not None
                assert each.list_keys, f"{found.name}.{each.name}"
                assert set(each.list_keys) <= set(each.type.fields), f"{found.name}.{each.name}"
            if each.merge_key:
                assert each.type is not None
                assert each.merge_key in each.type.fields, f"{found.name}.{each.name}"


@pytest.mark.parametrize(("api_version", "kind", "name"), [
    pytest.param("v1", "Pod", "api.core.v1.Pod", id="a kind of the first group"),
    pytest.param("apps/v1", "Deployment", "api.apps.v1.Deployment", id="a kind of a named group"),
    pytest.param("v1", "Status", "apimachinery.pkg.apis.meta.v1.Status", id="what answers are made of"),
    pytest.param("batch/v1", "DeleteOptions", "apimachinery.pkg.apis.meta.v1.DeleteOptions",
                 id="options exist in every group"),
    pytest.param("kubeflow.org/v1", "DeleteOptions", "apimachinery.pkg.apis.meta.v1.DeleteOptions",
                 id="also in groups of custom resources"),
    pytest.param("policy/v1", "Eviction", "api.policy.v1.Eviction", id="a kind that only a subresource takes"),
    pytest.param("autoscaling/v2", "HorizontalPodAutoscaler", "api.autoscaling.v2.HorizontalPodAutoscaler",
                 id="the second version of a group"),
    pytest.param("v1", "Deployment", None, id="not in this group"),
    pytest.param("apps/v1beta1", "Deployment", None, id="not in a version that is gone"),
    pytest.param("kubeflow.org/v1", "TFJob", None, id="not a custom resource"),
    pytest.param("", "", None, id="nothing"),
])
def test_a_kind_has_a_type(api_version: str, kind: str, name: str | None) -> None:
    found = builtin.shape_of(api_version, kind)

    assert name == (found.name if found else None)


@pytest.mark.parametrize(("where", "expected"), [
    pytest.param(("v1", "Pod", "spec.containers"),
                 {"many": Many.LIST, "list_type": "map", "list_keys": ("name",), "patch": ("merge",),
                  "merge_key": "name", "required": True, "zero": Zero.NULL, "numbers": (2,)},
                 id="containers are merged by name"),
    pytest.param(("v1", "Pod", "spec.containers.ports"),
                 {"list_keys": ("containerPort", "protocol"), "merge_key": "containerPort"},
                 id="ports have two keys in one way of patching and one in the other"),
    pytest.param(("v1", "Pod", "spec.containers.ports.protocol"), {"default": "TCP"}, id="a key with a default"),
    pytest.param(("v1", "Pod", "spec.tolerations"), {"list_type": "atomic", "patch": ()},
                 id="tolerations are replaced"),
    pytest.param(("v1", "Pod", "spec.volumes"), {"patch": ("merge", "retainKeys"), "merge_key": "name"},
                 id="volumes keep only the keys of the patch"),
    pytest.param(("v1", "Pod", "spec.volumes.emptyDir"), {"numbers": (2, 2), "zero": Zero.AS_SENT},
                 id="a part that Go inlines has two numbers"),
    pytest.param(("v1", "Pod", "metadata.finalizers"), {"list_type": "set", "patch": ("merge",)},
                 id="finalizers are a set"),
    pytest.param(("v1", "Pod", "metadata.creationTimestamp"), {"word": "time", "zero": Zero.OMIT},
                 id="no creation time is not shown"),
    pytest.param(("v1", "Pod", "status.startTime"), {"word": "time", "zero": Zero.AS_SENT}, id="a pointer to a moment"),
    pytest.param(("v1", "Event", "eventTime"), {"word": "micro-time", "zero": Zero.ALWAYS},
                 id="a moment that is null if there is none"),
    pytest.param(("v1", "Service", "spec.ports.targetPort"), {"word": "int-or-string", "zero": Zero.ALWAYS},
                 id="a port by number or name"),
    pytest.param(("v1", "Secret", "data"), {"many": Many.MAP, "word": "bytes"}, id="a map of bytes"),
    pytest.param(("v1", "Node", "status.capacity"), {"many": Many.MAP, "word": "quantity"}, id="a map of quantities"),
    pytest.param(("v1", "ConfigMap", "apiVersion"), {"numbers": ()}, id="the type itself is not on the wire"),
    pytest.param(("apps/v1", "Deployment", "spec.replicas"), {"word": "int32", "zero": Zero.AS_SENT},
                 id="zero replicas are not the same as none"),
])
def test_a_field_is_as_kubernetes_has_it(where: tuple[str, str, str], expected: dict[str, object]) -> None:
    found = field(*where)

    assert expected == {name: getattr(found, name) for name in expected}


def test_a_label_selector_is_owned_as_a_whole() -> None:
    assert "atomic" == builtin.type_named("apimachinery.pkg.apis.meta.v1.LabelSelector").map_type


def test_names_in_openapi_have_their_prefix() -> None:
    assert "io.k8s.api.core.v1.Pod" == shape("v1", "Pod").definition


@pytest.mark.parametrize(("api_version", "plural", "part", "expected"), [
    pytest.param("v1", "pods", "binding", ("v1", "Binding"), id="a pod is bound"),
    pytest.param("v1", "pods", "eviction", ("policy/v1", "Eviction"), id="a pod is evicted in another group's words"),
    pytest.param("apps/v1", "deployments", "scale", ("autoscaling/v1", "Scale"), id="a deployment is scaled"),
    pytest.param("apps/v1", "deployments", "status", ("apps/v1", "Deployment"),
                 id="a status has the kind of its object"),
    pytest.param("v1", "serviceaccounts", "token", ("authentication.k8s.io/v1", "TokenRequest"),
                 id="a token is asked for"),
])
def test_a_part_of_an_object_has_a_kind(api_version: str, plural: str, part: str, expected: tuple[str, str]) -> None:
    served = next(each for each in builtin.served()[api_version] if each.resource.plural == plural)

    assert expected == (served.parts[part].api_version, served.parts[part].kind)


def test_every_served_kind_and_every_part_has_a_type() -> None:
    for api_version, rows in builtin.served().items():
        for each in rows:
            shape(api_version, each.resource.kind)
            for part in each.parts.values():
                if {"create", "update", "patch"} & set(part.verbs) and "Options" not in part.kind:
                    shape(part.api_version, part.kind)


def test_a_resource_is_offered_as_on_a_real_server() -> None:
    pods = next(each for each in builtin.served()["v1"] if each.resource.plural == "pods")
    nodes = next(each for each in builtin.served()["v1"] if each.resource.plural == "nodes")

    assert ("pod", ("po",), ("all",)) == (pods.singular, pods.short_names, pods.categories)
    assert pods.resource.namespaced
    assert not nodes.resource.namespaced
    assert "deletecollection" in pods.verbs
