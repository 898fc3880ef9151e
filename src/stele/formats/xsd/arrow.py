"""Arrow schema of documents whose root is the schema's first global element.

Complex type → struct of its attributes (`@name`) and elements, with `$` for text beside attributes; repeated element →
list; elements and attributes that may be absent or nil → nullable; integers by range → int8 … int64, uint8 … uint64;
decimal with digits → decimal128, without → string; float, double, boolean and binary → their own; dateTime with a
required time zone → timestamp[us, UTC], all other dates and times (whose zone may differ) → string; list → list.
Types without a single column type (mixed content, wildcards, unions, types inside themselves) → string of XML or text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from xmlschema.validators import XsdSimpleType

from stele.errors import Invalid, NotInstalled
from stele.formats.terms import Algebra, BudgetExceeded, Term, sequence_items
from stele.formats.xsd.content import SchemaSide, list_leaves
from stele.formats.xsd.outline import repeated_names
from stele.formats.xsd.parse import ParsedXsd
from stele.formats.xsd.simple_type import shape_of, value_interval
from stele.formats.xsd.xmlschema_adapter import local_name

if TYPE_CHECKING:
    import pyarrow as pa

MAX_DEPTH: Final = 40
"""Most levels of nesting that become columns. Deeper content is a string of XML."""

MAX_COLUMNS: Final = 10_000
"""Most columns, all levels together. Further content is a string of XML."""

_RANGES: Final = tuple(
    (f"{sign}int{bits}", -(2 ** (bits - 1)) if not sign else 0, 2 ** (bits - (not sign)) - 1)
    for bits in (8, 16, 32, 64)
    for sign in ("", "u")
)


def arrow_schema(parsed: ParsedXsd) -> pa.Schema:
    """Return columns of the root's attributes and children; a root of simple type has the one column `$`.

    Raises `NotInstalled` without pyarrow, `Invalid` for a schema without a global element.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise NotInstalled("pyarrow", "spark") from None
    with parsed.lock:
        root = parsed.model.maps.elements.get(parsed.type_name)
        if root is None:
            raise Invalid("the schema declares no global element, so its documents have no table shape")
        root_type = _ColumnBuilder(parsed).column_type(root.type, ())
    if pa.types.is_struct(root_type) and root_type.num_fields:
        return pa.schema(list(root_type))
    return pa.schema([pa.field("$", root_type, nullable=bool(root.nillable))])


class _ColumnBuilder:
    """Converts types to column types."""

    def __init__(self, parsed: ParsedXsd) -> None:
        self._side = SchemaSide(parsed.model, Algebra(), strict=False)
        self._columns = 0

    def column_type(self, kind: Any, above: tuple[int, ...]) -> pa.DataType:
        """Return the column type of a type. `above` are the ids of the enclosing types."""
        import pyarrow as pa

        self._columns += 1
        if isinstance(kind, XsdSimpleType):
            return self._simple_type(kind)
        if id(kind) in above or len(above) >= MAX_DEPTH or self._columns > MAX_COLUMNS:
            return pa.string()
        uses = {name: use for name, use in kind.attributes.items() if name is not None and use.use != "prohibited"}
        if isinstance(kind.content, XsdSimpleType):
            if not uses:
                return self._simple_type(kind.content)
            text = pa.field("$", self._simple_type(kind.content))
            return pa.struct([*self._attribute_fields(uses), text])
        try:
            term = self._side.content_term(kind)
        except BudgetExceeded:
            return pa.string()
        if kind.mixed or any(leaf.name is None for leaf in list_leaves(term)):
            return pa.string()
        return pa.struct([*self._attribute_fields(uses), *self._element_fields(term, (*above, id(kind)))])

    def _attribute_fields(self, uses: dict[str, Any]) -> list[pa.Field[Any]]:
        import pyarrow as pa

        return [
            pa.field(f"@{local_name(name)}", self._simple_type(use.type), nullable=use.use != "required")
            for name, use in uses.items()
        ]

    def _element_fields(self, term: Term, above: tuple[int, ...]) -> list[pa.Field[Any]]:
        import pyarrow as pa

        many = repeated_names(term)
        fields: dict[str, pa.Field[Any]] = {}
        for leaf in list_leaves(term):
            name = local_name(leaf.name or "")
            if name in fields:
                continue
            element = leaf.declaration
            inner = self.column_type(element.type, above)
            nullable = bool(element.nillable) or not _is_always_there(term, leaf.name)
            if leaf.name in many:
                item = pa.field("item", inner, nullable=bool(element.nillable))
                fields[name] = pa.field(name, pa.list_(item), nullable=not _is_always_there(term, leaf.name))
            else:
                fields[name] = pa.field(name, inner, nullable=nullable)
        return list(fields.values())

    def _simple_type(self, kind: Any) -> pa.DataType:
        import pyarrow as pa

        shape = shape_of(kind)
        if shape.variety == "list":
            return pa.list_(pa.field("item", self._simple_type(shape.parts[0]), nullable=False))
        if shape.is_integral:
            low, high = value_interval(shape)
            if low is None or high is None:
                return pa.string()
            fitting = (name for name, least, most in _RANGES if least <= low.value and high.value <= most)
            name = next(fitting, None)
            whole: pa.DataType = pa.string() if name is None else getattr(pa, name)()
            return whole
        total, fraction = shape.digits
        if shape.base == "decimal" and total is not None and total <= 38 and fraction is not None:
            return pa.decimal128(max(total, 1), fraction)
        if shape.base == "dateTimeStamp" or (shape.base == "dateTime" and "timezone required" in shape.tests):
            return pa.timestamp("us", tz="UTC")
        plain: dict[str, pa.DataType] = {
            "float": pa.float32(),
            "double": pa.float64(),
            "boolean": pa.bool_(),
            "hexBinary": pa.binary(),
            "base64Binary": pa.binary(),
        }
        return plain.get(shape.base, pa.string())


def _is_always_there(term: Term, name: str | None) -> bool:
    """Return whether every sequence that a content model allows has an element of that name."""
    match term.kind:
        case "leaf":
            return bool(term.label.name == name)
        case "seq":
            return any(_is_always_there(part, name) for part in sequence_items(term))
        case "choice":
            return all(_is_always_there(part, name) for part in term.parts)
        case "repeat" | "open":
            return not term.nullable and _is_always_there(term.parts[0], name)
        case "all":
            pairs = zip(term.parts, term.bounds, strict=True)
            return any(low > 0 and _is_always_there(part, name) for part, (low, _) in pairs)
    return False
