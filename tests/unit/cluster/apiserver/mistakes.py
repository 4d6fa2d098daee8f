"""Requests with a mistake each: in metadata, options, bodies, media types, queries, places. For any kind.

They are made from one object and the place of its kind. No answer may be a failure of the server's own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from trainmaster.api.meta import Json, Object

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
THERE, GONE = "t", "gone"  # names of an object that is there, and of one that is not


@dataclass(frozen=True, slots=True)
class Mistake:
    what: str
    method: str
    path: str
    query: str = ""
    body: Json = None
    headers: dict[str, str] = field(default_factory=dict)


def mistakes(base: str, thing: Object) -> Iterator[Mistake]:
    """`thing` is called THERE; nothing here changes it but trials, and no request creates more than a trial."""
    yield from _creations(base, thing)
    for name in (THERE, GONE):
        yield from _replacements(base, thing, name)
        yield from _patches(base, thing, name)
        yield from _deletions(base, name)
        yield from _reads(f"{base}/{name}", name)
    yield from _reads(base, "all")
    for method in ("PUT", "PATCH", "OPTIONS", "TRACE"):
        yield Mistake(f"{method} of the collection", method, base, body={})
    for query in ("labelSelector=a%20b%20c", "fieldSelector=foo%3Dbar", "dryRun=Bad", "gracePeriodSeconds=x"):
        yield Mistake(f"delete all {query}", "DELETE", base, query)


def _with(thing: Object, **meta: Json) -> Object:
    return {**thing, "metadata": {**thing["metadata"], **meta}}


_OWNER: Object = {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u"}
_METADATA: dict[str, Object] = {
    "an empty name": {"name": ""},
    "a name in capitals": {"name": "Upper"},
    "a long name": {"name": "a" * 254},
    "a name that is a number": {"name": 5},
    "a name with a slash": {"name": "a/b"},
    "no name": {"name": None},
    "a wrong key of a label": {"labels": {"a b": "c"}},
    "a wrong label": {"labels": {"a": "b c"}},
    "a label that is a number": {"labels": {"a": 1}},
    "a label that is nothing": {"labels": {"a": None}},
    "labels that are a list": {"labels": ["a"]},
    "a wrong annotation": {"annotations": {"a b": "c"}},
    "an annotation that is nothing": {"annotations": {"a": None}},
    "huge annotations": {"annotations": {"a": "x" * 262145}},
    "a wrong finalizer": {"finalizers": ["a b"]},
    "a finalizer that is nothing": {"finalizers": [None]},
    "opposite finalizers": {"finalizers": ["orphan", "foregroundDeletion"]},
    "an owner of nothing": {"ownerReferences": [{}]},
    "an owner that is nothing": {"ownerReferences": [None]},
    "an event as owner": {"ownerReferences": [{**_OWNER, "kind": "Event"}]},
    "two controllers": {
        "ownerReferences": [{**_OWNER, "controller": True}, {**_OWNER, "uid": "v", "controller": True}]
    },
    "another namespace": {"namespace": "other"},
    "a moment that is none": {"creationTimestamp": "yesterday"},
    "a moment that is a number": {"creationTimestamp": 5},
    "a generation that is a text": {"generation": "x"},
    "a writer of nothing": {"managedFields": [{}]},
    "a writer of a wrong deed": {"managedFields": [{"manager": "x", "operation": "Bad"}]},
}
_WHOLE: dict[str, Object] = {
    "metadata that are a text": {"metadata": "x"},
    "metadata that are nothing": {"metadata": None},
    "metadata that are a list": {"metadata": []},
    "another kind": {"kind": "Other"},
    "a kind that is a number": {"kind": 5},
    "another version": {"apiVersion": "other/v1"},
    "a version that is none": {"apiVersion": "a/b/c"},
    "a spec that is a text": {"spec": "x"},
    "a spec that is nothing": {"spec": None},
    "a spec that is a list": {"spec": []},
    "a status that is a text": {"status": "x"},
}
_RAW: dict[str, bytes] = {
    "nothing": b"",
    "a list": b"[]",
    "a text": b'"x"',
    "a number": b"5",
    "no JSON": b"{not",
    "half a text": b'{"a":"',
    "two objects": b"{}{}",
    "an empty object": b"{}",
}
_QUERIES = (
    "dryRun=Some",
    "dryRun=",
    "dryRun=All&dryRun=x",
    f"fieldManager={'x' * 129}",
    "fieldManager=%00a",
    "fieldValidation=Bad",
)


def _creations(base: str, thing: Object) -> Iterator[Mistake]:
    for what, meta in _METADATA.items():
        yield Mistake(f"create with {what}", "POST", base, "dryRun=All", _with(thing, **{"name": "new", **meta}))
    for what, part in _WHOLE.items():
        yield Mistake(f"create with {what}", "POST", base, "dryRun=All", {**_with(thing, name="new"), **part})
    for what, raw in _RAW.items():
        yield Mistake(f"create from {what}", "POST", base, "dryRun=All", raw)
    for query in _QUERIES:
        yield Mistake(f"create {query[:30]}", "POST", base, query, _with(thing, name="new"))
    for validation in ("Strict", "Warn", "Ignore"):
        yield Mistake(
            f"create with a field too many, {validation}",
            "POST",
            base,
            f"fieldValidation={validation}&dryRun=All",
            {**_with(thing, name="new"), "foo": 1},
        )
    for media in ("text/plain", "application/xml", MERGE, "garbage", "application/json; charset=utf-8"):
        yield Mistake(
            f"create as {media}", "POST", base, "dryRun=All", _with(thing, name="new"), {"content-type": media}
        )
    yield Mistake("create again", "POST", base, "dryRun=All", thing)
    yield Mistake("create a part", "POST", f"{base}/{THERE}/nosuch", "", thing)


def _replacements(base: str, thing: Object, name: str) -> Iterator[Mistake]:
    path, own = f"{base}/{name}", _with(thing, name=name)
    more: dict[str, Object] = {
        "another name": {"name": "b"},
        "an old revision": {"resourceVersion": "1"},
        "any revision": {"resourceVersion": "0"},
        "another UID": {"uid": "x"},
        "an end": {"deletionTimestamp": "2001-01-01T00:00:00Z"},
    }
    for what, meta in {**_METADATA, **more}.items():
        yield Mistake(f"replace {name} with {what}", "PUT", path, "dryRun=All", _with(own, **meta))
    for what, part in _WHOLE.items():
        yield Mistake(f"replace {name} with {what}", "PUT", path, "dryRun=All", {**own, **part})
    for what, raw in _RAW.items():
        yield Mistake(f"replace {name} by {what}", "PUT", path, "dryRun=All", raw)
    for query in _QUERIES:
        yield Mistake(f"replace {name} {query[:30]}", "PUT", path, query, own)
    for place in ("status", "scale", "nosuch"):
        yield Mistake(f"replace {place} of {name}", "PUT", f"{path}/{place}", "dryRun=All", _with(own, name="b"))


_MERGES: dict[str, Json] = {
    "a text": "x",
    "a list": [],
    "a name": {"metadata": {"name": "b"}},
    "a UID": {"metadata": {"uid": "b"}},
    "a revision": {"metadata": {"resourceVersion": "1"}},
    "a label": {"metadata": {"labels": {"a b": "c"}}},
    "labels": {"metadata": {"labels": "x"}},
    "a kind": {"kind": "X"},
    "a version": {"apiVersion": "x/v9"},
    "no metadata": {"metadata": None},
    "metadata": {"metadata": "x"},
    "no spec": {"spec": None},
    "a spec": {"spec": "x"},
    "no kind": {"kind": None},
    "no name": {"metadata": {"name": None}},
    "more": {"foo": 1},
    "a directive": {"metadata": {"$patch": "bad"}},
    "a finalizer": {"metadata": {"finalizers": ["a b"]}},
}
_STEPS: dict[str, Json] = {
    "an object": {},
    "a text": "x",
    "a number": [5],
    "an unknown step": [{"op": "bad", "path": "/x"}],
    "no step": [{"path": "/x"}],
    "no path": [{"op": "add", "value": 1}],
    "a path": [{"op": "add", "path": "x", "value": 1}],
    "what is not there": [{"op": "remove", "path": "/metadata/nope"}],
    "deep": [{"op": "add", "path": "/a/b/c", "value": 1}],
    "a test": [{"op": "test", "path": "/metadata/name", "value": "x"}],
    "a copy": [{"op": "copy", "path": "/x", "from": "/n"}],
    "a number for a step": [{"op": 5, "path": "/x"}],
    "everything": [{"op": "replace", "path": "", "value": {}}],
    "a label": [{"op": "add", "path": "/metadata/labels", "value": {"a b": "c"}}],
    "labels": [{"op": "add", "path": "/metadata/labels", "value": 5}],
}


def _patches(base: str, thing: Object, name: str) -> Iterator[Mistake]:
    def patch(what: str, media: str, body: Json, query: str = "", part: str = "") -> Mistake:
        return Mistake(
            f"{media.partition('/')[2][:15]} of {name}{part}: {what}",
            "PATCH",
            f"{base}/{name}{part}",
            f"dryRun=All{query}",
            body,
            {"content-type": media},
        )

    for what, body in _MERGES.items():
        yield from (patch(what, media, body) for media in (MERGE, STRATEGIC))
    yield from (patch(what, JSON_PATCH, body) for what, body in _STEPS.items())
    own, said = _with(thing, name=name), "&fieldManager=m"
    configurations: dict[str, tuple[Json, str]] = {
        "nobody's": (own, ""),
        "of another name": (_with(thing, name="b"), said),
        "of another kind": ({**own, "kind": "X"}, said),
        "of another version": ({**own, "apiVersion": "x/v1"}, said),
        "of no kind": ({**own, "kind": None}, said),
        "with writers": (_with(own, managedFields=[{"manager": "a"}]), said),
        "a text": ("x", said),
        "nothing": (b"", said),
        "forced, perhaps": (own, f"{said}&force=maybe"),
        "with a wrong label": (_with(own, labels={"a b": "c"}), said),
        "with a field too many": ({**own, "foo": 1}, f"{said}&fieldValidation=Strict"),
    }
    for what, (body, query) in configurations.items():
        yield patch(what, APPLY, body, query)
    yield patch("forced", MERGE, {}, "&force=true")
    yield patch("of no known sort", "text/plain", {})
    for part in ("/status", "/scale", "/nosuch"):
        yield patch("a part", MERGE, {"spec": {"replicas": -1}, "status": "x"}, "", part)


def _deletions(base: str, name: str) -> Iterator[Mistake]:
    for query in (
        "gracePeriodSeconds=abc",
        "propagationPolicy=Bad",
        "dryRun=Bad",
        "orphanDependents=true&propagationPolicy=Orphan",
    ):
        yield Mistake(f"delete {name} {query}", "DELETE", f"{base}/{name}", query)
    bodies: dict[str, Any] = {
        "no JSON": b"{nope",
        "a text": "x",
        "a list": [],
        "a text for a time": {"gracePeriodSeconds": "x"},
        "another kind": {"kind": "Other", "apiVersion": "v1"},
        "a wrong trial": {"dryRun": ["X"]},
        "another UID": {"preconditions": {"uid": "x"}},
        "a number for a UID": {"preconditions": {"uid": 5}},
        "a field too many": {"foo": 1, "dryRun": ["All"]},
    }
    for what, body in bodies.items():
        yield Mistake(f"delete {name} with {what}", "DELETE", f"{base}/{name}", "", body)
    yield Mistake(f"delete a part of {name}", "DELETE", f"{base}/{name}/status")


def _reads(path: str, name: str) -> Iterator[Mistake]:
    for query in (
        "limit=abc",
        "continue=rubbish",
        "labelSelector=a%20b%20c",
        "fieldSelector=foo%3Dbar",
        "fieldSelector=metadata.name",
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=Bad&resourceVersion=1",
        "sendInitialEvents=true",
    ):
        yield Mistake(f"get {name} {query}", "GET", path, query)
    for accept in ("text/html", "application/json;as=Nope;v=v1;g=meta.k8s.io", "application/json;as=Table"):
        yield Mistake(f"get {name} as {accept}", "GET", path, headers={"accept": accept})
    for part in ("nosuch", "status", "scale"):
        yield Mistake(f"get {part} of {name}", "GET", f"{path}/{part}")


def sent(mistake: Mistake) -> bytes:
    if isinstance(mistake.body, bytes):
        return mistake.body
    return b"" if mistake.body is None else orjson.dumps(mistake.body)
