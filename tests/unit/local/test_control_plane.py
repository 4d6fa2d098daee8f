"""The control plane's process: what it loads."""

import subprocess
import sys


def test_the_control_plane_does_without_the_kubelet_and_what_only_the_scheduler_and_the_operator_need() -> None:
    """It starts sooner and is smaller. Removing the folder of a volume is what it shares with the node."""
    program = "import sys, trainmaster.local.control_plane; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()

    kubelet = {name for name in loaded if name.startswith("trainmaster.cluster.kubelet.")}
    assert {"trainmaster.cluster.kubelet.removal"} == kubelet
    assert not {"trainmaster.cluster.scheduler.loop", "trainmaster.operator.main"} & set(loaded)
