"""What names, labels and keys may look like, with the texts Kubernetes refuses them with."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeAlias

from trainmaster.api.meta import Json
from trainmaster.cluster.apiserver import causes
from trainmaster.cluster.apiserver.causes import Cause

Faults: TypeAlias = list[str]

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_UNDERSCORED = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*"
_WILDCARD = rf"\*\.{_SUBDOMAIN}"
_LABEL_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = rf"({_QUALIFIED})?"
_DATA_KEY = r"[-._a-zA-Z0-9]+"
_ENV_NAME = r"[ -<>-~]+"
_PORT_NAME = r"[-a-z0-9]+"

_CACHE = {pattern: re.compile(pattern) for pattern in (
    _LABEL, _SUBDOMAIN, _UNDERSCORED, _WILDCARD, _LABEL_1035, _QUALIFIED, _LABEL_VALUE, _DATA_KEY, _ENV_NAME,
    _PORT_NAME)}

ANNOTATIONS_SIZE = 256 * 1024
MOST_MATCHED = 1024
# Keys of labels and annotations, and names of variables, are few and come with every object: so many are remembered.
MOST_KEYS = 1024
_LONGEST_KEY = 253 + 1 + 63


def label(name: str) -> Faults:
    return [] if _fits(name, 63, _LABEL) else _length(name, 63) + (_dots(name) or _match(
        name, _LABEL, "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
        "start and end with an alphanumeric character", "my-name", "123-abc"))


def subdomain(name: str, unit: str = "characters") -> Faults:
    return [] if _fits(name, 253, _SUBDOMAIN) else _length(name, 253, unit) + _match(
        name, _SUBDOMAIN, "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
        "'.', and must start and end with an alphanumeric character", "example.com")


def underscored(name: str) -> Faults:
    """A domain of the kind that services have, whose parts may begin with an underscore."""
    return [] if _fits(name, 253, _UNDERSCORED) else _length(name, 253) + _match(
        name, _UNDERSCORED, "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', "
        "'-' or '.', and must start and end with an alphanumeric character", "example.com")


def host(name: str) -> Faults:
    """A name of machines, or of all below one."""
    return subdomain(name) if "*" not in name else _length(name, 253) + _match(
        name, _WILDCARD, "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which "
        "must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
        "*.example.com")


def label_1035(name: str) -> Faults:
    return _length(name, 63) + (_dots(name) or _match(
        name, _LABEL_1035, "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
        "alphabetic character, and end with an alphanumeric character", "my-name", "abc-123"))


def older_label_1035(name: str) -> Faults:
    """The same rule where Kubernetes asks in older words."""
    return _length(name, 63) + _match(
        name, _LABEL_1035, "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
        "alphabetic character, and end with an alphanumeric character", "my-name", "abc-123")


def _dots(name: str) -> Faults:
    """What would be a name if it were to have parts."""
    parted = "." in name and len(name) <= MOST_MATCHED and _CACHE[_SUBDOMAIN].fullmatch(name)
    return ["must not contain dots"] if parted else []


def path_segment(name: str) -> Faults:
    """The loosest rule: whatever can stand in a URL path."""
    if name in {".", ".."}:
        return [f"may not be '{name}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in name]


def label_value(value: str) -> Faults:
    return [] if len(value) <= 63 and _is_value(value) else _length(value, 63, "bytes") + _match(
        value, _LABEL_VALUE, "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
        "'.', and must start and end with an alphanumeric character", "MyValue", "my_value", "12345")


@lru_cache(maxsize=MOST_KEYS)       # those of a job's replicas are the same but for one
def _is_value(value: str) -> bool:
    return _CACHE[_LABEL_VALUE].fullmatch(value) is not None


_KEY = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"


def qualified(key: str) -> Faults:
    """A key of a label or annotation: an optional DNS prefix, a slash, a name."""
    if len(key) <= _LONGEST_KEY and _is_key(key):
        return []
    if key.count("/") > 1:
        [fault] = _match("", _QUALIFIED, f"a valid label key {_KEY}", "MyName", "my.name", "123-abc")
        return [f"{fault} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    prefix, slash, name = key.rpartition("/")
    found: Faults = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    elif slash:
        found += [f"prefix part {fault}" for fault in subdomain(prefix, "bytes")]
    if not name:
        found.append("name part must be non-empty")
    return found + [f"name part {fault}" for fault in _length(name, 63, "bytes")] + _match(
        name, _QUALIFIED, f"name part {_KEY}", "MyName", "my.name", "123-abc")


@lru_cache(maxsize=MOST_KEYS)
def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return _fits(name, 63, _QUALIFIED) and (not slash or _fits(prefix, 253, _SUBDOMAIN))


def data_key(key: str) -> Faults:
    """A key of a ConfigMap or Secret; it becomes a file name."""
    found = _length(key, 253) + _match(
        key, _DATA_KEY, "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
        "key.name", "KEY_NAME", "key-name")
    if key in {".", ".."}:
        found.append(f"must not be '{key}'")
    elif key.startswith(".."):
        found.append("must not start with '..'")
    return found


def env_name(name: str) -> Faults:
    if _is_variable(name) if len(name) <= _LONGEST_KEY else _CACHE[_ENV_NAME].fullmatch(name):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


@lru_cache(maxsize=MOST_KEYS)
def _is_variable(name: str) -> bool:
    return _CACHE[_ENV_NAME].fullmatch(name) is not None


def port_name(name: str) -> Faults:
    found = _length(name, 15)
    if not _CACHE[_PORT_NAME].fullmatch(name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if not any("a" <= sign <= "z" for sign in name):
        found.append("must contain at least one letter (a-z)")
    if name.startswith("-") or name.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def labels(found: dict[str, str], field: str) -> Iterator[Cause]:
    for key, value in found.items():
        for fault in qualified(key):
            yield causes.invalid(field, key, fault)
        for fault in label_value(value):
            yield causes.invalid(field, value, fault)


def annotations(found: dict[str, str], field: str) -> Iterator[Cause]:
    for key in found:
        for fault in qualified(key.lower()):
            yield causes.invalid(field, key, fault)
    if sum(len(key) + len(value) for key, value in found.items()) > ANNOTATIONS_SIZE:
        yield causes.too_long(field, ANNOTATIONS_SIZE)


def refused(field: str, value: Json, faults: Faults) -> Iterator[Cause]:
    for fault in faults:
        yield causes.invalid(field, value, fault)


def _fits(text: str, most: int, pattern: str) -> bool:
    """The quick yes. The patterns take ASCII only, so that signs are bytes."""
    return len(text) <= most and _CACHE[pattern].fullmatch(text) is not None


def _length(text: str, most: int, unit: str = "characters") -> Faults:
    """Bytes are counted, whatever Kubernetes calls them: those of labels bytes, all others characters."""
    return [f"must be no more than {most} {unit}"] if len(text.encode("utf-8", "replace")) > most else []


def _match(text: str, pattern: str, rule: str, *examples: str) -> Faults:
    # What is far too long is refused for its length; matching it could take quadratic time.
    if len(text) <= MOST_MATCHED and _CACHE[pattern].fullmatch(text):
        return []
    told = ",  or ".join(f"'{example}'" for example in examples)
    return [f"{rule} (e.g. {told}, regex used for validation is '{pattern}')"]
