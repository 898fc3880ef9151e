"""The Arrow schema of a table of JSON data.

object → struct (or map, when it only declares the schema of unnamed members); array → list; string, whatever its
`format` → string; integer → int64; number → float64; boolean → bool; null beside one other type or branch → nullable.
Everything without a single column type (other `oneOf` and `anyOf`, tuples, untyped values, schemas inside themselves) →
string that holds JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from stele.errors import NotInstalled
from stele.formats.jsonschema.json_text import Json
from stele.formats.jsonschema.parse import ParsedJsonSchema

if TYPE_CHECKING:
    import pyarrow as pa

MAX_DEPTH = 40
"""Maximum nesting of columns; deeper values are strings of JSON."""

MAX_COLUMNS = 10_000
"""Maximum number of columns at all levels together; the columns after them are strings of JSON."""

JSON_TEXT: Final = b"json"
"""Key in the metadata of a field of `marked_schema`: its strings are JSON texts."""

REQUIRED: Final = b"required"
"""Key in the metadata of a field of `marked_schema`: the property is required."""

DEEPER: Final = b"deeper"
"""Key in the metadata of a field of `marked_schema`: here a schema repeats inside itself more often than requested."""

WHOLE: Final = b"whole"
"""Key in the metadata of the only field of a schema that is not an object: the field is the whole datum."""

_COLUMN = "value"


class _Object(NamedTuple):
    """The keywords about an object from a schema and its `allOf` together."""

    properties: dict[str, Json]
    required: set[str]
    rest: Json


class _Typed(NamedTuple):
    """A column type, whether the schema itself allows null, and the metadata key of the field."""

    type: pa.DataType
    nullable: bool
    mark: bytes = b""

    def to_field(self, name: str, *, optional: bool = False, marks: Sequence[bytes] = ()) -> pa.Field[pa.DataType]:
        """Return an Arrow field with this type and name."""
        import pyarrow as pa

        metadata: dict[bytes | str, bytes | str] = dict.fromkeys([*marks, *([self.mark] if self.mark else [])], b"")
        return pa.field(name, self.type, self.nullable or optional, metadata or None)


def arrow_schema(parsed: ParsedJsonSchema) -> pa.Schema:
    """Return the columns of data of this schema; a schema that is no object has the one column `value`.

    Properties that are not required are nullable. Raises `NotInstalled` without pyarrow.
    """
    return _build_schema(parsed, marked=False)


def marked_schema(parsed: ParsedJsonSchema, recursion: int = 0) -> pa.Schema:
    """Return the same columns, with metadata that marks JSON texts, required properties and whole values.

    recursion is how often a schema inside itself becomes columns. One repetition deeper, the field is marked `DEEPER`.
    With recursion 0 it is JSON text.
    """
    return _build_schema(parsed, marked=True, recursion=recursion)


def _build_schema(parsed: ParsedJsonSchema, *, marked: bool, recursion: int = 0) -> pa.Schema:
    try:
        import pyarrow as pa
    except ImportError:
        raise NotInstalled("pyarrow", "spark") from None
    builder = _ColumnBuilder(parsed, marked=marked, recursion=recursion)
    top = builder.build_column(parsed.root, ())
    if pa.types.is_struct(top.type):
        return pa.schema(list(top.type))
    only = top.to_field(_COLUMN, marks=[WHOLE] if marked else [])
    return pa.schema([only])


class _ColumnBuilder:
    """Converts schemas to column types. above holds the identities of the enclosing schemas."""

    def __init__(self, parsed: ParsedJsonSchema, *, marked: bool, recursion: int) -> None:
        import pyarrow as pa

        self._recursion = recursion
        self._marked = marked
        self._pa = pa
        self._links = parsed.links
        self._columns = 0

    def build_column(self, schema: Json, above: tuple[int, ...]) -> _Typed:
        """Return the column type of one schema."""
        self._columns += 1
        schema = self._links.follow_references(schema)
        if above.count(id(schema)) > self._recursion > 0:
            return _Typed(self._pa.string(), True, DEEPER)
        if (
            not isinstance(schema, dict)
            or (id(schema) in above and not self._recursion)
            or len(above) >= MAX_DEPTH
            or self._columns > MAX_COLUMNS
        ):
            return self._json_column()
        inside = (*above, id(schema))
        for keyword in ("oneOf", "anyOf"):
            branches = schema.get(keyword)
            if isinstance(branches, list) and "properties" not in schema:
                return self._choice_column(branches, inside)
        names, nullable = _type_words(schema)
        if len(names) > 1:
            return self._json_column()
        name = names[0] if names else None
        if name == "object" or (name is None and ("properties" in schema or "allOf" in schema)):
            return self._object_column(schema, inside, nullable=nullable)
        if name == "array":
            return self._array_column(schema, inside, nullable=nullable)
        return self._scalar_column(name, nullable=nullable)

    def _scalar_column(self, name: str | None, *, nullable: bool) -> _Typed:
        pa = self._pa
        types = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
        if name is None:
            return _Typed(pa.null(), True) if nullable else self._json_column()
        return _Typed(types[name], nullable) if name in types else self._json_column()

    def _object_column(self, schema: dict[str, Json], inside: tuple[int, ...], *, nullable: bool) -> _Typed:
        merged = self._merge_object(schema)
        pa = self._pa
        if merged.properties:
            columns = []
            for name, inner in merged.properties.items():
                typed = self.build_column(inner, inside)
                needed = name in merged.required
                columns.append(typed.to_field(name, optional=not needed, marks=[REQUIRED] * (needed and self._marked)))
            return _Typed(pa.struct(columns), nullable)
        if isinstance(merged.rest, dict):
            value = self.build_column(merged.rest, inside)
            return _Typed(pa.map_(pa.string(), value.to_field(_COLUMN)), nullable)
        return self._json_column(nullable=nullable)

    def _array_column(self, schema: dict[str, Json], inside: tuple[int, ...], *, nullable: bool) -> _Typed:
        items = schema.get("items")
        if not isinstance(items, dict | bool) or "prefixItems" in schema:
            return self._json_column(nullable=nullable)
        item = self.build_column(items, inside)
        return _Typed(self._pa.list_(item.to_field("item")), nullable)

    def _choice_column(self, branches: list[Json], inside: tuple[int, ...]) -> _Typed:
        """Return the column of the one branch beside null, nullable; JSON text for any other list of branches."""
        others = [branch for branch in branches if not self._is_null(branch)]
        if len(others) != 1:
            return self._json_column()
        only = self.build_column(others[0], inside)
        return only._replace(nullable=only.nullable or len(others) < len(branches))

    def _is_null(self, schema: Json) -> bool:
        schema = self._links.follow_references(schema)
        return isinstance(schema, dict) and (schema.get("type") in ("null", ["null"]) or schema.get("enum") == [None])

    def _merge_object(self, schema: dict[str, Json]) -> _Object:
        """Return the properties of a schema and of the members of its `allOf`, references followed."""
        properties: dict[str, Json] = {}
        required: set[str] = set()
        rest: Json = None
        for part in self._links.iterate_parts(schema):
            own = part.get("properties")
            properties = {**properties, **(own if isinstance(own, dict) else {})}
            names = part.get("required")
            required.update(name for name in (names if isinstance(names, list) else []) if isinstance(name, str))
            rest = rest if rest is not None else part.get("additionalProperties")
        return _Object(properties, required, rest)

    def _json_column(self, *, nullable: bool = True) -> _Typed:
        return _Typed(self._pa.string(), nullable, JSON_TEXT if self._marked else b"")


def _type_words(schema: dict[str, Json]) -> tuple[list[str], bool]:
    """Return the types besides null, and whether null is one.

    Without `type` they are taken from `enum` and `const`.
    """
    names = schema.get("type")
    if names is None and ("enum" in schema or "const" in schema):
        values = schema.get("enum", [schema.get("const")])
        names = sorted({_type_word(value) for value in values} if isinstance(values, list) else ())
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, list):
        return [], False
    words = [name for name in names if isinstance(name, str) and name != "null"]
    if sorted(words) == ["integer", "number"]:
        words = ["number"]
    return words, "null" in names


def _type_word(value: Json) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object" if isinstance(value, dict) else "number"
