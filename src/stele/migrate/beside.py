"""What a registry keeps beside its schemas: keys of field encryption, associations, definitions of exporters.

As the Confluent API shows them: without the secrets of keys and exporters, which no registry tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

HIDDEN = "[hidden]"
"""What registries show in the place of a credential."""
PAUSED = "PAUSED"


class Kek(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A key encryption key of a context; ts is milliseconds since 1970 UTC, None where the source does not tell."""

    name: str
    kms_type: str
    kms_key_id: str
    context: str = "."
    kms_props: dict[str, str] | None = None
    doc: str | None = None
    shared: bool = False
    ts: int | None = None
    deleted: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        """What names it in its registry."""
        return "kek", self.context, self.name

    @property
    def level(self) -> str:
        """The subject or level it belongs to."""
        return "" if self.context == "." else f":{self.context}:"


class Dek(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A wrapped data encryption key of a subject; context is that of its KEK."""

    kek_name: str
    subject: str
    version: int
    algorithm: str
    encrypted_key_material: str
    context: str = "."
    ts: int | None = None
    deleted: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        """What names it in its registry."""
        return "dek", self.kek_name, self.subject, self.algorithm, str(self.version)

    @property
    def level(self) -> str:
        """The subject it belongs to."""
        return self.subject


class Association(msgspec.Struct, frozen=True, rename="camel"):
    """A subject of a resource, so far a topic."""

    subject: str
    guid: str
    resource_name: str
    resource_namespace: str
    resource_id: str
    resource_type: str
    association_type: str
    lifecycle: str
    frozen: bool = False

    @property
    def key(self) -> tuple[str, ...]:
        """What names it in its registry."""
        return (
            "association",
            self.resource_namespace,
            self.resource_type,
            self.resource_name,
            self.association_type,
            self.subject,
        )

    @property
    def level(self) -> str:
        """The subject it belongs to."""
        return self.subject


class Exporter(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A definition of an exporter; credentials in its config are `HIDDEN`."""

    name: str
    context_type: str = "AUTO"
    context: str = ""
    subjects: tuple[str, ...] = ("*",)
    subject_rename_format: str = ""
    kek_rename_format: str = ""
    config: dict[str, str] = {}
    state: str = "STARTING"
    offset: int = 0
    ts: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What names it in its registry."""
        return "exporter", self.name

    @property
    def level(self) -> str:
        """Exporters belong to the registry, which is written through its default context."""
        return ""


Item = Kek | Dek | Association | Exporter


class Beside(msgspec.Struct, frozen=True, omit_defaults=True):
    """All of it."""

    keks: tuple[Kek, ...] = ()
    deks: tuple[Dek, ...] = ()
    associations: tuple[Association, ...] = ()
    exporters: tuple[Exporter, ...] = ()

    def items(self) -> Iterator[Item]:
        """Every one, in an order in which they can be made."""
        yield from self.keks
        yield from self.deks
        yield from self.associations
        yield from self.exporters


def unlike(source: Item, target: Item) -> str:
    """The members in which a target differs from its source; '' when it does not.

    Times count where both tell them. Whether an exporter runs is a matter of what runs it: only a pause is its own.
    """
    names = []
    for name in source.__struct_fields__:
        one, other = _plain(name, getattr(source, name)), _plain(name, getattr(target, name))
        if one != other and not (name == "ts" and None in (one, other)):
            names.append(name)
    return ", ".join(names)


def _plain(name: str, value: Any) -> Any:
    if name == "state":
        return value == PAUSED
    return value or None if name in ("kms_props", "doc") else value
