"""Flags in the query of a request, and parameters of paths.

Source: docs/protocols/xregistry.md#flags
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Annotated, Any, Final

import msgspec
from litestar import Request
from litestar.params import PathParameter

from stele.apis.http.requests import decode_segment
from stele.apis.xregistry.attributes import (
    GROUP_ATTRIBUTES,
    META_ATTRIBUTES,
    REGISTRY_ATTRIBUTES,
    RESOURCE_ATTRIBUTES,
    SPECVERSION,
    VERSION_ATTRIBUTES,
    Definition,
)
from stele.apis.xregistry.capabilities import IGNORES
from stele.apis.xregistry.errors import ERROR_RESPONSES, RegistryError

Group = Annotated[str, PathParameter(description="id of a group")]
Schema = Annotated[str, PathParameter(description="id of a schema, with `$details` for its metadata")]
VersionId = Annotated[str, PathParameter(description="id of a version, with `$details` for its metadata")]

Options = dict[str, Any]
READ: Options = {"responses": ERROR_RESPONSES}
"""Options of endpoints that read."""
WRITE: Options = {"responses": ERROR_RESPONSES, "status_code": 200}
"""Options of endpoints that create or change."""
DELETE: Options = {"responses": ERROR_RESPONSES, "status_code": 204}
"""Options of endpoints that delete."""

DETAILS: Final = "$details"
"""Suffix of a path that requests the metadata in place of the document."""

_LIMIT = re.compile(r"[0-9]{1,20}\Z")
_VERSION = re.compile(r"v?(\d+\.\d+)(?:\.\d+)?(-.+)?\Z", re.IGNORECASE)


class Level(Enum):
    """Level of the tree at which a response begins."""

    REGISTRY = "registry"
    GROUP = "group"
    SCHEMA = "schema"
    META = "meta"
    VERSION = "version"


Inlined = Mapping[str, Any]
"""Members that are shown in full, each with the inlined members inside it."""

_ALL: Final[Mapping[Level, dict[str, Any]]] = {
    Level.VERSION: {"schema": {}},
    Level.META: {},
    Level.SCHEMA: {"schema": {}, "meta": {}, "versions": {"schema": {}}},
    Level.GROUP: {"schemas": {"schema": {}, "meta": {}, "versions": {"schema": {}}}},
    Level.REGISTRY: {
        "schemagroups": {"schemas": {"schema": {}, "meta": {}, "versions": {"schema": {}}}},
    },
}
_CONFIGURATION: Final[Mapping[str, Any]] = {"capabilities": {}, "model": {}, "modelsource": {}}
ATTRIBUTES: Final[Mapping[Level, Mapping[str, Definition]]] = {
    Level.REGISTRY: REGISTRY_ATTRIBUTES,
    Level.GROUP: GROUP_ATTRIBUTES,
    Level.SCHEMA: {**VERSION_ATTRIBUTES, **RESOURCE_ATTRIBUTES},
    Level.META: META_ATTRIBUTES,
    Level.VERSION: VERSION_ATTRIBUTES,
}
"""Attributes of entities, by level."""


class Flags(msgspec.Struct, frozen=True):
    """Flags of a request.

    Attributes:
        binary: Documents are shown in base64.
        collections: Only the collections of the entity are shown.
        doc: The response is in the document view.
        epoch: Epoch that the entity to delete must have; None: any.
        filters: Filters, one of which must match; each is a list of expressions, separated by commas.
        ignores: Parts of the request that are ignored.
        inline: Paths of members to show in full, as written.
        set_default: Version that becomes the default one; None: the flag is absent.
        sort: Attribute to sort by, with `=asc` or `=desc`; '' is none.
        limit: Most entities of a response; None: all.
        after: Id of the last entity of the previous page.
    """

    binary: bool = False
    collections: bool = False
    doc: bool = False
    epoch: int | None = None
    filters: tuple[str, ...] = ()
    ignores: frozenset[str] = frozenset()
    inline: tuple[str, ...] = ()
    set_default: str | None = None
    sort: str | None = None
    limit: int | None = None
    after: str | None = None


def parse_flags(request: Request[Any, Any, Any]) -> Flags:
    """Return the flags of a request.

    Raises `RegistryError` (`bad_flag`, `bad_ignore`, `unsupported_specversion`, `bad_request`).
    """
    query = request.query_params
    values = {name: query.getall(name) for name in set(query)}

    def find_single(name: str) -> str | None:
        flag_values = values.get(name, [])
        if len(flag_values) > 1:
            raise RegistryError("bad_flag", flag=name, detail="The flag is given more than once.")
        return flag_values[0] if flag_values else None

    _check_specversion(find_single("specversion"))
    epoch = find_single("epoch")
    if epoch is not None and not _LIMIT.match(epoch):
        raise RegistryError("bad_flag", flag="epoch", detail="The epoch must be an unsigned integer.")
    limit = find_single("limit")
    if limit is not None and (not _LIMIT.match(limit) or not 0 < int(limit) < 2**64):
        raise RegistryError("bad_request", error_detail="limit must be a number from 1 to 2^64-1")
    return Flags(
        binary="binary" in values,
        collections="collections" in values,
        doc="doc" in values,
        epoch=None if epoch is None else int(epoch),
        filters=tuple(values.get("filter", ())),
        ignores=_parse_ignores(values.get("ignore")),
        inline=tuple(path for text in values.get("inline", ()) for path in text.split(",")),
        set_default=find_single("setdefaultversionid"),
        sort=find_single("sort"),
        limit=None if limit is None else int(limit),
        after=find_single("after"),
    )


def _check_specversion(text: str | None) -> None:
    if text is None:
        return
    match, own = _VERSION.match(text), _VERSION.match(SPECVERSION)
    assert own is not None
    if match is None or (match[1], (match[2] or "").lower()) != (own[1], own[2].lower()):
        raise RegistryError("unsupported_specversion", specversion=text[:200], list=SPECVERSION)


def _parse_ignores(values: list[str] | None) -> frozenset[str]:
    if values is None:
        return frozenset()
    words = {word.strip().lower() for text in values for word in text.split(",")}
    for word in words - {"", "*"}:
        if word not in IGNORES:
            raise RegistryError("bad_ignore", value=word[:200], error_detail="this part of a request is not known")
    return frozenset(IGNORES) if words & {"", "*"} else frozenset(words)


def parse_inline(paths: Iterable[str], level: Level) -> dict[str, Any]:
    """Return the members that are shown in full, as a tree.

    Args:
        paths: Paths as the flag has them.
        level: Level at which they begin.

    Raises:
        RegistryError: `bad_inline` for an invalid path, `inline_noninlineable` for another attribute.
    """
    wanted: dict[str, Any] = {}
    whole = _ALL[level]
    for path in paths:
        steps = path.split(".") if path else ["*"]
        there, into = whole, wanted
        for position, step in enumerate(steps):
            if step == "*" and position == len(steps) - 1:
                _merge(into, there)
                break
            possible = {**there, **(_CONFIGURATION if level is Level.REGISTRY and position == 0 else {})}
            if step not in possible:
                if len(steps) == 1 and step in ATTRIBUTES[level]:
                    raise RegistryError("inline_noninlineable", name=step)
                raise RegistryError("bad_inline", value=path[:200], error_detail=f"{step[:80]!r} is not a part of it")
            into = into.setdefault(step, {})
            there = possible[step]
    return wanted


def _merge(into: dict[str, Any], tree: Mapping[str, Any]) -> None:
    for name, below in tree.items():
        _merge(into.setdefault(name, {}), below)


def split_details(segment: str) -> tuple[str, bool]:
    """Return the id in a path segment, and whether it asks for the metadata."""
    text = decode_segment(segment)
    return text.removesuffix(DETAILS), text.endswith(DETAILS)
