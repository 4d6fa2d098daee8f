"""Bytes of protobuf in, the JSON of Go out; anything else is `Undecodable`, soon.

The rows here are small and by hand, one rule each. That all fields of all kinds are read as Go reads them is shown
where Go is: tests/kubernetes/test_protobuf.py.
"""

import contextlib
import struct
import time
from collections.abc import Callable

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cluster.apiserver.messages import MAGIC, chunk, enveloped, number, varint

from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import builtin, protobuf
from trainmaster.cluster.apiserver.protobuf_wire import Undecodable

# Seconds of processor time. Measured: the worst takes 0.3 s alone on a core; a busy core is several times slower.
SOON = 2.0


def config_map(*parts: bytes) -> Object:
    return protobuf.decode(enveloped("v1", "ConfigMap", *parts))


def pod_spec(*parts: bytes) -> Object:
    found: Object = protobuf.decode(enveloped("v1", "Pod", chunk(2, *parts)))["spec"]
    return found


def metadata(*parts: bytes) -> Object:
    found: Object = config_map(chunk(1, *parts))["metadata"]
    return found


def container(*parts: bytes) -> Object:
    found: Object = pod_spec(chunk(2, *parts))["containers"][0]
    return found


def limit(*parts: bytes) -> Json:
    return container(chunk(8, chunk(1, chunk(1, "cpu"), chunk(2, *parts))))["resources"]["limits"]["cpu"]


def probed(*parts: bytes) -> Json:
    return container(chunk(10, chunk(1, chunk(3, *parts))))["livenessProbe"]["tcpSocket"]


def schema(*parts: bytes) -> Object:
    version = chunk(7, chunk(4, chunk(1, *parts)))
    body = enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinition", chunk(2, version))
    found: Object = protobuf.decode(body)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


@pytest.mark.parametrize(("body", "expected"), [
    pytest.param(enveloped("v1", "ConfigMap"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}},
                 id="metadata is shown even if nobody sent any"),
    pytest.param(enveloped("v1", "DeleteOptions", number(1, 0), chunk(4, "Background")),
                 {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
                  "propagationPolicy": "Background"},
                 id="options of a deletion, with a zero that counts"),
    pytest.param(enveloped("kubeflow.org/v1", "DeleteOptions", chunk(5, "All")),
                 {"apiVersion": "kubeflow.org/v1", "kind": "DeleteOptions", "dryRun": ["All"]},
                 id="options of a deletion of a custom resource"),
    pytest.param(enveloped("autoscaling/v1", "Scale", chunk(2, number(1, 0))),
                 {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {}, "spec": {},
                  "status": {"replicas": 0}}, id="a scale to zero, which JSON does not show"),
    pytest.param(enveloped("policy/v1", "Eviction", chunk(2, number(1, 5))),
                 {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {},
                  "deleteOptions": {"gracePeriodSeconds": 5}},
                 id="an eviction"),
    pytest.param(enveloped("v1", "Binding", chunk(2, chunk(1, "Node"), chunk(3, "n"))),
                 {"apiVersion": "v1", "kind": "Binding", "metadata": {}, "target": {"kind": "Node", "name": "n"}},
                 id="a binding"),
    pytest.param(enveloped("authentication.k8s.io/v1", "TokenRequest", chunk(2, chunk(1, "a"))),
                 {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {},
                  "spec": {"audiences": ["a"], "expirationSeconds": None, "boundObjectRef": None},
                  "status": {"token": "", "expirationTimestamp": None}}, id="a request for a token, with its nulls"),
    pytest.param(enveloped("v1", "Status", chunk(2, "Failure"), number(6, 404)),
                 {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": 404},
                 id="a status"),
    pytest.param(enveloped("authorization.k8s.io/v1", "SelfSubjectAccessReview", chunk(2, chunk(1, chunk(2, "get")))),
                 {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {},
                  "spec": {"resourceAttributes": {"verb": "get"}}, "status": {"allowed": False}}, id="may I"),
])
def test_kinds(body: bytes, expected: Object) -> None:
    assert expected == protobuf.decode(body)


