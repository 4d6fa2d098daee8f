"""What the server serves, told to clients: groups, versions, resources; in the old many-request form and aggregated.

The order of the groups is on purpose (`catalog.FIRST_GROUPS`): kubectl resolves a name that two groups share to the
group that comes first.
"""

from collections.abc import Iterable, Sequence

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver.catalog import Catalog, GroupVersion
from trainmaster.cluster.apiserver.kind import Kind, Subresource
from trainmaster.cluster.apiserver.kinds import BINDINGS
from trainmaster.cluster.apiserver.negotiation import Clause

AGGREGATED = "APIGroupDiscoveryList"


def core_versions() -> Object:
    """GET /api."""
    return {"kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]}


def group_list(catalog: Catalog) -> Object:
    """GET /apis."""
    return {"kind": "APIGroupList", "apiVersion": "v1",
            "groups": [_group(name, versions) for name, versions in _groups(catalog) if name]}


def group(catalog: Catalog, name: str) -> Object | None:
    """GET /apis/GROUP."""
    found = dict(_groups(catalog)).get(name) if name else None
    return None if found is None else {"kind": "APIGroup", "apiVersion": "v1", **_group(name, found)}


def resource_list(catalog: Catalog, group_name: str, version: str) -> Object | None:
    """GET /api/v1, /apis/GROUP/VERSION."""
    for served in catalog.versions():
        if (served.group, served.version) == (group_name, version):
            return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": served.name,
                    "resources": [each for kind in served.kinds for each in _resources(kind)] + _extra(served)}
    return None


def aggregated_version(clauses: Sequence[Clause]) -> str:
    """v2 or v2beta1 if the client wants aggregated discovery before plain JSON, else empty."""
    for clause in clauses:
        if clause.media in {"application/json", "*/*"} and not clause.get("as"):
            return ""
        if clause.media == "application/json" and clause.get("as") == AGGREGATED \
                and clause.get("g") == "apidiscovery.k8s.io" and clause.get("v") in {"v2", "v2beta1"}:
            return clause.get("v")
    return ""


def aggregated(catalog: Catalog, version: str, *, core: bool) -> Object:
    """GET /api and /apis, everything at once."""
    items = [_aggregated_group(name, versions) for name, versions in _groups(catalog) if core == (not name)]
    return {"kind": AGGREGATED, "apiVersion": f"apidiscovery.k8s.io/{version}", "metadata": {}, "items": items}


def _groups(catalog: Catalog) -> Iterable[tuple[str, list[GroupVersion]]]:
    found: dict[str, list[GroupVersion]] = {}
    for served in catalog.versions():
        found.setdefault(served.group, []).append(served)
    return found.items()


def _group(name: str, versions: list[GroupVersion]) -> Object:
    listed = [{"groupVersion": served.name, "version": served.version} for served in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resources(kind: Kind) -> list[Object]:
    resource = kind.resource
    main: Object = {"name": resource.plural, "singularName": kind.singular, "namespaced": resource.namespaced,
                    "kind": resource.kind, "verbs": list(kind.verbs)}
    if kind.short:
        main["shortNames"] = list(kind.short)
    if kind.categories:
        main["categories"] = list(kind.categories)
    found = [main]
    for part in _parts(kind):
        told: Object = {"name": f"{resource.plural}/{part.name}", "singularName": "", "namespaced": resource.namespaced,
                        "kind": part.kind, "verbs": list(part.verbs)}
        if part.version:
            told["group"], told["version"] = part.group, part.version
        found.append(told)
    return found


def _parts(kind: Kind) -> list[Subresource]:
    status = kind.subresource("status")
    return sorted([*([status] if status else []), *kind.subresources], key=lambda part: part.name)


def _extra(served: GroupVersion) -> list[Object]:
    """`bindings` can be created and nothing else, so it is no kind of the catalog."""
    if served.group:
        return []
    return [{"name": BINDINGS.plural, "singularName": "binding", "namespaced": True, "kind": BINDINGS.kind,
             "verbs": ["create"]}]


def _aggregated_group(name: str, versions: list[GroupVersion]) -> Object:
    meta: Object = {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None}
    return {"metadata": meta, "versions": [
        {"version": served.version, "freshness": "Current", "resources": [_aggregated(kind) for kind in served.kinds]}
        for served in versions]}


def _aggregated(kind: Kind) -> Object:
    resource = kind.resource
    told: Object = {
        "resource": resource.plural, "responseKind": _gvk(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster", "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short:
        told["shortNames"] = list(kind.short)
    if kind.categories:
        told["categories"] = list(kind.categories)
    parts = [{"subresource": part.name, "verbs": list(part.verbs),
              "responseKind": _gvk(part.group or resource.group, part.version or resource.version, part.kind)}
             for part in _parts(kind)]
    return {**told, "subresources": parts} if parts else told


def _gvk(group_name: str, version: str, kind: str) -> Object:
    return {"group": group_name, "version": version, "kind": kind}
