"""Chooses where the named types of a model go in a `.proto` file: package, nesting and free names."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
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
from stele.formats.protobuf.proto_writer import (
    IMPORTED_PACKAGES,
    NameScope,
    ProtoEnum,
    ProtoMessage,
    enum_value_key,
    enum_value_name,
    to_identifier,
    to_upper_snake_case,
)

MAX_TYPES: Final = 20_000
"""Most named types of one document."""
MAX_FIELDS: Final = 50_000
"""Most fields and symbols of one document."""
MAX_MEMBERS: Final = 3_000
"""Most fields of one message: the run-time library keeps a message within 64 KiB."""
MAX_DEPTH: Final = 64
"""Arrays, maps and unions inside each other in one type."""

_DEEPEST: Final = 20
"""Messages are declared this deep inside each other at most; the compiler takes 32."""
_RESERVED_PACKAGES: Final = (("google",), ("google", "protobuf"), ("google", "type"), ("confluent",))
"""Packages that the files to import belong to, or lead to."""
_LONGEST_PATH: Final = 500
_INT32: Final = range(-(1 << 31), 1 << 31)


class TypeNesting:
    """A `.proto` file with all types declared and no fields yet.

    Raises `TooLarge` past a limit, `CannotConvert` for a name that no type of the model has.
    """

    def __init__(self, types: Mapping[str, NamedType], root: RecordType) -> None:
        self.losses: list[Loss] = []
        self.reached = _reachable_types(types, root)
        """The types that the root leads to, the root first, and the path to each."""
        self.types = {name: root if name == root.name else types[name] for name in self.reached}
        self.package = self._choose_package(root)
        self.top = ProtoMessage((), names=NameScope(IMPORTED_PACKAGES if not self.package else ()))
        self.paths: dict[str, tuple[str, ...]] = {}
        """Where each type is, from the package on."""
        self.messages: dict[str, ProtoMessage] = {}
        self.zeros: dict[str, str] = {}
        """The symbol of each enumeration that became the zero; '' for the one that was added."""
        self._moved: set[str] = set()
        self._wanted = {name: self._choose_path(name, root.name) for name in self.reached}
        self._messages_by_path: dict[tuple[str, ...], ProtoMessage] = {(): self.top}

    def declare_types(self, reserve: Callable[[RecordType, ProtoMessage], None]) -> None:
        """Claim the names of all types, then those of all enum values.

        reserve claims the names of a record's fields in its message, before anything is nested there.
        """
        placed: list[tuple[Enumeration, ProtoEnum, ProtoMessage]] = []
        # enclosing messages first, so that the path of every type is known when it is declared
        for name in sorted(self.reached, key=lambda each: (len(self._wanted[each]), each in self._moved)):
            item = self.types[name]
            parts = self._wanted[name]
            if isinstance(item, Fixed):
                continue
            around = self._enclosing_message(parts[:-1])
            made = self._claim_name(around, parts[-1], name)
            self.paths[name] = (*around.path, made)
            if isinstance(item, Enumeration):
                choices = ProtoEnum(self.paths[name], item.doc)
                around.inner[made] = choices
                placed.append((item, choices, around))
            else:
                message = around.inner[made] = self.messages[name] = ProtoMessage(self.paths[name], item.doc)
                self._messages_by_path.setdefault(parts, message)
                reserve(item, message)
        for enumeration, choices, around in placed:
            self._declare_values(enumeration, choices, around)

    def _enclosing_message(self, parts: tuple[str, ...]) -> ProtoMessage:
        """Return the message that holds a nested type: a declared one, or an empty one made to hold it."""
        known = self._messages_by_path.get(parts)
        if known is None:
            outer = self._enclosing_message(parts[:-1])
            name = self._claim_name(outer, parts[-1], "")
            known = self._messages_by_path[parts] = ProtoMessage((*outer.path, name))
            outer.inner[name] = known
        return known

    def _claim_name(self, around: ProtoMessage, wanted: str, full_name: str) -> str:
        made = around.names.claim_name(to_identifier(wanted))
        if made != wanted:
            self._add_loss(full_name, "NAME", f"The type {wanted!r} is called {made!r}.")
        return made

    def _add_loss(self, name: str, what: str, why: str) -> None:
        self.losses.append(Loss(self.reached.get(name, ""), what, why))

    # --- package and nesting ----------------------------------------------------------------------------------------

    def _choose_package(self, root: RecordType) -> str:
        if len(root.name) > _LONGEST_PATH:
            raise CannotConvert(f"the name of the root has more than {_LONGEST_PATH} characters")
        parts = root.name.split(".")[:-1]
        while parts and ".".join(parts) in self.types:
            parts = parts[:-1]
        made = [to_identifier(part) for part in parts]
        if (
            any(tuple(made[: len(taken)]) == taken for taken in _RESERVED_PACKAGES[1:])
            or tuple(made) == _RESERVED_PACKAGES[0]
        ):
            made[0] += "_"
        if made != root.name.split(".")[:-1]:
            self.losses.append(Loss("", "NAMESPACE", f"{root.name!r} is declared {_describe_package('.'.join(made))}."))
        self._start = f"{'.'.join(parts)}." if parts else ""
        return ".".join(made)

    def _choose_path(self, name: str, root: str) -> tuple[str, ...]:
        """Return the path for a type: nested as named where the names around it can be messages, else top-level."""
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
        """Return whether a name is or can be a message: types begin with a capital, packages with a small letter."""
        if name in self.types:
            return isinstance(self.types[name], RecordType)
        return name.rpartition(".")[2][:1].isupper()

    # --- enums ------------------------------------------------------------------------------------------------------

    def _declare_values(self, item: Enumeration, choices: ProtoEnum, around: ProtoMessage) -> None:
        """Number and name the symbols; the zero is first, and added when no symbol is it."""
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
            made = around.names.claim_name(text)
            while numbers.setdefault(enum_value_key(choices.path[-1], made), number) != number:
                made = around.names.claim_name(text)
            choices.values.append((made, number, symbol.doc))
            if symbol.name and symbol.name != made:
                renamed.append(f"{symbol.name!r} is {made!r}")
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
        found = []
        for index, symbol in enumerate(item.symbols):
            if symbol.number is not None:
                if symbol.number in _INT32:
                    found.append((symbol, symbol.number))
                    continue
                self._add_loss(
                    item.name, "NUMBER", f"The number {symbol.number} of {symbol.name!r} has more than 32 bits."
                )
            is_zero = unnumbered and index == 0 and symbol.name.upper().endswith("UNSPECIFIED")
            number = next(following)
            if number == 0 and not is_zero:
                number = next(following)
            found.append((symbol, number))
        return found


def _are_distinct(enum: str, names: list[str], numbered: list[tuple[EnumSymbol, int]]) -> bool:
    """Return whether the compiler tells the names apart."""
    keys: dict[str, int] = {}
    if len(set(names)) < len(names):
        return False
    pairs = zip(names, numbered, strict=True)
    return all(keys.setdefault(enum_value_key(enum, name), number) == number for name, (_, number) in pairs)


# --- what the root reaches ------------------------------------------------------------------------------------------


def _reachable_types(types: Mapping[str, NamedType], root: RecordType) -> dict[str, str]:
    """Return the names of all types the root leads to, breadth first, with the path to each."""
    found = {root.name: ""}
    todo: deque[tuple[RecordType, str]] = deque([(root, "")])
    size = 0
    while todo:
        record, path = todo.popleft()
        if len(record.fields) > MAX_MEMBERS:
            raise TooLarge(f"{record.name!r} has more than {MAX_MEMBERS} fields, the most that a message can have")
        size += len(record.fields)
        for field in record.fields:
            at = f"{path}.{field.name}" if path else field.name
            for name, inner in named_types_in(field.type, at if len(at) <= _LONGEST_PATH else field.name):
                if name in found:
                    continue
                item = types.get(name)
                if item is None:
                    raise CannotConvert(f"{at}: the model has no type named {name!r}")
                found[name] = inner
                if isinstance(item, RecordType):
                    todo.append((item, inner))
                elif isinstance(item, Enumeration):
                    size += len(item.symbols)
        if size > MAX_FIELDS or len(found) > MAX_TYPES:
            raise TooLarge(f"the schema has more than {MAX_FIELDS} fields and symbols, or {MAX_TYPES} types")
    return found


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
