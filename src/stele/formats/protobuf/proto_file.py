"""A `.proto` file that is generated from a model: nesting of its types, free names, and its text.

Messages, enums, fields, oneofs and enum values of one message (or of the file) share one namespace. So do the names
that the compiler adds: a message for the entries of each map, a oneof for each `optional` field.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from stele.errors import CannotConvert, TooLarge
from stele.formats.conversion.model import (
    Array,
    Enumeration,
    EnumSymbol,
    Fixed,
    Loss,
    Map,
    NamedType,
    RecordType,
    Type,
    TypeReference,
    Union,
)
from stele.formats.protobuf.model import default_json_name
from stele.formats.protobuf.options import quote_text

LONGEST_NAME: Final = 200
"""Longest name. A longer name is cut, because the compiler limits full names."""
IMPORTED_PACKAGES: Final = frozenset({"google", "confluent"})
"""First parts of the packages of the files that may be imported."""
_KEYWORDS: Final = frozenset(
    {
        *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64"),
        *("sfixed32", "sfixed64", "bool", "string", "bytes", "message", "enum", "extend", "extensions", "reserved"),
        *("option", "oneof", "map", "group", "optional", "required", "repeated", "stream", "export", "local"),
    }
)
"""Words that have another meaning in the position of a type."""
_STATEMENTS: Final = frozenset({"option", "reserved"})
"""Words that begin a statement in the position of an enum value."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def to_identifier(name: str) -> str:
    """Return the name with all invalid characters replaced by underscores. Never empty."""
    identifier = re.sub(r"[^A-Za-z0-9_]", "_", name[:LONGEST_NAME]) or "_"
    return f"_{identifier}" if identifier[0].isdigit() else identifier


def to_pascal_case(name: str) -> str:
    """Return the name as a type name: `OrderLine` for `order_line`."""
    type_name = "".join(part[:1].upper() + part[1:] for part in to_identifier(name).split("_"))
    return type_name if type_name[:1].isalpha() else f"X{type_name}"


def map_entry_name(name: str) -> str:
    """Return the name of the message that the compiler adds for the entries of a map field."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"


def to_upper_snake_case(name: str) -> str:
    """Return the name as an enum value: `ORDER_KIND` for `OrderKind`."""
    plain = to_identifier(name)
    pairs = zip(f"_{plain}", plain, strict=False)
    return "".join(
        f"_{char}" if char.isupper() and (before.islower() or before.isdigit()) else char.upper()
        for before, char in pairs
    )


def to_snake_case(name: str) -> str:
    """Return the name as a field name: `order_kind` for `OrderKind`."""
    return to_upper_snake_case(name).lower()


class NameScope:
    """The names that are used in one scope."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._in_json: set[str] = set()
        self._counts: dict[str, int] = {}

    def is_free(self, *names: str) -> bool:
        """Return whether all of the names are free."""
        return self._taken.isdisjoint(names)

    def claim_name(self, wanted: str) -> str:
        """Claim and return a free name, equal or similar to the wanted one."""
        name = wanted
        while not self.is_free(name):
            name = self._next_name(wanted)
        self._taken.add(name)
        return name

    def claim_field(self, wanted: str, *, has_entries: bool = False) -> str:
        """Claim and return a field's name. Its default JSON name, and the entry name of a map, must be free too."""
        if has_entries and not wanted.strip("_")[:1].isalpha():
            wanted = f"x{wanted}"  # the name of the entries begins with what follows the underscores
        name = wanted
        while (
            not self.is_free(name, *([map_entry_name(name)] if has_entries else []))
            or default_json_name(name) in self._in_json
        ):
            name = self._next_name(wanted)
        self._taken |= {name, map_entry_name(name)} if has_entries else {name}
        self._in_json.add(default_json_name(name))
        return name

    def _next_name(self, wanted: str) -> str:
        self._counts[wanted] = self._counts.get(wanted, 1) + 1
        return f"{wanted}_{self._counts[wanted]}"

    def claim_oneof(self, name: str) -> None:
        """Claim the name of the oneof that the compiler adds for an `optional` field."""
        oneof_name = name if name.startswith("_") else f"_{name}"
        while not self.is_free(oneof_name):
            oneof_name = f"X{oneof_name}"
        self._taken.add(oneof_name)


