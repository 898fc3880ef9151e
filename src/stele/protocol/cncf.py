"""Parts of the CNCF Schema Registry API that several components use: group ids, subscriptions, change events.

Source: docs/protocols/cncf.md
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from stele.core.access import Owner
from stele.core.model import DEFAULT_NAMESPACE, Subject

DIALECT: Final = "cncf"
"""Name of the dialect in the journal, and key of its own data in the core."""

DEFAULT_GROUP: Final = "default"
"""Id of the group every registry has: the default namespace."""

UPDATED: Final = "io.cloudevents.schemaregistry.updated.v1"
"""Type of events about elements that were created or changed."""
DELETED: Final = "io.cloudevents.schemaregistry.deleted.v1"
"""Type of events about elements that were deleted."""

_LIKE_DEFAULT = re.compile(rf"{DEFAULT_GROUP}~*\Z")


def namespace_of(group: str) -> str:
    """Return the namespace of a group. The group `default~` is the namespace called `default`, and so on."""
    if group == DEFAULT_GROUP:
        return DEFAULT_NAMESPACE
    return group[:-1] if _LIKE_DEFAULT.match(group) else group


def group_id_of(namespace: str) -> str:
    """Return the id of the group of a namespace: the inverse of `namespace_of`."""
    if namespace == DEFAULT_NAMESPACE:
        return DEFAULT_GROUP
    return f"{namespace}~" if _LIKE_DEFAULT.match(namespace) else namespace


def format_path(namespace: str | None, subject: str | None = None, version_number: int | None = None) -> str:
    """Return the path of the call that reads a group, a schema or a version; `/` is the registry."""
    if namespace is None:
        return "/"
    path = f"/schemagroups/{quote(group_id_of(namespace), safe='')}"
    if subject is not None:
        path += f"/schemas/{quote(subject, safe='')}"
    return path if version_number is None else f"{path}/versions/{version_number}"


def own_data(dialect_data: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return this dialect's own data of a namespace or subject: `format` as written, `variety`, `authority`."""
    return (dialect_data or {}).get(DIALECT) or {}


def authority_of(subject: Subject) -> str:
    """Return the authority of a schema; '' is the base URI of the API."""
    return str(own_data(subject.dialect_data).get("authority", ""))


class Subscription(msgspec.Struct, frozen=True, omit_defaults=True):
    """A subscription as stored; responses leave out the secrets of its credential, `begin` and `owner`.

    begin is the position among events after which it begins. Events that its owner may not read are not sent.
    """

    id: str
    sink: str
    protocol: str
    source: str | None = None
    types: list[str] | None = None
    filters: list[dict[str, Any]] | None = None
    config: dict[str, Any] | None = None
    settings: dict[str, Any] | None = msgspec.field(name="protocolsettings", default=None)
    credential: dict[str, Any] | None = msgspec.field(name="sinkCredential", default=None)
    begin: str | None = None
    owner: Owner | None = None


class CloudEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event in the JSON format of CloudEvents 1.0, without data.

    id       `seq-part`: number of the record in the log, and index of the change in that record
    source   base URI of the registry
    subject  path of the element that was changed or deleted
    time     time of the change, RFC 3339 in UTC
    """

    specversion: str = "1.0"
    id: str
    source: str
    type: str
    subject: str
    time: str
