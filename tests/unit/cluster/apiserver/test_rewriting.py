"""Links of pages that come through a proxy."""

import gzip
import zlib

import pytest

from trainmaster.cluster.apiserver.rewriting import joined, location, page, unpacked

HERE = "/api/v1/namespaces/n/services/s/proxy"
THERE = "10.88.0.7:8000"
REST = "<!DOCTYPE html><p>a &amp; b &#62;<!-- /x --><br/>"


@pytest.mark.parametrize(("given", "expected"), [
    pytest.param("/a?b=c#d", f"{HERE}/a?b=c#d", id="a path of the site"),
    pytest.param(f"http://{THERE}/a", f"{HERE}/a", id="the same, in full"),
    pytest.param("a/b", "a/b", id="a path beside the page leads there anyway"),
    pytest.param("http://example.com/a", "http://example.com/a", id="another site"),
    pytest.param("//example.com/a", "//example.com/a", id="another site, by the same scheme"),
    pytest.param(f"{HERE}/a", f"{HERE}/a", id="what leads here already"),
    pytest.param("#top", "#top", id="a place of the page"),
    pytest.param("http://[", "http://[", id="what is no address"),
])
def test_addresses(given: str, expected: str) -> None:
    assert expected == location(given, HERE, THERE)


@pytest.mark.parametrize(("given", "expected"), [
    pytest.param('<a href="/x">t</a>', f'<a href="{HERE}/x">t</a>', id="a link"),
    pytest.param("<IMG class=big SRC='/x.png'>", f"<IMG class=big SRC='{HERE}/x.png'>", id="a picture"),
    pytest.param("<form action=/x>", f'<form action="{HERE}/x">', id="without quotes"),
    pytest.param('<script>f("<a href=\'/x\'>")</script>', '<script>f("<a href=\'/x\'>")</script>', id="not in scripts"),
    pytest.param(REST, REST, id="all else as it was"),
])
def test_pages(given: str, expected: str) -> None:
    assert expected == page(given, HERE, THERE)


@pytest.mark.parametrize(("sent", "encoding", "expected"), [
    pytest.param(b"text", "", b"text", id="as it is"),
    pytest.param(gzip.compress(b"text"), "gzip", b"text", id="gzip"),
    pytest.param(zlib.compress(b"text"), "deflate", b"text", id="deflate"),
    pytest.param(b"text", "gzip", None, id="not what it says it is"),
    pytest.param(b"text", "br", None, id="one that we do not know"),
])
def test_encodings(sent: bytes, encoding: str, expected: bytes | None) -> None:
    assert expected == unpacked(sent, encoding)


@pytest.mark.parametrize(("sent", "expected"), [
    pytest.param(b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n", b"abc0123456789", id="chunks"),
    pytest.param(b"0\r\n\r\n", b"", id="none"),
    pytest.param(b"5\r\nabc", None, id="an end that is missing"),
    pytest.param(b"-1\r\nabc\r\n0\r\n\r\n", None, id="no size"),
])
def test_chunks(sent: bytes, expected: bytes | None) -> None:
    assert expected == joined(sent)
