"""Texts with a form of their own: quantities, moments, bytes. Yes or no only; what they mean is others' business.

The forms are those that the Go types of Kubernetes read, which are narrower than the standards they follow: a `Time` is
RFC 3339 with capital letters, a `MicroTime` has exactly six decimals, base64 is padded.
"""

import binascii
import re
from datetime import datetime

# Go takes any number of digits and any exponent; with these limits nobody can make arithmetic on them expensive.
_QUANTITY = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,2}|[KMGTPE]i|[numkMGTPE])?", re.ASCII)
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,]\d+)?(?:Z|[+-](?:[01]\d|2[0-4]):[0-5]\d)", re.ASCII
)
_MICRO_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{6}(?:Z|[+-](?:[01]\d|2[0-4]):[0-5]\d)", re.ASCII)

# What schemas call so is wider.
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d([.,]\d+)?([Zz]|[+-]\d\d:?\d\d)?", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


def is_quantity(text: str) -> bool:
    return _QUANTITY.fullmatch(text) is not None


def is_time(text: str) -> bool:
    return _is_moment(_TIME, text)


def is_micro_time(text: str) -> bool:
    return _is_moment(_MICRO_TIME, text)


def is_date_time(text: str) -> bool:
    return _DATE_TIME.fullmatch(text) is not None


def is_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


def is_base64(text: str) -> bool:
    try:
        binascii.a2b_base64(text.replace("\n", "").replace("\r", ""), strict_mode=True)
    except ValueError:
        return False
    return True


def _is_moment(form: re.Pattern[str], text: str) -> bool:
    found = form.fullmatch(text)
    if found is None:
        return False
    try:
        datetime.fromisoformat(found[1])
    except ValueError:      # the 30th of February
        return False
    return True