def test_a_message_without_a_kind_has_that_of_the_request() -> None:
    body = MAGIC + chunk(1) + chunk(2, chunk(4, "Foreground"))

    assert {"apiVersion": "apps/v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"} == protobuf.decode(
        body, "apps/v1", "DeleteOptions"
    )


@pytest.mark.parametrize(("found", "expected"), [
    pytest.param(lambda: metadata(chunk(1, "")), {}, id="empty text that may be left out"),
    pytest.param(lambda: metadata(chunk(1, "a"), chunk(1, "b")), {"name": "b"}, id="the last of two counts"),
    pytest.param(lambda: metadata(chunk(1, "a"), chunk(1, "")), {}, id="also if it is empty"),
    pytest.param(lambda: metadata(chunk(11, chunk(1, "a"), chunk(2, "b")), chunk(11, chunk(2, "c"), chunk(1, "d"))),
                 {"labels": {"a": "b", "d": "c"}}, id="a map in any order"),
    pytest.param(lambda: metadata(chunk(11)), {"labels": {"": ""}}, id="an empty entry of a map"),
    pytest.param(lambda: metadata(chunk(8)), {}, id="no creation time"),
    pytest.param(lambda: metadata(chunk(8, number(1, 0))), {"creationTimestamp": "1970-01-01T00:00:00Z"},
                 id="the first second of 1970 is a moment"),
    pytest.param(lambda: metadata(chunk(8, number(1, -1), number(2, 999_999_999))),
                 {"creationTimestamp": "1969-12-31T23:59:59Z"},
                 id="before 1970, without its decimals"),
    pytest.param(lambda: metadata(chunk(9)), {"deletionTimestamp": None}, id="a pointer to no moment"),
    pytest.param(lambda: metadata(number(10, 0)), {"deletionGracePeriodSeconds": 0}, id="a pointer to zero"),
    pytest.param(lambda: metadata(number(7, 0)), {}, id="a zero that may be left out"),
    pytest.param(lambda: metadata(number(7, -2)), {"generation": -2}, id="a negative number"),
    pytest.param(lambda: metadata(chunk(14, "b"), chunk(14, "a")), {"finalizers": ["b", "a"]},
                 id="a list keeps its order"),
    pytest.param(lambda: metadata(chunk(17, chunk(7, chunk(1, '{"f:a":{}}')))),
                 {"managedFields": [{"fieldsV1": {"f:a": {}}}]},
                 id="fields are JSON"),
    pytest.param(lambda: metadata(chunk(999, "x"), number(998, 1)), {}, id="fields of a later release are passed over"),
    pytest.param(lambda: metadata(varint(997 << 3 | 1) + b"12345678", varint(996 << 3 | 5) + b"1234", chunk(1, "a")),
                 {"name": "a"},
                 id="whatever their form"),
    pytest.param(lambda: container(chunk(1, "c"), chunk(8)), {"name": "c", "resources": {}},
                 id="an empty part that is shown"),
    pytest.param(lambda: container(), {"name": "", "resources": {}}, id="a part that is shown even if absent"),
    pytest.param(lambda: limit(chunk(1, "500m")), "500m", id="a quantity"),
    pytest.param(lambda: limit(), "0", id="a quantity of nothing"),
    pytest.param(lambda: probed(chunk(1, number(1, 1), chunk(3, "http"))), {"port": "http"},
                 id="a port by name, in a part that Go inlines"),
    pytest.param(lambda: probed(chunk(1, number(2, 80))), {"port": 80}, id="a port by number"),
    pytest.param(lambda: probed(), {"port": 0}, id="no port at all"),
    pytest.param(lambda: pod_spec(), {"containers": None}, id="a list that is null if absent"),
    pytest.param(lambda: pod_spec(chunk(1, chunk(1, "v"), chunk(2, chunk(2)))),
                 {"containers": None, "volumes": [{"name": "v", "emptyDir": {}}]}, id="a volume"),
    pytest.param(lambda: pod_spec(chunk(14, number(4, 1), number(4, -1))),
                 {"containers": None, "securityContext": {"supplementalGroups": [1, -1]}}, id="numbers one by one"),
    pytest.param(lambda: pod_spec(chunk(14, chunk(4, varint(1), varint(300)))), {"containers": None, "securityContext":
                 {"supplementalGroups": [1, 300]}}, id="numbers in one chunk"),
    pytest.param(lambda: pod_spec(chunk(14, number(2, 5)), chunk(14, number(3, 0))),
                 {"containers": None, "securityContext": {"runAsUser": 5, "runAsNonRoot": False}},
                 id="a part in two pieces"),
    pytest.param(lambda: config_map(chunk(3, chunk(1, "k"), chunk(2, b"\x00\xff")), number(4, 0)),
                 {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "binaryData": {"k": "AP8="},
                  "immutable": False},
                 id="bytes are base64"),
    pytest.param(lambda: schema(varint(11 << 3 | 1) + struct.pack("<d", 1.0)), {"minimum": 1},
                 id="a floating-point number"),
    pytest.param(lambda: schema(chunk(24, chunk(1, chunk(5, "string")))), {"items": {"type": "string"}},
                 id="items are a schema"),
    pytest.param(lambda: schema(chunk(24, chunk(2), chunk(2))), {"items": [{}, {}]}, id="or a list of them"),
    pytest.param(lambda: schema(chunk(24)), {"items": None}, id="or nothing"),
    pytest.param(lambda: schema(chunk(30, number(1, 1))), {"additionalProperties": True},
                 id="additional properties: yes"),
    pytest.param(lambda: schema(chunk(30)), {"additionalProperties": False}, id="no"),
    pytest.param(lambda: schema(chunk(30, number(1, 1), chunk(2, chunk(5, "x")))),
                 {"additionalProperties": {"type": "x"}},
                 id="or a schema"),
    pytest.param(lambda: schema(chunk(32, chunk(1, "k"), chunk(2, chunk(2, "a")))), {"dependencies": {"k": ["a"]}},
                 id="dependencies are names"),
    pytest.param(lambda: schema(chunk(8, chunk(1, "[1]"))), {"default": [1]}, id="a default is JSON"),
    pytest.param(lambda: schema(chunk(8)), {"default": None}, id="or null"),
    pytest.param(lambda: schema(chunk(29, chunk(1, "a"), chunk(2, chunk(29, chunk(1, "b"))))),
                 {"properties": {"a": {"properties": {"b": {}}}}}, id="a type that contains itself"),
])
def test_values(found: Callable[[], Json], expected: Json) -> None:
    assert expected == found()


