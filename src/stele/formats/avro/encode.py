"""Encodes Python values into bytes (Avro 1.12, "Binary Encoding"), and checks whether values fit.

A schema becomes a tree of small functions `(out, datum)` that append to a bytearray, built once per codec. What does
not fit is rejected, never adjusted: no truncated float, no integer beyond its type, no field the schema does not have.

In a union the first branch that fits is used. A branch of the value's own Python type comes before one that it converts
to (3 is an int before it is a double). `(name, datum)` chooses a branch by its kind or full name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, Final

from stele.formats.avro.model import (
    NO_DEFAULT,
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroNamedType,
    AvroPrimitive,
    AvroRecord,
    AvroType,
    AvroUnion,
    describe_type,
)
from stele.formats.avro.parse import make_default
from stele.formats.avro.scalars import describe_datum, find_problem, to_raw_value

Write = Callable[[bytearray, Any], None]
"""Appends one datum; raises `DatumMismatch`."""

MAX_PROBLEMS: Final = 100
"""Maximum number of problems listed for one datum."""


class DatumMismatch(Exception):
    """A datum does not fit; tokens lead from it out to the root."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
        self.tokens: list[str] = []

    def to_sentence(self) -> str:
        """Return the path and the reason as one sentence."""
        path = "".join(reversed(self.tokens)).removeprefix(".")
        return f"{path}: {self.why}" if path else self.why


def write_long(out: bytearray, value: int) -> None:
    """Append a 64-bit integer as a zig-zag variable-length integer."""
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


class WriterBuilder:
    """Builds the functions for types, each type once, so that recursive types end."""

    def __init__(self) -> None:
        self.built: dict[int, Write] = {}

    def build_writer(self, node: AvroType) -> Write:
        """Return a function that writes values of a type."""
        known = self.built.get(id(node))
        if known is not None:
            return known

        def later(out: bytearray, datum: Any) -> None:
            self.built[id(node)](out, datum)

        self.built[id(node)] = later  # for the type met again inside itself
        write = self.built[id(node)] = self._build_writer(node)
        return write

    def _build_writer(self, node: AvroType) -> Write:
        match node:
            case AvroPrimitive() | AvroFixed():
                return _build_scalar(node)
            case AvroEnum():
                return _build_enum(node)
            case AvroArray():
                return self._build_array(node)
            case AvroMap():
                return self._build_map(node)
            case AvroUnion():
                return self._build_union(node)
            case AvroRecord():
                return self._build_record(node)

    def _build_record(self, node: AvroRecord) -> Write:
        steps = [(field.name, self.build_writer(field.type), field) for field in node.fields]
        names = frozenset(node.by_name)

        def write(out: bytearray, datum: Any) -> None:
            if not isinstance(datum, dict):
                raise DatumMismatch(f"{describe_datum(datum)} is not a dict for the record {node.name}")
            if not datum.keys() <= names:
                raise DatumMismatch(_unknown_fields_problem(node, datum))
            for name, step, field in steps:
                value = datum.get(name, NO_DEFAULT)
                if value is NO_DEFAULT:
                    if field.default is NO_DEFAULT:
                        raise DatumMismatch(f"the field {name!r} of {node.name} is missing and has no default")
                    value = make_default(field.type, field.default)
                try:
                    step(out, value)
                except DatumMismatch as misfit:
                    misfit.tokens.append(f".{name}")
                    raise

        return write

    def _build_array(self, node: AvroArray) -> Write:
        step = self.build_writer(node.items)

        def write(out: bytearray, datum: Any) -> None:
            if not isinstance(datum, (list, tuple)):
                raise DatumMismatch(f"{describe_datum(datum)} is not a list")
            if datum:
                write_long(out, len(datum))
                for index, item in enumerate(datum):
                    try:
                        step(out, item)
                    except DatumMismatch as misfit:
                        misfit.tokens.append(f"[{index}]")
                        raise
            out.append(0)

        return write

    def _build_map(self, node: AvroMap) -> Write:
        step = self.build_writer(node.values)

        def write(out: bytearray, datum: Any) -> None:
            if not isinstance(datum, dict):
                raise DatumMismatch(f"{describe_datum(datum)} is not a dict")
            if datum:
                write_long(out, len(datum))
                for key, item in datum.items():
                    why = find_problem(_STRING, key)
                    if why:
                        raise DatumMismatch(f"a key of the map is not a string: {why}")
                    _write_bytes(out, key.encode())
                    try:
                        step(out, item)
                    except DatumMismatch as misfit:
                        misfit.tokens.append(f"{{{key}}}")
                        raise
            out.append(0)

        return write

    def _build_union(self, node: AvroUnion) -> Write:
        steps = [self.build_writer(branch) for branch in node.branches]
        null = next((index for index, branch in enumerate(node.branches) if branch.kind == "null"), -1)
        others = [index for index in range(len(steps)) if index != null]
        only = others[0] if len(others) == 1 else -1

        def write(out: bytearray, datum: Any) -> None:
            if datum is None and null >= 0:
                write_long(out, null)
                return
            index = only
            if index < 0 or isinstance(datum, tuple):
                index, datum = choose_branch(node, datum)
            write_long(out, index)
            steps[index](out, datum)

        return write


