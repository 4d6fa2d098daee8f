"""Forms of text that rules in CEL ask for by name (`format.dns1123Label()`), with what is said of other texts. Pure."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import TypeAlias
from urllib.parse import urlsplit

from trainmaster.cluster.apiserver import formats, names

Faults: TypeAlias = list[str]


def _prefix(faults: Callable[[str], Faults]) -> Callable[[str], Faults]:
    """Of names that something will be put behind: a dash at the end, and the sign before it, may be anything."""
    return lambda text: faults(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


def _or(holds: Callable[[str], bool], fault: str) -> Callable[[str], Faults]:
    return lambda text: [] if holds(text) else [fault]


def _is_date(text: str) -> bool:
    try:
        return len(text) == len("2006-01-02") and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _is_moment(text: str) -> bool:
    return _is_date(text[:10]) and formats.is_date_time(text)


def _is_base64(text: str) -> bool:
    return bool(text) and formats.is_base64(text)


def _uri(text: str) -> Faults:
    """As it may stand in a request."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        return [f'parse "{text}": {error}']
    if not text:
        return ['parse "": empty url']
    return [] if parts.scheme or text.startswith("/") else [f'parse "{text}": invalid URI for request']


FORMATS: Mapping[str, Callable[[str], Faults]] = {
    "dns1123Label": names.label, "dns1123LabelPrefix": _prefix(names.label),
    "dns1123Subdomain": names.subdomain, "dns1123SubdomainPrefix": _prefix(names.subdomain),
    "dns1035Label": names.label_1035, "dns1035LabelPrefix": _prefix(names.label_1035),
    "qualifiedName": names.qualified, "labelValue": names.label_value, "uri": _uri,
    "uuid": _or(formats.is_uuid, "does not match the UUID format"),
    "byte": _or(_is_base64, "invalid base64"), "date": _or(_is_date, "invalid date"),
    "datetime": _or(_is_moment, "invalid datetime"),
}
