"""Lint rules for Avro schemas; see `stele.formats.lint` for the rules all languages share and how to silence one.

The specification has no style guide for names. The rules follow the habits of its own examples and of code generators:
types UpperCamelCase, fields lower_snake_case or lowerCamelCase, symbols UPPER_SNAKE_CASE. Types of references are not
checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from stele.core.findings import Finding
from stele.formats import lint as common
from stele.formats.avro.model import (
    NO_DEFAULT,
    NO_PROPS,
    PLAIN,
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroNamedType,
    AvroPrimitive,
    AvroRecord,
    AvroSchema,
    AvroType,
    AvroUnion,
    LogicalType,
    Props,
    describe_consequence,
    describe_type,
    find_decimal_fault,
    namespace_of,
    time_unit_of,
)
from stele.formats.avro.parse import find_default_fault
from stele.formats.graph import strongly_connected
from stele.formats.lint import LintReport, ignored_rules

IGNORE: Final = "stele.lint-ignore"
"""The attribute of a type or field that silences rules."""

RULES: Final[Mapping[str, str]] = common.select_rules(
    *("CASE_CLASH", "DECIMAL_CHANGED", "DEFAULT_BRANCH", "DEFAULT_FITS", "DOC_REQUIRED", "ENUM_DEFAULT"),
    *("FIELD_DEFAULT", "LINT_INCOMPLETE", "LOGICAL_TYPE", "LOGICAL_TYPE_CHANGED", "NAMESPACE_REQUIRED", "NAMING"),
    *("NULLABLE_DEFAULT", "RECURSIVE_TYPE", "TIMESTAMP_UNIT", "UNBOUNDED_RECURSION", "UNKNOWN_KEYWORD"),
)

_LOGICAL_NAMES: Final = (*PLAIN, "decimal", "duration")
_ATTRIBUTES: Final = ("namespace", "doc", "default", "aliases", "order", "logicalType", "precision", "scale", "symbols")


class _LintTarget(NamedTuple):
    """A type or field of the document: its path, the rules silenced there, and the record it is in."""

    node: AvroType | AvroField
    path: str
    ignored: frozenset[str]
    owner: AvroRecord | None


def lint_schema(schema: AvroSchema, before: AvroSchema | None) -> list[Finding]:
    """Return the findings of the rules, in the order of the document."""
    notes = LintReport()
    records: dict[str, _LintTarget] = {}
    for place in _walk_declarations(schema):
        if not notes.count_declaration():
            break
        match place.node:
            case AvroField():
                _lint_field(notes, place, place.node)
            case AvroRecord():
                records[place.node.name] = place
                _lint_record(notes, place, place.node)
            case AvroEnum():
                _lint_enum(notes, place, place.node)
            case AvroFixed():
                _lint_named_type(notes, place, place.node, "fixed")
            case _:
                pass
        if not isinstance(place.node, (AvroField, AvroUnion)):
            _lint_attributes(notes, place, place.node.props)
            _lint_logical_type(notes, place, place.node)
    _lint_recursion(notes, records)
    if before is not None:
        known = _records_by_name(before)
        for place in records.values():
            assert isinstance(place.node, AvroRecord)
            _lint_record_changes(notes, place.node, known, place.path, place.ignored)
    return notes.list_findings("/")


def _walk_declarations(schema: AvroSchema) -> Iterator[_LintTarget]:
    """Yield everything the document itself declares, in its order; a named type where it is defined."""
    seen = {id(node) for node in schema.referenced.values()}
    waiting = [_LintTarget(schema.root, "", frozenset(), None)]
    while waiting:
        place = waiting.pop()
        node = place.node
        if isinstance(node, AvroNamedType):
            if id(node) in seen:
                continue
            seen.add(id(node))
        props: Props = NO_PROPS if isinstance(node, AvroUnion) else node.props
        ignored = place.ignored
        if IGNORE in props:
            ignored |= common.ignored_rules(props[IGNORE])
        yield place._replace(path=place.path or "/", ignored=ignored)
        waiting += reversed(list(_walk_inside(place._replace(ignored=ignored))))


def _walk_inside(place: _LintTarget) -> Iterator[_LintTarget]:
    node, path, ignored, owner = place
    match node:
        case AvroField():
            yield _LintTarget(node.type, f"{path}/type", ignored, owner)
        case AvroRecord():
            yield from (_LintTarget(each, f"{path}/fields/{at}", ignored, node) for at, each in enumerate(node.fields))
        case AvroUnion():
            yield from (_LintTarget(each, f"{path}/{at}", ignored, owner) for at, each in enumerate(node.branches))
        case AvroArray():
            yield _LintTarget(node.items, f"{path}/items", ignored, owner)
        case AvroMap():
            yield _LintTarget(node.values, f"{path}/values", ignored, owner)
        case _:
            return


# --- types ----------------------------------------------------------------------------------------------------------


def _lint_named_type(notes: LintReport, place: _LintTarget, node: AvroNamedType, kind: str) -> None:
    """Check what applies to records, enums and fixed alike: name, documentation, namespace."""
    simple = node.name.rpartition(".")[2]
    what = f"the {kind} {simple}"
    common.check_name(notes, place.path, simple, what, common.TYPE_NAME, place.ignored)
    if not (node.doc or "").strip():
        common.report_missing_doc(notes, place.path, f"The {kind} {simple}", 'Add a "doc".', place.ignored)
    if place.owner is None and not namespace_of(node.name):
        notes.add_finding(
            "NAMESPACE_REQUIRED",
            place.path,
            f"{simple} has no namespace: it clashes with other types of that name, and generated code has no package.",
            'Add a "namespace".',
            current=simple,
            ignored=place.ignored,
        )


def _lint_record(notes: LintReport, place: _LintTarget, node: AvroRecord) -> None:
    _lint_named_type(notes, place, node, "record")
    common.report_case_clashes(notes, (field.name for field in node.fields), place.path, place.ignored)


def _lint_enum(notes: LintReport, place: _LintTarget, node: AvroEnum) -> None:
    _lint_named_type(notes, place, node, "enum")
    for index, symbol in enumerate(node.symbols):
        path = f"{place.path.rstrip('/')}/symbols/{index}"
        common.check_name(notes, path, symbol, "a symbol", common.SYMBOL_NAME, place.ignored)
    if node.default is None:
        notes.add_finding(
            "ENUM_DEFAULT",
            place.path,
            "Without a default symbol, a reader of today fails on every symbol that is added later.",
            'Add a symbol such as UNKNOWN, and "default": "UNKNOWN" to the enum (not to the field).',
            current=describe_type(node),
            ignored=place.ignored,
        )


def _lint_logical_type(notes: LintReport, place: _LintTarget, node: AvroType) -> None:
    """Report a logical type that is not valid; readers ignore it silently, as the specification requires."""
    if isinstance(node, AvroUnion) or node.logical is not None or "logicalType" not in node.props:
        return
    name = node.props["logicalType"]
    size = node.size if isinstance(node, AvroFixed) else 0
    why, fix = _explain_logical_type(notes, name, node.kind, node.props, size)
    ending = f": readers ignore it and see plain {node.kind}."
    notes.add_finding("LOGICAL_TYPE", place.path, why + ending, fix, current=str(name), ignored=place.ignored)


def _explain_logical_type(notes: LintReport, name: object, kind: str, props: Props, size: int) -> tuple[str, str]:
    """Return why a logical type is not valid, without a full stop, and what to do."""
    if not isinstance(name, str):
        return "The logicalType is not a string", "Write the name of a logical type."
    if name == "decimal":
        return f"The decimal is not valid, {find_decimal_fault(kind, props, size)}", "Mend precision and scale."
    if name in _LOGICAL_NAMES:
        right = PLAIN.get(name, "fixed(12)")
        return f"{name} belongs on {right}, not on {kind}", f"Put it on {right}."
    near = notes.nearest_word(name, _LOGICAL_NAMES, 0.6)
    hint = f"Did you mean {near}?" if near else "Use one the specification defines, or silence this rule."
    return f"The specification knows no logical type {common.shorten_text(name, 60)!r}", hint


def _lint_attributes(notes: LintReport, place: _LintTarget, props: Props) -> None:
    """Report an attribute whose name is similar to a known one, and so is probably misspelled."""
    for key in props:
        near = None if key in _ATTRIBUTES else notes.nearest_word(key, _ATTRIBUTES, 0.8)
        if near:
            why = f"The attribute {key!r} means nothing to Avro; it looks like {near!r}."
            notes.add_finding(
                "UNKNOWN_KEYWORD", place.path, why, f"Write {near!r}.", current=key, ignored=place.ignored
            )


# --- fields ---------------------------------------------------------------------------------------------------------


def _lint_field(notes: LintReport, place: _LintTarget, field: AvroField) -> None:
    path, ignored = place.path, place.ignored
    common.check_name(notes, path, field.name, f"the field {field.name!r}", common.FIELD_NAME, ignored)
    if not (field.doc or "").strip():
        common.report_missing_doc(notes, path, f"The field {field.name!r}", 'Add a "doc".', ignored)
    _lint_attributes(notes, place, {key: None for key in field.props if key != "logicalType"})
    if "logicalType" in field.props:
        notes.add_finding(
            "LOGICAL_TYPE",
            path,
            f"The logicalType is on the field {field.name!r} and not on its type, so it has no effect.",
            f'Write "type": {{"type": "{_base_kind(field.type)}", "logicalType": "{field.props["logicalType"]}"}}.',
            current=str(field.props["logicalType"]),
            ignored=ignored,
        )
    if field.default is not NO_DEFAULT and (fault := find_default_fault(field.type, field.default)):
        why = f"The default of {field.name!r} does not fit {describe_type(field.type)}: {fault}."
        notes.add_finding(
            "DEFAULT_FITS", path, why, "Mend the default.", current=str(field.default)[:200], ignored=ignored
        )
    elif isinstance(field.type, AvroUnion):
        _lint_union_default(notes, path, field, field.type, ignored)


def _lint_union_default(
    notes: LintReport, path: str, field: AvroField, union: AvroUnion, ignored: frozenset[str]
) -> None:
    if field.default is NO_DEFAULT:
        if any(branch.kind == "null" for branch in union.branches):
            notes.add_finding(
                "NULLABLE_DEFAULT",
                path,
                f"{field.name!r} may be null and has no default, so it could not have been added later, nor can it be"
                " left out by writers.",
                'Put "null" first in the union and add "default": null.',
                current=describe_type(union),
                ignored=ignored,
            )
    elif union.branches and find_default_fault(union.branches[0], field.default) is not None:
        notes.add_finding(
            "DEFAULT_BRANCH",
            path,
            f"The default of {field.name!r} fits {describe_type(union)} but not its first branch: libraries before"
            " Avro 1.12 refuse the schema.",
            "Put the branch of the default first.",
            current=describe_type(union),
            ignored=ignored,
        )


def _base_kind(node: AvroType) -> str:
    """Return the kind of a type, for a union that of its first branch other than null."""
    if isinstance(node, AvroUnion):
        return next((branch.kind for branch in node.branches if branch.kind != "null"), "null")
    return node.kind


# --- recursion ------------------------------------------------------------------------------------------------------


def _lint_recursion(notes: LintReport, records: Mapping[str, _LintTarget]) -> None:
    """Report records that contain themselves, and records of which every value would be infinite."""
    for rule, optional in (("RECURSIVE_TYPE", True), ("UNBOUNDED_RECURSION", False)):

        def edges(name: str, optional: bool = optional) -> list[str]:
            node = records[name].node
            assert isinstance(node, AvroRecord)
            return [inner for inner in _records_in(node, optional=optional) if inner in records]

        for group in strongly_connected(records, edges):
            place = records[group[0]]
            common.report_recursion(notes, rule, place.path, group, place.ignored)


def _records_in(record: AvroRecord, *, optional: bool) -> Iterable[str]:
    """Return the names of records directly in a record's fields.

    With optional, records in unions, arrays and maps are included.
    """
    record_names: dict[str, None] = {}
    waiting: list[AvroType] = [field.type for field in reversed(record.fields)]
    while waiting:
        node = waiting.pop()
        match node:
            case AvroRecord():
                record_names[node.name] = None
            case AvroUnion() if optional or len(node.branches) == 1:
                waiting += reversed(node.branches)
            case AvroArray() if optional:
                waiting.append(node.items)
            case AvroMap() if optional:
                waiting.append(node.values)
            case AvroPrimitive() | _:
                continue
    return record_names


# --- changes from one version to the next -----------------------------------------------------------------------------


def _lint_record_changes(
    notes: LintReport, record: AvroRecord, known: Mapping[str, AvroRecord], path: str, ignored: frozenset[str]
) -> None:
    """Report changes in a record that the previous version had under the same name or under an alias."""
    old = next((known[each] for each in (record.name, *record.aliases) if each in known), None)
    if old is None:
        return
    for index, field in enumerate(record.fields):
        place = f"{path.rstrip('/')}/fields/{index}"
        quiet = ignored | ignored_rules(field.props.get("stele.lint-ignore"))
        match = next((old.by_name[each] for each in (field.name, *field.aliases) if each in old.by_name), None)
        if match is not None:
            _lint_logical_changes(notes, place, field, match, quiet)
        elif field.default is NO_DEFAULT:
            notes.add_finding(
                "FIELD_DEFAULT",
                place,
                f"{field.name!r} is new in {record.name} and has no default: data written before cannot be read.",
                "Add a default.",
                current=describe_type(field.type),
                ignored=quiet,
            )


def _records_by_name(schema: AvroSchema) -> dict[str, AvroRecord]:
    """Return all records of a schema and its references, by full name."""
    records: dict[str, AvroRecord] = {}
    waiting: list[AvroType] = [schema.root, *schema.referenced.values()]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        match node:
            case AvroRecord() if id(node) not in seen:
                seen.add(id(node))
                records[node.name] = node
                waiting += [field.type for field in node.fields]
            case AvroUnion():
                waiting += node.branches
            case AvroArray():
                waiting.append(node.items)
            case AvroMap():
                waiting.append(node.values)
            case _:
                continue
    return records


def _lint_logical_changes(
    notes: LintReport, path: str, field: AvroField, old: AvroField, ignored: frozenset[str]
) -> None:
    """Report changed logical types at the same positions inside two versions of a field's type."""
    was = dict(_walk_logical_types(old.type, ""))
    for place, now in _walk_logical_types(field.type, ""):
        if place not in was or was[place] == now:
            continue
        rule, why = _explain_logical_change(was[place], now)
        if why:
            fix = f"Keep {was[place] or 'the plain type'}, or put values of the new kind into a new field."
            current, before = str(now or "no logical type"), str(was[place] or "no logical type")
            notes.add_finding(
                rule, path, f"{field.name!r}: {why}", fix, current=current, before=before, ignored=ignored
            )


