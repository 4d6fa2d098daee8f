"""A client of ours for a kubeconfig, closed whatever happens to the test."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trainmaster.kube.client import Client
from trainmaster.kube.kubeconfig import load, transport


@asynccontextmanager
async def connected(kubeconfig: Path, *, token: str = "") -> AsyncIterator[Client]:
    """`token` stands in for the one in the file."""
    access = load(kubeconfig)
    client = Client(transport(dataclasses.replace(access, token=token) if token else access))
    try:
        yield client
    finally:
        await client.close()
