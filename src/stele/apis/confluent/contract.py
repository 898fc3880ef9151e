"""What `validateFields` asks of new schemas: no field takes a reserved name, and no reservation is dropped. Pure.

Reservations are top-level field names, listed with commas in the metadata property `confluent:reserved`.
"""

from __future__ import annotations

from stele.core.findings import Finding
from stele.core.model import Attachments, Version
from stele.core.ports import Field

_RESERVED = "confluent:reserved"
_INTERNAL = "$$"
"""Start of field names that JSON Schema tools keep for themselves."""


def field_findings(fields: list[Field], attachments: Attachments, before: Version | None) -> list[Finding]:
    """Why a schema with those fields and attachments may not follow a version."""
    names = {field.path for field in fields}
    reserved = _reserved(attachments)
    dropped = _reserved(before.schema.attachments) - reserved if before is not None else set()
    return [
        *(_finding("FIELD_NAME_INTERNAL", name, _WHY_INTERNAL, _FIX_NAME) for name in sorted(names) if _internal(name)),
        *(_finding("FIELD_NAME_RESERVED", name, _WHY_RESERVED, _FIX_NAME) for name in sorted(names & reserved)),
        *(_finding("RESERVED_FIELD_REMOVED", name, _WHY_DROPPED, _FIX_DROPPED) for name in sorted(dropped)),
    ]


_WHY_INTERNAL = "names of fields must not start with $$"
_WHY_RESERVED = "the field has a name that the schema's metadata reserves"
_WHY_DROPPED = "an earlier version reserves the name, and this one no longer does"
_FIX_NAME = "give the field another name"
_FIX_DROPPED = f"add the name to {_RESERVED} again"


def _internal(name: str) -> bool:
    return name.startswith(_INTERNAL) and "." not in name


def _reserved(attachments: Attachments) -> set[str]:
    metadata = attachments.metadata
    names = (metadata.properties or {}).get(_RESERVED, "") if metadata is not None else ""
    return {name.strip() for name in names.split(",") if name.strip()}


def _finding(rule: str, name: str, why: str, fix: str) -> Finding:
    return Finding(rule=rule, path=name, reader=name, why=why, fix=fix)
