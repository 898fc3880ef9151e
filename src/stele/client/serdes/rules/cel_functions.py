"""Functions expressions may call beside the standard ones: those rules written for Confluent's clients rely on."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from email.utils import parseaddr
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from celpy import celtypes

_LABEL: Final = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")


def is_hostname(text: str) -> bool:
    """`isHostname`: dot-separated labels of letters, digits and hyphens, 253 characters at most, not a number."""
    labels = text.removesuffix(".").split(".")
    return len(text) <= 253 and all(map(_LABEL.fullmatch, labels)) and not labels[-1].isdigit()


def is_email(text: str) -> bool:
    """`isEmail`: one address without a name, its host a host name."""
    local, at, host = text.partition("@")
    return parseaddr(text)[1] == text and len(text) <= 254 and bool(at) and 0 < len(local) <= 64 and is_hostname(host)


def is_ipv4(text: str | bytes) -> bool:
    """`isIpv4`: dotted text, or four bytes."""
    return _parses(ipaddress.IPv4Address, text)


def is_ipv6(text: str | bytes) -> bool:
    """`isIpv6`: text with colons, or sixteen bytes."""
    return _parses(ipaddress.IPv6Address, text)


def is_uri(text: str) -> bool:
    """`isUri`: with scheme, host and path."""
    parts = urlsplit(text)
    return bool(parts.scheme and parts.netloc and parts.path)


def is_uri_reference(text: str) -> bool:
    """`isUriRef`: a URI, or the rest of one; nothing but a fragment is none."""
    parts = urlsplit(text)
    return bool((parts.scheme and parts.path) or not parts.fragment)


def is_uuid(text: str) -> bool:
    """`isUuid`."""
    return _parses(UUID, text)


def _parses(kind: Callable[[Any], object], text: str | bytes) -> bool:
    try:
        kind(bytes(text) if isinstance(text, bytes) else str(text))
    except ValueError:
        return False
    return True


def _verdict(test: Callable[[Any], bool], *kinds: type) -> Callable[[Any], Any]:
    def function(value: Any) -> Any:
        if not isinstance(value, kinds):
            raise TypeError(f"no such overload for {type(value).__name__}")
        try:
            return celtypes.BoolType(test(value))
        except ValueError:  # an address urllib cannot take apart
            return celtypes.BoolType(False)

    return function


FUNCTIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "isEmail": _verdict(is_email, str),
    "isHostname": _verdict(is_hostname, str),
    "isIpv4": _verdict(is_ipv4, str, bytes),
    "isIpv6": _verdict(is_ipv6, str, bytes),
    "isUri": _verdict(is_uri, str),
    "isUriRef": _verdict(is_uri_reference, str),
    "isUuid": _verdict(is_uuid, str),
}
"""Functions by name; each takes the value it is called on."""
