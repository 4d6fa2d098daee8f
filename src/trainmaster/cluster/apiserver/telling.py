"""What a call is answered with: one object, or many of them; a long list as a stream, made while it is read."""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from trainmaster.cluster.apiserver import forms
from trainmaster.cluster.apiserver.answers import warned
from trainmaster.cluster.apiserver.calls import Call
from trainmaster.cluster.apiserver.forms import Listing
from trainmaster.cluster.apiserver.negotiation import Form
from trainmaster.cluster.apiserver.streaming import Streaming, in_pieces
from trainmaster.kube.transport import Response


def one(call: Call, code: int, value: bytes, form: Form, now: datetime, warnings: Sequence[str] = ()) -> Response:
    """An object, by its stored bytes."""
    return _said(call, code, forms.one(call.kind, value, form, now, call.query.text("includeObject")), form, warnings)


async def many(call: Call, page: Listing, form: Form, now: datetime) -> Response | Streaming:
    made = forms.many(call.kind, page, form, now, call.query.text("includeObject"))
    begun: list[bytes] = []
    size = 0
    for piece in made.pieces:
        if begun:
            await asyncio.sleep(0)
        begun.append(piece)
        size += len(piece)
        if size >= forms.PIECE_BYTES:
            headers = {"Content-Type": form.media}
            if call.kind.warning:
                headers["Warning"] = warned([call.kind.warning])[0]
            return in_pieces(200, headers, begun, made.pieces, made.length)
    return _said(call, 200, b"".join(begun), form)


def _said(call: Call, code: int, body: bytes, form: Form, warnings: Sequence[str] = ()) -> Response:
    told = [*warnings, call.kind.warning] if call.kind.warning else warnings
    return Response(code, {"Content-Type": form.media}, body, warned(told))
