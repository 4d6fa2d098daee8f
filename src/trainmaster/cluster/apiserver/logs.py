"""The log of a container, passed on from the node that runs it, chunk by chunk."""

from collections.abc import AsyncGenerator, Callable, Iterator

import orjson

from trainmaster.api.meta import Object
from trainmaster.cluster.apiserver import causes, failures
from trainmaster.cluster.apiserver.causes import Cause
from trainmaster.cluster.apiserver.routing import Query
from trainmaster.cluster.apiserver.streaming import Streaming
from trainmaster.kube.errors import Unreachable
from trainmaster.kube.transport import Request, Response, Stream, Transport

# What a node says instead of a log is short; more than this is not read.
MOST_SAID = 4096
_OPTIONS = ("follow", "previous", "sinceSeconds", "sinceTime", "timestamps", "tailLines", "limitBytes", "stream")


async def log(pod: Object, query: Query, node: Callable[[str], Transport] | None) -> Streaming | Response:
    """The log of a container, straight from the node that runs it. Raises Failure 400, 404, 422 or 503."""
    meta, spec = pod["metadata"], pod.get("spec") or {}
    container = container_of(pod, query.text("container"))
    if faults := list(_faults(query)):
        raise failures.invalid_kind("PodLogOptions", "", meta["name"], faults)
    if not spec.get("nodeName"):
        return Response(204, {})      # there is nothing yet
    if node is None:
        raise failures.unavailable("this server has no way to reach a node")
    path = f"/containerLogs/{meta['namespace']}/{meta['name']}/{container}"
    asked = [(name, value) for name, value in query.pairs if name in _OPTIONS]
    try:
        stream = await node(spec["nodeName"]).open(Request("GET", path, asked))
    except Unreachable as error:
        raise failures.unavailable(f"node {spec['nodeName']} cannot be reached: {str(error)[:200]}") from error
    if stream.status != 200:
        raise await _complaint(stream)
    return Streaming(200, {"Content-Type": "text/plain"}, _passed_on(stream), stream.close)


def _faults(query: Query) -> Iterator[Cause]:
    for name, least in (("tailLines", 0), ("sinceSeconds", 1), ("limitBytes", 1)):
        if (given := query.number(name)) is not None and given < least:
            yield causes.invalid(name, given, f"must be greater than {'or equal to ' if not least else ''}0")
    if query.text("sinceTime") and query.text("sinceSeconds"):
        yield causes.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified")


def container_of(pod: Object, wanted: str) -> str:
    """The container that is meant. Raises Failure 400."""
    spec, name = pod.get("spec") or {}, pod["metadata"]["name"]
    found = [str(each.get("name")) for field in ("containers", "initContainers", "ephemeralContainers")
             for each in spec.get(field) or ()]
    if not wanted:
        preferred = (pod["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/default-container", "")
        main = [str(each.get("name")) for each in spec.get("containers") or ()]
        if len(main) == 1 or preferred in main:
            return preferred if preferred in main else main[0]
        raise failures.bad_request(f"a container name must be specified for pod {name}, choose one of: "
                                   f"[{' '.join(found)}]")
    if wanted not in found:
        raise failures.bad_request(f"container {wanted} is not valid for pod {name}")
    return wanted


async def _complaint(stream: Stream) -> failures.Failure:
    said = b""
    try:
        async for chunk in stream.chunks():
            said += chunk
            if len(said) > MOST_SAID:
                break
    except Unreachable:
        said = said or b"the node broke off its answer"
    finally:
        await stream.close()
    try:
        message = str(orjson.loads(said)["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = said.decode("utf-8", "replace").strip()
    code = stream.status if 400 <= stream.status < 500 else 503
    reason = {400: "BadRequest", 404: "NotFound"}.get(code, "ServiceUnavailable" if code == 503 else "")
    return failures.Failure(code, reason, message[:MOST_SAID])


async def _passed_on(stream: Stream) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in stream.chunks():
            yield chunk
    except Unreachable:
        return                       # the node went away: the log ends here, as it does on a real cluster
    finally:
        await stream.close()
