"""How a built-in kind becomes a row of the table of kinds: what discovery says of it comes from the table of types.

Names, short names, categories, scope and the subresources `status` and `scale` are facts of a release of Kubernetes and
stand in its generated table; a row adds what no table says: defaults, rules, columns.
"""

from typing import Any

from trainmaster.cluster.apiserver import builtin, normal
from trainmaster.cluster.apiserver.kind import Kind, Scale, Subresource

_SCALE = Subresource("scale", "Scale", ("get", "patch", "update"), "autoscaling", "v1")
_REPLICAS = Scale(("spec", "replicas"), ("status", "replicas"), ("spec", "selector"))


def row(api_version: str, plural: str, *, parts: tuple[Subresource, ...] = (), **more: Any) -> Kind:
    """The kind that a real server serves there. `parts` are its subresources besides status and scale."""
    served = next(each for each in builtin.served()[api_version] if each.resource.plural == plural)
    if "scale" in served.parts:
        parts, more = (*parts, _SCALE), {"scale": _REPLICAS, **more}
    return Kind(
        served.resource, served.short_names, served.categories, singular=served.singular, verbs=served.verbs,
        status="status" in served.parts, subresources=parts,
        settle=normal.settle(api_version, served.resource.kind), **more)
