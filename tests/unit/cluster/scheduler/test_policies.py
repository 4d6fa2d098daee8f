"""The policies that are shipped are those of the code. What they say is asked of a real server (tests/kubernetes)."""

from pathlib import Path

from trainmaster.cluster.scheduler import policies

MANIFEST = Path(__file__).parents[4] / "deploy" / "scheduler" / "policies.yaml"


def test_the_manifest_is_what_the_code_says() -> None:
    assert policies.text() == MANIFEST.read_text(), \
        "python -m trainmaster.cluster.scheduler.policies > deploy/scheduler/policies.yaml"
