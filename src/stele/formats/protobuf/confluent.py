"""The ruleset `confluent`: the verdicts of Confluent's schema registry (8.5) on two Protobuf schemas.

The rules, in Confluent's terms: what was removed or changed on the way from the writer's to the reader's schema.

* The package must stay, and so must every message, nested ones too.
* Fields are matched by number, inside a oneof or not. They may be added, removed and renamed, unless they are
  `required`.
* The type of a field stays within its kind (scalar or enum, message, map), within its family of scalars, and a message
  keeps its name below its package. A numeric field keeps its label where both schemas write one.
* A oneof may be added or removed as a whole, but a member of a oneof may not be removed alone. Fields that were
  independent of each other may not move into one oneof, where setting one clears the other.
* Messages of imported files are compared as well, from each field that uses one.

Confluent's checker ignores groups. Here the rules for messages apply to them; a group's name may change. Enums,
services, options, defaults, JSON names, reserved numbers and extensions are not compared.

Source: docs/protocols/protobuf.md#confluents-rules.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from google.protobuf.descriptor import FieldDescriptor as F

from stele.core.findings import Finding
from stele.formats.protobuf.model import is_map_entry, map_parts, message_of, type_text

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

    from stele.formats.protobuf.model import ProtobufSchema

_FAMILIES = {
    **dict.fromkeys((F.TYPE_INT32, F.TYPE_INT64, F.TYPE_UINT32, F.TYPE_UINT64, F.TYPE_BOOL, F.TYPE_ENUM), "varint"),
    **dict.fromkeys((F.TYPE_SINT32, F.TYPE_SINT64), "zigzag"),
    **dict.fromkeys((F.TYPE_STRING, F.TYPE_BYTES), "length-delimited"),
    **dict.fromkeys((F.TYPE_FIXED32, F.TYPE_SFIXED32), "32-bit"),
    **dict.fromkeys((F.TYPE_FIXED64, F.TYPE_SFIXED64), "64-bit"),
    F.TYPE_FLOAT: "float",
    F.TYPE_DOUBLE: "double",
}
"""Scalars of a family have the same encoding, so that one can be read as the other."""


def check(reader: ProtobufSchema, writer: ProtobufSchema) -> list[Finding]:
    """Return why data of writer cannot be read with reader; empty when it can."""
    return _Comparison(reader, writer).compare_schemas()


class _Pair(NamedTuple):
    """A message of the reader's schema and the message of the writer's schema to compare it with."""

    reader: Descriptor
    writer: Descriptor

    @property
    def key(self) -> tuple[str, str]:
        return self.reader.full_name, self.writer.full_name


class _Comparison:
    """One check.

    Pairs of messages are compared from a list instead of by recursion, so that long chains and cycles of messages are
    safe. Each pair is compared once.
    """

    def __init__(self, reader: ProtobufSchema, writer: ProtobufSchema) -> None:
        self._reader = reader
        self._writer = writer
        self._found: dict[tuple[str, str], list[Finding]] = {}
        self._uses: defaultdict[tuple[str, str], list[tuple[tuple[str, str], Finding]]] = defaultdict(list)
        self._todo: list[_Pair] = []

    def compare_schemas(self) -> list[Finding]:
        """Return all findings: those of the file first, then message by message in the order of the comparison."""
        findings = list(self._compare_package())
        findings += self._match_messages(self._reader.list_messages(), self._writer.list_messages())
        while self._todo:
            pair = self._todo.pop()
            if pair.key not in self._found:
                self._found[pair.key] = []
                self._found[pair.key] += self._compare_message(pair)
        self._blame_users()
        return findings + [finding for message_findings in self._found.values() for finding in message_findings]

    def _compare_package(self) -> Iterator[Finding]:
        new, old = self._reader.proto.package, self._writer.proto.package
        if new != old:
            yield Finding(
                "PACKAGE_CHANGED",
                new or old,
                reader=new or "(no package)",
                writer=old or "(no package)",
                why="The full name of every message changes with its package, so records that name it are not found.",
                fix=f"Keep `package {old};`." if old else "Leave the package statement out.",
            )

    # --- messages ---------------------------------------------------------------------------------------------------

    def _match_messages(self, new: Sequence[Descriptor], old: Sequence[Descriptor]) -> Iterator[Finding]:
        """Yield a finding for each removed message of one scope, and queue pairs with the same name for comparison."""
        by_name = {message.name: message for message in new}
        pairs = []
        for message in old:
            new_message = by_name.get(message.name)
            if new_message is not None:
                pairs.append(_Pair(new_message, message))
            else:
                yield Finding(
                    "MESSAGE_REMOVED",
                    message.full_name,
                    writer=f"message {message.name}",
                    why=f"Data written as message {message.full_name} has no message to be read with.",
                    fix=f"Keep message {message.name}; mark it deprecated when it should no longer be used.",
                )
        self._todo += reversed(pairs)

    def _compare_message(self, pair: _Pair) -> Iterator[Finding]:
        new = {field.number: field for field in pair.reader.fields}
        old = {field.number: field for field in pair.writer.fields}
        yield from self._compare_oneofs(pair, new, old)
        for number in sorted(new.keys() | old.keys()):
            yield from self._compare_field(pair, new.get(number), old.get(number))
        yield from self._match_messages(_declared_messages(pair.reader), _declared_messages(pair.writer))

    def _compare_field(
        self, pair: _Pair, new: FieldDescriptor | None, old: FieldDescriptor | None
    ) -> Iterator[Finding]:
        if new is not None and old is not None:
            yield from self._compare_types(pair, new, old, new, old)
        elif new is not None and new.is_required:
            yield Finding(
                "REQUIRED_FIELD_ADDED",
                new.full_name,
                reader=_format_field(new),
                why=f"Data written before has no required field {new.number}, so it is refused as incomplete.",
                fix="Make the field optional.",
            )
        elif old is not None and old.is_required:
            yield Finding(
                "REQUIRED_FIELD_REMOVED",
                old.full_name,
                writer=_format_field(old),
                why=f"The writer's schema demands field {old.number}, which the reader's no longer has.",
                fix="Keep the field; make it optional in a version of its own before it goes.",
            )

    # --- fields -----------------------------------------------------------------------------------------------------

    def _compare_types(
        self, pair: _Pair, new: FieldDescriptor, old: FieldDescriptor, holder: FieldDescriptor, former: FieldDescriptor
    ) -> Iterator[Finding]:
        """Compare the types of two fields; holder and former are the maps when the fields are parts of map entries."""
        kind = _field_kind(new)
        if kind != _field_kind(old):
            yield _change_finding(
                "FIELD_KIND_CHANGED",
                holder,
                former,
                f"Field {holder.number} was written as a {_field_kind(old)} and cannot be read as a {kind}.",
            )
        elif kind == "map":
            for new_part, old_part in zip(map_parts(new), map_parts(old), strict=True):
                yield from self._compare_types(pair, new_part, old_part, holder, former)
        elif kind == "group":  # its name is the field's, and free to change
            self._todo.append(_Pair(message_of(new), message_of(old)))
        elif kind == "scalar":
            yield from self._compare_scalars(new, old, holder, former)
        else:
            yield from self._compare_message_types(pair, message_of(new), message_of(old), holder, former)

    def _compare_scalars(
        self, new: FieldDescriptor, old: FieldDescriptor, holder: FieldDescriptor, former: FieldDescriptor
    ) -> Iterator[Finding]:
        family = _FAMILIES[new.type]
        if family != _FAMILIES[old.type]:
            why = (
                f"Field {holder.number} was written as {_FAMILIES[old.type]} data and cannot be read as {family} data."
            )
            yield _change_finding("FIELD_SCALAR_KIND_CHANGED", holder, former, why)
            return
        labels = self._reader.field_label(new), self._writer.field_label(old)
        if all(labels) and labels[0] != labels[1] and family != "length-delimited":
            why = f"The numbers of field {holder.number} were written as {labels[1]} and are read as {labels[0]}."
            yield _change_finding("FIELD_NUMERIC_LABEL_CHANGED", holder, former, why)

    def _compare_oneofs(
        self, pair: _Pair, new: Mapping[int, FieldDescriptor], old: Mapping[int, FieldDescriptor]
    ) -> Iterator[Finding]:
        """Yield what changed in the membership of oneofs."""
        was = {number: oneof for number, field in old.items() if (oneof := self._writer.oneof_name(field))}
        now = {number: oneof for number, field in new.items() if (oneof := self._reader.oneof_name(field))}
        alive = set(now.values()) | {oneof for number, oneof in was.items() if number in new}
        for number, oneof in sorted(was.items()):
            if number not in new and oneof in alive:
                yield Finding(
                    "ONEOF_FIELD_REMOVED",
                    old[number].full_name,
                    writer=_format_field(old[number]),
                    why=f"Data that has field {number} set reads as if nothing of oneof {oneof} were set.",
                    fix="Keep the member; a oneof can only be removed with all its members.",
                )
        together: defaultdict[str, list[int]] = defaultdict(list)
        for number in sorted(now.keys() & old.keys()):
            together[now[number]].append(number)
        for oneof, members in together.items():
            free = [number for number in members if number not in was]
            if len(free) + len({was[number] for number in members if number in was}) > 1:
                yield Finding(
                    "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if len(free) > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF",
                    f"{pair.reader.full_name}.{oneof}",
                    reader=f"oneof {oneof} with {', '.join(_format_field(new[number]) for number in members)}",
                    writer=", ".join(_format_field(old[number]) for number in members),
                    why="Data may have several of these fields set; in one oneof only the last of them is kept.",
                    fix="Move at most one existing field into a new oneof.",
                )

    def _compare_message_types(
        self, pair: _Pair, new: Descriptor, old: Descriptor, holder: FieldDescriptor, former: FieldDescriptor
    ) -> Iterator[Finding]:
        if _local_name(new) != _local_name(old):
            why = f"Field {holder.number} was written as message {old.full_name}, another one than {new.full_name}."
            yield _change_finding("FIELD_NAMED_TYPE_CHANGED", holder, former, why)
        elif new.file.name != self._reader.proto.name or old.file.name != self._writer.proto.name:
            # Two messages of the files themselves meet in their own scope; an imported one only here.
            used = _Pair(new, old)
            why = f"Message {old.full_name}, which field {holder.number} was written as, changed incompatibly."
            self._uses[used.key].append((pair.key, _change_finding("FIELD_NAMED_TYPE_CHANGED", holder, former, why)))
            self._todo.append(used)

    def _blame_users(self) -> None:
        """Report every field whose imported message is incompatible, also by way of another field."""
        spoilt = [key for key, findings in self._found.items() if findings]
        done = set()
        while spoilt:
            key = spoilt.pop()
            if key not in done:
                done.add(key)
                for user, finding in self._uses[key]:
                    self._found[user].append(finding)
                    spoilt.append(user)


def _change_finding(rule: str, new: FieldDescriptor, old: FieldDescriptor, why: str) -> Finding:
    fix = f"Keep `{_format_field(old)}`, and give the new field a number that was never used."
    return Finding(rule, new.full_name, reader=_format_field(new), writer=_format_field(old), why=why, fix=fix)


def _declared_messages(message: Descriptor) -> list[Descriptor]:
    """Return the nested messages without map entries and groups, which belong to their fields."""
    groups = {message_of(field).name for field in message.fields if field.type == F.TYPE_GROUP}
    return [nested for nested in message.nested_types if nested.name not in groups and not is_map_entry(nested)]


def _field_kind(field: FieldDescriptor) -> str:
    """Return scalar, message, map or group. A group has another encoding than a message."""
    message = field.message_type
    if message is None:
        return "scalar"
    if field.type == F.TYPE_GROUP:
        return "group"
    return "map" if is_map_entry(message) else "message"


def _local_name(message: Descriptor) -> str:
    """Return the name of a message below the package of its file."""
    return message.full_name.removeprefix(f"{message.file.package}.")


def _format_field(field: FieldDescriptor) -> str:
    """Return a field as text, with its number: `repeated pkg.Item items = 3`."""
    return f"{type_text(field)} {field.name} = {field.number}"
