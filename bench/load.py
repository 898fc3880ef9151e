"""Time in which a node loads 100,000 schemas, and memory for each of them.

    python -m bench.load [--schemas 100000] [--rounds 3] [--folder DIR]

The schemas are Avro-like records of about 1 KiB whose fields grow from version to version, in two shapes: 10,000
subjects of ten versions, and one version per subject. Each figure comes from a process of its own that opens the SQLite
log, loads it as a node does and measures its resident memory before and after. It loads by replaying the log, and from
a snapshot with an empty tail; both also without verifying checksums, which shows what these cost. A figure is the
median of the rounds. On a busy machine processor seconds are more reliable than the wall clock.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import hashlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from bench.report import Row, report

from stele.core.commands import CompatibilityCheck, RegisterSchema
from stele.core.decide import decide
from stele.core.events import EventMetadata, LogRecord, decode_record, encode_record
from stele.core.fold import apply_record
from stele.core.model import SchemaDocument, SubjectKey
from stele.core.ports import Log
from stele.core.snapshot import dump_state, load_state
from stele.core.state import State
from stele.storage import open_log
from stele.storage.record_chain import read_link, read_record

PAGE = 1000
LOAD_SECONDS = 1.5
BYTES_EACH = 900

_VOCABULARY = """
account address amount balance batch billing campaign carrier channel city code comment country created currency
customer delivery device discount due email event expires first flag gross item language last latitude level limit
locale longitude margin merchant method model name note number order owner page parent payment phone plan price
priority product profile quantity rate reason reference region score sequence session shipment sku source state
status store street tax team tenant ticket total trace type unit updated user value vendor warehouse weight zone
"""
_WORDS = _VOCABULARY.split()
_TYPES = ("string", "long", "int", "double", "boolean", "bytes", {"type": "long", "logicalType": "timestamp-millis"})


class Shape(NamedTuple):
    """Number of subjects, and of versions of each."""

    subjects: int
    versions: int


class Way(NamedTuple):
    """How to load: from a snapshot or the log, with checksums or without."""

    snapshot: bool
    checked: bool


WAYS = [Way(snapshot, checked) for snapshot in (False, True) for checked in (True, False)]


# --- what is loaded -------------------------------------------------------------------------------------------------


def texts(subject: int, versions: int) -> Iterator[tuple[str, bytes]]:
    """Yield (full name, text) of the versions of one subject. Each version adds one optional field."""
    chance = random.Random(subject)
    name = f"{chance.choice(_WORDS).title()}{chance.choice(_WORDS).title()}{subject}"
    namespace = f"com.example.{chance.choice(_WORDS)}.{chance.choice(_WORDS)}"
    fields = [_field(chance, number) for number in range(chance.randint(3, 5))]
    for _ in range(versions):
        record = {"type": "record", "name": name, "namespace": namespace, "doc": _doc(chance, name), "fields": fields}
        yield f"{namespace}.{name}", json.dumps(record, separators=(",", ":")).encode()
        fields = [*fields, _field(chance, len(fields), optional=True)]


def _field(chance: random.Random, number: int, *, optional: bool = False) -> dict[str, object]:
    name = f"{chance.choice(_WORDS)}_{chance.choice(_WORDS)}_{number}"
    kind = chance.choice(_TYPES)
    if optional or chance.random() < 0.3:
        return {"name": name, "type": ["null", kind], "default": None, "doc": _doc(chance, name)}
    return {"name": name, "type": kind} if chance.random() < 0.5 else {"name": name, "type": kind, "doc": name}


def _doc(chance: random.Random, name: str) -> str:
    return f"The {' '.join(chance.choices(_WORDS, k=4))} of {name}"


def records(shape: Shape) -> Iterator[LogRecord]:
    """Yield the log of a registry in which all versions were registered, version by version over all subjects."""
    state = State()
    versions = [list(texts(subject, shape.versions)) for subject in range(shape.subjects)]
    for number in range(shape.versions):
        for subject, rows in enumerate(versions):
            name, text = rows[number]
            key = SubjectKey("", f"team-{subject % 97}.{name.rpartition('.')[2].lower()}-value")
            command = RegisterSchema(key, _document(text, name), check=CompatibilityCheck.SKIP)
            stamp = EventMetadata(
                random.Random(state.seq).randbytes(16), 1_700_000_000_000 + state.seq, "ci", "confluent"
            )
            record = LogRecord(stamp, decide(state, command, stamp).events)
            apply_record(state, state.seq + 1, record)
            yield record


def _document(text: bytes, name: str) -> SchemaDocument:
    sha = hashlib.sha256(text).digest()
    digests = {"rabin": sha[:8], "md5": sha[:16], "sha256": sha[::-1], "normalized": hashlib.sha256(sha).digest()}
    return SchemaDocument(text, sha, "avro", name, digests)


async def fill(url: str, shape: Shape) -> int:
    """Write the log and a snapshot of its end. Returns the mean length of a text in bytes."""
    log, state, batch, size = await open_log(url), State(), [], 0
    for record in records(shape):
        apply_record(state, state.seq + 1, record)
        state.pack_texts()
        batch.append(encode_record(record))
        size += sum(len(getattr(event, "text", None) or b"") for event in record.events)
        if len(batch) == PAGE:
            await log.append(state.seq - len(batch), batch)
            batch = []
    await log.append(state.seq - len(batch), batch)
    await log.save_snapshot(state.seq, dump_state(state))
    await log.close()
    return size // state.seq


# --- loading, in a process of its own -------------------------------------------------------------------------------


class Loaded(NamedTuple):
    """Figures of one load: wall-clock and processor seconds, and bytes of resident memory per schema."""

    seconds: float
    processor: float
    bytes_each: float


def ignore_checksums() -> None:
    """Make logs of this process accept records and snapshots without verification."""
    patch.multiple(
        "stele.storage.chained_log",
        verify_record=lambda _before, _seq, stored: (read_link(stored), read_record(stored)),
        _snapshot_digest=lambda _seq, _link, _data: _AnyDigest(),
    ).start()


class _AnyDigest:
    """Equal to the digest of every snapshot."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


