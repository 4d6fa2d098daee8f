"""Writes the table of built-in Kubernetes types that the embedded API server works by.

    python tools/kubernetes_shapes.py            writes src/trainmaster/cluster/apiserver/kubernetes_shapes.json
    python tools/kubernetes_shapes.py --check    says whether that file is what the sources give, and changes nothing

Shapes are facts: which fields a type has, their types and numbers on the wire, what is a list keyed by what. Each fact
has one place where Kubernetes keeps it, and is read there, from the Go modules of one release:

    generated.proto          numbers and wire types
    struct tags in Go        JSON names; what is inlined; whether a zero value is written in JSON
    OpenAPI v3               required fields, list and map types, merge keys, patch strategies, defaults
    discovery documents      which kinds are served where, with which verbs, short names and subresources

OpenAPI alone was tried and is not enough: it does not say whether a field is a pointer in Go, and that decides whether
a zero that arrives as protobuf is shown. Descriptions are left out: they are prose, not facts, and not ours.
Where two sources tell the same fact they must agree, or nothing is written.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KUBERNETES = "1.36.3"
FORMAT = 1  # of the file; the reader refuses any other

OUTPUT = Path(__file__).parents[1] / "src/trainmaster/cluster/apiserver/kubernetes_shapes.json"

EXIT_STALE = 1
EXIT_NO_GO = 3  # as in kubernetes_binaries.py: "cannot", not "differs"

_STAGED = f"v0.{KUBERNETES.partition('.')[2]}"
MODULES = {
    "k8s.io/kubernetes": f"v{KUBERNETES}",
    "k8s.io/api": _STAGED,
    "k8s.io/apimachinery": _STAGED,
    "k8s.io/apiextensions-apiserver": _STAGED,
    "k8s.io/kube-aggregator": _STAGED,
}

_GROUPS = (
    "admission admissionregistration apps authentication authorization autoscaling batch certificates coordination "
    "core discovery events flowcontrol networking node policy rbac resource scheduling storage"
)
META = "k8s.io/apimachinery/pkg/apis/meta/v1"
# Every stable version of every built-in group. Alpha and beta versions are off in a real cluster unless asked for.
API_PACKAGES = (
    *(f"k8s.io/api/{group}/v1" for group in _GROUPS.split()),
    "k8s.io/api/autoscaling/v2",
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
    "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1",
)
OTHER_PACKAGES = (
    META,
    "k8s.io/apimachinery/pkg/runtime",
    "k8s.io/apimachinery/pkg/api/resource",
    "k8s.io/apimachinery/pkg/util/intstr",
)

# Go registers these in every group (meta/v1 register.go), so their apiVersion can be anything.
ANYWHERE = (
    "CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent",
)
UNVERSIONED = ("APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status")   # always `v1`
IN_META = ("PartialObjectMetadata", "PartialObjectMetadataList")                         # `meta.k8s.io/v1`

# Types whose JSON is not the object that their message looks like: each has code of its own in Go, and a word here.
_SCHEMA = "apiextensions-apiserver.pkg.apis.apiextensions.v1."
SPECIAL = {
    "apimachinery.pkg.api.resource.Quantity": "quantity",
    "apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    "apimachinery.pkg.apis.meta.v1.Time": "time",
    "apimachinery.pkg.apis.meta.v1.MicroTime": "micro-time",
    "apimachinery.pkg.apis.meta.v1.Duration": "duration",
    "apimachinery.pkg.apis.meta.v1.FieldsV1": "fields",
    "apimachinery.pkg.runtime.RawExtension": "raw",
    _SCHEMA + "JSON": "json",
    _SCHEMA + "JSONSchemaPropsOrArray": "schema-or-list",
    _SCHEMA + "JSONSchemaPropsOrBool": "schema-or-bool",
    _SCHEMA + "JSONSchemaPropsOrStringArray": "schema-or-names",
}
SCALARS = {"string": "string", "bool": "bool", "int32": "int32", "int64": "int64", "double": "double", "bytes": "bytes"}


class NoGo(Exception):
    """The sources cannot be had: no Go, or it cannot fetch them."""


class Contradiction(Exception):
    """Two sources disagree, or one holds something this reader has no word for."""


@dataclass(frozen=True, slots=True)
class WireField:
    """One line of a message in a .proto file."""

    number: int
    label: str          # optional, repeated, map
    type: str           # a scalar, or the full name of a message


@dataclass(frozen=True, slots=True)
class GoField:
    """One tagged line of a Go struct."""

    name: str           # in JSON; empty when inlined
    type: str
    options: frozenset[str]
    number: int         # 0: not on the wire


@dataclass(slots=True)
class Sources:
    messages: dict[str, dict[int, WireField]] = field(default_factory=dict)
    structs: dict[str, list[GoField]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)       # type X Y
    slices: set[str] = field(default_factory=set)               # type X []Y
    groups: dict[str, str] = field(default_factory=dict)        # package -> API group
    schemas: dict[str, Any] = field(default_factory=dict)
    paths: dict[str, Any] = field(default_factory=dict)
    discovery: dict[str, list[Any]] = field(default_factory=dict)

    def struct(self, name: str) -> list[GoField]:
        while name not in self.structs and name in self.aliases:
            name = self.aliases[name]
        if name not in self.structs:
            raise Contradiction(f"{name} is a message, but no Go struct of that name was found")
        return self.structs[name]


def table(sources: Sources) -> dict[str, Any]:
    kinds = _kinds(sources)
    types: dict[str, Any] = {}
    waiting = sorted({name for of_version in kinds.values() for name in of_version.values()})
    while waiting:
        name = waiting.pop()
        if name not in types:
            types[name] = _type(sources, name)
            waiting += [used for each in types[name]["fields"] if (used := _base(each[1])) in sources.messages]
    return {
        "kubernetes": KUBERNETES, "format": FORMAT, "kinds": kinds, "resources": _resources(sources),
        "types": dict(sorted(types.items())),
    }


def _kinds(sources: Sources) -> dict[str, dict[str, str]]:
    """apiVersion -> kind -> type. Under `*`: what exists in every version."""
    meta = _canonical(META)
    found: dict[str, dict[str, str]] = {
        "*": {kind: f"{meta}.{kind}" for kind in ANYWHERE},
        "v1": {kind: f"{meta}.{kind}" for kind in UNVERSIONED},
        "meta.k8s.io/v1": {kind: f"{meta}.{kind}" for kind in IN_META},
    }
    for package in API_PACKAGES:
        version, prefix = _api_version(sources, package), _canonical(package) + "."
        for name in sources.messages:
            kind = name.removeprefix(prefix)
            if not name.startswith(prefix) or name in sources.slices:
                continue
            if any(each.type.endswith("TypeMeta") for each in sources.struct(name)):
                found.setdefault(version, {})[kind] = name
    return {version: dict(sorted(found[version].items())) for version in sorted(found)}


def _type(sources: Sources, name: str) -> dict[str, Any]:
    schema = sources.schemas.get(name)
    fields = list(_fields(sources, name, ()))
    if schema is not None:
        properties = schema.get("properties", {})
        if extra := set(properties) ^ {each[0] for each in fields}:
            raise Contradiction(f"{name}: Go and OpenAPI disagree on {sorted(extra)}")
        for each in fields:
            said = _said(properties[each[0]], each[0] in schema.get("required", ()), _implied(sources, each))
            if said:
                each.append(said)
    described: dict[str, Any] = {}
    if schema is not None and (map_type := schema.get("x-kubernetes-map-type")):
        described["map"] = map_type
    return {**described, "fields": sorted(fields, key=lambda each: str(each[0]))}


def _fields(sources: Sources, name: str, under: tuple[int, ...]) -> Iterator[list[Any]]:
    """The fields in JSON; `under` are the numbers of the messages that JSON does not show because Go inlines them."""
    message, seen = sources.messages[name], set[int]()
    for each in sources.struct(name):
        seen.add(each.number)
        if each.type.endswith("TypeMeta") and not each.name:
            yield from (["apiVersion", "string", 0, "omit"], ["kind", "string", 0, "omit"])
            continue
        wire = message.get(each.number)
        if wire is None:
            raise Contradiction(f"{name}.{each.name or each.type}: no field number {each.number} in the .proto file")
        if not each.name:
            yield from _fields(sources, wire.type, (*under, each.number))
            continue
        path = (*under, each.number)
        yield [each.name, _form(sources, wire), path[0] if len(path) == 1 else list(path), _zero(sources, each, wire)]
    if missing := set(message) - seen:
        raise Contradiction(f"{name}: numbers {sorted(missing)} of the .proto file have no tagged field in Go")


def _form(sources: Sources, wire: WireField) -> str:
    """The type of a field in JSON as one word: `[]` is a list of, `{}` a map of text to, what follows."""
    base = SCALARS.get(wire.type) or SPECIAL.get(wire.type)
    if base is None and wire.type in sources.slices:
        base = "strings"      # a list of text that has a message of its own (ExtraValue, Verbs)
        if sources.messages[wire.type] != {1: WireField(1, "repeated", "string")}:
            raise Contradiction(f"{wire.type}: a slice that is not a list of text")
    if base is None and wire.type not in sources.messages:
        raise Contradiction(f"{wire.type}: no word for this type")
    return {"optional": "", "repeated": "[]", "map": "{}"}[wire.label] + (base or wire.type)


def _zero(sources: Sources, each: GoField, wire: WireField) -> str:
    """What Go writes in JSON for a value that is absent or zero on the wire.

    "" nothing if absent, what is there otherwise; "omit" nothing even if a zero is there; "always" the zero value;
    "null" null if absent.
    """
    empty = "omitempty" in each.options
    if each.type.startswith("*") or wire.label != "optional" or wire.type in sources.slices:
        return "" if empty else "null"
    if wire.type == "bytes":
        return "omit" if empty else "null"
    if wire.type in SCALARS:
        return "omit" if empty else "always"
    return "omit" if "omitzero" in each.options else "always"    # a struct is never empty to Go


def _implied(sources: Sources, each: Sequence[Any]) -> Any:
    """The default that follows from the zero rule: a value that Go always writes is its zero value if not given."""
    zeros = {"string": "", "bool": False, "int32": 0, "int64": 0, "double": 0}
    if each[3] != "always":
        return None
    return {} if each[1] in sources.messages else zeros.get(each[1])


def _said(schema: Mapping[str, Any], required: bool, implied: Any) -> dict[str, Any]:
    """What OpenAPI adds to Go and the .proto file."""
    words = {
        "list": "x-kubernetes-list-type", "keys": "x-kubernetes-list-map-keys", "map": "x-kubernetes-map-type",
        "patch": "x-kubernetes-patch-strategy", "merge": "x-kubernetes-patch-merge-key",
    }
    found: dict[str, Any] = {"required": True} if required else {}
    found |= {word: schema[key] for word, key in words.items() if key in schema}
    if implied is not None and "default" not in schema:
        raise Contradiction(f"{schema}: Go always writes {implied!r}, but OpenAPI has no default")
    if schema.get("default") != implied:
        found["default"] = schema["default"]
    return found


def _resources(sources: Sources) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for version, entries in sorted(sources.discovery.items()):
        parts: dict[str, dict[str, Any]] = {}
        for entry in sorted(entries, key=lambda each: str(each["name"])):
            plural, _, part = entry["name"].partition("/")
            _served(sources, version, entry)
            if part:
                owner = {"version": "/".join(filter(None, (entry.get("group"), entry["version"])))} \
                    if "version" in entry else {}
                parts[plural].setdefault("parts", {})[part] = {"kind": entry["kind"], **owner, "verbs": entry["verbs"]}
                continue
            parts[plural] = {
                "plural": plural, "singular": entry["singularName"], "kind": entry["kind"],
                "namespaced": entry["namespaced"],
                **{ours: entry[theirs] for ours, theirs in (("short", "shortNames"), ("categories", "categories"))
                   if entry.get(theirs)},
                "verbs": entry["verbs"],
            }
        found[version] = list(parts.values())
    return found


def _served(sources: Sources, version: str, entry: Mapping[str, Any]) -> None:
    """The discovery documents and the OpenAPI paths must tell the same."""
    plural, _, part = entry["name"].partition("/")
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    scope = "/namespaces/{namespace}" if entry["namespaced"] else ""
    path = f"{base}{scope}/{plural}" + (f"/{{name}}/{part}" if part else "")
    if path not in sources.paths:
        raise Contradiction(f"{version} {entry['name']}: OpenAPI has no path {path}")
    told = {operation["x-kubernetes-group-version-kind"]["kind"] for operation in sources.paths[path].values()
            if isinstance(operation, dict) and "x-kubernetes-group-version-kind" in operation}
    if entry["kind"] not in told and not told & {"PodProxyOptions", "NodeProxyOptions", "ServiceProxyOptions",
                                                 "PodExecOptions", "PodAttachOptions", "PodPortForwardOptions"}:
        raise Contradiction(f"{path}: OpenAPI says {sorted(told)}, discovery says {entry['kind']}")


# Reading the sources.

_MESSAGE = re.compile(r"^message (\w+) \{$(.*?)^\}$", re.MULTILINE | re.DOTALL)
_PROTO_FIELD = re.compile(
    r"^  (?:(optional|required|repeated) )?(?:map<string, ([\w.]+)>|([\w.]+)) \w+ = (\d+);", re.MULTILINE
)
_STRUCT = re.compile(r"^type (\w+) struct ?\{(?:\}$|$(.*?)^\}$)", re.MULTILINE | re.DOTALL)
_GO_FIELD = re.compile(r"^\s+(?:(\w+)\s+)?([*\[\]\w.]+)\s+`([^`]*)`", re.MULTILINE)
_GO_SLICE = re.compile(r"^type (\w+) \[\]", re.MULTILINE)
_GO_ALIAS = re.compile(r"^type (\w+) (\w+)\.(\w+)$", re.MULTILINE)
_TAG = re.compile(r'(\w+):"([^"]*)"')
_GROUP_NAME = re.compile(r'^const GroupName = "(.*)"$', re.MULTILINE)


def read(folders: Mapping[str, Path]) -> Sources:
    sources = Sources()
    for package in (*API_PACKAGES, *OTHER_PACKAGES):
        module = next(name for name in folders if package.startswith(name + "/"))
        folder = folders[module] / package.removeprefix(module + "/")
        _read_messages(sources, package, (folder / "generated.proto").read_text())
        for path in sorted(folder.glob("*.go")):
            if not path.name.endswith(("_test.go", ".pb.go")) and not path.name.startswith("zz_"):
                _read_go(sources, package, path.read_text())
    specification = folders["k8s.io/kubernetes"] / "api"
    for package in API_PACKAGES:
        version = _api_version(sources, package)
        place = f"apis__{version.replace('/', '__')}" if "/" in version else f"api__{version}"
        if (path := specification / "discovery" / f"{place}.json").exists():    # admission.k8s.io is served nowhere
            sources.discovery[version] = json.loads(path.read_text())["resources"]
            document = json.loads((specification / "openapi-spec" / "v3" / f"{place}_openapi.json").read_text())
            sources.paths |= document["paths"]
            sources.schemas |= {_from_openapi(name): each for name, each in document["components"]["schemas"].items()}
    return sources


def _read_messages(sources: Sources, package: str, text: str) -> None:
    for message in _MESSAGE.finditer(text):
        fields = {}
        for label, of_map, plain, number in _PROTO_FIELD.findall(message[2]):
            type_ = of_map or plain
            if type_ not in SCALARS:
                type_ = _canonical(type_) if "." in type_ else f"{_canonical(package)}.{type_}"
            label = "map" if of_map else "repeated" if label == "repeated" else "optional"
            fields[int(number)] = WireField(int(number), label, type_)
        sources.messages[f"{_canonical(package)}.{message[1]}"] = fields


def _read_go(sources: Sources, package: str, text: str) -> None:
    prefix = _canonical(package) + "."
    if group := _GROUP_NAME.search(text):
        sources.groups[package] = group[1]
    sources.slices |= {prefix + name for name in _GO_SLICE.findall(text)}
    sources.aliases |= {prefix + name: f"{_canonical(META)}.{other}"
                        for name, where, other in _GO_ALIAS.findall(text) if where == "metav1"}
    for struct in _STRUCT.finditer(text):
        fields = []
        for _, type_, tags in _GO_FIELD.findall(struct[2] or ""):
            told = dict(_TAG.findall(tags))
            name, *options = told.get("json", "").split(",")
            _, _, number = told.get("protobuf", "").partition(",")
            if name != "-" and (number or "inline" in options):
                fields.append(GoField(name, type_, frozenset(options), int(number.partition(",")[0] or 0)))
        sources.structs[prefix + struct[1]] = fields


def _api_version(sources: Sources, package: str) -> str:
    return "/".join(filter(None, (sources.groups[package], package.rpartition("/")[2])))


def _canonical(name: str) -> str:
    """One spelling for Go packages, .proto packages and types: OpenAPI's, without the `io.k8s.` all of them have."""
    return name.lstrip(".").removeprefix("k8s.io").lstrip("./").replace("/", ".").replace("_", "-")


