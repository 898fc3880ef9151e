"""From XML Schema to the neutral model: documents with one global element as root.

| XML Schema | model |
|---|---|
| complex type | a record of its attributes and elements; text beside attributes is the field `value` |
| element or attribute that may be absent | a field that may be left out |
| element that may occur more than once | an array; `minItems` and `maxItems` when it has its own bounds |
| choice between single elements | a group of which a datum has at most one |
| nillable | nullable |
| simple types | see `simple_to_model` |
| `fixed` | the constraint `const`, and the default |
| anyType | any JSON value |
| xs:documentation | documentation |

Full names of types begin with the namespace in the order of Java packages: `http://acme.com/orders` is
`com.acme.orders`. Elements and attributes go by their local names; what would be alike is numbered.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from xmlschema.validators import XsdAnyElement, XsdGroup, XsdSimpleType

from stele.errors import CannotConvert, InvalidRequest, TooLarge
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Loss,
    Model,
    NamedType,
    RecordField,
    RecordType,
    Scalar,
    ScalarKind,
    Type,
    TypeReference,
)
from stele.formats.xsd.content import is_substitutable
from stele.formats.xsd.outline import documentation_text
from stele.formats.xsd.parse import ParsedXsd
from stele.formats.xsd.simple_to_model import SimpleTypeConverter
from stele.formats.xsd.xmlschema_adapter import XS, local_name

MAX_DEPTH: Final = 100
"""Groups inside each other; the parser takes fewer."""


class Occurrence(NamedTuple):
    """An element below another one.

    required  every document has at least one
    many      there may be more than one; low and high are its bounds when it alone has them, else None
    group     name of the choice it is a branch of, ''
    """

    name: str
    element: Any
    required: bool
    many: bool
    low: int | None
    high: int | None
    group: str


class OccurrenceLister:
    """Lists the elements of content models and reports what the list loses."""

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
            self._add_loss(path, "ANY", "Elements that the schema does not name are allowed here; they have no place.")
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
        found: The elements met.
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
        """Everything in a group; depth counts the groups around it. Raises `TooLarge`."""
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
    """Return the elements that may stand where a particle is: its own, or those of its substitution group."""
    if item.ref is None:
        return {item.name: item}
    options = {item.name: item.ref} if not item.ref.abstract else {}
    if "substitution" not in item.ref.block:
        members = (other for other in item.iter_substitutes() if not other.abstract)
        options |= {other.name: other for other in members if is_substitutable(item.ref, other)}
    return options


def _merge_occurrences(found: list[Occurrence]) -> list[Occurrence]:
    """Return each name once; an element in several places may occur more than once."""
    merged: dict[str, Occurrence] = {}
    for one in found:
        other = merged.get(one.name)
        merged[one.name] = (
            one
            if other is None
            else other._replace(required=other.required or one.required, many=True, low=None, high=None, group="")
        )
    return list(merged.values())


MAX_FIELDS: Final = 50_000
"""Fields of all records together."""

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
        found = elements.get(wanted)
        if found is None and element:
            found = next((one for name, one in elements.items() if local_name(name) == element), None)
        if found is None:
            if element:
                raise InvalidRequest(f"the schema has no global element {element!r}")
            raise CannotConvert("the schema declares no global element, so it has no documents")
        return _ModelBuilder(parsed).build_model(found)


class _ModelBuilder:
    """Turns complex types into records, each once, breadth first: no path through types makes it recurse."""

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
        made = wanted
        while made in self._taken:
            self._counts[wanted] = self._counts.get(wanted, 1) + 1
            made = f"{wanted}_{self._counts[wanted]}"
        self._taken.add(made)
        return made

    # --- types ------------------------------------------------------------------------------------------------------

    def _convert_type(self, kind: Any, path: str, hint: str) -> Type:
        """Return the type of an element; hint is the name of an anonymous one."""
        if isinstance(kind, XsdSimpleType):
            return self._simple.convert_type(kind, path, self._full_name(kind, hint))
        if kind.name == f"{XS}anyType":
            self._add_loss(path, "ANY", "Any XML may stand here; the model says any JSON value.", data=True)
            return Scalar(ScalarKind.ANY)
        if id(kind) in self._derived and kind.name:
            why = (
                f"A type derived from {local_name(kind.name)!r} may stand in for it (xsi:type); "
                "what it adds has no place."
            )
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
        """Return the full name for a type: its own, or that of the place where it is declared."""
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
            shown = ", ".join(field.name for field in attributes[:5])
            self._add_loss(
                at, "ATTRIBUTE", f"Nothing says which fields stand in attributes and not in elements: {shown}."
            )
        if None in kind.attributes:
            self._add_loss(at, "ANY", "Other attributes are allowed here; they have no place.", data=True)
        if isinstance(kind.content, XsdSimpleType):
            text = self._simple.convert_type(kind.content, f"{path}value", f"{name}.Value")
            made = self._unique_name("value", names)
            fields.append(RecordField(made, text, constraints=self._simple.json_constraints(kind.content)))
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
        made = self._unique_name(local_name(occurrence.name), names)
        at = f"{path}{made}"
        self._add_declaration_losses(element, at)
        inner = f"{at}[]" if occurrence.many else at
        kind = self._convert_type(element.type, inner, f"{owner}.{made[:1].upper()}{made[1:]}")
        constraints = self._simple.json_constraints(element.type) if isinstance(element.type, XsdSimpleType) else {}
        nullable = bool(element.nillable)
        if occurrence.many:
            if constraints:
                self._add_loss(inner, "CONSTRAINT", f"Nothing checks {', '.join(sorted(constraints))} of the items.")
            bounds = {"minItems": occurrence.low, "maxItems": occurrence.high}
            constraints = {word: bound for word, bound in bounds.items() if bound}
            return RecordField(
                made,
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
            made,
            kind,
            nullable=nullable,
            required=occurrence.required,
            default=default,
            doc=documentation_text(element),
            constraints=constraints,
        )

    def _attribute_field(self, use: Any, path: str, owner: str, names: set[str]) -> RecordField:
        made = self._unique_name(local_name(use.name), names)
        at = f"{path}{made}"
        default = self._default_value(use, at)
        constraints = self._with_fixed_value(use, self._simple.json_constraints(use.type), default)
        kind = self._simple.convert_type(
            use.type, at, self._full_name(use.type, f"{owner}.{made[:1].upper()}{made[1:]}")
        )
        required = use.use == "required"
        return RecordField(
            made, kind, required=required, default=default, doc=documentation_text(use), constraints=constraints
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
        made, count = wanted, 1
        while made in names:
            count += 1
            made = f"{wanted}_{count}"
        names.add(made)
        return made

    def _add_declaration_losses(self, element: Any, path: str) -> None:
        """Report what a declaration says beside its type."""
        for one in element.identities:
            self._add_loss(path, "IDENTITY", f"The constraint {local_name(one.name)!r} is not checked.")
        if getattr(element, "alternatives", ()):
            self._add_loss(
                path, "ALTERNATIVE", "The type depends on the data; only the declared one is kept.", data=True
            )


def _package_name(namespace: str) -> str:
    """Return a namespace as a dotted name: the host turned round, then the path; '' for none."""
    parsed = urlsplit(namespace) if "://" in namespace else None
    host = ""
    if parsed is None:
        parts = namespace.removeprefix("urn:").replace("/", ":").split(":")
    else:
        host = parsed.netloc.rpartition("@")[2].partition(":")[0].removeprefix("www.")
        parts = [*reversed(host.split(".")), *parsed.path.split("/")]
    plain = (_UNPLAIN.sub("_", part).strip("_") for part in parts)
    return ".".join(f"_{part}" if part[0].isdigit() else part for part in plain if part)[:_LONGEST_PATH].rstrip(".")
