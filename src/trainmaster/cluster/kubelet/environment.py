"""A container's command line and environment, from the pod, its image and the objects it refers to. Pure.

What must be fetched is named first (`references`), what was fetched is handed in (`Sources`), so that the rules can be
tested without a server.
"""

import base64
import platform
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import TypeAlias

from trainmaster.api import quantity
from trainmaster.api.meta import Object, metadata
from trainmaster.cluster.kubelet.images import Image

_REFERENCE = re.compile(r"\$(\$|\(([^)]*)\))")
_KEYED_FIELD = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class ConfigError(Exception):
    """The container cannot be made from what its pod says; the reason is CreateContainerConfigError."""


TokenPlace: TypeAlias = tuple[str, str]      # the volume that a token goes to, and its path there


@dataclass(frozen=True, slots=True)
class Claimed:
    """What is behind a claim: a directory of this machine, or why there is none."""

    path: str = ""
    provisioned: bool = False       # by this cluster, which may make it and give it away
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Sources:
    """What the environment is drawn from. An object that is not there is not in the mapping."""

    config_maps: Mapping[str, Object] = field(default_factory=dict)
    secrets: Mapping[str, Object] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)         # status.podIP and others that are not in the object
    allocatable: Mapping[str, str] = field(default_factory=dict)    # what stands in for a limit that is not set
    tokens: Mapping[TokenPlace, str] = field(default_factory=dict)  # of the pod's account
    claims: Mapping[str, Claimed] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)          # variables about services


def references(container: Object) -> tuple[set[str], set[str]]:
    """The names of the ConfigMaps and Secrets that a container's environment needs."""
    maps: set[str] = set()
    secrets: set[str] = set()
    for source in container.get("envFrom") or ():
        maps |= {source["configMapRef"]["name"]} if source.get("configMapRef") else set()
        secrets |= {source["secretRef"]["name"]} if source.get("secretRef") else set()
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        maps |= {source["configMapKeyRef"]["name"]} if source.get("configMapKeyRef") else set()
        secrets |= {source["secretKeyRef"]["name"]} if source.get("secretKeyRef") else set()
    return maps, secrets


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace $(NAME) by its value; $$ is a dollar; a name without a value stays as it is written."""
    def one(match: re.Match[str]) -> str:
        if match.group(1) == "$":
            return "$"
        return values.get(match.group(2), match.group(0))

    return _REFERENCE.sub(one, text)


def environment(pod: Object, container: Object, image: Image, sources: Sources) -> dict[str, str]:
    """All variables of a container. Raises ConfigError for a reference that leads nowhere."""
    found: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        found.update(_from_whole(source, sources))
    for variable in container.get("env") or ():
        if variable.get("valueFrom"):
            value = _from_source(pod, container, variable, sources)
            if value is not None:
                found[variable["name"]] = value
        else:
            found[variable["name"]] = expand(str(variable.get("value") or ""), {**sources.links, **found})
    home = "/root" if user_of(pod, container, image) == 0 else "/"
    return {"HOME": home, "HOSTNAME": hostname(pod), **image.environment, **sources.links, **found}


def command(container: Object, image: Image, values: Mapping[str, str]) -> list[str]:
    """The argument list: the pod's command replaces the image's entrypoint and arguments, its args only the latter."""
    given, args = container.get("command"), container.get("args")
    head = list(given) if given else list(image.entrypoint)
    tail = list(args) if args else ([] if given else list(image.command))
    return [expand(str(word), values) for word in (*head, *tail)]


def security_of(pod: Object, container: Object) -> Object:
    """The container's security context, with the pod's underneath."""
    return {**(pod["spec"].get("securityContext") or {}), **(container.get("securityContext") or {})}


def user_of(pod: Object, container: Object, image: Image) -> int:
    """Whom the container runs as: what the pod says, else what the image does."""
    return int(security_of(pod, container).get("runAsUser", image.user) or 0)


def shares_network(pod: Object) -> bool:
    """Whether a pod is in the host's network instead of one of its own."""
    return bool(pod["spec"].get("hostNetwork"))


def hostname(pod: Object) -> str:
    """The pod's host name: its own wish, else its name, cut to what a host name may be long; in the host's network the
    host's."""
    if shares_network(pod):
        return platform.node()
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63].rstrip("-.")


