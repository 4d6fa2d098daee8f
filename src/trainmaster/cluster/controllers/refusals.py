"""Refusals of the server that are no failure for whoever keeps things in namespaces."""

from trainmaster.kube.errors import Forbidden


def namespace_is_ending(error: Forbidden) -> bool:
    """Whether an object was refused since its namespace is being deleted: nothing is wrong, and nothing to repeat."""
    causes = (error.status.get("details") or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
