"""Doors of services where the kernel has no nftables; test_nftables tries the other way, real pods both."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("rewriting.py")


def test_without_nftables_service_addresses_are_served_by_hand() -> None:
    done = subprocess.run(["unshare", "-rn", sys.executable, str(PROGRAM), "by hand"], capture_output=True, text=True,
                          timeout=60, check=False)
    if "Operation not permitted" in done.stderr or "unshare failed" in done.stderr:
        pytest.skip(done.stderr.strip())

    assert {"to one": "one", "datagrams": "one", "gone": "ConnectionRefusedError"} == json.loads(done.stdout)
