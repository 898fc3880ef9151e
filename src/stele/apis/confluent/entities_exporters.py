"""Bodies of exporters: definitions of what is copied to another registry."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType


class ExporterRequest(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """An exporter to define, or changes to one: what is absent stays.

    contextType AUTO (a context named after this registry), CUSTOM (the context given), NONE (contexts stay as they
    are) or DEFAULT (the default one); subjects are names or patterns with *; formats have ${subject} or ${kek} in them.
    """

    name: str | None = None
    context_type: str | UnsetType | None = UNSET
    context: str | UnsetType | None = UNSET
    subjects: list[str] | UnsetType | None = UNSET
    subject_rename_format: str | UnsetType | None = UNSET
    kek_rename_format: str | UnsetType | None = UNSET
    config: dict[str, str] | UnsetType | None = UNSET


class Exporter(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A definition as it is shown; credentials in its config are hidden."""

    name: str
    context_type: str = ""
    context: str = ""
    subjects: list[str] = []
    subject_rename_format: str = ""
    kek_rename_format: str = ""
    config: dict[str, str] = {}


class ExporterName(msgspec.Struct, frozen=True):
    """Answer to whatever changes an exporter."""

    name: str


class ExporterStatus(msgspec.Struct, frozen=True):
    """How far an exporter is: state STARTING, RUNNING or PAUSED; ts is milliseconds since 1970 UTC."""

    name: str
    state: str
    offset: int
    ts: int
    trace: str = ""
