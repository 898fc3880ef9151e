"""What the reserved properties of a schema's metadata mean. Pure.

`confluent:reserved` lists top-level field names, with commas: under `validateFields` no field may take one, and no
reservation may be dropped. `confluent:version` is a hint which version the metadata belongs to, and is no part of it.
"""

from __future__ import annotations

from msgspec.structs import replace

from stele.core.findings import Finding
from stele.core.metadata import Metadata
from stele.core.model import Attachments, Version
from stele.core.ports import Field

_RESERVED = "confluent:reserved"
_VERSION = "confluent:version"
_INTERNAL = "$$"
"""Start of field names that JSON Schema tools keep for themselves."""


def find_reserved_name_violations(
    fields: list[Field], attachments: Attachments, before: Version | None
) -> list[Finding]:
    """Why a schema with those fields and attachments may not follow a version."""
    names = {field.path for field in fields}
    reserved = _reserved_names(attachments)
    dropped = _reserved_names(before.schema.attachments) - reserved if before is not None else set()
    return [
        *(
            _make_finding("FIELD_NAME_INTERNAL", name, _WHY_INTERNAL, _FIX_NAME)
            for name in sorted(names)
            if _is_internal(name)
        ),
        *(_make_finding("FIELD_NAME_RESERVED", name, _WHY_RESERVED, _FIX_NAME) for name in sorted(names & reserved)),
        *(_make_finding("RESERVED_FIELD_REMOVED", name, _WHY_DROPPED, _FIX_DROPPED) for name in sorted(dropped)),
    ]


_WHY_INTERNAL = "names of fields must not start with $$"
_WHY_RESERVED = "the field has a name that the schema's metadata reserves"
_WHY_DROPPED = "an earlier version reserves the name, and this one no longer does"
_FIX_NAME = "give the field another name"
_FIX_DROPPED = f"add the name to {_RESERVED} again"


def _is_internal(name: str) -> bool:
    return name.startswith(_INTERNAL) and "." not in name


def version_hint(metadata: Metadata | None) -> str | None:
    """The version hint of metadata."""
    return (metadata.properties or {}).get(_VERSION) if metadata is not None else None


def set_version_hint(metadata: Metadata | None, number: int) -> Metadata:
    """Metadata with that version hint."""
    before = metadata or Metadata()
    return replace(before, properties={**(before.properties or {}), _VERSION: str(number)}).in_stored_order()


def equals_except_version_hint(own: Metadata | None, version: Version) -> bool:
    """Whether metadata is that of a version, leaving out the hint where only one has it: it must not name another."""
    theirs = version.schema.attachments.metadata
    hint = version_hint(own)
    if hint is not None and version_hint(theirs) is not None:
        return own == theirs
    if hint is not None and hint.isdecimal() and hint.lstrip("0") not in {"", str(version.version_number)}:
        return False
    return _strip_version_hint(own) == _strip_version_hint(theirs)


def _strip_version_hint(metadata: Metadata | None) -> Metadata | None:
    if metadata is None:
        return None
    properties = {name: value for name, value in (metadata.properties or {}).items() if name != _VERSION}
    rest = replace(metadata, properties=properties or None)
    return rest if rest != Metadata() else None


def _reserved_names(attachments: Attachments) -> set[str]:
    metadata = attachments.metadata
    names = (metadata.properties or {}).get(_RESERVED, "") if metadata is not None else ""
    return {name.strip() for name in names.split(",") if name.strip()}


def _make_finding(rule: str, name: str, why: str, fix: str) -> Finding:
    return Finding(rule=rule, path=name, reader=name, why=why, fix=fix)
