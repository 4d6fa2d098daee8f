"""Pages that come through a proxy of this server: links to places of their own site must lead through it too. Pure.

A page says `/logo.png` and means its own server, but the browser would ask ours, where that is nothing. So links that
begin at the root get what stands before the path here. What scripts make up is out of reach, as on Kubernetes.
"""

import re
import zlib
from html.parser import HTMLParser
from urllib.parse import urlsplit

# Attributes that hold an address, of whatever tag.
_ADDRESSES = (
    "action", "background", "cite", "classid", "codebase", "data", "formaction", "href", "icon", "longdesc", "manifest",
    "poster", "profile", "src", "usemap",
)
_ATTRIBUTE = re.compile(
    rf"""(?P<before>\s(?:{'|'.join(_ADDRESSES)})\s*=\s*)(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s>"']+))""",
    re.IGNORECASE,
)
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}")
_WINDOW = zlib.MAX_WBITS | 32      # gzip or zlib, whichever it is


def location(given: str, prefix: str, host: str) -> str:
    """An address as it is reached through the proxy, `host` being the name of the site over there."""
    try:
        found = urlsplit(given)
    except ValueError:
        return given
    inside = not found.netloc or found.netloc == host
    if not inside or not found.path.startswith("/") or found.path.startswith(f"{prefix}/"):
        return given
    return found._replace(scheme="", netloc="", path=prefix + found.path).geturl()


def page(text: str, prefix: str, host: str) -> str:
    """A page of HTML with its links changed and all else as it was."""
    reader = _Page(prefix, host)
    reader.feed(text)
    reader.close()
    return "".join(reader.parts)


def joined(chunks: bytes) -> bytes | None:
    """What was sent in chunks; None if it is not all there."""
    parts: list[bytes] = []
    place = 0
    while True:
        line, end, _ = chunks[place:place + 1024].partition(b"\r\n")
        size = line.partition(b";")[0].strip()
        if not end or not _SIZE.fullmatch(size):
            return None
        place += len(line) + 2
        length = int(size, 16)
        if length == 0:
            return b"".join(parts)
        if place + length > len(chunks):
            return None
        parts.append(chunks[place:place + length])
        place += length + 2


def unpacked(body: bytes, encoding: str) -> bytes | None:
    """What was sent with this Content-Encoding; None for one that we cannot read."""
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return None
    try:
        return zlib.decompress(body, _WINDOW)
    except zlib.error:
        return None


class _Page(HTMLParser):
    """Passes everything on as it was written, but for the addresses in tags."""

    def __init__(self, prefix: str, host: str) -> None:
        super().__init__(convert_charrefs=False)
        self.parts: list[str] = []
        self._prefix = prefix
        self._host = host

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002  as it was written
        self.parts.append(_ATTRIBUTE.sub(self._changed, self.get_starttag_text() or ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_entityref(self, name: str) -> None:
        self.parts.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.parts.append(f"&#{name};")

    def handle_comment(self, data: str) -> None:
        self.parts.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.parts.append(f"<!{decl}>")

    def unknown_decl(self, data: str) -> None:
        self.parts.append(f"<![{data}]>")

    def handle_pi(self, data: str) -> None:
        self.parts.append(f"<?{data}>")

    def _changed(self, found: re.Match[str]) -> str:
        given = found["double"] if found["double"] is not None else found["single"] or found["bare"] or ""
        sign = "'" if found["single"] is not None else '"'
        return f"{found['before']}{sign}{location(given, self._prefix, self._host)}{sign}"
