"""Functions for expressions in addition to the standard ones. Rules for Confluent's clients use them."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from email.utils import parseaddr
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from celpy import celtypes

_LABEL: Final = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")


def is_hostname(text: str) -> bool:
    """Return `isHostname`: dot-separated labels of letters, digits and hyphens, at most 253 characters, no number."""
    labels = text.removesuffix(".").split(".")
    return len(text) <= 253 and all(map(_LABEL.fullmatch, labels)) and not labels[-1].isdigit()


def is_email(text: str) -> bool:
    """Return `isEmail`: one address without a display name, whose host is a host name."""
    local, at, host = text.partition("@")
    return parseaddr(text)[1] == text and len(text) <= 254 and bool(at) and 0 < len(local) <= 64 and is_hostname(host)


def is_ipv4(text: str | bytes) -> bool:
    """Return `isIpv4`: dotted text, or four bytes."""
    return _is_parsable(ipaddress.IPv4Address, text)


def is_ipv6(text: str | bytes) -> bool:
    """Return `isIpv6`: text with colons, or sixteen bytes."""
    return _is_parsable(ipaddress.IPv6Address, text)


def is_uri(text: str) -> bool:
    """Return `isUri`: whether a text has scheme, host and path."""
    parts = urlsplit(text)
    return bool(parts.scheme and parts.netloc and parts.path)


def is_uri_reference(text: str) -> bool:
    """Return `isUriRef`: whether a text is a URI or a relative reference, but not just a fragment."""
    parts = urlsplit(text)
    return bool((parts.scheme and parts.path) or not parts.fragment)


def is_uuid(text: str) -> bool:
    """Return `isUuid`: whether a text is a UUID."""
    return _is_parsable(UUID, text)


def format_text(pattern: str, values: list[Any]) -> Any:
    """Return `format`: `%s %d %f %e %x %X %o %b %%`, one for each value. `%.2f` has two digits after the point.

    Raises ValueError for anything else, TypeError for a value of the wrong type for its letter.
    """
    rest = list(values)

    def print_value(match: re.Match[str]) -> str:
        digits, letter = match.groups()
        if letter is None:
            return "%"
        if not rest:
            raise ValueError("there are fewer values than the pattern has conversions")
        return _VERBS[letter](rest.pop(0), int(digits) if digits else 6)

    if "%" in _PLACEHOLDER.sub("", pattern):
        raise ValueError("the pattern has a % without a valid conversion")
    text = _PLACEHOLDER.sub(print_value, pattern)
    if rest:
        raise ValueError("there are more values than the pattern has conversions")
    return celtypes.StringType(text)


_PLACEHOLDER: Final = re.compile(r"%(?:%|(?:\.([0-9]{1,3}))?([sdfexXob]))")
_NUMBERS: Final = (celtypes.IntType, celtypes.UintType)


def _format_plain(value: Any, _: int) -> str:
    match value:
        case celtypes.BytesType():
            return value.hex()
        case list():
            quoted = (
                json.dumps(str(one), ensure_ascii=False) if isinstance(one, str) else _format_plain(one, 0)
                for one in value
            )
            return f"[{', '.join(quoted)}]"
    return str(celtypes.StringType(value))


def _format_hex(value: Any, _: int) -> str:
    if isinstance(value, str | bytes):
        return (value.encode() if isinstance(value, str) else bytes(value)).hex()
    return f"{_require_number(value):x}"


def _format_float(letter: str) -> Callable[[Any, int], str]:
    def print_number(value: Any, digits: int) -> str:
        return (
            f"{float(value):.{digits}{letter}}"
            if isinstance(value, celtypes.DoubleType)
            else str(_require_number(value))
        )

    return print_number


def _require_number(value: Any) -> int:
    if not isinstance(value, _NUMBERS):
        raise TypeError(f"{type(value).__name__} is not an integer")
    return int(value)


_VERBS: Final[Mapping[str, Callable[[Any, int], str]]] = {
    "s": _format_plain,
    "d": lambda value, _: str(_require_number(value)),
    "f": _format_float("f"),
    "e": _format_float("e"),
    "x": _format_hex,
    "X": lambda value, _: _format_hex(value, 0).upper(),
    "o": lambda value, _: f"{_require_number(value):o}",
    "b": lambda value, _: f"{int(value) if isinstance(value, celtypes.BoolType) else _require_number(value):b}",
}


def _is_parsable(kind: Callable[[Any], object], text: str | bytes) -> bool:
    try:
        kind(bytes(text) if isinstance(text, bytes) else str(text))
    except ValueError:
        return False
    return True


def _as_verdict(test: Callable[[Any], bool], *kinds: type) -> Callable[[Any], Any]:
    def function(value: Any) -> Any:
        if not isinstance(value, kinds):
            raise TypeError(f"no such overload for {type(value).__name__}")
        try:
            return celtypes.BoolType(test(value))
        except ValueError:  # an address that urllib cannot parse
            return celtypes.BoolType(False)

    return function


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "format": format_text,
    "isEmail": _as_verdict(is_email, str),
    "isHostname": _as_verdict(is_hostname, str),
    "isIpv4": _as_verdict(is_ipv4, str, bytes),
    "isIpv6": _as_verdict(is_ipv6, str, bytes),
    "isUri": _as_verdict(is_uri, str),
    "isUriRef": _as_verdict(is_uri_reference, str),
    "isUuid": _as_verdict(is_uuid, str),
}
"""Functions by name; each takes the value it is called on, and what stands in parentheses."""