def _walk_logical_types(node: AvroType, place: str) -> Iterator[tuple[str, LogicalType | None]]:
    """Yield the logical types inside a type, each with its position.

    Records inside are skipped, because they are compared separately.
    """
    match node:
        case AvroArray():
            yield from _walk_logical_types(node.items, place + "[]")
        case AvroMap():
            yield from _walk_logical_types(node.values, place + "{}")
        case AvroUnion():
            branches = [branch for branch in node.branches if branch.kind != "null"]
            for branch in branches:
                label = branch.name if isinstance(branch, AvroNamedType) else _promotion_family(branch.kind)
                yield from _walk_logical_types(branch, place if len(branches) == 1 else f"{place}|{label}")
        case AvroPrimitive() | AvroFixed():
            yield place, node.logical
        case _:
            return


def _promotion_family(kind: str) -> str:
    """Return one kind for kinds that promote to each other (int and long, bytes and string)."""
    return {"int": "long", "string": "bytes"}.get(kind, kind)


def _explain_logical_change(was: LogicalType | None, now: LogicalType | None) -> tuple[str, str]:
    """Return the rule a change of logical types breaks, and why; ('', '') for one that does no harm."""
    if was is None or now is None:
        word = now or was
        return (
            "LOGICAL_TYPE_CHANGED",
            f"it was {was or 'plain'} and is {now or 'plain'}: readers lose or gain a {word}.",
        )
    ending = f"values written as {was} are taken for {now}: {describe_consequence(now, was)}."
    if was.name == now.name == "decimal":
        harmless = was.scale == now.scale and now.precision >= was.precision
        return ("", "") if harmless else ("DECIMAL_CHANGED", ending)
    ours, theirs = time_unit_of(now), time_unit_of(was)
    if ours and theirs and ours[0] == theirs[0]:
        return "TIMESTAMP_UNIT", ending
    return "LOGICAL_TYPE_CHANGED", ending
