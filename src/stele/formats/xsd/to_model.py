"""Converts XML Schema to the neutral model: documents with one global element as root.

| XML Schema | model |
|---|---|
| complex type | a record of its attributes and elements; text beside attributes is the field `value` |
| element or attribute that may be absent | a field that may be left out |
| element that may occur more than once | an array; `minItems` and `maxItems` when it has its own bounds |
| choice between single elements | a group of which a datum has at most one |
| nillable | nullable |
| `fixed` | the constraint `const`, and the default |
| anyType | any JSON value |
| xs:documentation | documentation |
| boolean, float, double | boolean, float32, float64 |
| byte to unsignedLong | integers of the same width |
| integer and its derived types | one of 32 or 64 bits where facets bound it on both sides, else one of any size |
| decimal | a decimal; of bounded precision when totalDigits and fractionDigits say so |
| string and its derived types, anyURI, QName, the parts of dates | string |
| a text type with an enumeration | an enumeration |
| hexBinary, base64Binary | bytes; a fixed type where one length is required |
| date, time, dateTime | a date, a time, a timestamp without time zone; one in UTC where a time zone is required |
| duration, yearMonthDuration | a span of months, days and milliseconds |
| dayTimeDuration | a span of exact length |
| list, union | an array, a union of the distinct types of its members |

Full names of types begin with the namespace in the order of Java packages: `http://acme.com/orders` is
`com.acme.orders`. Elements and attributes have their local names; equal names are numbered.

Facets become constraints if JSON Schema has a keyword for them.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import deque
from collections.abc import Callable
from decimal import Decimal as Number
from decimal import InvalidOperation
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from xmlschema.validators import XsdAnyElement, XsdGroup, XsdSimpleType

from stele.errors import CannotConvert, InvalidRequest, TooLarge
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Decimal,
    Duration,
    Enumeration,
    EnumSymbol,
    Fixed,
    Loss,
    Model,
    NamedType,
    RecordField,
    RecordType,
    Scalar,
    ScalarKind,
    Time,
    Timestamp,
    TimeUnit,
    Type,
    TypeReference,
    Union,
    UnionOption,
)
from stele.formats.xsd.content import is_substitutable
from stele.formats.xsd.outline import documentation_text
from stele.formats.xsd.parse import ParsedXsd
from stele.formats.xsd.simple_type import INTEGERS, TEXTUAL, SimpleTypeShape, shape_of, value_interval
from stele.formats.xsd.xmlschema_adapter import XS, local_name

MAX_DEPTH: Final = 100
"""Most levels of nested groups. The parser allows fewer."""


class Occurrence(NamedTuple):
    """A child element.

    required  every document has at least one
    many      there may be more than one; low and high are its own bounds, None if it has none
    group     name of the choice it is a branch of, '' for none
    """

    name: str
    element: Any
    required: bool
    many: bool
    low: int | None
    high: int | None
    group: str


class OccurrenceLister:
    """Lists the elements of content models and reports what the list cannot express."""

    def __init__(self, losses: list[Loss]) -> None:
        self._losses = losses

    def list_occurrences(self, kind: Any, path: str) -> list[Occurrence]:
        """Return the elements of a complex type, each name once."""
        if isinstance(kind.content, XsdSimpleType):
            return []
        walk = _ContentWalk()
        walk.walk_group(kind.content, required=True, many=False, depth=0)
        opened = getattr(kind, "open_content", None)
        if walk.any or (opened is not None and opened.mode != "none" and opened.any_element is not None):
            self._add_loss(
                path, "ANY", "Elements that the schema does not name are allowed here; the model cannot represent them."
            )
        if walk.repeated:
            self._losses.append(Loss(path, "ORDER", "How repeated elements follow each other is not kept.", data=True))
        if walk.loose:
            why = "That a document has one branch of a choice is not said where a branch is more than one element."
            self._losses.append(Loss(path, "CHOICE", why))
        for head in dict.fromkeys(walk.heads):
            why = (
                f"Elements of other schemas may join the substitution group of {local_name(head)!r}; "
                "they have no place."
            )
            self._losses.append(Loss(path, "SUBSTITUTION", why))
        return _merge_occurrences(walk.found)

    def _add_loss(self, path: str, what: str, why: str) -> None:
        self._losses.append(Loss(path, what, why, data=True))


class _ContentWalk:
    """A walk through one content model.

    Attributes:
        found: The elements in it.
        heads: Names of elements with a substitution group.
        any: Whether there are wildcards.
        repeated: Whether a group of several elements may occur more than once.
        loose: Whether a branch of a choice is a group.
    """

    def __init__(self) -> None:
        self.found: list[Occurrence] = []
        self.heads: list[str] = []
        self.any = self.repeated = self.loose = False
        self._choices = 0

    def walk_group(self, group: Any, *, required: bool, many: bool, group_name: str = "", depth: int) -> None:
        """Collect the elements of a group. `depth` is the number of enclosing groups. Raises `TooLarge`."""
        if depth > MAX_DEPTH:
            raise TooLarge(f"groups are nested deeper than {MAX_DEPTH} levels")
        items = [item for item in group if item.max_occurs != 0]
        required = required and group.min_occurs > 0
        repeats = group.max_occurs is None or group.max_occurs > 1
        many = many or repeats
        self.repeated = self.repeated or (repeats and len(items) > 1)
        if group.model == "choice" and len(items) > 1:
            required = False
            single = all(not isinstance(item, XsdGroup) and item.max_occurs == 1 for item in items)
            if single and not many:
                self._choices += 1
                group_name = f"choice_{self._choices}" if self._choices > 1 else "choice"
            else:
                self.loose = self.loose or not many
                group_name = ""
        elif len(items) > 1:
            group_name = ""
        for item in items:
            self._walk_particle(item, required=required, many=many, name=group_name, depth=depth)

    def _walk_particle(self, item: Any, *, required: bool, many: bool, name: str, depth: int) -> None:
        if isinstance(item, XsdGroup):
            self.walk_group(item, required=required, many=many, group_name=name, depth=depth + 1)
            return
        if isinstance(item, XsdAnyElement):
            self.any = True
            return
        options = _substitution_options(item)
        if item.ref is not None and len(options) > 1:
            self.heads.append(item.name)
        own = item.max_occurs is None or item.max_occurs > 1
        several = len(options) > 1
        if several and not (many or own or name):
            self._choices += 1
            name = f"choice_{self._choices}" if self._choices > 1 else "choice"
        self.repeated = self.repeated or (several and own)
        alone = own and not many and not several
        for full_name, element in options.items():
            self.found.append(
                Occurrence(
                    full_name,
                    element,
                    required and item.min_occurs > 0 and not several,
                    many or own,
                    item.min_occurs if alone else None,
                    item.max_occurs if alone else None,
                    "" if many or own else name,
                )
            )


def _substitution_options(item: Any) -> dict[str, Any]:
    """Return the elements that may replace a particle: its own, or those of its substitution group."""
    if item.ref is None:
        return {item.name: item}
    options = {item.name: item.ref} if not item.ref.abstract else {}
    if "substitution" not in item.ref.block:
        members = (other for other in item.iter_substitutes() if not other.abstract)
        options |= {other.name: other for other in members if is_substitutable(item.ref, other)}
    return options


def _merge_occurrences(occurrences: list[Occurrence]) -> list[Occurrence]:
    """Return each name once; an element in several places may occur more than once."""
    merged: dict[str, Occurrence] = {}
    for one in occurrences:
        other = merged.get(one.name)
        merged[one.name] = (
            one
            if other is None
            else other._replace(required=other.required or one.required, many=True, low=None, high=None, group="")
        )
    return list(merged.values())


MAX_FIELDS: Final = 50_000
"""Most fields of all records together."""

_LONGEST_PATH: Final = 500
_UNPLAIN: Final = re.compile(r"[^A-Za-z0-9_]+")


def to_model(parsed: ParsedXsd, element: str = "") -> tuple[Model, list[Loss]]:
    """Return the model of documents whose root is a global element, by name, with or without its `{namespace}`.

    '' is the first one of the document. Raises `InvalidRequest` when there is none of that name, `CannotConvert` when
    there is none at all, `TooLarge` past the limits.
    """
    with parsed.lock:
        elements = parsed.model.maps.elements
        wanted = element or parsed.type_name
        root = elements.get(wanted)
        if root is None and element:
            root = next((one for name, one in elements.items() if local_name(name) == element), None)
        if root is None:
            if element:
                raise InvalidRequest(f"the schema has no global element {element!r}")
            raise CannotConvert("the schema declares no global element, so it has no documents")
        return _ModelBuilder(parsed).build_model(root)


class _ModelBuilder:
    """Turns complex types into records, each once, breadth first and without recursion."""

    def __init__(self, parsed: ParsedXsd) -> None:
        self._losses: list[Loss] = []
        self._types: dict[str, NamedType] = {}
        self._names: dict[int, str] = {}
        self._todo: deque[tuple[Any, str, str]] = deque()
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}
        self._left = MAX_FIELDS
        self._simple = SimpleTypeConverter(self._losses, self._types, self._free_name)
        self._particles = OccurrenceLister(self._losses)
        self._space = _package_name(parsed.root.get("targetNamespace") or "")
        self._derived = {
            id(kind.base_type) for kind in parsed.model.maps.types.values() if getattr(kind, "derivation", None)
        }

    def build_model(self, root: Any) -> tuple[Model, list[Loss]]:
        name = local_name(root.name)
        doc = documentation_text(root)
        self._add_declaration_losses(root, "")
        kind = self._convert_type(root.type, "", name)
        while self._todo:
            at, path, full_name = self._todo.popleft()
            self._types[full_name] = self._build_record(at, path, full_name)
        constraints = self._simple.json_constraints(root.type) if isinstance(root.type, XsdSimpleType) else {}
        return Model(kind, self._types, bool(root.nillable), doc, constraints), self._losses

    def _add_loss(self, path: str, what: str, why: str, *, data: bool = False) -> None:
        self._losses.append(Loss(path, what, why, data))

    def _free_name(self, wanted: str) -> str:
        """Return a full name that is free, and claim it."""
        name = wanted
        while name in self._taken:
            self._counts[wanted] = self._counts.get(wanted, 1) + 1
            name = f"{wanted}_{self._counts[wanted]}"
        self._taken.add(name)
        return name

    # --- types ------------------------------------------------------------------------------------------------------

    def _convert_type(self, kind: Any, path: str, hint: str) -> Type:
        """Return the type of an element. `hint` is the name for an anonymous type."""
        if isinstance(kind, XsdSimpleType):
            return self._simple.convert_type(kind, path, self._full_name(kind, hint))
        if kind.name == f"{XS}anyType":
            self._add_loss(path, "ANY", "Any XML is allowed here; in the model it is any JSON value.", data=True)
            return Scalar(ScalarKind.ANY)
        if id(kind) in self._derived and kind.name:
            why = f"A type derived from {local_name(kind.name)!r} may replace it (xsi:type); what it adds has no place."
            self._add_loss(path, "SUBTYPE", why, data=True)
        if isinstance(kind.content, XsdSimpleType) and not self._attribute_uses(kind):
            return self._simple.convert_type(kind.content, path, self._full_name(kind, hint))
        known = self._names.get(id(kind))
        if known is None:
            known = self._names[id(kind)] = self._free_name(self._full_name(kind, hint))
            start = path if len(path) <= _LONGEST_PATH else known.rpartition(".")[2]
            self._todo.append((kind, f"{start}." if start else "", known))
        return TypeReference(known)

    def _full_name(self, kind: Any, hint: str) -> str:
        """Return the full name for a type: its own, or one derived from the place of its declaration."""
        if not kind.name:
            return hint if "." in hint or not self._space else f"{self._space}.{hint}"
        space = _package_name(kind.name[1:].partition("}")[0]) if kind.name.startswith("{") else ""
        return f"{space}.{local_name(kind.name)}" if space else local_name(kind.name)

    @staticmethod
    def _attribute_uses(kind: Any) -> dict[str, Any]:
        return {name: use for name, use in kind.attributes.items() if name is not None and use.use != "prohibited"}

    # --- records ----------------------------------------------------------------------------------------------------

    def _build_record(self, kind: Any, path: str, name: str) -> RecordType:
        fields: list[RecordField] = []
        names: set[str] = set()
        at = path.rstrip(".")
        groups: dict[str, tuple[str, ...]] = {}
        for occurrence in self._particles.list_occurrences(kind, at):
            field = self._child_field(occurrence, path, name, names)
            fields.append(field)
            if occurrence.group:
                groups[occurrence.group] = (*groups.get(occurrence.group, ()), field.name)
        attributes = [self._attribute_field(use, path, name, names) for use in self._attribute_uses(kind).values()]
        if attributes:
            attribute_names = ", ".join(field.name for field in attributes[:5])
            self._add_loss(
                at,
                "ATTRIBUTE",
                f"The model does not say which fields are attributes and not elements: {attribute_names}.",
            )
        if None in kind.attributes:
            self._add_loss(at, "ANY", "Other attributes are allowed here; the model cannot represent them.", data=True)
        if isinstance(kind.content, XsdSimpleType):
            text = self._simple.convert_type(kind.content, f"{path}value", f"{name}.Value")
            field_name = self._unique_name("value", names)
            fields.append(RecordField(field_name, text, constraints=self._simple.json_constraints(kind.content)))
        elif kind.mixed:
            self._add_loss(at, "MIXED", "Text between the elements has no place.", data=True)
        for test in getattr(kind, "assertions", ()):
            self._add_loss(at, "CONSTRAINT", f"The assertion {test.elem.get('test', '')[:100]!r} is not checked.")
        self._left -= len(fields) + len(attributes)
        if self._left < 0:
            raise TooLarge(f"the schema has more than {MAX_FIELDS} fields")
        several = {group: members for group, members in groups.items() if len(members) > 1}
        return RecordType(name, tuple(attributes + fields), documentation_text(kind), open=False, at_most_one=several)

    def _child_field(self, occurrence: Occurrence, path: str, owner: str, names: set[str]) -> RecordField:
        element = occurrence.element
        field_name = self._unique_name(local_name(occurrence.name), names)
        at = f"{path}{field_name}"
        self._add_declaration_losses(element, at)
        inner = f"{at}[]" if occurrence.many else at
        kind = self._convert_type(element.type, inner, f"{owner}.{field_name[:1].upper()}{field_name[1:]}")
        constraints = self._simple.json_constraints(element.type) if isinstance(element.type, XsdSimpleType) else {}
        nullable = bool(element.nillable)
        if occurrence.many:
            if constraints:
                self._add_loss(inner, "CONSTRAINT", f"Nothing checks {', '.join(sorted(constraints))} of the items.")
            bounds = {"minItems": occurrence.low, "maxItems": occurrence.high}
            constraints = {word: bound for word, bound in bounds.items() if bound}
            return RecordField(
                field_name,
                Array(kind, nullable),
                required=occurrence.required,
                doc=documentation_text(element),
                constraints=constraints,
            )
        default = self._default_value(element, at)
        if default is not ABSENT:
            self._add_loss(at, "DEFAULT", "In XML an empty element takes the default, not one that is left out.")
        constraints = self._with_fixed_value(element, constraints, default)
        return RecordField(
            field_name,
            kind,
            nullable=nullable,
            required=occurrence.required,
            default=default,
            doc=documentation_text(element),
            constraints=constraints,
        )

    def _attribute_field(self, use: Any, path: str, owner: str, names: set[str]) -> RecordField:
        field_name = self._unique_name(local_name(use.name), names)
        at = f"{path}{field_name}"
        default = self._default_value(use, at)
        constraints = self._with_fixed_value(use, self._simple.json_constraints(use.type), default)
        kind = self._simple.convert_type(
            use.type, at, self._full_name(use.type, f"{owner}.{field_name[:1].upper()}{field_name[1:]}")
        )
        required = use.use == "required"
        return RecordField(
            field_name, kind, required=required, default=default, doc=documentation_text(use), constraints=constraints
        )

    @staticmethod
    def _with_fixed_value(declaration: Any, constraints: dict[str, Any], default: Any) -> dict[str, Any]:
        return constraints if declaration.fixed is None or default is ABSENT else {**constraints, "const": default}

    def _default_value(self, declaration: Any, path: str) -> Any:
        """Return the default or fixed value as a JSON value."""
        text = declaration.default if declaration.default is not None else declaration.fixed
        if text is None:
            return ABSENT
        kind = declaration.type if isinstance(declaration.type, XsdSimpleType) else declaration.type.content
        value = self._simple.json_value(kind, text) if isinstance(kind, XsdSimpleType) else ABSENT
        if value is ABSENT:
            self._add_loss(path, "DEFAULT", f"The value {text[:60]!r} has no counterpart in the model.")
        return value

    @staticmethod
    def _unique_name(wanted: str, names: set[str]) -> str:
        name, count = wanted, 1
        while name in names:
            count += 1
            name = f"{wanted}_{count}"
        names.add(name)
        return name

    def _add_declaration_losses(self, element: Any, path: str) -> None:
        """Report properties of a declaration that the model cannot express."""
        for one in element.identities:
            self._add_loss(path, "IDENTITY", f"The constraint {local_name(one.name)!r} is not checked.")
        if getattr(element, "alternatives", ()):
            self._add_loss(
                path, "ALTERNATIVE", "The type depends on the data; only the declared one is kept.", data=True
            )


def _package_name(namespace: str) -> str:
    """Return a namespace as a dotted name: the reversed host, then the path; '' for none."""
    parsed = urlsplit(namespace) if "://" in namespace else None
    host = ""
    if parsed is None:
        parts = namespace.removeprefix("urn:").replace("/", ":").split(":")
    else:
        host = parsed.netloc.rpartition("@")[2].partition(":")[0].removeprefix("www.")
        parts = [*reversed(host.split(".")), *parsed.path.split("/")]
    plain = (_UNPLAIN.sub("_", part).strip("_") for part in parts)
    return ".".join(f"_{part}" if part[0].isdigit() else part for part in plain if part)[:_LONGEST_PATH].rstrip(".")


MAX_TYPE_DEPTH: Final = 16
"""Most levels of nested lists and unions. Deeper ones are text."""

_WIDTHS: Final = {
    "byte": ScalarKind.INT8,
    "short": ScalarKind.INT16,
    "int": ScalarKind.INT32,
    "long": ScalarKind.INT64,
    "unsignedByte": ScalarKind.UINT8,
    "unsignedShort": ScalarKind.UINT16,
    "unsignedInt": ScalarKind.UINT32,
    "unsignedLong": ScalarKind.UINT64,
}
_PLAIN: Final = {
    "boolean": ScalarKind.BOOLEAN,
    "float": ScalarKind.FLOAT32,
    "double": ScalarKind.FLOAT64,
    "hexBinary": ScalarKind.BYTES,
    "base64Binary": ScalarKind.BYTES,
    "date": ScalarKind.DATE,
}
_TIMES: Final[dict[str, Type]] = {
    "time": Time(TimeUnit.MICRO),
    "dateTime": Timestamp(TimeUnit.MICRO, utc=False),
    "dateTimeStamp": Timestamp(TimeUnit.MICRO),
    "duration": Duration(TimeUnit.MILLI, calendar=True),
    "yearMonthDuration": Duration(TimeUnit.MILLI, calendar=True),
    "dayTimeDuration": Duration(TimeUnit.MICRO),
}
_BINARY: Final = frozenset({"hexBinary", "base64Binary"})
_BIGGEST: Final = 400
"""Most digits of a bound that becomes a constraint."""
_FOREIGN: Final = re.compile(r"\\[iIcCpP]|-\[|[\^$]")
"""Parts of a pattern that the regular expressions of JSON Schema lack or read otherwise."""


class SimpleTypeConverter:
    """Converts simple types. Enumerations and fixed types are declared under a name that `free` makes unique."""

    def __init__(self, losses: list[Loss], types: dict[str, NamedType], free: Callable[[str], str]) -> None:
        self._losses = losses
        self._types = types
        self._free = free
        self._known: dict[int, str] = {}

    def convert_type(self, kind: Any, path: str, name: str, depth: int = 0) -> Type:
        """Return the type of a simple type. `name` is the preferred name if it has to be declared."""
        shape = shape_of(kind)
        if shape.variety == "any" or depth > MAX_TYPE_DEPTH:
            self._add_loss(path, "ANY", "Any text is allowed here.")
            return Scalar(ScalarKind.STRING)
        if shape.variety == "list":
            return Array(self.convert_type(shape.parts[0], f"{path}[]", f"{name}Item", depth + 1))
        if shape.variety == "union":
            return self._union_type(shape, path, name, depth)
        self._report_unchecked_facets(shape, path)
        named = self._named_type(kind, shape, name)
        return named or self._atomic_type(shape, path)

    def _add_loss(self, path: str, what: str, why: str, *, data: bool = False) -> None:
        self._losses.append(Loss(path, what, why, data))

    def _named_type(self, kind: Any, shape: SimpleTypeShape, name: str) -> Type | None:
        """Return an enumeration for texts with an enumeration, a fixed type for bytes of one length, else None."""
        low, high = shape.lengths
        listed = shape.enumeration if shape.base in TEXTUAL else None
        one_length = shape.base in _BINARY and low is not None and low == high
        if not listed and not one_length:
            return None
        known = self._known.get(id(kind))
        if known is None:
            known = self._known[id(kind)] = self._free(name)
            if listed:
                texts = dict.fromkeys(text if shape.white == "preserve" else " ".join(text.split()) for text in listed)
                self._types[known] = Enumeration(known, tuple(EnumSymbol(text) for text in texts))
            else:
                self._types[known] = Fixed(known, low or 0)
        return TypeReference(known)

    def _union_type(self, shape: SimpleTypeShape, path: str, name: str, depth: int) -> Type:
        options: dict[str, UnionOption] = {}
        for index, member in enumerate(shape.parts, 1):
            kind = self.convert_type(member, path, f"{name}Member{index}", depth + 1)
            word = local_name(member.name) if member.name else ""
            for option in kind.options if isinstance(kind, Union) else (UnionOption(kind, word),):
                options.setdefault(repr(option.type), option)
        self._add_loss(path, "UNION", "The first member that takes a text decides its type; a union does not say so.")
        if shape.enumeration or shape.patterns:
            self._add_loss(path, "CONSTRAINT", "Facets of a union are not checked.")
        if len(options) == 1:
            return next(iter(options.values())).type
        return Union(tuple(options.values()))

    def _atomic_type(self, shape: SimpleTypeShape, path: str) -> Type:
        base = shape.base
        if base in _WIDTHS:
            return Scalar(_WIDTHS[base])
        if shape.is_integral:
            low, high = value_interval(shape)
            for kind, least, most in (
                (ScalarKind.INT32, *INTEGERS["int"]),
                (ScalarKind.INT64, *INTEGERS["long"]),
                (ScalarKind.UINT64, *INTEGERS["unsignedLong"]),
            ):
                assert least is not None
                assert most is not None
                if low is not None and high is not None and least <= low.value and high.value <= most:
                    return Scalar(kind)
            return Scalar(ScalarKind.INTEGER)
        if base == "decimal":
            total, fraction = shape.digits
            return Decimal(None if fraction is None else total, fraction or 0)
        if base in _TIMES:
            self._report_time_losses(base, path)
            zoned = base == "dateTime" and "timezone required" in shape.tests
            return Timestamp(TimeUnit.MICRO) if zoned else _TIMES[base]
        if base == "date":
            self._add_loss(path, "ZONE", "A time zone behind the date has no place.", data=True)
        if base in {"ID", "IDREF", "ENTITY", "NOTATION"}:
            self._add_loss(path, "IDENTITY", f"That the text is an {base}, unique or referring, is not checked.")
        return Scalar(_PLAIN.get(base, ScalarKind.STRING))

    def _report_time_losses(self, base: str, path: str) -> None:
        if base in {"time", "dateTime"}:
            why = "A time zone, which may be there or not, and digits below a microsecond have no place."
            self._add_loss(path, "ZONE", why, data=True)
        elif base in {"duration", "dayTimeDuration"}:
            unit = "millisecond" if base == "duration" else "microsecond"
            self._add_loss(path, "PRECISION", f"Digits below a {unit} have no place.", data=True)

    # --- facets -----------------------------------------------------------------------------------------------------

    def _report_unchecked_facets(self, shape: SimpleTypeShape, path: str) -> None:
        """Report the facets that JSON Schema has no keyword for."""
        lost = [f"the assertion {test[:60]!r}" for test in sorted(shape.tests) if not test.startswith("timezone")]
        patterns = [text for step in shape.patterns for text in step]
        if patterns and _json_pattern(shape) is None:
            lost.append(f"the pattern {patterns[0][:60]!r}")
        total, fraction = shape.digits
        if shape.base == "decimal" and total is not None and fraction is None:
            lost.append(f"totalDigits {total}")
        if shape.base in _BINARY and shape.lengths != (None, None) and shape.lengths[0] != shape.lengths[1]:
            lost.append("the length")
        if shape.bounds and shape.base not in {"float", "double", "decimal", *INTEGERS}:
            lost.append("least and greatest value")
        if shape.enumeration is not None and shape.base not in {*TEXTUAL, "float", "double", "decimal", *INTEGERS}:
            lost.append("the list of values")
        if lost:
            self._add_loss(path, "CONSTRAINT", f"Nothing checks {', '.join(lost[:5])}.")

    def json_constraints(self, kind: Any) -> dict[str, Any]:
        """Return the facets of a simple type as keywords of JSON Schema."""
        shape = shape_of(kind)
        constraints: dict[str, Any] = {}
        low, high = shape.lengths
        if shape.variety == "list":
            constraints = {"minItems": low, "maxItems": high}
        elif shape.variety == "atomic" and shape.base in TEXTUAL and not shape.enumeration:
            constraints = {"minLength": low, "maxLength": high, "pattern": _json_pattern(shape)}
        elif shape.base == "anyURI":
            constraints = {"minLength": low, "maxLength": high, "format": "uri-reference"}
        elif shape.is_integral or shape.base in {"decimal", "float", "double"}:
            constraints = _bound_constraints(shape)
            listed = [self.json_value(kind, text) for text in shape.enumeration or ()]
            constraints["enum"] = None if ABSENT in listed else listed or None
        return {word: value for word, value in constraints.items() if value is not None}

    def json_value(self, kind: Any, text: str) -> Any:
        """Return a text of a simple type as a JSON value; ABSENT where it has none."""
        shape = shape_of(kind)
        text = text if shape.white == "preserve" else " ".join(text.split())
        try:
            if shape.variety == "list":
                return [self.json_value(shape.parts[0], part) for part in text.split()]
            if shape.variety == "union":
                return next((self.json_value(part, text) for part in shape.parts if part.is_valid(text)), ABSENT)
            if shape.is_integral:
                return int(text) if len(text) <= _BIGGEST else ABSENT
            if shape.base in {"float", "double"}:
                number = float(text)
                return number if math.isfinite(number) else ABSENT
            if shape.base == "boolean":
                return text in {"true", "1"}
            if shape.base == "hexBinary":
                return base64.b64encode(binascii.unhexlify(text)).decode()
        except (ValueError, TypeError, ArithmeticError):
            return ABSENT
        return text


def _bound_constraints(shape: SimpleTypeShape) -> dict[str, Any]:
    """Return the least and greatest value, unless the width of the type implies them."""
    constraints: dict[str, Any] = {}
    own = INTEGERS.get(shape.base, (None, None))
    ends = value_interval(shape._replace(digits=(None, None)) if shape.base == "decimal" else shape)
    for end, word, width in zip(ends, ("Minimum", "Maximum"), own, strict=True):
        if end is None or abs(end.value) >= Number(10) ** _BIGGEST:
            continue
        value = _json_number(end.value)
        if value is None or (shape.base in _WIDTHS and not end.exclusive and value == width):
            continue
        constraints[f"exclusive{word}" if end.exclusive else word.lower()] = value
    return constraints


def _json_number(value: Number) -> int | float | None:
    """Return a bound as a JSON number; None when none is equal to it."""
    try:
        if value == value.to_integral_value():
            return int(value)
        number = float(value)
    except (InvalidOperation, OverflowError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _json_pattern(shape: SimpleTypeShape) -> str | None:
    """Return the pattern in the dialect of JSON Schema; None without one, or where the dialects differ."""
    if len(shape.patterns) != 1 or any(_FOREIGN.search(text) for text in shape.patterns[0]):
        return None
    return f"^(?:{'|'.join(shape.patterns[0])})$"
