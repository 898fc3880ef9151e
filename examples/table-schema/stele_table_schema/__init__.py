"""Frictionless Table Schema (v1) as a format of Stele, for the columns of CSV files. One datum is one record.

The entry point `stele.formats` names `TABLE_SCHEMA`. Types geopoint, geojson and duration are kept as text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stele.core.findings import Finding
from stele.core.ports import Field, TextForm
from stele.errors import NotInstalled
from stele.formats.conversion import model as neutral
from stele_table_schema.descriptor import TableSchema, parse_descriptor, print_descriptor
from stele_table_schema.records import RecordCodec
from stele_table_schema.rules import RULESETS

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TABLE_SCHEMA", "TableSchema", "TableSchemaFormat"]

_ARROW = {
    "integer": "int64",
    "number": "float64",
    "boolean": "bool_",
    "date": "date32",
    "year": "int32",
}
_NEUTRAL: dict[str, neutral.Type] = {
    "integer": neutral.Scalar(neutral.ScalarKind.INTEGER),
    "number": neutral.Scalar(neutral.ScalarKind.NUMBER),
    "boolean": neutral.Scalar(neutral.ScalarKind.BOOLEAN),
    "date": neutral.Scalar(neutral.ScalarKind.DATE),
    "time": neutral.Time(),
    "datetime": neutral.Timestamp(utc=False),
    "year": neutral.Scalar(neutral.ScalarKind.INT32),
    "object": neutral.Scalar(neutral.ScalarKind.ANY),
    "array": neutral.Scalar(neutral.ScalarKind.ANY),
    "any": neutral.Scalar(neutral.ScalarKind.ANY),
}


class TableSchemaFormat:
    """Table Schema behind Stele's interface of formats. Stateless, safe to share between threads."""

    name: str = "tableschema"
    media_types: Sequence[str] = ("application/vnd.frictionless.tableschema+json", "application/json")
    rulesets: Sequence[str] = RULESETS.names
    ruleset_summaries: Mapping[str, str] = RULESETS.summaries

    def parse(
        self, text: bytes, references: Mapping[str, bytes], *, name: str = "", strict: bool = True
    ) -> TableSchema:
        """Parse a descriptor. The language has no references, and `strict` has no effect."""
        return parse_descriptor(text)

    def canonical(self, parsed: TableSchema, form: TextForm) -> bytes:
        """Return compact JSON, with sorted members except for PRINTED.

        CANONICAL also omits everything that does not affect data.
        """
        return print_descriptor(parsed, form)

    def render(self, parsed: TableSchema, style: str) -> str | None:
        """Return the first line of a CSV file for the style `header`, None for other styles."""
        return RecordCodec(parsed, None).header() if style == "header" else None

    def fingerprints(self, parsed: TableSchema) -> Mapping[str, bytes]:
        """Return the SHA-256 of the CANONICAL form."""
        return {"sha256": hashlib.sha256(print_descriptor(parsed, TextForm.CANONICAL)).digest()}

    def check(self, reader: TableSchema, writer: TableSchema, ruleset: str = "") -> list[Finding]:
        """Return why records of `writer` cannot be read as records of `reader`. Raises `UnknownRuleset`."""
        return RULESETS.check(reader, writer, ruleset)

    def fields(self, parsed: TableSchema) -> list[Field]:
        """Return the columns, in order."""
        return [Field(column.name, column.type, None, column.doc) for column in parsed.columns]

    def arrow_schema(self, parsed: TableSchema) -> pa.Schema:
        """Return one Arrow field per column. Numbers are double; JSON and types without an equivalent are text."""
        try:
            import pyarrow as pa
        except ImportError as error:
            raise NotInstalled("pyarrow", "spark") from error
        timed = {"time": pa.time64("us"), "datetime": pa.timestamp("us")}
        types = [timed.get(one.type) or getattr(pa, _ARROW.get(one.type, "string"))() for one in parsed.columns]
        return pa.schema(
            [
                pa.field(one.name, kind, nullable=not one.required)
                for one, kind in zip(parsed.columns, types, strict=True)
            ]
        )

    def codec(self, writer: TableSchema, reader: TableSchema | None = None) -> RecordCodec:
        """Return a codec for single CSV records. Columns of the reader are found by name."""
        return RecordCodec(writer, reader)

    def to_model(self, parsed: TableSchema) -> tuple[neutral.Model, list[neutral.Loss]]:
        """Return a record with a field for each column, for conversions into other languages, and the losses."""
        text = neutral.Scalar(neutral.ScalarKind.STRING)
        fields = tuple(
            neutral.RecordField(
                column.name,
                _NEUTRAL.get(column.type, text),
                nullable=not column.required,
                doc=column.doc,
                constraints={word: value for word, value in column.constraints.items() if word in _KEPT},
            )
            for column in parsed.columns
        )
        name = str(parsed.document.get("name", "Record"))
        losses = [
            neutral.Loss(column.name, "FORMAT", f"The format {column.format} is left out.")
            for column in parsed.columns
            if column.format != "default"
        ]
        table = neutral.RecordType(name, fields, doc=str(parsed.document.get("description", "")))
        return neutral.Model(neutral.TypeReference(name), {name: table}), losses


_KEPT = frozenset({"minimum", "maximum", "minLength", "maxLength", "pattern"})

TABLE_SCHEMA = TableSchemaFormat()
"""The format, as the entry point `stele.formats` names it."""
