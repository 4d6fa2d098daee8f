"""The official Python client, unmodified, against the embedded API server.

It is no dependency of ours, so it runs in a process of its own: in the interpreter that KUBERNETES_CLIENT_PYTHON names,
or in this one if the package happens to be there.
"""

import asyncio
import importlib.util
import os
import sys
from pathlib import Path

import pytest
import yaml
from tests.conformance.conftest import Cluster

from trainmaster.kube import kubeconfig

EXPECTED = """\
version 1
definition ['Established', 'NamesAccepted']
patched {'a': 1, 'b': 2}
status {'c': 3}
dynamic ['f']
foreground ['foregroundDeletion']
created Pending
bound machine
strategic {'a': 'b', 'x': 'y'}
json patch {'a': 'b'}
watched [('ADDED', 'p')]
graceful 30
gone 404 Not Found
pages 3 4 4
left 0
"""


def interpreter() -> str:
    named = os.environ.get("KUBERNETES_CLIENT_PYTHON", "")
    if named:
        return named
    if importlib.util.find_spec("kubernetes") is None:
        pytest.skip("no Python `kubernetes` package here; name an interpreter that has it in KUBERNETES_CLIENT_PYTHON")
    return sys.executable


async def test_a_day_with_it(cluster: Cluster, tmp_path: Path) -> None:
    python = interpreter()
    config = tmp_path / "kubeconfig"
    config.write_text(yaml.safe_dump(kubeconfig.document(cluster.url, cluster.authority, cluster.token)))
    script = Path(__file__).parent / "python_client.py"
    process = await asyncio.create_subprocess_exec(
        python, "-W", "ignore", str(script), str(config), env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(60):
        out, err = await process.communicate()

    assert EXPECTED == out.decode(), err.decode()
