"""Malformed bytes for every language and wire; run by `test_malformed` in a process of its own.

    python -m tests.unit.spark.malformed [seed]

Prints one line of JSON: records and bad records by reader, the slowest batch in seconds, and the maximum memory of the
process. It fails when a decoder raises, loses a row, or returns neither a value nor a reason.
"""

from __future__ import annotations

import json
import struct
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa
from tests.support.memory import peak_memory
from tests.unit.spark.avro_cases import Cases, schema
from tests.unit.spark.test_engines import NAMES, mutate_frame, print_array, record
from tests.unit.spark.test_wires import PAYLOADS, VERSIONS, Fake, encoding

from stele.client import ResolvedSchema
from stele.client.serdes.schemas import parse_schema
from stele.formats.avro import AVRO
from stele.spark.decode.formats import decoder_for, encoder_for, type_for
from stele.spark.decode.records import RecordDecoder, plan_read
from stele.spark.engines import get_engine
from stele.spark.engines.base import Decoded
from stele.spark.engines.error_codes import describe_errors
from stele.spark.engines.resolve import encode_varint
from stele.spark.wires.base import HEADERS
from stele.wire import avro_single, confluent, pravega

Batch = tuple[str, Callable[[], list[Decoded]], int]
PREFIX = b"\0\0\0\0\1"
DEEP = 100_000

PROTOBUF = """syntax = "proto3"; message N {
  int32 v = 1; N next = 2; repeated N kids = 3; map<string, N> by = 4; string s = 5; bytes b = 6; double d = 7;
  repeated int64 packed = 8; repeated fixed64 eights = 9; oneof o { string x = 10; E e = 11; } enum E { A = 0; } }"""
FLAT = """syntax = "proto3";
  message N { int32 v = 1; string s = 2; repeated int64 p = 3; M m = 4; message M { string t = 1; } }"""
THRIFT = """struct N { 1: i32 v, 2: optional N next, 3: list<N> kids, 4: map<string, N> by, 5: string s, 6: binary b,
  7: double d, 8: set<bool> flags, 9: list<Empty> nothing, 10: uuid u } struct Empty {}"""
JSON = json.dumps(
    {
        "title": "N",
        "type": "object",
        "properties": {
            "v": {"type": "integer"},
            "d": {"type": "number"},
            "s": {"type": "string", "pattern": "^(a+)+$"},
            "next": {"$ref": "#"},
            "kids": {"type": "array", "items": {"$ref": "#"}},
            "free": {},
        },
    }
)
ROWS = {
    "PROTOBUF": [{"v": 1, "s": "é", "kids": [{"v": 2}], "by": [("k", {"v": 3})], "packed": [1, 2**40], "d": 0.5}],
    "FLAT": [{"v": 1, "s": "é", "p": [1, 2], "m": {"t": "x"}}],
    "THRIFT": [{"v": 1, "s": "é", "kids": [{"v": 2}], "by": [("k", {"v": 3})], "flags": [True], "nothing": [{}]}],
}


def numbers() -> Iterator[bytes]:
    """Yield integers that do not end, and impossible lengths."""
    for count in (1, 9, 10, 11, 5000):
        yield b"\x80" * count
        yield b"\xff" * count
    for value in (2**31 - 1, 2**31, 2**40, 2**60, 2**62, 2**63 - 1, -1, -(2**31), -(2**60), -(2**63)):
        yield encode_varint(value)
        yield encode_varint(value) + b"\0" * 20
        yield encode_varint(value) + encode_varint(value) + b"ab"
    for value in (2**31 - 1, 2**32 - 1, 2**63 - 1):
        yield b"\x12" + _base128(value)
        yield b"\x12" + _base128(value) + b"ab"