def _from_openapi(name: str) -> str:
    return name.removeprefix("io.k8s.")


def _base(form: str) -> str:
    return form.removeprefix("[]").removeprefix("{}")


def modules() -> dict[str, Path]:
    """Folders of the Go modules, fetched and verified by the ordinary Go client if they are not there yet."""
    go = shutil.which("go")
    if go is None:
        raise NoGo("Go is not installed (no `go` in PATH); the sources of Kubernetes come through it.")
    wanted = [f"{name}@{version}" for name, version in MODULES.items()]
    done = subprocess.run([go, "mod", "download", "-json", *wanted], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoGo(f"Go could not fetch the sources of Kubernetes: {(done.stderr or done.stdout).strip()[-500:]}")
    answers = json.loads("[" + done.stdout.replace("}\n{", "},\n{") + "]")
    return {answer["Path"]: Path(answer["Dir"]) for answer in answers}


def text_of(shapes: Mapping[str, Any]) -> str:
    """JSON with one line per field, kind or resource: small, and a new release is a readable difference."""

    def line(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"))

    def block(entries: Mapping[str, str]) -> str:
        return "{\n" + ",\n".join(f"{line(key)}:{value}" for key, value in entries.items()) + "\n}"

    types = {
        name: "{" + "".join(f"{line(key)}:{line(each)}," for key, each in type_.items() if key != "fields")
        + '"fields":[\n' + ",\n".join(map(line, type_["fields"])) + "\n]}"
        for name, type_ in shapes["types"].items()
    }
    resources = {version: "[\n" + ",\n".join(map(line, each)) + "\n]" for version, each in shapes["resources"].items()}
    kinds = {version: block({kind: line(name) for kind, name in each.items()})
             for version, each in shapes["kinds"].items()}
    return block({"kubernetes": line(shapes["kubernetes"]), "format": line(shapes["format"]), "kinds": block(kinds),
                  "resources": block(resources), "types": block(types)}) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the table of built-in Kubernetes types.")
    parser.add_argument("--check", action="store_true", help="only say whether the committed table is up to date")
    asked = parser.parse_args(arguments)
    try:
        text = text_of(table(read(modules())))
    except NoGo as why:
        print(why, file=sys.stderr)
        return EXIT_NO_GO
    if not asked.check:
        OUTPUT.write_text(text)
        print(f"{OUTPUT.name}: {len(text.encode()) / 1000:.0f} kB", file=sys.stderr)
        return 0
    if OUTPUT.exists() and OUTPUT.read_text() == text:
        print(f"{OUTPUT.name} is what Kubernetes {KUBERNETES} gives.")
        return 0
    print(f"{OUTPUT.name} is not what Kubernetes {KUBERNETES} gives. Run tools/kubernetes_shapes.py.", file=sys.stderr)
    return EXIT_STALE


if __name__ == "__main__":
    sys.exit(main())
