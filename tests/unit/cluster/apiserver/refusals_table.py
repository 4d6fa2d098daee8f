"""What the server refuses, as rows that two judges read: the embedded server in unit tests, the real one beside it.

A row sends an object, or makes one and changes it, or writes its status, perhaps a second time; `said` is what comes
after `is invalid: `, first line only, with UID for what is random. Texts came from a real kube-apiserver and are
checked against one again (tests/kubernetes).
"""

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from trainmaster.api.meta import Json, Object, Resource
from trainmaster.cluster.apiserver import builtin

FOLDER = Path(__file__).with_name("refusals")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Row:
    family: str
    when: str
    thing: Object
    change: Json            # None: the object itself is what is refused
    said: str
    status: Json = None     # of the object that was made
    first: Json = None      # and the status that was written before it

    @property
    def resource(self) -> Resource:
        return next(each.resource for each in builtin.served()[self.thing["apiVersion"]]
                    if each.resource.kind == self.thing["kind"])

    @property
    def namespace(self) -> str:
        return "default" if self.resource.namespaced else ""


def rows() -> list[Row]:
    return [Row(path.stem, row["when"], row.get("made") or row["sent"], row.get("change"), row["said"],
                row.get("status"), row.get("first"))
            for path in sorted(FOLDER.glob("*.yaml")) for row in yaml.safe_load(path.read_text())]


def comparable(code: int, message: str) -> str:
    """The part of an answer that must be the same on both servers."""
    if code < 400:
        return ""
    first = _UID.sub("UID", message).split("\n")[0]
    return first.partition(" is invalid: ")[2] if code == 422 else first