# --- declarations ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TypeRef:
    """Reference to a type: a keyword (a scalar, an imported type), or the path of a message or enum of this file.

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
        """Return the lines of a message or enum. `around` are the enclosing messages, at most 20."""
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
        option_text = f" [{', '.join(options)}]" if options else ""
        return [*comment_lines(slot.doc), f"{kind} {slot.name} = {slot.number}{option_text};"]

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
    """Return the lines of a comment with the documentation; none for an empty text."""
    lines = _CONTROL.sub(" ", doc.strip().replace("\r\n", "\n").replace("\r", "\n")).split("\n") if doc.strip() else []
    return [f"// {line}".rstrip() for line in lines]


def json_names(fields: Sequence[tuple[str, str]]) -> list[str]:
    """Return the `json_name` of fields from (name, name in the model), '' for the default one. All are distinct.

    A field whose name had to change keeps the model's name in JSON, if the compiler allows it.
    """
    names = [""] * len(fields)
    used: set[str] = set()
    for index in sorted(range(len(fields)), key=lambda at: fields[at][0] != fields[at][1]):
        name, own = fields[index]
        usual = default_json_name(name)
        wanted = [usual, own, name] if name == own else [own, usual, name]
        json_name = next((text for text in wanted if text not in used and _is_valid_json_name(text)), "")
        count = 1
        while not json_name or json_name in used:
            count += 1
            json_name = f"{name}_{count}"
        used.add(json_name)
        names[index] = "" if json_name == usual else json_name
    return names


def _is_valid_json_name(name: str) -> bool:
    """Return whether the compiler accepts the text as a `json_name`."""
    return not _CONTROL.search(name) and not (name.startswith("[") and name.endswith("]")) and 0 < len(name) < 1000


def enum_value_key(enum: str, value: str) -> str:
    """Return the name by which the compiler compares enum values: camel case, without the prefix of the enum's name."""
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
    characters, upper = [], True
    for char in rest:
        if char == "_":
            upper = True
        else:
            characters.append(char.upper() if upper else char.lower())
            upper = False
    return "".join(characters)


def enum_value_name(name: str) -> str:
    """Return a valid name for an enum value."""
    identifier = to_identifier(name)
    return f"{identifier}_" if identifier in _STATEMENTS else identifier


def _type_names(root: ProtoMessage) -> set[str]:
    names: set[str] = set()
    todo = [root]
    while todo:
        message = todo.pop()
        names |= message.inner.keys()
        todo += [item for item in message.inner.values() if isinstance(item, ProtoMessage)]
    return names


