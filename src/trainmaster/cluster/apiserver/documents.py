"""Answers that are about the server and not about objects: discovery, OpenAPI, version, health."""

from collections.abc import Callable
from dataclasses import dataclass
from email.utils import format_datetime

import orjson

from trainmaster.api.core import RELEASE, RELEASE_IN_FULL
from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import discovery, failures, health, negotiation, openapi, openapi_wire
from trainmaster.cluster.apiserver.catalog import Catalog
from trainmaster.cluster.apiserver.routing import Query
from trainmaster.kube.transport import Request, Response
from trainmaster.runtime.clock import Clock

_NOT_FOUND = Response(404, {"Content-Type": "text/plain; charset=utf-8"}, b"404 page not found\n")
# A document under its hash never changes.
_FOREVER = {"Cache-Control": "public, immutable", "Expires": "Thu, 31 Dec 2099 23:59:59 GMT"}


@dataclass(frozen=True, slots=True)
class Version:
    """What /version says."""

    major: str = RELEASE.partition(".")[0]
    minor: str = RELEASE.partition(".")[2]
    git_version: str = RELEASE_IN_FULL
    git_commit: str = ""
    build_date: str = "1970-01-01T00:00:00Z"

    def document(self) -> Object:
        return {"major": self.major, "minor": self.minor, "gitVersion": self.git_version, "gitCommit": self.git_commit,
                "gitTreeState": "clean", "buildDate": self.build_date, "goVersion": "", "compiler": "cpython",
                "platform": "linux/amd64"}


class Documents:
    """Built when asked for, kept until the catalog changes."""

    def __init__(self, catalog: Catalog, version: Version, clock: Clock) -> None:
        self._catalog = catalog
        self._version = version
        self._clock = clock
        self._made: dict[str, tuple[bytes, str]] = {}      # and since when, for those who ask about it
        self._generation = -1

    def answer(self, request: Request, parts: tuple[str, ...]) -> Response:
        """Raises Failure 405 or 406."""
        if request.method not in {"GET", "HEAD"}:
            raise failures.method_not_allowed()
        match parts:
            case (name, *check) if name in health.NAMES:
                return health.answer(name, "/".join(check), Query(request.query)) or _NOT_FOUND
            case ("version",):
                return _json(orjson.dumps(self._version.document(), option=orjson.OPT_INDENT_2))
            case ("openapi", "v2"):
                return self._openapi_2(request)
            case ("openapi", "v3"):
                return self._made_once("v3", lambda: openapi.index(self._catalog), request, "text/plain; charset=utf-8")
            case ("openapi", "v3", *rest):
                place = "/".join(rest)
                return self._made_once(place, lambda: openapi.document(self._catalog, place, self._version.git_version),
                                       request, negotiation.JSON, _FOREVER)
            case ():
                return _json(orjson.dumps({"paths": self._paths()}, option=orjson.OPT_INDENT_2))
            case _:
                return self._discovery(request, parts)

    def _discovery(self, request: Request, parts: tuple[str, ...]) -> Response:
        accept = request.headers.get("accept", "")
        match parts:
            case ("api",) | ("apis",):
                core = parts == ("api",)
                version = discovery.aggregated_version(negotiation.clauses(accept))
                if version:
                    media = f"application/json;g=apidiscovery.k8s.io;v={version};as={discovery.AGGREGATED}"
                    return self._made_once(f"{parts[0]} {version}",
                                           lambda: discovery.aggregated(self._catalog, version, core=core),
                                           request, media, {"Vary": "Accept"})
                negotiation.wanted(accept, tables=False)
                return _json(orjson.dumps(discovery.core_versions() if core else discovery.group_list(self._catalog),
                                          option=orjson.OPT_APPEND_NEWLINE),
                             {"Vary": "Accept"})
            case ("apis", group):
                found = discovery.group(self._catalog, group)
            case ("api", version):
                found = discovery.resource_list(self._catalog, "", version)
            case ("apis", group, version):
                found = discovery.resource_list(self._catalog, group, version)
            case _:
                found = None
        if found is None:
            return _NOT_FOUND
        negotiation.wanted(accept, tables=False)
        return _json(orjson.dumps(found, option=orjson.OPT_APPEND_NEWLINE))

    def _openapi_2(self, request: Request) -> Response:
        def make() -> Object:
            return openapi.version_2(self._catalog, self._version.git_version)

        accept = request.headers.get("accept", "")
        if any(clause.media in {openapi_wire.ASKED, openapi_wire.MEDIA_TYPE} for clause in negotiation.clauses(accept)):
            return self._made_once("v2 protobuf", make, request, openapi_wire.MEDIA_TYPE, encode=openapi_wire.encoded)
        negotiation.wanted(accept, tables=False)
        return self._made_once("v2", make, request, negotiation.JSON)

    def _made_once(self, name: str, make: Callable[[], Object | None], request: Request, media: str,
                   headers: dict[str, str] | None = None,
                   encode: Callable[[Object], bytes] = orjson.dumps) -> Response:
        if self._generation != self._catalog.generation:
            self._made.clear()
            self._generation = self._catalog.generation
        found = self._made.get(name)
        if found is None:
            document = make()
            if document is None:
                return _NOT_FOUND
            found = self._made[name] = encode(document), format_datetime(self._clock.now(), usegmt=True)
        body, since = found
        tag = f'"{openapi.etag(body)}"'
        told = {"Content-Type": media, "ETag": tag, "Last-Modified": since, **(headers or {})}
        if request.headers.get("if-none-match", "") == tag:
            return Response(304, {key: value for key, value in told.items() if key != "Content-Type"})
        return Response(200, told, body)

    def _paths(self) -> list[str]:
        served = [f"/apis/{each.name}" if each.group else f"/api/{each.version}" for each in self._catalog.versions()]
        served += {f"/apis/{each.group}" for each in self._catalog.versions() if each.group}
        ours = ["/api", "/apis", *(f"/{name}" for name in health.NAMES), "/openapi/v2", "/openapi/v3", "/version"]
        return sorted([*ours, *served])


def _json(body: bytes, headers: dict[str, str] | None = None) -> Response:
    return Response(200, {"Content-Type": negotiation.JSON, **(headers or {})}, body)
