"""Python values into bytes (Avro 1.12, "Binary Encoding"), and whether values fit.

A schema becomes a tree of small functions `(out, datum)` that append to a bytearray, built once per codec. What does
not fit is refused, never bent: no truncated float, no integer beyond its type, no field the schema does not have.

In a union the branch is the first one that fits, one of Python's own type before one it converts to (3 is an int before
it is a double). `(name, datum)` chooses a branch by its kind or full name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, Final

from stele.formats.avro.defaults import default_datum
from stele.formats.avro.model import (
    NO_DEFAULT,
    Array,
    EnumType,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Type,
    Union,
    short,
)
from stele.formats.avro.scalars import lower, problem, shown

Write = Callable[[bytearray, Any], None]
"""Appends one datum; raises `Misfit`."""

MAX_PROBLEMS: Final = 100
"""Problems listed for one datum."""


class Misfit(Exception):
    """A datum does not fit; tokens lead from it out to the root."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self.tokens: list[str] = []

    def sentence(self) -> str:
        """Path and reason."""
        path = "".join(reversed(self.tokens)).removeprefix(".")
        return f"{path}: {self.why}" if path else self.why


def write_long(out: bytearray, value: int) -> None:
    """A zig-zag variable-length integer."""
    value = (value << 1) ^ (value >> 63)
    while value > 127:
        out.append((value & 127) | 128)
        value >>= 7
    out.append(value)


def _write_bytes(out: bytearray, value: bytes) -> None:
    write_long(out, len(value))
    out += value


def _write_boolean(out: bytearray, value: bool) -> None:
    out.append(value)


_FLOAT: Final = Struct("<f").pack
_DOUBLE: Final = Struct("<d").pack

_PRIMITIVES: Final[dict[str, Write]] = {
    "null": lambda out, value: None,
    "boolean": _write_boolean,
    "int": write_long,
    "long": write_long,
    "float": lambda out, value: out.extend(_FLOAT(value)),
    "double": lambda out, value: out.extend(_DOUBLE(value)),
    "bytes": _write_bytes,
    "string": lambda out, value: _write_bytes(out, value.encode()),
}


class Builder:
    """Builds the functions for types, each type once, so that recursive types end."""

    def __init__(self) -> None:
        self.built: dict[int, Write] = {}

    def build(self, node: Type) -> Write:
        """What writes values of a type."""
        known = self.built.get(id(node))
        if known is not None:
            return known

        def later(out: bytearray, datum: Any) -> None:
            self.built[id(node)](out, datum)

        self.built[id(node)] = later  # for the type met again inside itself
        write = self.built[id(node)] = self._build(node)
        return write

    def _build(self, node: Type) -> Write:
        match node:
            case Primitive() | Fixed():
                return _scalar(node)
            case EnumType():
                return _enum(node)
            case Array():
                return self._array(node)
            case Map():
                return self._map(node)
            case Union():
                return self._union(node)
            case Record():
                return self._record(node)

    def _record(self, node: Record) -> Write:
        steps = [(field.name, self.build(field.type), field) for field in node.fields]
        names = frozenset(node.by_name)

        def write(out: bytearray, datum: Any) -> None:
            if not isinstance(datum, dict):
                raise Misfit(f"{shown(datum)} is not a dict for the record {node.name}")
            if not datum.keys() <= names:
                raise Misfit(_unknown(node, datum))
            for name, step, field in steps:
                value = datum.get(name, NO_DEFAULT)
                if value is NO_DEFAULT:
                    if field.default is NO_DEFAULT:
                        raise Misfit(f"the field {name!r} of {node.name} is missing and has no default")
                    value = default_datum(field.type, field.default)
                try:
                    step(out, value)
                except Misfit as misfit:
                    misfit.tokens.append(f".{name}")
                    raise

        return write

    def _array(self, node: Array) -> Write:
        step = self.build(node.items)

        def write(out: bytearray, datum: Any) -> None:
            if not isinstance(datum, (list, tuple)):
                raise Misfit(f"{shown(datum)} is not a list")
            if datum:
                write_long(out, len(datum))
                for index, item in enumerate(datum):
                    try:
                        step(out, item)
                    except Misfit as misfit:
                        misfit.tokens.append(f"[{index}]")
                        raise
            out.append(0)

        return write

    def _map(self, node: Map) -> Write:
        step = self.build(node.values)

        def write(out: bytearray, datum: Any) -> None:
            if not isinstance(datum, dict):
                raise Misfit(f"{shown(datum)} is not a dict")
            if datum:
                write_long(out, len(datum))
                for key, item in datum.items():
                    why = problem(_STRING, key)
                    if why:
                        raise Misfit(f"a key of the map is no text: {why}")
                    _write_bytes(out, key.encode())
                    try:
                        step(out, item)
                    except Misfit as misfit:
                        misfit.tokens.append(f"{{{key}}}")
                        raise
            out.append(0)

        return write

    def _union(self, node: Union) -> Write:
        steps = [self.build(branch) for branch in node.branches]
        null = next((index for index, branch in enumerate(node.branches) if branch.kind == "null"), -1)
        others = [index for index in range(len(steps)) if index != null]
        only = others[0] if len(others) == 1 else -1

        def write(out: bytearray, datum: Any) -> None:
            if datum is None and null >= 0:
                write_long(out, null)
                return
            index = only
            if index < 0 or isinstance(datum, tuple):
                index, datum = choose(node, datum)
            write_long(out, index)
            steps[index](out, datum)

        return write


