"""Builds and writes a `.proto` file: claims names so that the compiler finds no two alike, and prints the text.

Messages, enums, fields, oneofs and enum values of one message (or of the file) share one space of names, and so do what
the compiler adds by itself: a message for the entries of each map, a oneof for each `optional` field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from stele.formats.protobuf.options import quote_text
from stele.formats.protobuf.printer import default_json_name

LONGEST_NAME: Final = 200
"""A longer name is cut: the compiler has a limit for full names."""
IMPORTED_PACKAGES: Final = frozenset({"google", "confluent"})
"""First parts of the packages of the files that may be imported."""
_KEYWORDS: Final = frozenset(
    {
        *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64"),
        *("sfixed32", "sfixed64", "bool", "string", "bytes", "message", "enum", "extend", "extensions", "reserved"),
        *("option", "oneof", "map", "group", "optional", "required", "repeated", "stream", "export", "local"),
    }
)
"""Words that mean something else at the place of a type."""
_STATEMENTS: Final = frozenset({"option", "reserved"})
"""Words that begin a statement at the place of an enum value."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def to_identifier(name: str) -> str:
    """Return the name with everything that no identifier has replaced by underscores; never empty."""
    made = re.sub(r"[^A-Za-z0-9_]", "_", name[:LONGEST_NAME]) or "_"
    return f"_{made}" if made[0].isdigit() else made


def to_pascal_case(name: str) -> str:
    """`order_line` as the name of a type: `OrderLine`."""
    made = "".join(part[:1].upper() + part[1:] for part in to_identifier(name).split("_"))
    return made if made[:1].isalpha() else f"X{made}"


def map_entry_name(name: str) -> str:
    """Return the message the compiler makes for the entries of a map field."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"


def to_upper_snake_case(name: str) -> str:
    """`OrderKind` in the spelling of enum values: `ORDER_KIND`."""
    plain = to_identifier(name)
    pairs = zip(f"_{plain}", plain, strict=False)
    return "".join(
        f"_{char}" if char.isupper() and (before.islower() or before.isdigit()) else char.upper()
        for before, char in pairs
    )


def to_snake_case(name: str) -> str:
    """`OrderKind` in the spelling of fields: `order_kind`."""
    return to_upper_snake_case(name).lower()


class NameScope:
    """The names that one scope uses already."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._in_json: set[str] = set()
        self._counts: dict[str, int] = {}

    def is_free(self, *names: str) -> bool:
        """Return whether all of the names can be claimed."""
        return self._taken.isdisjoint(names)

    def claim_name(self, wanted: str) -> str:
        """Claim and return a name like the wanted one that is free."""
        made = wanted
        while not self.is_free(made):
            made = self._next_name(wanted)
        self._taken.add(made)
        return made

    def claim_field(self, wanted: str, *, has_entries: bool = False) -> str:
        """Claim a field's name: its usual JSON name, and the name of the entries of a map, have to be free too."""
        if has_entries and not wanted.strip("_")[:1].isalpha():
            wanted = f"x{wanted}"  # the name of the entries begins with what follows the underscores
        made = wanted
        while (
            not self.is_free(made, *([map_entry_name(made)] if has_entries else []))
            or default_json_name(made) in self._in_json
        ):
            made = self._next_name(wanted)
        self._taken |= {made, map_entry_name(made)} if has_entries else {made}
        self._in_json.add(default_json_name(made))
        return made

    def _next_name(self, wanted: str) -> str:
        self._counts[wanted] = self._counts.get(wanted, 1) + 1
        return f"{wanted}_{self._counts[wanted]}"

    def claim_oneof(self, name: str) -> None:
        """Take the name of the oneof that the compiler makes for an `optional` field."""
        made = name if name.startswith("_") else f"_{name}"
        while not self.is_free(made):
            made = f"X{made}"
        self._taken.add(made)


# --- what is declared -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TypeRef:
    """A type to refer to: a word (a scalar, a type of an import), or the path of a message or enum of this file.

    imports are the files it needs, options the custom options (name, value) that a field of the type carries.
    """

    word: str = ""
    path: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    is_message: bool = False


@dataclass
class ProtoField:
    """One field. label is '', `optional` or `repeated`; key is the key type of a map; oneof is the group it is in."""

    name: str
    number: int
    target: TypeRef
    label: str = ""
    key: str = ""
    doc: str = ""
    oneof: str = ""
    json_name: str = ""


@dataclass
class ProtoEnum:
    """An enum: (name, number, doc) of its values, the zero first."""

    path: tuple[str, ...]
    doc: str = ""
    values: list[tuple[str, int, str]] = field(default_factory=list)


@dataclass
class ProtoMessage:
    """A message, with the types declared inside it by name."""

    path: tuple[str, ...]
    doc: str = ""
    names: NameScope = field(default_factory=NameScope)
    slots: list[ProtoField] = field(default_factory=list)
    inner: dict[str, ProtoMessage | ProtoEnum] = field(default_factory=dict)

    @property
    def type_ref(self) -> TypeRef:
        """The message as the type of a field."""
        return TypeRef(path=self.path, is_message=True)


# --- text -----------------------------------------------------------------------------------------------------------


