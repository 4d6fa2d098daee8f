"""Rules that many kinds share: not below zero, one of a few words, unchanged, a number or a percentage."""

import re
from collections.abc import Iterator, Sequence

from trainmaster.api import quantity
from trainmaster.api.meta import Json, Object
from trainmaster.cluster.apiserver import addresses, causes, names
from trainmaster.cluster.apiserver.causes import Cause

# Resources that are numbers of objects.
COUNTED = frozenset({
    "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps", "persistentvolumeclaims",
    "services.nodeports", "services.loadbalancers",
})
_PERCENT = re.compile(r"[0-9]+%", re.ASCII)
_NUMBER = re.compile(r"[-+]?([0-9]+)%?", re.ASCII)
NOT_A_PERCENTAGE = ("a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
                    "regex used for validation is '[0-9]+%')")
DOMAIN_PATH = 'must be a domain-prefixed path (such as "acme.io/foo")'
LARGEST_PORT = 65535
IMMUTABLE = "field is immutable"
NOT_AN_ADDRESS = addresses.NOT_AN_ADDRESS
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", re.ASCII)
_NOT_A_PATH = f"Invalid path (regex used for validation is '{_PATH.pattern}')"


def not_negative(thing: Object, path: str, *fields: str) -> Iterator[Cause]:
    """Numbers that are there are zero or more."""
    for field in fields:
        value = thing.get(field)
        if value is not None and value < 0:
            yield causes.invalid(f"{path}.{field}" if path else field, value, "must be greater than or equal to 0")


def choice(value: Json, path: str, choices: Sequence[str]) -> Iterator[Cause]:
    """A word that is there is one of these."""
    if value is not None and value not in choices:
        yield causes.unsupported(path, value, choices)


def unchanged(new: Json, old: Json, path: str) -> Iterator[Cause]:
    if new != old:
        yield causes.invalid(path, new, IMMUTABLE)


def share(value: Json, path: str, *, most: bool = True) -> Iterator[Cause]:
    """A number or a percentage; with `most`, of no more than all."""
    if value is None:
        return
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            yield causes.invalid(path, value, NOT_A_PERCENTAGE)
        elif most and _above_all(value[:-1].lstrip("0")):
            yield causes.invalid(path, value, "must not be greater than 100%")
    elif value < 0:
        yield causes.invalid(path, value, "must be greater than or equal to 0")


def _above_all(digits: str) -> bool:
    return len(digits) > 3 or int(digits or "0") > 100


def amount(name: str, value: Json, path: str) -> Iterator[Cause]:
    """An amount of a resource: not below zero, and of what cannot be divided, whole."""
    found = quantity.parse(value)
    if found < 0:
        yield causes.invalid(path, quantity.canonical(str(value)), "must be greater than or equal to 0")
    if found.denominator != 1 and is_whole(name):
        yield causes.invalid(path, quantity.canonical(str(value)), "must be an integer")


def is_whole(name: str) -> bool:
    """Objects are counted, and so is what others than Kubernetes measure."""
    domain, slash, _ = name.partition("/")
    return name in COUNTED or (bool(slash) and not domain.endswith("kubernetes.io")
                               and not name.startswith("requests."))


def is_none(value: Json) -> bool:
    """A number or percentage of nothing; a text that is neither is read as nothing, too."""
    if isinstance(value, str):
        found = _NUMBER.fullmatch(value)
        return found is None or not found[1].strip("0")
    return not value


def port(value: Json, path: str) -> Iterator[Cause]:
    """A port by its number or its name."""
    if isinstance(value, str):
        yield from names.refused(path, value, names.port_name(value))
    elif value is not None and not 1 <= value <= LARGEST_PORT:
        yield causes.invalid(path, value, f"must be between 1 and {LARGEST_PORT}, inclusive")


def no_steps_back(where: str, path: str) -> Iterator[Cause]:
    """A path that does not lead back up."""
    if ".." in where.split("/"):
        yield causes.invalid(path, where, "must not contain '..'")


def below(where: str, path: str) -> Iterator[Cause]:
    """A path that leads to somewhere below."""
    if where.startswith("/"):
        yield causes.invalid(path, where, "must be a relative path")
    yield from no_steps_back(where, path)


def domain_path(value: str, path: str) -> Iterator[Cause]:
    """`example.com/something`."""
    domain, slash, rest = value.partition("/")
    if not value:
        yield causes.required(path)
    elif not domain or not slash or not rest:
        yield causes.invalid(path, value, DOMAIN_PATH)
    else:
        yield from names.refused(path, domain, names.subdomain(domain))
        if not _PATH.fullmatch(rest):
            yield causes.invalid(path, rest, _NOT_A_PATH)


def address(value: str) -> addresses.Address | None:
    return addresses.parsed(value)
