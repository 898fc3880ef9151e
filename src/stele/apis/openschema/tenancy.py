r"""Tenants and namespaces of the API as namespaces of the core, and the ids of schemas. Pure.

| tenant            | namespace         | namespace of the core |
|-------------------|-------------------|-----------------------|
| absent, `default` | absent, `default` | the default one       |
| t                 | absent, `default` | `t`                   |
| t                 | n                 | `t\|n`                |
| absent, `default` | n                 | `\|n`                 |

A namespace of the core that is itself called `default` is the tenant `default~`, and so on.
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
_SCHEMA_ID = re.compile(r"[1-9][0-9]{0,9}\Z")


class Tenancy(NamedTuple):
    """A tenant and a namespace as responses show them."""

    tenant: str
    namespace: str


def requested_namespace(tenant: str, namespace: str) -> str | None:
    """Return the core's namespace of a request; None if it names no tenant and no namespace.

    Raises `InvalidName`.
    """
    return namespace_of(tenant, namespace) if tenant or namespace else None


def namespace_of(tenant: str, namespace: str) -> str:
    """Return the core's namespace of a tenant's namespace. Raises `InvalidName` for names with a `|`."""
    for name in (tenant, namespace):
        if _BETWEEN in name:
            raise InvalidName(name, f"has a {_BETWEEN!r}, which no tenant or namespace may have")
    first, second = _stored_name(tenant), _stored_name(namespace)
    return f"{first}{_BETWEEN}{second}" if second else first


def tenancy_of(namespace: str) -> Tenancy:
    """Return tenant and namespace of a core namespace: the inverse of `namespace_of`."""
    tenant, _, namespace = namespace.partition(_BETWEEN)
    return Tenancy(_display_name(tenant), _display_name(namespace))


def _stored_name(name: str) -> str:
    if name in {"", DEFAULT}:
        return ""
    return name.removesuffix(_ESCAPED) if _DEFAULT_LIKE.match(name) else name


def _display_name(name: str) -> str:
    if not name:
        return DEFAULT
    return name + _ESCAPED if _DEFAULT_LIKE.match(name) else name


def format_schema_id(namespace: str, schema_id: int) -> str:
    """Return the id of a schema, unique in the registry: its number, after its namespace unless that is the default."""
    return f"{namespace}:{schema_id}" if namespace != DEFAULT_NAMESPACE else str(schema_id)


def parse_schema_id(text: str, asked: str | None) -> tuple[str, int]:
    """Return namespace and number of an id; a bare number is one of the requested namespace.

    Raises `ContentNotFound`.
    """
    namespace, colon, number = text.rpartition(":")
    if not _SCHEMA_ID.match(number) or int(number) > MAX_INT32:
        raise ContentNotFound(text[:100])
    return namespace if colon else asked or DEFAULT_NAMESPACE, int(number)
