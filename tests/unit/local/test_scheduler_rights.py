"""The rights that are shipped are those of the code. Whether they suffice is tried beside a real kube-scheduler."""

from pathlib import Path

from trainmaster.local import scheduler_rights

MANIFEST = Path(__file__).parents[3] / "deploy" / "scheduler" / "rbac.yaml"


def test_the_manifest_is_what_the_code_says() -> None:
    assert scheduler_rights.text() == MANIFEST.read_text(), \
        "python -m trainmaster.local.scheduler_rights > deploy/scheduler/rbac.yaml"