_STRING: Final = AvroPrimitive("string")


def _build_scalar(node: AvroPrimitive | AvroFixed) -> Write:
    if node.kind == "fixed":
        put: Write = bytearray.extend
    else:
        put = _PRIMITIVES[node.kind]
    logical = node.logical

    def write(out: bytearray, datum: Any) -> None:
        why = find_problem(node, datum)
        if why is not None:
            raise DatumMismatch(why)
        put(out, datum if logical is None else to_raw_value(node, datum))

    return write


def _build_enum(node: AvroEnum) -> Write:
    ordinals = {symbol: index for index, symbol in enumerate(node.symbols)}

    def write(out: bytearray, datum: Any) -> None:
        why = find_problem(node, datum)
        if why is not None:
            raise DatumMismatch(why)
        write_long(out, ordinals[datum])

    return write


def _unknown_fields_problem(node: AvroRecord, datum: dict[Any, Any]) -> str:
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


def choose_branch(node: AvroUnion, datum: Any) -> tuple[int, Any]:
    """Return the index of the branch a datum goes to, and the datum without its hint. Raises `DatumMismatch`."""
    return _ProblemFinder().choose_branch(node, datum)


def find_problems(node: AvroType, datum: Any) -> Iterator[str]:
    """Yield the reasons why datum does not fit, each a sentence with its path. Yields nothing when it fits."""
    return _ProblemFinder().find_problems(node, datum, "")


class _ProblemFinder:
    """Finds problems, and caches which values do not fit which types.

    Without the cache, nested unions would take exponential time.
    """

    def __init__(self) -> None:
        self.refuted: set[tuple[int, int]] = set()

    def matches_type(self, node: AvroType, datum: Any) -> bool:
        key = (id(node), id(datum))
        if key in self.refuted:
            return False
        is_match = next(self.find_problems(node, datum, ""), None) is None
        if not is_match:
            self.refuted.add(key)
        return is_match

    def choose_branch(self, node: AvroUnion, datum: Any) -> tuple[int, Any]:
        if isinstance(datum, tuple) and len(datum) == 2 and isinstance(datum[0], str):
            for index, branch in enumerate(node.branches):
                if datum[0] == (branch.name if isinstance(branch, AvroNamedType) else branch.kind):
                    return index, datum[1]
        own = _OWN_KINDS.get(type(datum), frozenset())
        order = sorted(range(len(node.branches)), key=lambda index: node.branches[index].kind not in own)
        for index in order:
            if self.matches_type(node.branches[index], datum):
                return index, datum
        raise DatumMismatch(f"{describe_datum(datum)} fits no branch of {describe_type(node)}")

    def find_problems(self, node: AvroType, datum: Any, path: str) -> Iterator[str]:
        match node:
            case AvroRecord():
                yield from self._find_record_problems(node, datum, path)
            case AvroArray():
                if isinstance(datum, (list, tuple)):
                    for index, item in enumerate(datum):
                        yield from self.find_problems(node.items, item, f"{path}[{index}]")
                else:
                    yield _join_path(path, f"{describe_datum(datum)} is not a list")
            case AvroMap():
                yield from self._find_map_problems(node, datum, path)
            case AvroUnion():
                yield from self._find_union_problems(node, datum, path)
            case _:
                why = find_problem(node, datum)
                if why is not None:
                    yield _join_path(path, why)

    def _find_record_problems(self, node: AvroRecord, datum: Any, path: str) -> Iterator[str]:
        if not isinstance(datum, dict):
            yield _join_path(path, f"{describe_datum(datum)} is not a dict for the record {node.name}")
            return
        if not datum.keys() <= node.by_name.keys():
            yield _join_path(path, _unknown_fields_problem(node, datum))
        for field in node.fields:
            if field.name in datum:
                yield from self.find_problems(field.type, datum[field.name], f"{path}.{field.name}")
            elif field.default is NO_DEFAULT:
                yield _join_path(path, f"the field {field.name!r} of {node.name} is missing and has no default")

    def _find_map_problems(self, node: AvroMap, datum: Any, path: str) -> Iterator[str]:
        if not isinstance(datum, dict):
            yield _join_path(path, f"{describe_datum(datum)} is not a dict")
            return
        for key, item in datum.items():
            why = find_problem(_STRING, key)
            if why:
                yield _join_path(path, f"a key of the map is not a string: {why}")
            yield from self.find_problems(node.values, item, f"{path}{{{key}}}")

    def _find_union_problems(self, node: AvroUnion, datum: Any, path: str) -> Iterator[str]:
        if datum is None and any(branch.kind == "null" for branch in node.branches):
            return
        others = [branch for branch in node.branches if branch.kind != "null"]
        if len(others) == 1 and not isinstance(datum, tuple):
            yield from self.find_problems(others[0], datum, path)
            return
        try:
            index, chosen = self.choose_branch(node, datum)
        except DatumMismatch as misfit:
            yield _join_path(path, misfit.why)
            return
        yield from self.find_problems(node.branches[index], chosen, path)


def _join_path(path: str, why: str) -> str:
    return f"{path.removeprefix('.')}: {why}" if path else why
