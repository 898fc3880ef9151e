"""Data of a registry besides its schemas: keys of field encryption, associations, definitions of exporters.

They have the form of the Confluent API: without the secrets of keys and exporters, which no registry returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from stele.protocol.confluent import Association, ImportedDek, ImportedExporter, ImportedKek

HIDDEN = "[hidden]"
"""Text that registries return in place of a credential."""


class MigratedKek(ImportedKek, frozen=True, omit_defaults=True, rename="camel"):
    """A key encryption key of a context; ts is milliseconds since 1970 UTC, None if the source does not return it."""

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the key in its registry."""
        return "kek", self.context, self.name

    @property
    def level(self) -> str:
        """The subject or level it belongs to."""
        return "" if self.context == "." else f":{self.context}:"


class MigratedDek(ImportedDek, frozen=True, omit_defaults=True, rename="camel"):
    """A wrapped data encryption key of a subject; context is that of its KEK."""

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the key in its registry."""
        return "dek", self.kek_name, self.subject, self.algorithm, str(self.version)

    @property
    def level(self) -> str:
        """The subject it belongs to."""
        return self.subject


class MigratedAssociation(Association, frozen=True, rename="camel"):
    """An association of a subject with a resource, which can only be a topic at present."""

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the association in its registry."""
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


class MigratedExporter(ImportedExporter, frozen=True, omit_defaults=True, rename="camel"):
    """A definition of an exporter; credentials in its config are `HIDDEN`."""

    subjects: list[str] = msgspec.field(default_factory=lambda: ["*"])

    @property
    def key(self) -> tuple[str, ...]:
        """Identifies the exporter in its registry."""
        return "exporter", self.name

    @property
    def level(self) -> str:
        """The default level: exporters belong to the registry, which is written through its default context."""
        return ""


Item = MigratedKek | MigratedDek | MigratedAssociation | MigratedExporter


class RegistryExtras(msgspec.Struct, frozen=True, omit_defaults=True):
    """All data of a registry besides its schemas."""

    keks: tuple[MigratedKek, ...] = ()
    deks: tuple[MigratedDek, ...] = ()
    associations: tuple[MigratedAssociation, ...] = ()
    exporters: tuple[MigratedExporter, ...] = ()

    def items(self) -> Iterator[Item]:
        """Yield all items, in an order in which they can be created."""
        yield from self.keks
        yield from self.deks
        yield from self.associations
        yield from self.exporters


def differing_members(source: Item, target: Item) -> str:
    """Return the names of the members in which a target differs from its source; '' if there are none.

    Times are compared if both have them. The state and the offset of an exporter are not compared: they belong to its
    registry.
    """
    names = []
    for name in source.__struct_fields__:
        one, other = _comparable(name, getattr(source, name)), _comparable(name, getattr(target, name))
        if one != other and not (name == "ts" and None in (one, other)):
            names.append(name)
    return ", ".join(names)


def _comparable(name: str, value: Any) -> Any:
    if name in {"state", "offset"}:
        return None
    return value or None if name in ("kms_props", "doc") else value