class ProtoWriter:
    """Prints the file. The root message (path ()) holds the top-level types."""

    def __init__(self, package: str, root: ProtoMessage) -> None:
        self._package = package
        self._root = root
        self._imports: set[str] = set()
        self._hides_homes = bool(IMPORTED_PACKAGES & {*package.split(".")[1:], *_type_names(root)})

    def write_text(self) -> str:
        """Return the whole file."""
        body: list[str] = []
        for item in self._root.inner.values():
            body += ["", *self._write_type(item, [self._root])]
        head = ['syntax = "proto3";', *(["", f"package {self._package};"] if self._package else [])]
        imports = [f"import {quote_text(name)};" for name in sorted(self._imports)]
        return "\n".join([*head, *(["", *imports] if imports else []), *body]) + "\n"

    def _write_type(self, item: ProtoMessage | ProtoEnum, around: Sequence[ProtoMessage]) -> list[str]:
        """Return the lines of a message or enum; around are the messages it lies in, 20 at most."""
        body: list[str] = []
        if isinstance(item, ProtoEnum):
            if len({number for _, number, _ in item.values}) < len(item.values):
                body.append("option allow_alias = true;")
            for name, number, doc in item.values:
                body += [*comment_lines(doc), f"{name} = {number};"]
            return [*comment_lines(item.doc), f"enum {item.path[-1]} {{", *_indent_lines(body), "}"]
        scope = [*around, item]
        written: set[str] = set()
        for slot in item.slots:
            if not slot.oneof:
                body += self._write_field(slot, scope)
            elif slot.oneof not in written:
                written.add(slot.oneof)
                members = [
                    line for each in item.slots if each.oneof == slot.oneof for line in self._write_field(each, scope)
                ]
                body += [f"oneof {slot.oneof} {{", *_indent_lines(members), "}"]
        for inner in item.inner.values():
            body += [*([""] if body else []), *self._write_type(inner, scope)]
        head = f"message {item.path[-1]} {{"
        return [*comment_lines(item.doc), *([head, *_indent_lines(body), "}"] if body else [f"{head}}}"])]

    def _write_field(self, slot: ProtoField, scope: Sequence[ProtoMessage]) -> list[str]:
        self._imports.update(slot.target.imports)
        kind = self._shortest_name(slot.target, scope)
        label = "" if slot.label == "optional" and slot.target.is_message else slot.label
        kind = f"map<{slot.key}, {kind}>" if slot.key else f"{label} {kind}".lstrip()
        dot = "." if self._hides_homes else ""
        options = [f"({dot}{name}) = {value}" for name, value in slot.target.options]
        if slot.json_name:
            options.append(f"json_name = {quote_text(slot.json_name)}")
        shown = f" [{', '.join(options)}]" if options else ""
        return [*comment_lines(slot.doc), f"{kind} {slot.name} = {slot.number}{shown};"]

    def _shortest_name(self, target: TypeRef, scope: Sequence[ProtoMessage]) -> str:
        """Return the shortest name that resolves to the target from inside the innermost message of scope."""
        if target.word:
            return f".{target.word}" if "." in target.word and self._hides_homes else target.word
        path, within = target.path, scope[-1].path
        shared = 0
        while shared < min(len(path) - 1, len(within)) and path[shared] == within[shared]:
            shared += 1
        first = path[shared]
        if first in _KEYWORDS or any(first in message.inner for message in scope[shared + 1 :]):
            return "." + ".".join([*([self._package] if self._package else []), *path])
        return ".".join(path[shared:])


def comment_lines(doc: str) -> list[str]:
    """Return the lines of a comment with the documentation; none for an empty one."""
    lines = _CONTROL.sub(" ", doc.strip().replace("\r\n", "\n").replace("\r", "\n")).split("\n") if doc.strip() else []
    return [f"// {line}".rstrip() for line in lines]


def json_names(fields: Sequence[tuple[str, str]]) -> list[str]:
    """Return the `json_name` of fields by (name, name in the model), '' for the usual one; no two fields have the same.

    A field whose name had to change keeps its own in JSON, when the compiler takes it.
    """
    found = [""] * len(fields)
    used: set[str] = set()
    for index in sorted(range(len(fields)), key=lambda at: fields[at][0] != fields[at][1]):
        name, own = fields[index]
        usual = default_json_name(name)
        wanted = [usual, own, name] if name == own else [own, usual, name]
        made = next((text for text in wanted if text not in used and _is_valid_json_name(text)), "")
        count = 1
        while not made or made in used:
            count += 1
            made = f"{name}_{count}"
        used.add(made)
        found[index] = "" if made == usual else made
    return found


def _is_valid_json_name(name: str) -> bool:
    """Return whether the compiler takes the text as a `json_name`."""
    return not _CONTROL.search(name) and not (name.startswith("[") and name.endswith("]")) and 0 < len(name) < 1000


def enum_value_key(enum: str, value: str) -> str:
    """Return what the compiler compares the values of an enum by: camel case, without the enum's name in front."""
    wanted, at = enum.replace("_", "").lower(), 0
    rest = value
    for index, char in enumerate(value):
        if at == len(wanted):
            break
        if char == "_":
            continue
        if char.lower() != wanted[at]:
            break
        at += 1
        if at == len(wanted):
            rest = value[index + 1 :].lstrip("_") or value
    made, upper = [], True
    for char in rest:
        if char == "_":
            upper = True
        else:
            made.append(char.upper() if upper else char.lower())
            upper = False
    return "".join(made)


def enum_value_name(name: str) -> str:
    """Return a name an enum value may have."""
    made = to_identifier(name)
    return f"{made}_" if made in _STATEMENTS else made


def _type_names(root: ProtoMessage) -> set[str]:
    found: set[str] = set()
    todo = [root]
    while todo:
        message = todo.pop()
        found |= message.inner.keys()
        todo += [item for item in message.inner.values() if isinstance(item, ProtoMessage)]
    return found


def _indent_lines(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" if line else "" for line in lines]
