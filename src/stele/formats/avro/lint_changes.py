"""What lint says about the changes from one version of an Avro record to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stele.formats.avro.logical import consequence, unit_of
from stele.formats.avro.model import (
    NO_DEFAULT,
    Array,
    AvroSchema,
    Fixed,
    Logical,
    Map,
    Named,
    Primitive,
    Record,
    RecordField,
    Type,
    Union,
    short,
)
from stele.formats.lint import LintReport, ignored_rules


def compare(notes: LintReport, record: Record, known: Mapping[str, Record], path: str, ignored: frozenset[str]) -> None:
    """Note what changed in a record that the version before had under the same name, or under an alias."""
    old = next((known[each] for each in (record.name, *record.aliases) if each in known), None)
    if old is None:
        return
    for index, field in enumerate(record.fields):
        place = f"{path.rstrip('/')}/fields/{index}"
        quiet = ignored | ignored_rules(field.props.get("stele.lint-ignore"))
        match = next((old.by_name[each] for each in (field.name, *field.aliases) if each in old.by_name), None)
        if match is not None:
            _logical_types(notes, place, field, match, quiet)
        elif field.default is NO_DEFAULT:
            notes.add_finding(
                "FIELD_DEFAULT",
                place,
                f"{field.name!r} is new in {record.name} and has no default: data written before cannot be read.",
                "Add a default.",
                shown=short(field.type),
                ignored=quiet,
            )


def records_of(schema: AvroSchema) -> dict[str, Record]:
    """All records of a schema and its references, by full name."""
    found: dict[str, Record] = {}
    waiting: list[Type] = [schema.root, *schema.referenced.values()]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        match node:
            case Record() if id(node) not in seen:
                seen.add(id(node))
                found[node.name] = node
                waiting += [field.type for field in node.fields]
            case Union():
                waiting += node.branches
            case Array():
                waiting.append(node.items)
            case Map():
                waiting.append(node.values)
            case _:
                continue
    return found


def _logical_types(notes: LintReport, path: str, field: RecordField, old: RecordField, ignored: frozenset[str]) -> None:
    """Compare the logical types at the same places inside two types."""
    was = dict(_leaves(old.type, ""))
    for place, now in _leaves(field.type, ""):
        if place not in was or was[place] == now:
            continue
        rule, why = _verdict(was[place], now)
        if why:
            fix = f"Keep {was[place] or 'the plain type'}, or put values of the new kind into a new field."
            shown, before = str(now or "no logical type"), str(was[place] or "no logical type")
            notes.add_finding(rule, path, f"{field.name!r}: {why}", fix, shown=shown, before=before, ignored=ignored)


def _leaves(node: Type, place: str) -> Iterator[tuple[str, Logical | None]]:
    """The logical types in a type by where they are; records inside are compared by themselves."""
    match node:
        case Array():
            yield from _leaves(node.items, place + "[]")
        case Map():
            yield from _leaves(node.values, place + "{}")
        case Union():
            branches = [branch for branch in node.branches if branch.kind != "null"]
            for branch in branches:
                label = branch.name if isinstance(branch, Named) else _family(branch.kind)
                yield from _leaves(branch, place if len(branches) == 1 else f"{place}|{label}")
        case Primitive() | Fixed():
            yield place, node.logical
        case _:
            return


def _family(kind: str) -> str:
    """int and long, bytes and string are each other's promotions: one place in a union."""
    return {"int": "long", "string": "bytes"}.get(kind, kind)


def _verdict(was: Logical | None, now: Logical | None) -> tuple[str, str]:
    """The rule a change of logical types breaks, and why; ('', '') for one that does no harm."""
    if was is None or now is None:
        word = now or was
        return (
            "LOGICAL_TYPE_CHANGED",
            f"it was {was or 'plain'} and is {now or 'plain'}: readers lose or gain a {word}.",
        )
    ending = f"values written as {was} are taken for {now}: {consequence(now, was)}."
    if was.name == now.name == "decimal":
        harmless = was.scale == now.scale and now.precision >= was.precision
        return ("", "") if harmless else ("DECIMAL_CHANGED", ending)
    ours, theirs = unit_of(now), unit_of(was)
    if ours and theirs and ours[0] == theirs[0]:
        return "TIMESTAMP_UNIT", ending
    return "LOGICAL_TYPE_CHANGED", ending
