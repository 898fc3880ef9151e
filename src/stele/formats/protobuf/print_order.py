"""The order in which the declarations of a file or a message can be printed without changing its descriptor.

A descriptor keeps fields, nested messages, enums and extensions in separate lists, yet a map field or a group appends
its own message to the list of messages where it stands. Fields come before nested types as long as that keeps the list
of messages as it is; a message that must precede the entry of a map field is moved before the field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto

from stele.formats.protobuf.layout import Path


@dataclass
class Declaration:
    """One declaration: its kind (`field`, `oneof`, `message`, `enum`, `extend`) and the indexes of what it holds.

    indexes count in the descriptor's list of that kind (fields for a oneof, extensions for an `extend` block); messages
    are the indexes of the nested messages that it declares itself.
    """

    kind: str
    indexes: list[int]
    messages: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class DeclarationScope:
    """The lists of one scope, its path, and the field numbers of its messages, enums and extensions."""

    path: Path
    fields: Sequence[FieldDescriptorProto]
    messages: Sequence[DescriptorProto]
    enums: Sequence[EnumDescriptorProto]
    extensions: Sequence[FieldDescriptorProto]
    tags: tuple[int, int, int]

    @cached_property
    def _index_by_name(self) -> dict[str, int]:
        return {message.name: index for index, message in enumerate(self.messages)}

    def own_message(self, item: FieldDescriptorProto) -> int | None:
        """Return index of the map entry or group body that a field or extension of this scope declares by itself."""
        if item.type not in {FieldDescriptorProto.TYPE_MESSAGE, FieldDescriptorProto.TYPE_GROUP}:
            return None
        index = self._index_by_name.get(item.type_name.rsplit(".", 1)[-1])
        if index is None or item.type == FieldDescriptorProto.TYPE_GROUP:
            return index
        return index if self.messages[index].options.map_entry else None

    def member_path(self, member: Declaration) -> Path:
        """Return where a nested message or enum is."""
        return (*self.path, self.tags[0 if member.kind == "message" else 1], member.indexes[0])


def order_declarations(scope: DeclarationScope, place: Callable[[Path], tuple[int, ...]]) -> list[Declaration]:
    """Return all declarations of the scope; place tells where the author put a nested type."""
    fields = _field_declarations(scope)
    extends = _extension_declarations(scope)
    owned = {index for member in (*fields, *extends) for index in member.messages}
    types = [Declaration("message", [index], [index]) for index in range(len(scope.messages)) if index not in owned]
    types += [Declaration("enum", [index]) for index in range(len(scope.enums))]
    types.sort(key=lambda member: (*place(scope.member_path(member)), member.kind == "enum", *member.indexes))
    return list(_merge_declarations([fields, types, extends]))


def _field_declarations(scope: DeclarationScope) -> list[Declaration]:
    members: list[Declaration] = []
    oneofs: dict[int, Declaration] = {}
    for index, item in enumerate(scope.fields):
        if item.HasField("oneof_index") and not item.proto3_optional:
            member = oneofs.get(item.oneof_index)
            if member is None:
                member = oneofs[item.oneof_index] = Declaration("oneof", [])
                members.append(member)
            member.indexes.append(index)
        else:
            member = Declaration("field", [index])
            members.append(member)
        member.messages += _own_messages(scope, item)
    return members


def _extension_declarations(scope: DeclarationScope) -> list[Declaration]:
    """Return one member for each run of extensions of the same message that no other message interrupts."""
    members: list[Declaration] = []
    for index, item in enumerate(scope.extensions):
        own = _own_messages(scope, item)
        joins = (
            members
            and scope.extensions[members[-1].indexes[0]].extendee == item.extendee
            and (not own or not members[-1].messages or own[0] == members[-1].messages[-1] + 1)
        )
        if not joins:
            members.append(Declaration("extend", []))
        members[-1].indexes.append(index)
        members[-1].messages += own
    return members


def _own_messages(scope: DeclarationScope, item: FieldDescriptorProto) -> list[int]:
    index = scope.own_message(item)
    return [] if index is None else [index]


def _merge_declarations(sequences: Sequence[Sequence[Declaration]]) -> Iterator[Declaration]:
    """Yield the sequences in order, except where a message has to come earlier to keep the order of messages."""
    queue_of = {index: number for number, members in enumerate(sequences) for m in members for index in m.messages}
    heads = [0] * len(sequences)
    emitted: set[int] = set()
    following = 0
    for number, members in enumerate(sequences):
        while heads[number] < len(members):
            source = number
            # Follow the messages that are due before this member to the sequence that declares them.
            while True:
                member = sequences[source][heads[source]]
                while following in emitted:
                    following += 1
                if not member.messages or following >= min(member.messages) or queue_of[following] == source:
                    break
                source = queue_of[following]
            heads[source] += 1
            emitted.update(member.messages)
            yield member