def test_extra_values_are_lists_in_a_map() -> None:
    body = enveloped("authorization.k8s.io/v1", "SubjectAccessReview",
                     chunk(2, chunk(5, chunk(1, "k"), chunk(2, chunk(1, "v"))), chunk(5, chunk(1, "none"), chunk(2))))

    assert {"extra": {"k": ["v"], "none": []}} == protobuf.decode(body)["spec"]


def test_a_precise_moment_keeps_its_microseconds() -> None:
    body = enveloped("coordination.k8s.io/v1", "Lease", chunk(2, chunk(4, number(1, 1), number(2, 1_234))))

    assert {"renewTime": "1970-01-01T00:00:01.000001Z"} == protobuf.decode(body)["spec"]


@pytest.mark.parametrize(("raw", "expected"), [
    pytest.param(chunk(1, '{"a": [1, null]}'), {"a": [1, None]}, id="JSON"),
    pytest.param(b"", None, id="nothing"),
    pytest.param(chunk(1, enveloped("v1", "Namespace", chunk(1, chunk(1, "n")))),
                 {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}, "spec": {}, "status": {}},
                 id="a message in its own envelope"),
])
def test_an_object_inside_an_object(raw: bytes, expected: Json) -> None:
    assert [expected] == protobuf.decode(enveloped("v1", "List", chunk(2, raw)))["items"]


DEEP = b""
for _ in range(70):
    DEEP = chunk(29, chunk(1, "a"), chunk(2, DEEP))
LISTS = b"[]"
for _ in range(30):
    LISTS = enveloped("v1", "List", chunk(2, chunk(1, LISTS)))


