"""Advice on Avro schemas; see `stele.formats.lint` for the rules all languages share and how to silence one.

The specification has no style guide for names; these are the habits of its own examples and of code generators: types
UpperCamelCase, fields lower_snake_case or lowerCamelCase, symbols UPPER_SNAKE_CASE. Types that come with references are
left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from stele.core.findings import Finding
from stele.formats import lint as common
from stele.formats.avro import lint_changes
from stele.formats.avro.defaults import default_fault
from stele.formats.avro.logical import PLAIN, decimal_fault
from stele.formats.avro.model import (
    NO_DEFAULT,
    NO_PROPS,
    Array,
    AvroSchema,
    EnumType,
    Fixed,
    Map,
    Named,
    Primitive,
    Props,
    Record,
    RecordField,
    Type,
    Union,
    namespace,
    short,
)
from stele.formats.graph import strongly_connected
from stele.formats.lint import LintReport

IGNORE: Final = "stele.lint-ignore"
"""The attribute of a type or field that silences rules."""

RULES: Final[Mapping[str, str]] = common.select_rules(
    *("CASE_CLASH", "DECIMAL_CHANGED", "DEFAULT_BRANCH", "DEFAULT_FITS", "DOC_REQUIRED", "ENUM_DEFAULT"),
    *("FIELD_DEFAULT", "LINT_INCOMPLETE", "LOGICAL_TYPE", "LOGICAL_TYPE_CHANGED", "NAMESPACE_REQUIRED", "NAMING"),
    *("NULLABLE_DEFAULT", "RECURSIVE_TYPE", "TIMESTAMP_UNIT", "UNBOUNDED_RECURSION", "UNKNOWN_KEYWORD"),
)

_LOGICAL_NAMES: Final = (*PLAIN, "decimal", "duration")
_ATTRIBUTES: Final = ("namespace", "doc", "default", "aliases", "order", "logicalType", "precision", "scale", "symbols")


class Place(NamedTuple):
    """A type or field of the document: its path, the rules silenced there, and the record it is in."""

    node: Type | RecordField
    path: str
    ignored: frozenset[str]
    owner: Record | None


def lint(schema: AvroSchema, before: AvroSchema | None) -> list[Finding]:
    """What the rules object to, in the order of the document."""
    notes = LintReport()
    records: dict[str, Place] = {}
    for place in _places(schema):
        if not notes.count_declaration():
            break
        match place.node:
            case RecordField():
                _field(notes, place, place.node)
            case Record():
                records[place.node.name] = place
                _record(notes, place, place.node)
            case EnumType():
                _enum(notes, place, place.node)
            case Fixed():
                _named(notes, place, place.node, "fixed")
            case _:
                pass
        if not isinstance(place.node, (RecordField, Union)):
            _attributes(notes, place, place.node.props)
            _logical(notes, place, place.node)
    _circles(notes, records)
    if before is not None:
        known = lint_changes.records_of(before)
        for place in records.values():
            assert isinstance(place.node, Record)
            lint_changes.compare(notes, place.node, known, place.path, place.ignored)
    return notes.list_findings("/")


def _places(schema: AvroSchema) -> Iterator[Place]:
    """Everything the document itself declares, in its order; a named type where it is defined."""
    seen = {id(node) for node in schema.referenced.values()}
    waiting = [Place(schema.root, "", frozenset(), None)]
    while waiting:
        place = waiting.pop()
        node = place.node
        if isinstance(node, Named):
            if id(node) in seen:
                continue
            seen.add(id(node))
        props: Props = NO_PROPS if isinstance(node, Union) else node.props
        ignored = place.ignored
        if IGNORE in props:
            ignored |= common.ignored_rules(props[IGNORE])
        yield place._replace(path=place.path or "/", ignored=ignored)
        waiting += reversed(list(_inside(place._replace(ignored=ignored))))


def _inside(place: Place) -> Iterator[Place]:
    node, path, ignored, owner = place
    match node:
        case RecordField():
            yield Place(node.type, f"{path}/type", ignored, owner)
        case Record():
            yield from (Place(each, f"{path}/fields/{at}", ignored, node) for at, each in enumerate(node.fields))
        case Union():
            yield from (Place(each, f"{path}/{at}", ignored, owner) for at, each in enumerate(node.branches))
        case Array():
            yield Place(node.items, f"{path}/items", ignored, owner)
        case Map():
            yield Place(node.values, f"{path}/values", ignored, owner)
        case _:
            return


# --- types ----------------------------------------------------------------------------------------------------------


def _named(notes: LintReport, place: Place, node: Named, kind: str) -> None:
    """What holds for records, enums and fixed alike."""
    simple = node.name.rpartition(".")[2]
    what = f"the {kind} {simple}"
    common.check_name(notes, place.path, simple, what, common.TYPE_NAME, place.ignored)
    if not (node.doc or "").strip():
        common.report_missing_doc(notes, place.path, f"The {kind} {simple}", 'Add a "doc".', place.ignored)
    if place.owner is None and not namespace(node.name):
        notes.add_finding(
            "NAMESPACE_REQUIRED",
            place.path,
            f"{simple} has no namespace: it meets every other type of that name, and generated code has no package.",
            'Add a "namespace".',
            shown=simple,
            ignored=place.ignored,
        )


def _record(notes: LintReport, place: Place, node: Record) -> None:
    _named(notes, place, node, "record")
    common.report_case_clashes(notes, (field.name for field in node.fields), place.path, place.ignored)


def _enum(notes: LintReport, place: Place, node: EnumType) -> None:
    _named(notes, place, node, "enum")
    for index, symbol in enumerate(node.symbols):
        path = f"{place.path.rstrip('/')}/symbols/{index}"
        common.check_name(notes, path, symbol, "a symbol", common.SYMBOL_NAME, place.ignored)
    if node.default is None:
        notes.add_finding(
            "ENUM_DEFAULT",
            place.path,
            "Without a default symbol, a reader of today fails on every symbol that is added later.",
            'Add a symbol such as UNKNOWN, and "default": "UNKNOWN" to the enum (not to the field).',
            shown=short(node),
            ignored=place.ignored,
        )


def _logical(notes: LintReport, place: Place, node: Type) -> None:
    """A logical type that readers ignore without a word, as the specification tells them to."""
    if isinstance(node, Union) or node.logical is not None or "logicalType" not in node.props:
        return
    name = node.props["logicalType"]
    size = node.size if isinstance(node, Fixed) else 0
    why, fix = _misplaced(notes, name, node.kind, node.props, size)
    ending = f": readers ignore it and see plain {node.kind}."
    notes.add_finding("LOGICAL_TYPE", place.path, why + ending, fix, shown=str(name), ignored=place.ignored)


def _misplaced(notes: LintReport, name: object, kind: str, props: Props, size: int) -> tuple[str, str]:
    """Why a logical type is not valid, without a full stop, and what to do."""
    if not isinstance(name, str):
        return "The logicalType is no string", "Write the name of a logical type."
    if name == "decimal":
        return f"The decimal is not valid, {decimal_fault(kind, props, size)}", "Mend precision and scale."
    if name in _LOGICAL_NAMES:
        right = PLAIN.get(name, "fixed(12)")
        return f"{name} belongs on {right}, not on {kind}", f"Put it on {right}."
    near = notes.nearest_word(name, _LOGICAL_NAMES, 0.6)
    hint = f"Did you mean {near}?" if near else "Use one the specification defines, or silence this rule."
    return f"The specification knows no logical type {common.shorten_text(name, 60)!r}", hint


def _attributes(notes: LintReport, place: Place, props: Props) -> None:
    """An attribute that is nearly a known one says nothing."""
    for key in props:
        near = None if key in _ATTRIBUTES else notes.nearest_word(key, _ATTRIBUTES, 0.8)
        if near:
            why = f"The attribute {key!r} means nothing to Avro; it looks like {near!r}."
            notes.add_finding("UNKNOWN_KEYWORD", place.path, why, f"Write {near!r}.", shown=key, ignored=place.ignored)


# --- fields ---------------------------------------------------------------------------------------------------------


def _field(notes: LintReport, place: Place, field: RecordField) -> None:
    path, ignored = place.path, place.ignored
    common.check_name(notes, path, field.name, f"the field {field.name!r}", common.FIELD_NAME, ignored)
    if not (field.doc or "").strip():
        common.report_missing_doc(notes, path, f"The field {field.name!r}", 'Add a "doc".', ignored)
    _attributes(notes, place, {key: None for key in field.props if key != "logicalType"})
    if "logicalType" in field.props:
        notes.add_finding(
            "LOGICAL_TYPE",
            path,
            f"The logicalType stands on the field {field.name!r} instead of on its type, where nobody looks for it.",
            f'Write "type": {{"type": "{_base(field.type)}", "logicalType": "{field.props["logicalType"]}"}}.',
            shown=str(field.props["logicalType"]),
            ignored=ignored,
        )
    if field.default is not NO_DEFAULT and (fault := default_fault(field.type, field.default)):
        why = f"The default of {field.name!r} does not fit {short(field.type)}: {fault}."
        notes.add_finding(
            "DEFAULT_FITS", path, why, "Mend the default.", shown=str(field.default)[:200], ignored=ignored
        )
    elif isinstance(field.type, Union):
        _union(notes, path, field, field.type, ignored)


def _union(notes: LintReport, path: str, field: RecordField, union: Union, ignored: frozenset[str]) -> None:
    if field.default is NO_DEFAULT:
        if any(branch.kind == "null" for branch in union.branches):
            notes.add_finding(
                "NULLABLE_DEFAULT",
                path,
                f"{field.name!r} may be null and has no default, so it could not have been added later, nor can it be"
                " left out by writers.",
                'Put "null" first in the union and add "default": null.',
                shown=short(union),
                ignored=ignored,
            )
    elif union.branches and default_fault(union.branches[0], field.default) is not None:
        notes.add_finding(
            "DEFAULT_BRANCH",
            path,
            f"The default of {field.name!r} fits {short(union)} but not its first branch: libraries before Avro 1.12"
            " refuse the schema.",
            "Put the branch of the default first.",
            shown=short(union),
            ignored=ignored,
        )


def _base(node: Type) -> str:
    """The type a logical type was meant for."""
    if isinstance(node, Union):
        return next((branch.kind for branch in node.branches if branch.kind != "null"), "null")
    return node.kind


# --- recursion ------------------------------------------------------------------------------------------------------


def _circles(notes: LintReport, records: Mapping[str, Place]) -> None:
    """Records inside themselves, and those of which every value would be infinite."""
    for rule, optional in (("RECURSIVE_TYPE", True), ("UNBOUNDED_RECURSION", False)):

        def edges(name: str, optional: bool = optional) -> list[str]:
            node = records[name].node
            assert isinstance(node, Record)
            return [inner for inner in _records_in(node, optional=optional) if inner in records]

        for group in strongly_connected(records, edges):
            place = records[group[0]]
            common.report_recursion(notes, rule, place.path, group, place.ignored)


def _records_in(record: Record, *, optional: bool) -> Iterable[str]:
    """Names of the records directly in the fields of one; optional ones are behind a choice or a collection."""
    found: dict[str, None] = {}
    waiting: list[Type] = [field.type for field in reversed(record.fields)]
    while waiting:
        node = waiting.pop()
        match node:
            case Record():
                found[node.name] = None
            case Union() if optional or len(node.branches) == 1:
                waiting += reversed(node.branches)
            case Array() if optional:
                waiting.append(node.items)
            case Map() if optional:
                waiting.append(node.values)
            case Primitive() | _:
                continue
    return found