def field_value(pod: Object, path: str, sources: Sources) -> str:
    """What a fieldRef means. Raises ConfigError for a field that cannot be referred to."""
    if path in sources.fields:
        return sources.fields[path]
    about = metadata(pod)
    if match := _KEYED_FIELD.fullmatch(path):
        return str((about.get(match.group(1)) or {}).get(match.group(2), ""))
    if path in ("metadata.labels", "metadata.annotations"):
        entries = about.get(path.removeprefix("metadata.")) or {}
        return "\n".join(f"{key}={_quoted(str(value))}" for key, value in sorted(entries.items()))
    simple: dict[str, Callable[[], object]] = {
        "metadata.name": lambda: about.get("name"),
        "metadata.namespace": lambda: about.get("namespace"),
        "metadata.uid": lambda: about.get("uid"),
        "spec.nodeName": lambda: pod["spec"].get("nodeName"),
        "spec.serviceAccountName": lambda: pod["spec"].get("serviceAccountName"),
    }
    if path not in simple:
        raise ConfigError(f"fieldRef '{path}' is not a field that a container can be told")
    return str(simple[path]() or "")


def resource_value(pod: Object, container: Object, reference: Object, sources: Sources) -> str:
    """What a resourceFieldRef means: a limit or request, in whole units of its divisor, rounded up."""
    name = reference.get("containerName")
    if name:
        container = next((one for one in pod["spec"]["containers"] if one["name"] == name), container)
    kind, _, resource = str(reference.get("resource", "")).partition(".")
    if kind not in ("limits", "requests") or not resource:
        raise ConfigError(f"resourceFieldRef '{reference.get('resource')}' is neither limits.NAME nor requests.NAME")
    resources = container.get("resources") or {}
    value = (resources.get(kind) or {}).get(resource)
    if value is None:
        value = sources.allocatable.get(resource, "0") if kind == "limits" else "0"
    divisor = quantity.parse(str(reference.get("divisor") or "1")) or Fraction(1)
    return str(ceil(quantity.parse(str(value)) / divisor))


def _from_whole(source: Object, sources: Sources) -> dict[str, str]:
    prefix = source.get("prefix") or ""
    for kind, reference in (("configmap", source.get("configMapRef")), ("secret", source.get("secretRef"))):
        if reference:
            return {prefix + name: raw.decode(errors="replace")
                    for name, raw in (_values(kind, reference, sources) or {}).items()}
    return {}


def _from_source(pod: Object, container: Object, variable: Object, sources: Sources) -> str | None:
    source = variable["valueFrom"]
    if source.get("fieldRef"):
        return field_value(pod, str(source["fieldRef"].get("fieldPath", "")), sources)
    if source.get("resourceFieldRef"):
        return resource_value(pod, container, source["resourceFieldRef"], sources)
    for kind, reference in (("configmap", source.get("configMapKeyRef")), ("secret", source.get("secretKeyRef"))):
        if not reference:
            continue
        values = _values(kind, reference, sources)
        raw = (values or {}).get(reference["key"])
        if raw is None and not reference.get("optional"):
            raise ConfigError(f"couldn't find key {reference['key']} in {kind} {reference['name']}")
        return raw.decode(errors="replace") if raw is not None else None
    raise ConfigError(f"variable {variable.get('name')} has a valueFrom that says nothing we know")


def _values(kind: str, reference: Object, sources: Sources) -> dict[str, bytes] | None:
    """What is in the object that is meant; None for one that need not be there and is not. Raises ConfigError."""
    objects, values = {"configmap": (sources.config_maps, config_map_values),
                       "secret": (sources.secrets, secret_values)}[kind]
    found = objects.get(reference["name"])
    if found is None and not reference.get("optional"):
        raise ConfigError(f'{kind} "{reference["name"]}" not found')
    return values(found) if found is not None else None


def config_map_values(thing: Object) -> dict[str, bytes]:
    """All keys of a ConfigMap."""
    text = {key: str(value).encode() for key, value in (thing.get("data") or {}).items()}
    return {**text, **_decoded((thing.get("binaryData") or {}).items())}


def secret_values(thing: Object) -> dict[str, bytes]:
    """All keys of a Secret."""
    return _decoded((thing.get("data") or {}).items())


def _decoded(items: Iterable[tuple[str, str]]) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in items}


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
