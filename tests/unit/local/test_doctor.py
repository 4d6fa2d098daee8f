"""What `doctor` finds on this machine, whatever that is: each thing is looked at, and what is missing has a remedy."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from trainmaster.cli.main import cli
from trainmaster.local.doctor import findings
from trainmaster.local.home import Home

pytestmark = pytest.mark.machine


def test_everything_is_looked_at(tmp_path: Path) -> None:
    found = {finding.what: finding for finding in findings(Home(tmp_path))}

    assert {"Python", "home", "pods", "limits"} <= found.keys()
    assert found["Python"].fine
    assert found["home"].fine
    for finding in found.values():
        assert finding.told
        assert "Cause" not in finding.told or finding.told.endswith(".") or "modprobe" in finding.told
    if found["pods"].fine:
        assert {"services", "outside"} <= found.keys()
    assert not list(tmp_path.iterdir()), "nothing is left"


def test_the_machine_is_looked_at_though_the_environment_names_its_own_cluster(tmp_path: Path) -> None:
    """As `up` tells people to have it; the cluster is down, perhaps since it cannot start."""
    environment = {"TRAINMASTER_HOME": str(tmp_path), "KUBECONFIG": str(Home(tmp_path).kubeconfig)}
    said = CliRunner().invoke(cli, ["doctor", "-o", "name"], env=environment).stdout

    assert {"Python", "home", "pods", "limits"} <= set(said.split())
