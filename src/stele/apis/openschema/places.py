"""Tenants and namespaces as spaces, and the ids of schemas. Pure.

| tenant           | namespace        | space     |
|------------------|------------------|-----------|
| absent, `default` | absent, `default` | the default one |
| t                | absent, `default` | `t`       |
| t                | n                | `t\\|n`    |
| absent, `default` | n                | `\\|n`     |

A space that is called `default` itself is the tenant `default~`, and so on.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from stele.core.model import DEFAULT_NAMESPACE, MAX_INT32
from stele.errors import ContentNotFound, InvalidName

DEFAULT = "default"

_BETWEEN = "|"
_ESCAPED = "~"
_DEFAULT_LIKE = re.compile(rf"{DEFAULT}~*\Z")
_GID = re.compile(r"[1-9][0-9]{0,9}\Z")


class Place(NamedTuple):
    """A tenant and a namespace as answers have them."""

    tenant: str
    namespace: str


def asked_space(tenant: str, namespace: str) -> str | None:
    """The space a request means; None when it says neither tenant nor namespace. Raises `InvalidName`."""
    return space_of(tenant, namespace) if tenant or namespace else None


def space_of(tenant: str, namespace: str) -> str:
    """The space of a tenant's namespace. Raises `InvalidName` for names with a `|`."""
    for name in (tenant, namespace):
        if _BETWEEN in name:
            raise InvalidName(name, f"has a {_BETWEEN!r}, which no tenant or namespace may have")
    first, second = _stored(tenant), _stored(namespace)
    return f"{first}{_BETWEEN}{second}" if second else first


def place_of(space: str) -> Place:
    """Inverse of `space_of`."""
    tenant, _, namespace = space.partition(_BETWEEN)
    return Place(_shown(tenant), _shown(namespace))


def _stored(name: str) -> str:
    if name in {"", DEFAULT}:
        return ""
    return name.removesuffix(_ESCAPED) if _DEFAULT_LIKE.match(name) else name


def _shown(name: str) -> str:
    if not name:
        return DEFAULT
    return name + _ESCAPED if _DEFAULT_LIKE.match(name) else name


def schema_id(space: str, gid: int) -> str:
    """The id of a schema, unique in the registry: its number, after the space where that is not the default one."""
    return f"{space}:{gid}" if space != DEFAULT_NAMESPACE else str(gid)


def schema_id_in(text: str, asked: str | None) -> tuple[str, int]:
    """Space and number of an id; a bare number is one of the space that was asked for. Raises `ContentNotFound`."""
    space, colon, number = text.rpartition(":")
    if not _GID.match(number) or int(number) > MAX_INT32:
        raise ContentNotFound(text[:100])
    return space if colon else asked or DEFAULT_NAMESPACE, int(number)
