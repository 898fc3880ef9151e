"""Requests and answers of the registry's API as typed values.

JSON names are the API's own camelCase ones. Fields that a server leaves out get the defaults below; unknown fields are
ignored. So the same types fit every version of a server. Source: docs/protocols/confluent.md#objects.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from stele.core.findings import Finding
from stele.core.metadata import Metadata
from stele.protocol.confluent import RuleSet, SchemaReference

Version = int | Literal["latest"]
"""A version number, counted from 1, or the newest live version."""


class Schema(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A schema to register, look up or check.

    text         the document; '' with metadata or rule_set means "the newest version's text"
    schema_type  AVRO, PROTOBUF, JSON, or another type the server knows
    version, id  only for imports, and to require that version is the next number
    """

    text: str = msgspec.field(name="schema")
    schema_type: str = "AVRO"
    references: tuple[SchemaReference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    version: int | None = None
    id: int | None = None


class RegisteredSchema(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A schema as a registry returns it.

    The call and the server's version decide which fields are filled. An empty text, or 0 for id or version, means "not
    reported". ts is milliseconds since 1970; max_id is filled only on request.
    """

    text: str = msgspec.field(name="schema", default="")
    schema_type: str = "AVRO"
    references: tuple[SchemaReference, ...] = ()
    subject: str = ""
    version: int = 0
    id: int = 0
    guid: str = ""
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    ts: int | None = None
    deleted: bool = False
    max_id: int | None = None

    def as_schema(self) -> Schema:
        """Return the same document without its ids, to register it elsewhere."""
        return Schema(self.text, self.schema_type, self.references, self.metadata, self.rule_set)

    def _repr_html_(self) -> str:
        return render_for_notebook("version", self)


class ClusterId(msgspec.Struct, frozen=True):
    """The server's cluster: its id, and the clusters it belongs to by kind."""

    id: str = ""
    clusters: dict[str, str] = {}


class ReferenceText(msgspec.Struct, frozen=True):
    """A referenced document for a stateless check: its name and its text."""

    name: str
    schema: str


class BaselineSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """A schema to check against, with the documents it refers to."""

    schema: str
    references: tuple[ReferenceText, ...] = ()


class CheckResult(msgspec.Struct, frozen=True):
    """The verdict of a stateless check, with its reasons."""

    compatible: bool
    findings: tuple[Finding, ...] = ()

    def _repr_html_(self) -> str:
        return render_for_notebook("check", self)


class DiffChange(msgspec.Struct, frozen=True):
    """One difference between two versions.

    kind                added, removed, changed, renamed or moved
    path                of the declaration: in the new version, of a removed one in the old version
    what                kind of declaration, or the attribute that changed
    before, after       the value in each version; '' for nothing
    annotation          True if the difference affects only documentation, comments or titles
    backward, forward   False when because of it new cannot read old data, or old cannot read new data
    findings            the ruleset's findings about it
    """

    kind: str
    path: str
    what: str
    before: str = ""
    after: str = ""
    annotation: bool = False
    backward: bool = True
    forward: bool = True
    findings: tuple[Finding, ...] = ()


class SchemaComparison(msgspec.Struct, frozen=True):
    """What changed between two versions, and the effect on readers.

    backward   whether the new schema reads data of the old one; None where the format compares nothing
    forward    whether the old schema reads data of the new one; None as above
    ruleset    full name of the rules that decided; '' for none
    text       unified diff of the normalised texts
    complete   False when one of the schemas declares more than is compared
    """

    changes: tuple[DiffChange, ...]
    backward: bool | None = None
    forward: bool | None = None
    ruleset: str = ""
    text: str = ""
    complete: bool = True

    def _repr_html_(self) -> str:
        return render_for_notebook("diff", self)


def render_for_notebook(template: str, value: object) -> str:
    """Return a value of the client as HTML for a notebook."""
    from stele.templates import render_template  # imported here: only notebooks need it

    return render_template("stele.client", f"{template}.html.j2", value=value)