_STRING: Final = Primitive("string")


def _scalar(node: Primitive | Fixed) -> Write:
    if node.kind == "fixed":
        put: Write = bytearray.extend
    else:
        put = _PRIMITIVES[node.kind]
    logical = node.logical

    def write(out: bytearray, datum: Any) -> None:
        why = problem(node, datum)
        if why is not None:
            raise Misfit(why)
        put(out, datum if logical is None else lower(node, datum))

    return write


def _enum(node: EnumType) -> Write:
    ordinals = {symbol: index for index, symbol in enumerate(node.symbols)}

    def write(out: bytearray, datum: Any) -> None:
        why = problem(node, datum)
        if why is not None:
            raise Misfit(why)
        write_long(out, ordinals[datum])

    return write


def _unknown(node: Record, datum: dict[Any, Any]) -> str:
    extra = ", ".join(sorted(repr(key) for key in datum if key not in node.by_name)[:5])
    return f"the record {node.name} has no field {extra}"


# --- what fits ------------------------------------------------------------------------------------------------------

_OWN_KINDS: Final[dict[type, frozenset[str]]] = {
    bool: frozenset({"boolean"}),
    int: frozenset({"int", "long"}),
    float: frozenset({"float", "double"}),
    str: frozenset({"string", "enum"}),
    bytes: frozenset({"bytes", "fixed"}),
    dict: frozenset({"record", "map"}),
    list: frozenset({"array"}),
}


def choose(node: Union, datum: Any) -> tuple[int, Any]:
    """Index of the branch a datum goes to, and the datum without its hint. Raises `Misfit`."""
    return _Problems().choose(node, datum)


def problems(node: Type, datum: Any) -> Iterator[str]:
    """Every reason why datum does not fit, a sentence with its path each; nothing when it fits."""
    return _Problems().all(node, datum, "")


class _Problems:
    """Remembers which parts do not fit which types: else nested unions would be tried exponentially often."""

    def __init__(self) -> None:
        self.refuted: set[tuple[int, int]] = set()

    def fits(self, node: Type, datum: Any) -> bool:
        key = (id(node), id(datum))
        if key in self.refuted:
            return False
        found = next(self.all(node, datum, ""), None) is None
        if not found:
            self.refuted.add(key)
        return found

    def choose(self, node: Union, datum: Any) -> tuple[int, Any]:
        if isinstance(datum, tuple) and len(datum) == 2 and isinstance(datum[0], str):
            for index, branch in enumerate(node.branches):
                if datum[0] == (branch.name if isinstance(branch, Named) else branch.kind):
                    return index, datum[1]
        own = _OWN_KINDS.get(type(datum), frozenset())
        order = sorted(range(len(node.branches)), key=lambda index: node.branches[index].kind not in own)
        for index in order:
            if self.fits(node.branches[index], datum):
                return index, datum
        raise Misfit(f"{shown(datum)} fits no branch of {short(node)}")

    def all(self, node: Type, datum: Any, path: str) -> Iterator[str]:
        match node:
            case Record():
                yield from self._record(node, datum, path)
            case Array():
                if isinstance(datum, (list, tuple)):
                    for index, item in enumerate(datum):
                        yield from self.all(node.items, item, f"{path}[{index}]")
                else:
                    yield _sentence(path, f"{shown(datum)} is not a list")
            case Map():
                yield from self._map(node, datum, path)
            case Union():
                yield from self._union(node, datum, path)
            case _:
                why = problem(node, datum)
                if why is not None:
                    yield _sentence(path, why)

    def _record(self, node: Record, datum: Any, path: str) -> Iterator[str]:
        if not isinstance(datum, dict):
            yield _sentence(path, f"{shown(datum)} is not a dict for the record {node.name}")
            return
        if not datum.keys() <= node.by_name.keys():
            yield _sentence(path, _unknown(node, datum))
        for field in node.fields:
            if field.name in datum:
                yield from self.all(field.type, datum[field.name], f"{path}.{field.name}")
            elif field.default is NO_DEFAULT:
                yield _sentence(path, f"the field {field.name!r} of {node.name} is missing and has no default")

    def _map(self, node: Map, datum: Any, path: str) -> Iterator[str]:
        if not isinstance(datum, dict):
            yield _sentence(path, f"{shown(datum)} is not a dict")
            return
        for key, item in datum.items():
            why = problem(_STRING, key)
            if why:
                yield _sentence(path, f"a key of the map is no text: {why}")
            yield from self.all(node.values, item, f"{path}{{{key}}}")

    def _union(self, node: Union, datum: Any, path: str) -> Iterator[str]:
        if datum is None and any(branch.kind == "null" for branch in node.branches):
            return
        others = [branch for branch in node.branches if branch.kind != "null"]
        if len(others) == 1 and not isinstance(datum, tuple):
            yield from self.all(others[0], datum, path)
            return
        try:
            index, chosen = self.choose(node, datum)
        except Misfit as misfit:
            yield _sentence(path, misfit.why)
            return
        yield from self.all(node.branches[index], chosen, path)


def _sentence(path: str, why: str) -> str:
    return f"{path.removeprefix('.')}: {why}" if path else why