@pytest.mark.parametrize(("body", "sentence"), [
    pytest.param(b"", "does not begin with k8s", id="nothing"),
    pytest.param(b"{}", "does not begin with k8s", id="JSON"),
    pytest.param(MAGIC, "the body is empty", id="only the beginning"),
    pytest.param(MAGIC + chunk(2, chunk(1, "x")), "of which kind", id="no kind"),
    pytest.param(MAGIC + chunk(1, chunk(2, "Pod")), "of which apiVersion", id="no version"),
    pytest.param(enveloped("kubeflow.org/v1", "TFJob"), 'no kind "TFJob" is registered for version "kubeflow.org/v1"',
                 id="a custom resource"),
    pytest.param(enveloped("v1", "Pod") + chunk(3, "gzip"), "encoded as 'gzip'", id="compressed"),
    pytest.param(enveloped("v1", "Pod", number(2, 1)), "field 2 of api.core.v1.Pod must be bytes, not a number",
                 id="a number where an object belongs"),
    pytest.param(enveloped("v1", "ConfigMap", chunk(4, "x")), "must be a number, not bytes", id="bytes for true"),
    pytest.param(enveloped("v1", "ConfigMap", b"\x00\x00"), "number 0", id="a field without a number"),
    pytest.param(enveloped("v1", "ConfigMap", b"\x0b\x0c"), "wire type 3", id="a group"),
    pytest.param(enveloped("v1", "ConfigMap", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "middle of a field",
                 id="an absurd length"),
    pytest.param(enveloped("v1", "ConfigMap", b"\x0a" + b"\xff" * 11), "more than 64 bits", id="an endless number"),
    pytest.param(enveloped("v1", "ConfigMap", b"\x0a"), "middle of a number", id="no length"),
    pytest.param(enveloped("v1", "ConfigMap", chunk(1, chunk(1, b"\xff"))), "UTF-8", id="text that is none"),
    pytest.param(enveloped("v1", "Pod", chunk(2, chunk(2, chunk(8, chunk(1, chunk(2, chunk(1, "lots"))))))),
                 "'lots' is not a quantity", id="not a quantity"),
    pytest.param(enveloped("v1", "ConfigMap", chunk(1, chunk(8, number(1, 1 << 62)))), "years 1 and 9999",
                 id="a moment far away"),
    pytest.param(enveloped("v1", "List", chunk(2, chunk(1, "{"))), "JSON inside the message", id="broken JSON inside"),
    pytest.param(enveloped("v1", "List", chunk(2, chunk(1, "[" * 200 + "]" * 200))), "nested more than",
                 id="deep JSON inside"),
    pytest.param(enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinition",
                           chunk(2, chunk(7, chunk(4, chunk(1, DEEP))))), "nested more than", id="deep messages"),
    pytest.param(enveloped("v1", "PodList", chunk(2) * 100_001), "more than 100000 parts", id="many small objects"),
    pytest.param(enveloped("v1", "ConfigMap", chunk(2) * 100_001), "more than 100000 parts", id="many small entries"),
    pytest.param(MAGIC + bytes(protobuf.MOST_BYTES), "more than 3145728", id="too many bytes"),
    pytest.param(enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinition", chunk(2, chunk(7, chunk(4, chunk(
        1, varint(11 << 3 | 1) + struct.pack("<d", float("nan"))))))), "JSON cannot write", id="not a number"),
])
def test_what_cannot_be_read(body: bytes, sentence: str) -> None:
    began = time.process_time()
    with pytest.raises(Undecodable) as found:
        protobuf.decode(body)

    assert sentence in str(found.value)
    assert len(str(found.value)) < 300
    assert time.process_time() - began < SOON


def test_lists_in_lists_are_read_to_a_depth() -> None:
    assert orjson.dumps(protobuf.decode(LISTS))


def test_every_word_of_the_table_has_a_reader() -> None:
    numeric = set(protobuf._NUMBERS) | {"double"}

    assert builtin.WORDS == set(protobuf._READERS) | numeric
    assert builtin.WORDS - {"strings"} == set(protobuf._ZEROS)


def test_floating_point_numbers_are_single_and_never_left_out() -> None:
    """The decoder knows no other form of them; a release that has one must be noticed."""
    found = [each for name in builtin._table()["types"] for each in builtin.type_named(name).fields.values()
             if each.word == "double"]

    assert {(builtin.Many.ONE, builtin.Zero.AS_SENT)} == {(each.many, each.zero) for each in found}