def _indent_lines(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" if line else "" for line in lines]


# --- nesting of the model's types -----------------------------------------------------------------------------------

MAX_TYPES: Final = 20_000
"""Most named types of one document."""
MAX_FIELDS: Final = 50_000
"""Most fields and symbols of one document."""
MAX_MEMBERS: Final = 3_000
"""Most fields of one message: the run-time library keeps a message within 64 KiB."""
MAX_DEPTH: Final = 64
"""Most levels of arrays, maps and unions in one type."""

_DEEPEST: Final = 20
"""Most levels of nested message declarations. The compiler allows 32."""
_RESERVED_PACKAGES: Final = (("google",), ("google", "protobuf"), ("google", "type"), ("confluent",))
"""Packages of the importable files, and their parent packages."""
_LONGEST_PATH: Final = 500
_INT32: Final = range(-(1 << 31), 1 << 31)


class TypeNesting:
    """A `.proto` file with all types declared, without fields.

    Raises `TooLarge` past a limit, `CannotConvert` for a reference to a type that the model lacks.
    """

    def __init__(self, types: Mapping[str, NamedType], root: RecordType) -> None:
        self.losses: list[Loss] = []
        self.reached = _reachable_types(types, root)
        """The types that are reachable from the root, the root first, and the path to each."""
        self.types = {name: root if name == root.name else types[name] for name in self.reached}
        self.package = self._choose_package(root)
        self.top = ProtoMessage((), names=NameScope(IMPORTED_PACKAGES if not self.package else ()))
        self.paths: dict[str, tuple[str, ...]] = {}
        """Path of each type below the package."""
        self.messages: dict[str, ProtoMessage] = {}
        self.zeros: dict[str, str] = {}
        """The symbol of each enumeration with number zero; '' if a zero was added."""
        self._moved: set[str] = set()
        self._wanted = {name: self._choose_path(name, root.name) for name in self.reached}
        self._messages_by_path: dict[tuple[str, ...], ProtoMessage] = {(): self.top}

    def declare_types(self, reserve: Callable[[RecordType, ProtoMessage], None]) -> None:
        """Claim the names of all types, then those of all enum values.

        reserve claims the names of a record's fields in its message, before any type is nested in it.
        """
        placed: list[tuple[Enumeration, ProtoEnum, ProtoMessage]] = []
        # enclosing messages first, so that the path of every type is known when it is declared
        for name in sorted(self.reached, key=lambda each: (len(self._wanted[each]), each in self._moved)):
            item = self.types[name]
            parts = self._wanted[name]
            if isinstance(item, Fixed):
                continue
            around = self._enclosing_message(parts[:-1])
            type_name = self._claim_name(around, parts[-1], name)
            self.paths[name] = (*around.path, type_name)
            if isinstance(item, Enumeration):
                choices = ProtoEnum(self.paths[name], item.doc)
                around.inner[type_name] = choices
                placed.append((item, choices, around))
            else:
                message = around.inner[type_name] = self.messages[name] = ProtoMessage(self.paths[name], item.doc)
                self._messages_by_path.setdefault(parts, message)
                reserve(item, message)
        for enumeration, choices, around in placed:
            self._declare_values(enumeration, choices, around)

    def _enclosing_message(self, parts: tuple[str, ...]) -> ProtoMessage:
        """Return the message that holds a nested type. It is added, without fields, if the model does not have it."""
        known = self._messages_by_path.get(parts)
        if known is None:
            outer = self._enclosing_message(parts[:-1])
            name = self._claim_name(outer, parts[-1], "")
            known = self._messages_by_path[parts] = ProtoMessage((*outer.path, name))
            outer.inner[name] = known
        return known

    def _claim_name(self, around: ProtoMessage, wanted: str, full_name: str) -> str:
        name = around.names.claim_name(to_identifier(wanted))
        if name != wanted:
            self._add_loss(full_name, "NAME", f"The type {wanted!r} is called {name!r}.")
        return name

    def _add_loss(self, name: str, what: str, why: str) -> None:
        self.losses.append(Loss(self.reached.get(name, ""), what, why))

    # --- package and nesting ----------------------------------------------------------------------------------------

    def _choose_package(self, root: RecordType) -> str:
        if len(root.name) > _LONGEST_PATH:
            raise CannotConvert(f"the name of the root has more than {_LONGEST_PATH} characters")
        parts = root.name.split(".")[:-1]
        while parts and ".".join(parts) in self.types:
            parts = parts[:-1]
        package_parts = [to_identifier(part) for part in parts]
        if (
            any(tuple(package_parts[: len(taken)]) == taken for taken in _RESERVED_PACKAGES[1:])
            or tuple(package_parts) == _RESERVED_PACKAGES[0]
        ):
            package_parts[0] += "_"
        if package_parts != root.name.split(".")[:-1]:
            self.losses.append(
                Loss("", "NAMESPACE", f"{root.name!r} is declared {_describe_package('.'.join(package_parts))}.")
            )
        self._start = f"{'.'.join(parts)}." if parts else ""
        return ".".join(package_parts)

    def _choose_path(self, name: str, root: str) -> tuple[str, ...]:
        """Return the path of a type: nested as in its name if the enclosing names can be messages, else top-level."""
        *around, last = name.removeprefix(self._start).split(".")
        inside = [f"{self._start}{'.'.join(around[: n + 1])}" for n in range(min(len(around), _DEEPEST))]
        nests = name.startswith(self._start) and len(around) < _DEEPEST and name != root
        if nests and all(self._can_hold_types(outer) for outer in inside):
            return (*around, last)
        if name == root:
            return (last,)
        self._moved.add(name)
        if around:
            self._add_loss(name, "NAMESPACE", f"{name!r} is declared {_describe_package(self.package)}, as {last!r}.")
        return (last,)

    def _can_hold_types(self, name: str) -> bool:
        """Return whether a name is, or could be, a message.

        Types begin with a capital letter, packages with a small one.
        """
        if name in self.types:
            return isinstance(self.types[name], RecordType)
        return name.rpartition(".")[2][:1].isupper()

    # --- enums ------------------------------------------------------------------------------------------------------

    def _declare_values(self, item: Enumeration, choices: ProtoEnum, around: ProtoMessage) -> None:
        """Number and name the symbols. The zero is first; it is added if no symbol has it."""
        name = item.name
        numbered = self._number_symbols(item)
        zero = next((symbol for symbol, number in numbered if number == 0), None)
        self.zeros[name] = zero.name if zero else ""
        if zero is None:
            numbered.insert(0, (EnumSymbol(""), 0))
        else:
            numbered.sort(key=lambda pair: pair[1] != 0)
        prefix = f"{to_upper_snake_case(choices.path[-1])}_"
        wanted = [(enum_value_name(symbol.name) if symbol.name else f"{prefix}UNSPECIFIED") for symbol, _ in numbered]
        if not around.names.is_free(*wanted) or not _are_distinct(choices.path[-1], wanted, numbered):
            wanted = [text if text.startswith(prefix) else prefix + text for text in wanted]
        numbers: dict[str, int] = {}
        renamed = []
        for (symbol, number), text in zip(numbered, wanted, strict=True):
            value_name = around.names.claim_name(text)
            while numbers.setdefault(enum_value_key(choices.path[-1], value_name), number) != number:
                value_name = around.names.claim_name(text)
            choices.values.append((value_name, number, symbol.doc))
            if symbol.name and symbol.name != value_name:
                renamed.append(f"{symbol.name!r} is {value_name!r}")
        if renamed:
            self._add_loss(
                name, "NAME", f"Symbols have other names: {', '.join(renamed[:5])}{', …' * (len(renamed) > 5)}."
            )
        if item.default:
            why = f"A reader keeps the number of a symbol it does not know, and does not take {item.default!r} for it."
            self._add_loss(name, "DEFAULT", why)
        if item.aliases:
            self._add_loss(
                name, "ALIAS", f"Earlier names of {item.name!r} are left out: {', '.join(item.aliases[:5])}."
            )

    def _number_symbols(self, item: Enumeration) -> list[tuple[EnumSymbol, int]]:
        """Return the symbols with their numbers; those without one get the next free, from 1 on."""
        used = {symbol.number for symbol in item.symbols if symbol.number is not None and symbol.number in _INT32}
        unnumbered = all(symbol.number is None for symbol in item.symbols)
        following = iter(number for number in range(1 << 31) if number not in used)
        pairs = []
        for index, symbol in enumerate(item.symbols):
            if symbol.number is not None:
                if symbol.number in _INT32:
                    pairs.append((symbol, symbol.number))
                    continue
                self._add_loss(
                    item.name, "NUMBER", f"The number {symbol.number} of {symbol.name!r} has more than 32 bits."
                )
            is_zero = unnumbered and index == 0 and symbol.name.upper().endswith("UNSPECIFIED")
            number = next(following)
            if number == 0 and not is_zero:
                number = next(following)
            pairs.append((symbol, number))
        return pairs


def _are_distinct(enum: str, names: list[str], numbered: list[tuple[EnumSymbol, int]]) -> bool:
    """Return whether the compiler accepts the names as distinct."""
    keys: dict[str, int] = {}
    if len(set(names)) < len(names):
        return False
    pairs = zip(names, numbered, strict=True)
    return all(keys.setdefault(enum_value_key(enum, name), number) == number for name, (_, number) in pairs)


# --- types that the root refers to ----------------------------------------------------------------------------------


def _reachable_types(types: Mapping[str, NamedType], root: RecordType) -> dict[str, str]:
    """Return the names of all types the root leads to, breadth first, with the path to each."""
    paths = {root.name: ""}
    todo: deque[tuple[RecordType, str]] = deque([(root, "")])
    size = 0
    while todo:
        record, path = todo.popleft()
        if len(record.fields) > MAX_MEMBERS:
            raise TooLarge(f"{record.name!r} has more than {MAX_MEMBERS} fields, the most that a message can have")
        size += len(record.fields)
        for member in record.fields:
            at = f"{path}.{member.name}" if path else member.name
            for name, inner in named_types_in(member.type, at if len(at) <= _LONGEST_PATH else member.name):
                if name in paths:
                    continue
                item = types.get(name)
                if item is None:
                    raise CannotConvert(f"{at}: the model has no type named {name!r}")
                paths[name] = inner
                if isinstance(item, RecordType):
                    todo.append((item, inner))
                elif isinstance(item, Enumeration):
                    size += len(item.symbols)
        if size > MAX_FIELDS or len(paths) > MAX_TYPES:
            raise TooLarge(f"the schema has more than {MAX_FIELDS} fields and symbols, or {MAX_TYPES} types")
    return paths


def named_types_in(kind: Type, path: str) -> Iterator[tuple[str, str]]:
    """Yield the named types inside a type, with their paths. Raises `TooLarge`."""
    todo = [(kind, path, 0)]
    while todo:
        current, at, depth = todo.pop()
        if depth > MAX_DEPTH:
            raise TooLarge(f"{path[:200]}: arrays, maps and unions are nested deeper than {MAX_DEPTH} levels")
        match current:
            case TypeReference():
                yield current.name, at
            case Array():
                todo.append((current.items, f"{at}[]", depth + 1))
            case Map():
                todo.append((current.values, f"{at}{{}}", depth + 1))
            case Union():
                todo += [(option.type, at, depth + 1) for option in reversed(current.options)]


def _describe_package(package: str) -> str:
    return f"in the package {package!r}" if package else "without a package"
