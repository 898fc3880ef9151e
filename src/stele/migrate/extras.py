"""What a registry keeps beside its schemas: keys of field encryption, associations, definitions of exporters.

As the Confluent API shows them: without the secrets of keys and exporters, which no registry tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from stele.protocol.confluent import Association, ImportedDek, ImportedExporter, ImportedKek

HIDDEN = "[hidden]"
"""What registries show in the place of a credential."""


class MigratedKek(ImportedKek, frozen=True, omit_defaults=True, rename="camel"):
    """A key encryption key of a context; ts is milliseconds since 1970 UTC, None where the source does not tell."""

    @property
    def key(self) -> tuple[str, ...]:
        """What names it in its registry."""
        return "kek", self.context, self.name

    @property
    def level(self) -> str:
        """The subject or level it belongs to."""
        return "" if self.context == "." else f":{self.context}:"


class MigratedDek(ImportedDek, frozen=True, omit_defaults=True, rename="camel"):
    """A wrapped data encryption key of a subject; context is that of its KEK."""

    @property
    def key(self) -> tuple[str, ...]:
        """What names it in its registry."""
        return "dek", self.kek_name, self.subject, self.algorithm, str(self.version)

    @property
    def level(self) -> str:
        """The subject it belongs to."""
        return self.subject


class MigratedAssociation(Association, frozen=True, rename="camel"):
    """A subject of a resource, so far a topic."""

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


class MigratedExporter(ImportedExporter, frozen=True, omit_defaults=True, rename="camel"):
    """A definition of an exporter; credentials in its config are `HIDDEN`."""

    subjects: list[str] = msgspec.field(default_factory=lambda: ["*"])

    @property
    def key(self) -> tuple[str, ...]:
        """What names it in its registry."""
        return "exporter", self.name

    @property
    def level(self) -> str:
        """Exporters belong to the registry, which is written through its default context."""
        return ""


Item = MigratedKek | MigratedDek | MigratedAssociation | MigratedExporter


class RegistryExtras(msgspec.Struct, frozen=True, omit_defaults=True):
    """All of it."""

    keks: tuple[MigratedKek, ...] = ()
    deks: tuple[MigratedDek, ...] = ()
    associations: tuple[MigratedAssociation, ...] = ()
    exporters: tuple[MigratedExporter, ...] = ()

    def items(self) -> Iterator[Item]:
        """Return every one, in an order in which they can be made."""
        yield from self.keks
        yield from self.deks
        yield from self.associations
        yield from self.exporters


def differing_members(source: Item, target: Item) -> str:
    """Return the members in which a target differs from its source; '' when it does not.

    Times count where both tell them. How far an exporter is, and whether it runs, is a matter of its own registry.
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
