"""How the text of an answer is laid out: for people who look at it with curl, wget or a browser, in lines. Pure.

Kubernetes does the same for `?pretty` and for these three programs. A list that comes in pieces stays as it is: laying
it out would take all of it at once.
"""

from collections.abc import Mapping

import orjson

from trainmaster.cluster.apiserver.negotiation import JSON
from trainmaster.cluster.apiserver.routing import Query
from trainmaster.kube.transport import Response

_PEOPLE = ("curl", "Wget", "Mozilla/5.0")


def in_lines(headers: Mapping[str, str], query: Query) -> bool:
    """Whether somebody wants to read it."""
    if query.all("pretty"):
        return query.flag("pretty")
    return headers.get("user-agent", "").startswith(_PEOPLE)


def laid_out(answer: Response) -> Response:
    if answer.headers.get("Content-Type", "").partition(";")[0] != JSON or not answer.body:
        return answer
    body = orjson.dumps(orjson.loads(answer.body), option=orjson.OPT_INDENT_2)
    return Response(answer.status, answer.headers, body, answer.warnings)
