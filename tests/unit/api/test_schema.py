"""The definitions: small, structural, and nothing newer than Kubernetes 1.22."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from trainmaster.api.schema import definitions

KINDS = [pytest.param(definition, id=definition["spec"]["names"]["kind"]) for definition in definitions()]
# Keywords of structural schemas that every server since 1.22 knows.
KNOWN = {"type", "properties", "additionalProperties", "items", "required", "description", "format", "default", "anyOf",
         "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"}


def schema(definition: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def parts(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("properties", {}).values():
        yield from parts(child)
    for key in ("items", "additionalProperties"):
        if key in node:
            yield from parts(node[key])


@pytest.mark.parametrize("definition", KINDS)
def test_it_fits_into_the_annotation_of_client_side_apply(definition: dict[str, Any]) -> None:
    assert len(orjson.dumps(definition)) < 100_000


@pytest.mark.parametrize("definition", KINDS)
def test_it_is_structural_and_old_servers_know_every_word(definition: dict[str, Any]) -> None:
    for part in parts(schema(definition)):
        assert set(part) <= KNOWN
        assert {"type", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"} & set(part)
        assert not ("properties" in part and "additionalProperties" in part), "these exclude each other"


@pytest.mark.parametrize("definition", KINDS)
def test_what_people_see_and_tools_rely_on(definition: dict[str, Any]) -> None:
    names, version = definition["spec"]["names"], definition["spec"]["versions"][0]

    assert definition["metadata"]["name"] == f"{names['plural']}.kubeflow.org"
    assert names["listKind"] == f"{names['kind']}List"
    assert ("v1", True, True, {}) == (
        version["name"], version["served"], version["storage"], version["subresources"]["status"],
    )
    assert [("State", ".status.conditions[-1:].type"), ("Age", ".metadata.creationTimestamp")] == [
        (column["name"], column["jsonPath"]) for column in version["additionalPrinterColumns"]
    ]


def test_each_kind_has_a_short_name_of_its_own() -> None:
    """For people at a terminal; upstream has none (§1.1)."""
    short = [found["spec"]["names"]["shortNames"] for found in definitions()]

    assert [["tfj"], ["ptj"], ["xgbj"], ["mxj"], ["pdj"], ["jaxj"]] == short


def test_the_kinds_that_can_be_scaled() -> None:
    scaled = {found["spec"]["names"]["kind"]: found["spec"]["versions"][0]["subresources"].get("scale")
              for found in definitions()}

    assert {
        kind: {"specReplicasPath": f".spec.{field}.Worker.replicas",
               "statusReplicasPath": ".status.replicaStatuses.Worker.active",
               "labelSelectorPath": ".status.replicaStatuses.Worker.selector"}
        for kind, field in (("PyTorchJob", "pytorchReplicaSpecs"), ("PaddleJob", "paddleReplicaSpecs"),
                            ("JAXJob", "jaxReplicaSpecs"))
    } == {kind: paths for kind, paths in scaled.items() if paths}


@pytest.mark.parametrize("definition", KINDS)
def test_what_is_required_and_what_has_a_default(definition: dict[str, Any]) -> None:
    spec = schema(definition)["properties"]["spec"]
    field, = (name for name in spec["required"] if name != "jobMode")
    template = spec["properties"][field]["additionalProperties"]["properties"]["template"]["properties"]
    defaults = [part["default"] for part in parts(schema(definition)) if "default" in part]

    assert field.endswith("ReplicaSpecs")
    assert ("jobMode" in spec["required"]) == (definition["spec"]["names"]["kind"] == "MXJob")
    assert ["containers"] == template["spec"]["required"]
    assert ["name"] == template["spec"]["properties"]["containers"]["items"]["required"]
    assert ["annotations", "finalizers", "labels", "name", "namespace"] == sorted(template["metadata"]["properties"])
    assert [False] == defaults
    assert spec["properties"]["runPolicy"]["properties"]["suspend"]["default"] is False