async def load(url: str, *, snapshot: bool) -> Loaded:
    """Load the log as a node does: without cyclic garbage collection, then with all objects frozen.

    One page is read and dropped before memory is measured, so that memory of the store's driver does not count.
    """
    log = await open_log(url)
    await log.tail(0, PAGE)
    before, started, used = resident(), time.perf_counter(), time.process_time()
    gc.disable()
    state = await _load(log, snapshot=snapshot)
    gc.enable()
    gc.freeze()
    seconds, processor = time.perf_counter() - started, time.process_time() - used
    await asyncio.sleep(0)  # the event loop holds the snapshot until its next turn
    loaded = Loaded(seconds, processor, (resident() - before) / len(state.contents))
    await log.close()
    return loaded


async def _load(log: Log, *, snapshot: bool) -> State:
    stored = await log.load_snapshot() if snapshot else None
    state = (load_state(stored[1]) if stored is not None else None) or State()
    del stored
    while entries := await log.tail(state.seq, PAGE):
        for entry in entries:
            apply_record(state, entry.seq, decode_record(entry.record))
        state.pack_texts()
    return state


def resident() -> int:
    """Return the resident memory of this process in bytes, after the allocator has released free memory."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def load_in_child(url: str, way: Way) -> Loaded:
    """Run `load` in a new process."""
    flags = [*(["--snapshot"] if way.snapshot else []), *([] if way.checked else ["--unchecked"])]
    arguments = [sys.executable, "-m", "bench.load", "--load", url, *flags]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    return Loaded(*json.loads(done.stdout))


# --- the bench ------------------------------------------------------------------------------------------------------


def measure(shape: Shape, folder: Path, rounds: int) -> Iterator[Row]:
    """Yield one row for each way to load."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        url = f"sqlite:///{place}/log.db"
        size = asyncio.run(fill(url, shape))
        loads: dict[Way, list[Loaded]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way, runs in loads.items():
                runs.append(load_in_child(url, way))
    used = {way: statistics.median(loaded.processor for loaded in runs) for way, runs in loads.items()}
    for way, runs in loads.items():
        seconds, processor, each = (statistics.median(figures) for figures in zip(*runs, strict=True))
        yield {
            "subjects": shape.subjects,
            "versions": shape.versions,
            "from": "snapshot" if way.snapshot else "log",
            "checksums": "on" if way.checked else "off",
            "seconds": round(seconds, 3),
            "processor s": round(processor, 3),
            "of replay": round(processor / used[Way(snapshot=False, checked=True)], 2),
            "of unchecked": round(processor / used[way._replace(checked=False)], 2),
            "text B": size,
            "memory B each": round(each),
            "memory / text": round(each / size, 2),
        }


def main() -> None:
    """Measure both shapes, or (in a child) one load."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--load", help=argparse.SUPPRESS)
    parser.add_argument("--snapshot", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--unchecked", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.unchecked:
        ignore_checksums()
    if options.load:
        print(json.dumps(asyncio.run(load(options.load, snapshot=options.snapshot))))
        return
    shapes = [Shape(options.schemas // 10, 10), Shape(options.schemas, 1)]
    rows = [row for shape in shapes for row in measure(shape, options.folder, options.rounds)]
    bars = f"Bars for 10,000 × 10: replay within {LOAD_SECONDS} s, at most {BYTES_EACH} bytes of memory each."
    report(
        "load",
        rows,
        [
            bars,
            "Memory is all that stays resident after malloc_trim: fragmentation included, caches of the driver not.",
        ],
    )


if __name__ == "__main__":
    main()
