"""Kinds that are kept for whoever writes them and on which nothing here acts: devices, flows, certificates, addresses.

A program that lists or makes one finds what a real server has. Their shapes come from the table of types; beyond that
only what clients were seen to depend on is said here.
"""

from collections.abc import Iterator

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, checks
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.columns import AGE, NAME, at
from trainmaster.cluster.apiserver.kind import Column, Kind, Subresource
from trainmaster.cluster.apiserver.rows import row

_PRECEDENCE, _SHARES = 1000, 30


def _flow_defaults(schema: Object) -> None:
    spec = schema.setdefault("spec", {})
    spec.setdefault("matchingPrecedence", _PRECEDENCE)


def _level_defaults(level: Object) -> None:
    spec = level.setdefault("spec", {})
    if spec.get("type") == "Limited":
        limited = spec.setdefault("limited", {})
        limited.setdefault("nominalConcurrencyShares", _SHARES)
        limited.setdefault("lendablePercent", 0)
        limited.setdefault("limitResponse", {}).setdefault("type", "Reject")
    elif spec.get("type") == "Exempt":
        exempt = spec.setdefault("exempt", {})
        exempt.setdefault("nominalConcurrencyShares", 0)
        exempt.setdefault("lendablePercent", 0)


def _request_begin(request: Object) -> None:
    """Who asks is for the server to say, and ours does not: whoever signs must not believe what a client wrote."""
    for field in ("username", "uid", "groups", "extra"):
        request.setdefault("spec", {}).pop(field, None)


def _request_rules(request: Object, old: Object | None) -> Iterator[Cause]:
    spec = request.get("spec") or {}
    for field in ("request", "usages", "signerName"):
        if not spec.get(field):
            yield causes.required(f"spec.{field}")
    if old is not None and spec != old.get("spec"):
        yield causes.invalid("spec", spec, checks.IMMUTABLE)


def _verdict(request: Object) -> str:
    said = [str(each.get("type")) for each in (request.get("status") or {}).get("conditions") or ()]
    verdict = next((type_ for type_ in ("Denied", "Approved") if type_ in said), "Pending")
    issued = "Issued" if (request.get("status") or {}).get("certificate") else ""
    return ",".join(part for part in (verdict, "Failed" if "Failed" in said else "", issued) if part)


def _parent(address: Object) -> str:
    about = (address.get("spec") or {}).get("parentRef") or {}
    parts = (about.get("resource"), about.get("namespace"), about.get("name"))
    return "/".join(str(part) for part in parts if part)


_ADDRESS = (NAME, Column("ParentRef", _parent), AGE)
_RANGE = (NAME, Column("CIDRs", lambda thing: ",".join((thing.get("spec") or {}).get("cidrs") or ())), AGE)
_FLOW = (
    NAME, Column("PriorityLevel", at("spec", "priorityLevelConfiguration", "name", other="")),
    Column("MatchingPrecedence", at("spec", "matchingPrecedence", other=0), type="integer"),
    Column("DistinguisherMethod", at("spec", "distinguisherMethod", "type", other="<none>")), AGE,
)
_LEVEL = (
    NAME, Column("Type", at("spec", "type", other="")),
    Column("NominalConcurrencyShares", at("spec", "limited", "nominalConcurrencyShares", other="<none>")), AGE,
)
_ATTRIBUTES = (NAME, Column("DriverName", at("driverName", other="")), AGE)
_CAPACITY = (
    NAME, Column("StorageClassName", at("storageClassName", other="")), Column("Capacity", at("capacity", other="")),
)
_PLAIN = (NAME, AGE)
_REQUEST = (
    NAME, AGE, Column("SignerName", at("spec", "signerName", other="")),
    Column("Requestor", at("spec", "username", other="")),
    Column("RequestedDuration", lambda thing: f"{seconds}s" if (seconds := (thing.get("spec") or {}).get(
        "expirationSeconds")) else "<none>"),
    Column("Condition", _verdict),
)
_APPROVAL = Subresource("approval", "CertificateSigningRequest", ("get", "patch", "update"))

KINDS: tuple[Kind, ...] = (
    row("certificates.k8s.io/v1", "certificatesigningrequests", parts=(_APPROVAL,), selectable=("spec.signerName",),
        begin=_request_begin, rules=_request_rules, columns=_REQUEST),
    row("flowcontrol.apiserver.k8s.io/v1", "flowschemas", generation=True, status_only=True, defaults=_flow_defaults,
        columns=_FLOW),
    row("flowcontrol.apiserver.k8s.io/v1", "prioritylevelconfigurations", generation=True, status_only=True,
        defaults=_level_defaults, columns=_LEVEL),
    row("networking.k8s.io/v1", "ipaddresses", generation=True, columns=_ADDRESS),
    row("networking.k8s.io/v1", "servicecidrs", generation=True, status_only=True, columns=_RANGE),
    row("resource.k8s.io/v1", "deviceclasses", generation=True, answers_object=True, columns=_PLAIN),
    row("resource.k8s.io/v1", "resourceclaims", answers_object=True, status_only=True, columns=_PLAIN),
    row("resource.k8s.io/v1", "resourceclaimtemplates", answers_object=True, columns=_PLAIN),
    row("resource.k8s.io/v1", "resourceslices", generation=True, answers_object=True,
        selectable=("spec.nodeName", "spec.driver"), columns=_PLAIN),
    row("storage.k8s.io/v1", "csistoragecapacities", columns=_CAPACITY),
    row("storage.k8s.io/v1", "volumeattributesclasses", answers_object=True, columns=_ATTRIBUTES),
)