KINDS = [("v1", "Pod"), ("v1", "List"), ("apps/v1", "StatefulSet"), ("v1", "DeleteOptions"), ("v1", "Event"),
         ("apiextensions.k8s.io/v1", "CustomResourceDefinition"), ("resource.k8s.io/v1", "ResourceSlice")]
SAMPLES = [
    enveloped("v1", "Pod", chunk(1, chunk(1, "p"), chunk(8, number(1, 9)), chunk(11, chunk(1, "a"), chunk(2, "b"))),
              chunk(2, chunk(2, chunk(1, "c"), chunk(6, number(3, 80))), chunk(1, chunk(1, "v"), chunk(2, chunk(2))))),
    enveloped("v1", "List", chunk(2, chunk(1, '{"a":[1,{"b":null}]}'))),
    enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinition",
              chunk(2, chunk(7, chunk(4, chunk(1, chunk(29, chunk(1, "a"), chunk(2, chunk(24, chunk(1))))))))),
    LISTS,
]


def decoded_or_refused(body: bytes) -> None:
    began = time.process_time()
    with contextlib.suppress(Undecodable):
        orjson.dumps(protobuf.decode(body))
    assert time.process_time() - began < SOON


@given(kind=st.sampled_from(KINDS), body=st.binary(max_size=400))
def test_random_bytes_are_read_or_refused(kind: tuple[str, str], body: bytes) -> None:
    decoded_or_refused(enveloped(*kind, body))


@given(body=st.binary(max_size=200))
def test_a_random_envelope_is_read_or_refused(body: bytes) -> None:
    decoded_or_refused(MAGIC + body)


@given(sample=st.sampled_from(SAMPLES), cut=st.integers(min_value=0))
def test_a_message_that_is_cut_off_is_read_or_refused(sample: bytes, cut: int) -> None:
    decoded_or_refused(sample[:cut % len(sample)])


@given(sample=st.sampled_from(SAMPLES), at=st.integers(min_value=0), other=st.binary(max_size=3))
def test_a_message_with_wrong_bytes_is_read_or_refused(sample: bytes, at: int, other: bytes) -> None:
    at %= len(sample)
    decoded_or_refused(sample[:at] + other + sample[at + 1:])


TREES = st.recursive(
    st.one_of(st.builds(number, st.integers(1, 40), st.integers(-5, 1 << 40)),
              st.builds(chunk, st.integers(1, 40), st.sampled_from(["", "a", "2Gi", "{}", "k8s\x00"]))),
    lambda inner: st.builds(lambda field, parts: chunk(field, *parts), st.integers(1, 40), st.lists(inner, max_size=4)),
    max_leaves=30,
)


def test_a_message_in_two_parts_may_begin_a_list_in_the_second() -> None:
    body = enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinition", b"\x1a\x00", b"\x1a\x02\n\x00")

    assert 1 == len(protobuf.decode(body)["status"]["conditions"])


@given(kind=st.sampled_from(KINDS), parts=st.lists(TREES, max_size=5))
def test_well_formed_messages_of_any_fields_are_read_or_refused(kind: tuple[str, str], parts: list[bytes]) -> None:
    decoded_or_refused(enveloped(*kind, *parts))


@pytest.mark.parametrize("body", [
    pytest.param(enveloped("v1", "PodList", chunk(2, chunk(2, chunk(2) * 33_000))), id="many containers"),
    pytest.param(enveloped("v1", "Pod", chunk(1, chunk(14) * 1_500_000)), id="many empty texts"),
    pytest.param(enveloped("v1", "Pod", chunk(1, chunk(1) * 1_500_000)), id="the same empty text again and again"),
    pytest.param(enveloped("v1", "Pod", chunk(2, chunk(14, chunk(4, bytes(3_000_000))))), id="many numbers"),
    pytest.param(enveloped("v1", "Pod", (number(99, 1)) * 700_000), id="many fields nobody knows"),
    pytest.param(enveloped("v1", "ConfigMap", chunk(3, chunk(2, bytes(3_000_000)))), id="many bytes"),
])
def test_the_worst_bodies_take_bounded_time(body: bytes) -> None:
    assert len(body) < protobuf.MOST_BYTES

    decoded_or_refused(body)
