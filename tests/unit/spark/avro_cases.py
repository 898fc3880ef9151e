"""Random Avro schemas with data for engine tests. Each datum has a form for fastavro and one for Arrow."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import fastavro

from stele.formats.avro import AVRO, AvroSchema

Pair = tuple[Any, Any]
Maker = Callable[[Random], Pair]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def schema(document: Any) -> AvroSchema:
    """Return a parsed schema from its JSON value."""
    import json

    return AVRO.parse(json.dumps(document).encode(), {})


def frame_record(document: Any, datum: Any, number: int = 1) -> bytes:
    """Return a datum as fastavro writes it, after a Confluent header."""
    out = io.BytesIO()
    out.write(struct.pack(">bI", 0, number))
    fastavro.schemaless_writer(out, fastavro.parse_schema(document), datum)
    return out.getvalue()


def read_record(document: Any, frame: bytes | None) -> Any:
    """Return the datum that fastavro reads after the header."""
    return frame and fastavro.schemaless_reader(io.BytesIO(frame[5:]), fastavro.parse_schema(document), None)


def same(value: Any) -> Pair:
    """Return a datum that has the same form for fastavro and Arrow."""
    return value, value


def _text(random: Random) -> str:
    alphabet = "ab \x00é√𝄞"
    return "".join(random.choice(alphabet) for _ in range(random.randrange(6)))


def _decimal(random: Random, digits: int, scale: int) -> Pair:
    return same(Decimal(random.randrange(-(10**digits) + 1, 10**digits)).scaleb(-scale))


def _wide(random: Random, digits: int, scale: int) -> Pair:
    """Return a decimal that is text in Arrow."""
    number = random.randrange(-(10**digits) + 1, 10**digits)
    datum = Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))
    return datum, format(datum, "f")


LEAVES: dict[str, tuple[Any, Maker]] = {
    "null": ("null", lambda r: same(None)),
    "boolean": ("boolean", lambda r: same(r.random() < 0.5)),
    "int": ("int", lambda r: same(r.choice([0, -1, 2**31 - 1, -(2**31), r.randrange(-500, 500)]))),
    "long": ("long", lambda r: same(r.choice([0, 2**63 - 1, -(2**63), r.randrange(-(10**12), 10**12)]))),
    "float": ("float", lambda r: same(struct.unpack("<f", struct.pack("<f", r.uniform(-1e6, 1e6)))[0])),
    "double": ("double", lambda r: same(r.choice([0.0, -0.0, 1e308, float("inf"), r.random()]))),
    "string": ("string", lambda r: same(_text(r))),
    "bytes": ("bytes", lambda r: same(r.randbytes(r.randrange(9)))),
    "date": (
        {"type": "int", "logicalType": "date"},
        lambda r: same(date(1970, 1, 1) + timedelta(r.randrange(-9000, 9000))),
    ),
    "time-millis": (
        {"type": "int", "logicalType": "time-millis"},
        lambda r: same(time(r.randrange(24), r.randrange(60), 7, r.randrange(1000) * 1000)),
    ),
    "time-micros": ({"type": "long", "logicalType": "time-micros"}, lambda r: same(time(1, 2, 3, r.randrange(10**6)))),
    "timestamp-millis": (
        {"type": "long", "logicalType": "timestamp-millis"},
        lambda r: same(EPOCH + timedelta(milliseconds=r.randrange(-(10**12), 10**12))),
    ),
    "timestamp-micros": (
        {"type": "long", "logicalType": "timestamp-micros"},
        lambda r: same(EPOCH + timedelta(microseconds=r.randrange(-(10**15), 10**15))),
    ),
    "local-timestamp-micros": (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        lambda r: same((EPOCH + timedelta(microseconds=r.randrange(10**15))).replace(tzinfo=None)),
    ),
    "decimal": (
        {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9},
        lambda r: _decimal(r, r.choice([1, 5, 18, 19, 38]), 9),
    ),
    "wide": (
        {"type": "bytes", "logicalType": "decimal", "precision": 76, "scale": 38},
        lambda r: _wide(r, r.choice([1, 18, 37, 38, 39, 57, 76]), 38),
    ),
    "small": ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, lambda r: _decimal(r, 4, 2)),
}
"""Types without parts, by a short word."""


class Cases:
    """Draws schemas and data from one seed. Names are unique, so that a schema may hold several named types."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self._named = 0

    def record(self, depth: int = 3, fields: int = 6) -> tuple[Any, Maker]:
        """Return a record schema and a function that makes data of it."""
        parts = [(f"f{i}", *self.type(depth - 1)) for i in range(self.random.randrange(1, fields))]
        self._named += 1
        document = {
            "type": "record",
            "name": f"R{self._named}",
            "fields": [{"name": name, "type": inner} for name, inner, _ in parts],
        }

        def make(random: Random) -> Pair:
            pairs = {name: maker(random) for name, _, maker in parts}
            return {n: p[0] for n, p in pairs.items()}, {n: p[1] for n, p in pairs.items()}

        return document, make

    def type(self, depth: int) -> tuple[Any, Maker]:
        """Return any type and a function that makes data of it."""
        choices = [self.leaf, self.leaf, self.leaf, self.enum, self.fixed]
        if depth > 0:
            choices += [self.array, self.map, self.nullable, self.union, self.nested]
        document: tuple[Any, Maker] = self.random.choice(choices)(depth)
        return document

    def leaf(self, depth: int) -> tuple[Any, Maker]:
        """A type without parts."""
        return LEAVES[self.random.choice(list(LEAVES))]

    def nested(self, depth: int) -> tuple[Any, Maker]:
        """A record in a record."""
        return self.record(depth, 4)

    def enum(self, depth: int) -> tuple[Any, Maker]:
        """An enum."""
        self._named += 1
        symbols = ["A", "B", "C"]
        return {"type": "enum", "name": f"E{self._named}", "symbols": symbols}, lambda r: same(r.choice(symbols))

    def fixed(self, depth: int) -> tuple[Any, Maker]:
        """A fixed, sometimes a decimal."""
        self._named += 1
        document: dict[str, Any] = {"type": "fixed", "name": f"F{self._named}", "size": 9}
        if self.random.random() < 0.5:
            document |= {"logicalType": "decimal", "precision": 20, "scale": 3}
            return document, lambda r: _decimal(r, 20, 3)
        if self.random.random() < 0.2:
            document |= {"size": 20, "logicalType": "decimal", "precision": 45, "scale": 0}
            return document, lambda r: _wide(r, r.choice([3, 45]), 0)
        return document, lambda r: same(r.randbytes(9))

    def array(self, depth: int) -> tuple[Any, Maker]:
        """An array."""
        items, maker = self.type(depth - 1)

        def make(random: Random) -> Pair:
            pairs = [maker(random) for _ in range(random.randrange(4))]
            return [p[0] for p in pairs], [p[1] for p in pairs]

        return {"type": "array", "items": items}, make

    def map(self, depth: int) -> tuple[Any, Maker]:
        """A map."""
        values, maker = self.type(depth - 1)

        def make(random: Random) -> Pair:
            pairs = {f"k{i}é": maker(random) for i in range(random.randrange(4))}
            return {k: p[0] for k, p in pairs.items()}, [(k, p[1]) for k, p in pairs.items()]

        return {"type": "map", "values": values}, make

    def nullable(self, depth: int) -> tuple[Any, Maker]:
        """A union with null, in either order."""
        inner, maker = self.type(0)
        if inner == "null":
            return inner, maker
        union = [inner, "null"] if self.random.random() < 0.3 else ["null", inner]
        return union, lambda r: (None, None) if r.random() < 0.4 else maker(r)

    def union(self, depth: int) -> tuple[Any, Maker]:
        """A union of several types, one of them a record."""
        record, maker = self.record(1, 3)
        union = ["null", "string", "long", record]

        def make(random: Random) -> Pair:
            empty = dict.fromkeys(("member0", "member1", "member2"))
            kind = random.randrange(4)
            if kind == 0:
                return None, None
            if kind == 1:
                return "text", empty | {"member0": "text"}
            if kind == 2:
                return 7, empty | {"member1": 7}
            datum, arrow_value = maker(random)
            return (record["name"], datum), empty | {"member2": arrow_value}

        return union, make
