"""Every example of these kinds that users have, unchanged: what it makes, how it ends, and what is odd about it.

The files are not part of the project; where they are not, this says so.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.engine.world import World

from trainmaster.api.kubeflow_v1 import kind_named
from trainmaster.api.meta import Object
from trainmaster.api.schema import definition
from trainmaster.api.validation import problems

SHARED = Path(__file__).parents[3] / "shared"
UPSTREAM, SEEDS = SHARED / "upstream" / "training-operator", SHARED / "seeds" / "manifests"
here = pytest.mark.skipif(not UPSTREAM.exists(), reason=f"the examples are not in {UPSTREAM}")

# file, pods by role, who ends well so that the job does, fields that no definition knows
TABLE: list[tuple[Path, dict[str, int], str, list[str]]] = [
    (UPSTREAM / "jax-cpu-demo.yaml", {"worker": 2}, "*", []),
    (UPSTREAM / "mx-dist.yaml", {"scheduler": 1, "server": 1, "worker": 1}, "*-scheduler-0", []),
    (UPSTREAM / "mx-dist-gpu.yaml", {"scheduler": 1, "server": 1, "worker": 1}, "*-scheduler-0", []),
    (UPSTREAM / "mx-tune-gpu.yaml", {"tuner": 1, "tunerserver": 1, "tunertracker": 1}, "*-tuner-0",
     ["spec.mxReplicaSpecs.TunerServer.label"]),
    (UPSTREAM / "paddle-simple-gpu.yaml", {"worker": 2}, "*", []),
    (UPSTREAM / "pytorch-deepspeed-demo.yaml", {"master": 1, "worker": 1}, "*-master-0", []),
    (UPSTREAM / "pytorch-elastic-echo.yaml", {"worker": 2}, "*-worker-1", []),
    (UPSTREAM / "pytorch-elastic-imagenet.yaml", {"worker": 2}, "*-worker-1", []),
    (UPSTREAM / "pytorch-mnist-gloo.yaml", {"master": 1, "worker": 1}, "*-master-0", []),
    (UPSTREAM / "pytorch-mnist-mpi.yaml", {"master": 1, "worker": 1}, "*-master-0", []),
    (UPSTREAM / "pytorch-sendrecv.yaml", {"master": 1, "worker": 3}, "*-master-0", []),
    (UPSTREAM / "pytorch-simple.yaml", {"master": 1, "worker": 1}, "*-master-0", []),
    (UPSTREAM / "tf-dist-mnist.yaml", {"ps": 2, "worker": 4}, "*-worker-0", []),
    (UPSTREAM / "tf-estimator-distributed.yaml", {"worker": 3}, "*-worker-0", []),
    (UPSTREAM / "tf-mnist-summaries.yaml", {"worker": 1}, "*", []),
    (UPSTREAM / "tf-simple.yaml", {"worker": 2}, "*-worker-0", []),
    (UPSTREAM / "xgb-iris-predict.yaml", {"master": 1, "worker": 2}, "*-master-0", []),
    (UPSTREAM / "xgb-iris-train.yaml", {"master": 1, "worker": 2}, "*-master-0", []),
    (UPSTREAM / "xgb-lightgbm-dist.yaml", {"master": 1, "worker": 2}, "*-master-0", []),
    (UPSTREAM / "xgb-v1alpha1-rabit-test.yaml", {"master": 1, "worker": 2}, "*-master-0", [
        "spec.xgbReplicaSpecs.Master.template.apiVersion", "spec.xgbReplicaSpecs.Master.template.kind",
        "spec.xgbReplicaSpecs.Worker.template.apiVersion", "spec.xgbReplicaSpecs.Worker.template.kind"]),
    (SEEDS / "000-tfjob-ps-worker.yaml", {"ps": 2, "worker": 4}, "*-worker-0", []),
    (SEEDS / "001-pytorchjob-simple.yaml", {"master": 1, "worker": 1}, "*-master-0", []),
    (SEEDS / "001-tfjob-generate-name.yaml", {"ps": 1, "worker": 3}, "*-worker-0", []),
    (SEEDS / "001-tfjob-one-gpu.yaml", {"ps": 2, "worker": 4}, "*-worker-0", []),
    (SEEDS / "003-tfjob-kube-batch.yaml", {"ps": 2, "worker": 4}, "*-worker-0", []),
    (SEEDS / "003-tfjob-volcano.yaml", {"ps": 2, "worker": 4}, "*-worker-0", []),
]


def jobs(path: Path) -> list[Object]:
    found = [thing for thing in yaml.safe_load_all(path.read_text()) if thing and kind_named(thing.get("kind", ""))]
    return [thing for thing in found if thing["apiVersion"] == "kubeflow.org/v1"]


@here
@pytest.mark.parametrize(("path", "roles", "decide"), [pytest.param(*row[:3], id=row[0].name) for row in TABLE])
def test_it_is_taken_runs_and_succeeds(path: Path, roles: dict[str, int], decide: str) -> None:
    thing, = jobs(path)
    assert [] == problems(thing)
    meta = {"name": "made-up", **thing["metadata"], "namespace": "ns", "uid": "job-1"}
    world = World({**thing, "metadata": meta})
    world.settle()
    world.run()
    world.settle()

    made: dict[str, int] = {}
    for pod in world.seen.pods.values():
        made[pod.role] = made.get(pod.role, 0) + 1
    assert roles == made
    assert sorted(world.pods) == sorted(world.services)
    assert ("Running", "True") == world.conditions()[-1]
    world.succeed(decide)
    world.settle()
    assert ("Succeeded", "True") == world.conditions()[-1]


@here
@pytest.mark.parametrize(("path", "strays"), [pytest.param(row[0], row[3], id=row[0].name) for row in TABLE])
def test_strict_validation_refuses_exactly_the_strays(path: Path, strays: list[str]) -> None:
    thing, = jobs(path)
    known = kind_named(thing["kind"])
    assert known is not None
    schema = definition(known)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

    assert strays == sorted(unknown(thing["spec"], schema["properties"]["spec"], "spec"))


@here
def test_no_example_is_left_out() -> None:
    files = [*UPSTREAM.glob("*.yaml"), *SEEDS.glob("*.yaml")]

    assert sorted(path for path in files if jobs(path)) == sorted(row[0] for row in TABLE)


def unknown(value: Any, schema: Object, path: str) -> Iterator[str]:
    """The fields that a definition does not know, as a strict server names them."""
    if isinstance(value, list) and "items" in schema:
        for item in value:
            yield from unknown(item, schema["items"], path)
    if not isinstance(value, dict) or schema.get("type") != "object":
        return
    for key, inner in value.items():
        if key in schema.get("properties", {}):
            yield from unknown(inner, schema["properties"][key], f"{path}.{key}")
        elif "additionalProperties" in schema:
            yield from unknown(inner, schema["additionalProperties"], f"{path}.{key}")
        elif not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{path}.{key}"
