"""Trainmaster runs distributed training, on any Kubernetes or on one Linux machine.

The packages below are the architecture; `tests/test_architecture.py` holds the table of who may import whom. The SDK's
names are loaded when they are first used, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainmaster.sdk.client import AsyncClient as AsyncClient
    from trainmaster.sdk.client import Client as Client
    from trainmaster.sdk.errors import JobFailed as JobFailed
    from trainmaster.sdk.errors import JobGone as JobGone
    from trainmaster.sdk.errors import ManifestError as ManifestError
    from trainmaster.sdk.errors import NoCluster as NoCluster
    from trainmaster.sdk.errors import NoJob as NoJob
    from trainmaster.sdk.errors import SdkError as SdkError
    from trainmaster.sdk.errors import TimedOut as TimedOut
    from trainmaster.sdk.jobs import Job as Job

__version__ = "0.1.0"

_WHERE = {
    "AsyncClient": "client", "Client": "client", "Job": "jobs", "JobFailed": "errors", "JobGone": "errors",
    "ManifestError": "errors", "NoCluster": "errors", "NoJob": "errors", "SdkError": "errors", "TimedOut": "errors",
}
__all__ = [
    "AsyncClient", "Client", "Job", "JobFailed", "JobGone", "ManifestError", "NoCluster", "NoJob", "SdkError",
    "TimedOut",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'trainmaster' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"trainmaster.sdk.{_WHERE[name]}"), name)