def _base128(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


@cache
def nest_messages(tag: bytes) -> bytes:
    """Return messages nested as deep as fits; all lengths are right."""
    sizes = [0]
    while len(sizes) < DEEP:
        sizes.append(sizes[-1] + len(tag) + len(_base128(sizes[-1])))
    return b"".join(tag + _base128(size) for size in reversed(sizes))


def bodies(random: Random) -> list[bytes]:
    """Return malformed inputs for any parser."""
    inputs = [b"", *numbers(), nest_messages(b"\x12"), nest_messages(b"\x1a")]
    inputs += [bytes([byte]) * DEEP for byte in (0, 1, 2, 3, 4, 0x0C, 0x13, 0x7F, 0x80, 0xFF)]
    inputs += [b"\2\2" * DEEP, b"\2\2\2" * DEEP, b"\x0c\0\2" * DEEP, b"\x0f\0\3\x0c\0\0\0\1" * DEEP]
    counts = (2**31 - 1, 2**31, 2**24, -1)
    inputs += [b"\x0f\0\x09\x0c" + struct.pack(">I", n & 0xFFFFFFFF) for n in counts]
    inputs += [b"\x0f\0\x09" + bytes([kind]) + b"\x7f\xff\xff\xff" + b"\0" * 99 for kind in range(18)]
    inputs += [b"\x0d\0\4\x0b\x0c\x7f\xff\xff\xff", b"\x0b\0\5\x7f\xff\xff\xff", b"\x0b\0\5\xff\xff\xff\xff"]
    inputs += [b"\x2a\x02\xc3\x28", b"\x0b\0\5\0\0\0\2\xc3\x28", b"\x39" + struct.pack("<d", float("nan"))]
    texts = ["[" * DEEP, '{"next":' * DEEP, '{"kids":[' * DEEP, '{"free":' + "[" * 900 + "]" * 900 + "}", "NaN"]
    texts += [
        '{"v": 1e999999999}',
        '{"v": ' + "9" * 5000 + "}",
        '{"d": ' + "9" * 5000 + "}",
        '{"d": NaN}',
        '{"d": 1e400}',
    ]
    texts += [
        '{"s": "\\ud800"}',
        '{"s": "' + "a" * 40 + '!"}',
        '{"v": 1, "v": "x"}',
        '\ufeff{"v": 1}',
        "{",
        '{"v": 1.5}',
    ]
    inputs += [text.encode() for text in texts] + [b'{"s": "\xff"}', b'{"s": "\xed\xa0\x80"}']
    return inputs + [random.randbytes(random.randrange(80)) for _ in range(200)]


# --- languages ------------------------------------------------------------------------------------------------------


def avro_readers() -> Iterator[tuple[str, Any, Any, int]]:
    """Yield (name, writer, reader, levels): zero-byte items in arrays; types inside themselves, read and skipped."""
    empty = record(name="Empty")
    tree = record(
        ("v", "int"), ("kids", {"type": "array", "items": "T"}), ("m", {"type": "map", "values": "T"}), name="T"
    )
    both = record(("l", ["null", "B"]), ("r", ["null", "B"]), name="B")
    yield "nothing", *[record(("a", {"type": "array", "items": "null"}))] * 2, 0
    yield "empties", *[record(("a", {"type": "array", "items": {"type": "array", "items": empty}}))] * 2, 0
    yield "text", *[record(("m", {"type": "map", "values": "string"}), ("s", "string"))] * 2, 0
    yield "tree", tree, tree, 4
    yield "both", both, both, 3
    yield "tree past", record(("t", tree), ("n", "int", 0)), record(("n", "int", 0)), 0
    yield "both past", record(("t", both), ("n", "int", 0)), record(("n", "int", 0)), 0
    for seed in range(6):
        document, _ = Cases(seed).record()
        yield f"case {seed}", document, document, 0


def avro(random: Random) -> Iterator[Batch]:
    """Check that all engines without Spark return the same."""
    for name, writer, reader, levels in avro_readers():
        column = pa.array([PREFIX + body for body in bodies(random)], pa.binary())

        def both(
            column: Any = column, writer: Any = writer, reader: Any = reader, levels: int = levels
        ) -> list[Decoded]:
            known = {1: schema(writer)}
            results = [
                get_engine(each).decoder(schema(reader), known.get, recursion=levels).decode(column) for each in NAMES
            ]
            assert describe_errors(results[0]).equals(describe_errors(results[1]))
            assert results[0].codes.equals(results[1].codes)
            assert results[0].offsets.equals(results[1].offsets)
            assert print_array(results[0].values) == print_array(results[1].values)
            return results

        yield f"avro {name}", both, len(column)


def others(random: Random) -> Iterator[Batch]:
    """Check Protobuf by the scan and the parser, JSON and Thrift; with levels and without."""
    for name, text in (("PROTOBUF", PROTOBUF), ("FLAT", FLAT), ("THRIFT", THRIFT), ("JSON", JSON)):
        known = ResolvedSchema(text, name.replace("FLAT", "PROTOBUF"), id=1)
        seeds = [b'{"v": 1, "next": {"v": 2, "kids": [{"d": 0.5, "s": "aa"}]}}']
        if name in ROWS:
            rows = pa.array(ROWS[name], type_for(known, "", 1))
            seeds = [frame[5:] for frame in encoder_for(known, 1, recursion=1).encode(rows).to_pylist()]
        lead = b"\0" if known.schema_type == "PROTOBUF" else b""
        frames = [PREFIX + lead + body for body in bodies(random)]
        frames += [mutate_frame(random, PREFIX + random.choice(seeds)) for _ in range(400)]
        for levels, engine in ((0, "auto"), (2, "auto"), (0, "python")):

            def one(
                known: Any = known, frames: Any = frames, levels: int = levels, engine: str = engine
            ) -> list[Decoded]:
                decoder = decoder_for(known, {1: known}.get, engine, recursion=levels)
                return [decoder.decode(pa.array(frames, pa.binary()))]

            yield f"{name.lower()} {levels} {engine}", one, len(frames)


# --- wires ----------------------------------------------------------------------------------------------------------

RABIN = AVRO.fingerprints(parse_schema(VERSIONS[1]).parsed)["rabin"]
WIRES = {
    "confluent": lambda payload: confluent.frame(8, payload),
    "confluent-header": lambda payload: payload,
    "pravega": lambda payload: pravega.frame(1, payload),
    "pravega gzip": lambda payload: pravega.frame(2, pravega.compress(pravega.GZIP, payload)),
    "pravega snappy": lambda payload: pravega.frame(3, pravega.compress(pravega.SNAPPY, payload)),
    "rocketmq": lambda payload: b"\x10" + struct.pack(">q", 8) + payload,
    "avro-single-object": lambda payload: avro_single.frame(RABIN, payload),
    "cloudevents": lambda payload: payload,
    "cloudevents:structured": lambda payload: json.dumps({"data_base64": payload.hex()}).encode(),
    "unframed:8": lambda payload: payload,
}


def headers(random: Random) -> Any:
    """Return headers of a record that are missing, right, or nonsense."""
    names = ["__value_schema_id", "ce_dataschema", "ce_specversion", "content-type", "x", "", None]
    values = [None, b"", b"\1" + b"\0" * 16, b"\0\0\0\0\7", b"1.0", b"http://r/schemas/ids/8", random.randbytes(20)]
    if random.random() < 0.2:
        return None
    return [{"key": random.choice(names), "value": random.choice(values)} for _ in range(random.randrange(5))]


def wires(random: Random) -> Iterator[Batch]:
    """Check every wire with bytes that are not its frames, and with frames of malformed payloads."""
    codecs = ("", pravega.GZIP, pravega.SNAPPY)
    answers = {
        f"GET /v1/groups/s/encodings/{number}": encoding(VERSIONS[1], codec)
        for number, codec in enumerate(codecs, start=1)
    }
    for name, frame in WIRES.items():
        values = bodies(random) + [frame(payload) for payload in (*PAYLOADS, *bodies(random)[:60])]
        values += [
            mutate_frame(random, frame(random.choice(PAYLOADS)) + b"......")[: random.randrange(30)] for _ in range(200)
        ]
        header_column = pa.array([headers(random) for _ in values], HEADERS)

        def one(name: str = name, values: Any = values, header_column: Any = header_column) -> list[Decoded]:
            registry = Fake(*VERSIONS, answers=answers)
            reading = plan_read(registry, "s", wire=name.partition(" ")[0], engine="vm", patience=0.0)  # type: ignore[arg-type]  # as in test_wires
            return [RecordDecoder(reading).decode(pa.array(values, pa.binary()), header_column)]

        yield f"wire {name}", one, len(values)


def main(seed: int) -> None:
    """Decode all inputs, check the results, and print the figures."""
    random = Random(seed)
    counts: dict[str, list[int]] = {}
    slowest = ("", 0.0)
    for make in (avro, others, wires):
        for name, decode, count in make(random):
            begin = time.perf_counter()
            for decoded in decode():
                decoded.values.validate(full=True)
                assert len(decoded.values) == len(describe_errors(decoded)) == len(decoded.schema_ids) == count, name
                good = describe_errors(decoded).is_null().to_pylist()
                there = decoded.values.is_valid().to_pylist()
                assert not any(value and not fine for value, fine in zip(there, good, strict=True)), name
                counts[name] = [count, count - sum(good)]
            if "-v" in sys.argv:
                sys.stderr.write(f"{name} {time.perf_counter() - begin:.2f} {time.process_time():.1f}\n")
            slowest = max(slowest, (name, time.perf_counter() - begin), key=lambda each: each[1])
    peak = peak_memory() >> 20
    sys.stdout.write(json.dumps({"told": counts, "slowest": slowest, "peak MiB": peak}) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
