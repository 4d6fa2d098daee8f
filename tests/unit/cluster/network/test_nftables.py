"""Service addresses rewritten by the real kernel, in a network namespace of our own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("rewriting.py")


def test_the_kernel_leads_clients_to_backends() -> None:
    done = subprocess.run(["unshare", "-rn", sys.executable, str(PROGRAM)], capture_output=True, text=True, timeout=60,
                          check=False)
    if "Operation not permitted" in done.stderr or "unshare failed" in done.stderr:
        pytest.skip(done.stderr.strip())
    said = json.loads(done.stdout or '{"error": "nothing"}')
    if "refused" in said:
        pytest.skip(said["refused"])

    assert {
        "to one": ["one"] * 5,
        "to either": ["one", "two"],
        "stays": 1,
        "stays after a change": 1,
        "datagrams": ["one"],
        "nobody": "ConnectionRefusedError",
        "gone": "ConnectionRefusedError",
        "a thousand": 1000,
        "begun again": "ConnectionRefusedError",
    } == said, done.stderr
