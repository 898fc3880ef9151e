"""What lint says about the changes from one version of an Avro record to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stele.formats.avro.logical_types import describe_consequence, time_unit_of
from stele.formats.avro.model import (
    NO_DEFAULT,
    AvroArray,
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
    describe_type,
)
from stele.formats.lint import LintReport, ignored_rules


def _lint_record_changes(
    notes: LintReport, record: AvroRecord, known: Mapping[str, AvroRecord], path: str, ignored: frozenset[str]
) -> None:
    """Note what changed in a record that the version before had under the same name, or under an alias."""
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
                shown=describe_type(field.type),
                ignored=quiet,
            )


def _records_by_name(schema: AvroSchema) -> dict[str, AvroRecord]:
    """All records of a schema and its references, by full name."""
    found: dict[str, AvroRecord] = {}
    waiting: list[AvroType] = [schema.root, *schema.referenced.values()]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        match node:
            case AvroRecord() if id(node) not in seen:
                seen.add(id(node))
                found[node.name] = node
                waiting += [field.type for field in node.fields]
            case AvroUnion():
                waiting += node.branches
            case AvroArray():
                waiting.append(node.items)
            case AvroMap():
                waiting.append(node.values)
            case _:
                continue
    return found


def _lint_logical_changes(
    notes: LintReport, path: str, field: AvroField, old: AvroField, ignored: frozenset[str]
) -> None:
    """Compare the logical types at the same places inside two types."""
    was = dict(_walk_logical_types(old.type, ""))
    for place, now in _walk_logical_types(field.type, ""):
        if place not in was or was[place] == now:
            continue
        rule, why = _explain_logical_change(was[place], now)
        if why:
            fix = f"Keep {was[place] or 'the plain type'}, or put values of the new kind into a new field."
            shown, before = str(now or "no logical type"), str(was[place] or "no logical type")
            notes.add_finding(rule, path, f"{field.name!r}: {why}", fix, shown=shown, before=before, ignored=ignored)


def _walk_logical_types(node: AvroType, place: str) -> Iterator[tuple[str, LogicalType | None]]:
    """The logical types in a type by where they are; records inside are compared by themselves."""
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
    """int and long, bytes and string are each other's promotions: one place in a union."""
    return {"int": "long", "string": "bytes"}.get(kind, kind)


def _explain_logical_change(was: LogicalType | None, now: LogicalType | None) -> tuple[str, str]:
    """The rule a change of logical types breaks, and why; ('', '') for one that does no harm."""
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
