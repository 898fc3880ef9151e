"""Time to fill a registry: by an import, by an archive, and by single registrations over HTTP.

    python -m bench.import_registry [--schemas 10000] [--singly 1000]

Four servers, each a process with its own SQLite store, get the same Avro schemas in one run, five versions per subject:
one by one from one client with `POST /subjects/…/versions` (only `--singly` of them, because it is slow); as an import
of all of them over HTTP, with its checks; as only those requests of the import that carry versions; and as an archive
that is restored next to the server. At the end, each server reports how many versions it has.

The processor seconds are those of the server. On a busy machine they are more reliable than the wall clock.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.report import Row, report
from bench.startup import tree_seconds
from tests.support.server_process import serving

from stele.client import SchemaRegistryClient
from stele.client.request import Request, build_path, encode_body, ignore_body
from stele.migrate import archive, model, registry_reader, registry_writer
from stele.migrate.model import Dump
from stele.storage import open_log

VERSIONS = 5


def dump_of(count: int) -> Dump:
    """Return a dump with that many schemas."""
    rows = []
    for place in range(count):
        fields = [{"name": f"field_{n}", "type": "long", "default": 0} for n in range(place % VERSIONS + 1)]
        text = json.dumps({"type": "record", "name": f"Event{place // VERSIONS}", "fields": fields})
        number = place % VERSIONS + 1
        rows.append(
            model.normalize_version(f"subject-{place // VERSIONS}-value", number, place + 1, text, ts=1_700_000_000_000)
        )
    return Dump(tuple(rows))


def one_by_one(dump: Dump, client: SchemaRegistryClient) -> None:
    """Register every schema, one request each."""
    for row in dump.versions:
        body = encode_body({"schema": row.schema})
        client.send(Request("POST", build_path("subjects", row.subject, "versions"), ignore_body, body=body))


def import_schemas(dump: Dump, client: SchemaRegistryClient) -> None:
    """Import as `stele import` does, with the verification at its end."""
    assert registry_writer.apply_import(dump, client) == []
    assert registry_writer.plan_import(dump, client).differences == ()


def send_in_bulk(dump: Dump, client: SchemaRegistryClient) -> None:
    """Send the versions as an import does, 500 a request, into a registry in IMPORT mode."""
    client.set_mode("IMPORT", force=True)
    writer = registry_writer.VersionWriter(client)
    for start in range(0, len(dump.versions), registry_writer.CHUNK):
        assert writer.write_versions(list(dump.versions[start : start + registry_writer.CHUNK])) == []


def _time_import(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _present(client: SchemaRegistryClient) -> int:
    client.forget()
    return len(registry_reader.read_registry(client).versions)


async def _archive(store: str, file: Path) -> None:
    log = await open_log(store)
    await archive.write_archive(log, file)
    await log.close()


async def _restore(file: Path, store: str) -> None:
    log = await open_log(store)
    with archive.open_archive(file) as source:
        await source.restore(log)
        assert (await source.compare(log)).missing == 0
    await log.close()


def run(count: int, singly: int, folder: Path) -> list[Row]:
    """Return the rows of the report."""
    whole, some = dump_of(count), dump_of(singly)
    rows: list[tuple[str, int, float, float]] = []
    ways = (
        ("one by one over HTTP", some, one_by_one),
        ("import over HTTP", whole, import_schemas),
        ("its requests with versions", whole, send_in_bulk),
    )
    for name, dump, work in ways:
        store = f"sqlite:///{folder}/{work.__name__}.db"
        with serving("--store", store, folder=folder) as server, SchemaRegistryClient(server.url) as client:
            used = tree_seconds(server.process.pid)
            seconds = _time_import(lambda dump=dump, work=work, client=client: work(dump, client))  # type: ignore[misc]  # bound now
            used = tree_seconds(server.process.pid) - used
            assert _present(client) == len(dump.versions)
        rows.append((name, len(dump.versions), seconds, used))
    filled, empty, file = f"sqlite:///{folder}/import_schemas.db", f"sqlite:///{folder}/restored.db", folder / "a.zst"
    rows.append(("export of an archive", count, _time_import(lambda: asyncio.run(_archive(filled, file))), 0))
    with serving("--store", empty, folder=folder) as server, SchemaRegistryClient(server.url) as client:
        rows.append(("restoring that archive", count, _time_import(lambda: asyncio.run(_restore(file, empty))), 0))
        assert _present(client) == count
    base = rows[0][1] / rows[0][2]
    return [
        {
            "way": name,
            "schemas": schemas,
            "seconds": round(seconds, 2),
            "schemas/s": round(schemas / seconds),
            "ratio": round(schemas / seconds / base, 1),
            "schemas per CPU-second of the server": round(schemas / used) if used else "",
        }
        for name, schemas, seconds, used in rows
    ]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", type=int, default=10_000)
    parser.add_argument("--singly", type=int, default=1_000, help="how many are registered one by one")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = run(arguments.schemas, arguments.singly, Path(folder))
    notes = ["SQLite FULL; each way with a store and a server of its own; what arrived was counted at the server"]
    report("import_registry", rows, notes)


if __name__ == "__main__":
    main()
