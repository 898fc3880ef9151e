"""Cost of pages: the server's processor time for lists, searches and pages of a subject, as HTML and as JSON.

    python -m bench.ui [subjects [versions]]

The registry holds 10,000 subjects of 10 versions each by default. Each page is requested several times, without a cache
of answers; figures are medians. The index of fields is complete before it is searched. The memory is the peak of the
process: registry, a log in memory, and both indexes.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import sys
import time
from hashlib import sha256
from statistics import median

import httpx
import structlog
from bench.report import Row, report

from stele.core.events import EventMetadata, SubjectCreated, VersionRegistered, encode_record, make_record
from stele.core.model import SubjectKey
from stele.server.dialects import build_dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.storage import open_log

ROUNDS = 9
_SUBJECT = "team7-orders-1007-value"
_PAGES = {
    "home": ("/ui", "/ui/home.json"),
    "list": ("/ui/subjects", "/ui/subjects.json"),
    "list, last page": ("/ui/subjects?page=200", "/ui/subjects.json?page=200"),
    "list by change": ("/ui/subjects?sort=-changed", "/ui/subjects.json?sort=-changed"),
    "search by name": ("/ui/subjects?q=orders-50", "/ui/subjects.json?q=orders-50"),
    "search by id": ("/ui/subjects?q=5007", "/ui/subjects.json?q=5007"),
    "search by field": ("/ui/subjects?q=amount_7&by=field", "/ui/subjects.json?q=amount_7&by=field"),
    "search by text": ("/ui/subjects?q=amount_7&by=text", "/ui/subjects.json?q=amount_7&by=text"),
    "definition": (f"/ui/subjects/{_SUBJECT}", f"/ui/subjects/{_SUBJECT}/definition.json"),
    "fields": (f"/ui/subjects/{_SUBJECT}/fields", f"/ui/subjects/{_SUBJECT}/fields.json"),
    "versions": (f"/ui/subjects/{_SUBJECT}/versions", f"/ui/subjects/{_SUBJECT}/versions.json"),
    "story line": (f"/ui/subjects/{_SUBJECT}/history", f"/ui/subjects/{_SUBJECT}/history.json"),
    "compare": (f"/ui/subjects/{_SUBJECT}/compare", f"/ui/subjects/{_SUBJECT}/compare.json"),
    "references": (f"/ui/subjects/{_SUBJECT}/references", f"/ui/subjects/{_SUBJECT}/references.json"),
}
_LONG = "many-versions"
_STORY_VERSIONS = 300


async def fill_registry(subjects: int, versions: int) -> Registry:
    """Return a registry with `subjects` subjects of `versions` versions, and one subject of 300 versions."""
    log = await open_log("memory:")
    records: list[bytes] = []
    seq = schema_id = 0
    for number in range(subjects + 1):
        is_long = number == subjects
        name = _LONG if is_long else f"team{number % 50}-orders-{number}-value"
        key = SubjectKey("", name)
        for version in range(1, (_STORY_VERSIONS if is_long else versions) + 1):
            schema_id += 1
            event = _make_version(key, number, version, schema_id)
            uid = schema_id.to_bytes(16, "big")
            created = [SubjectCreated(key, sha256(name.encode()).digest()[:16], number + 1, 1)] if version == 1 else []
            metadata = EventMetadata(uid, 1_700_000_000_000 + schema_id, "ann", "confluent")
            records.append(encode_record(make_record(metadata, (*created, event))))
        if len(records) >= 5000 or is_long:
            assert await log.append(seq, records)
            seq += len(records)
            records = []
    return await Registry.open(log)


def _make_version(key: SubjectKey, number: int, version: int, schema_id: int) -> VersionRegistered:
    names = ["id", "customer", f"amount_{number % 100}", *(f"added_{each}" for each in range(version))]
    fields = [{"name": name, "type": "long", "default": 0, "doc": f"The {name} of it."} for name in names]
    text = json.dumps({"type": "record", "name": f"Order{number}", "fields": fields}).encode()
    return VersionRegistered(
        key,
        schema_id.to_bytes(16, "big"),
        version,
        version,
        schema_id,
        sha256(text).digest(),
        "avro",
        f"Order{number}",
        text=text,
    )


async def measure_page(http: httpx.AsyncClient, path: str) -> tuple[float, int]:
    """Return the median processor time of a page in milliseconds, and its size in bytes."""
    answer = await http.get(path)
    assert answer.status_code == 200, (path, answer.text[:500])
    times = []
    for _ in range(ROUNDS):
        started = time.process_time()
        await http.get(path)
        times.append((time.process_time() - started) * 1000)
    return median(times), len(answer.content)


async def measure_pages(subjects: int, versions: int) -> list[Row]:
    """Return a row for each page, and one for each index."""
    registry = await fill_registry(subjects, versions)
    gc.freeze()
    front = build_dispatcher(registry, ServerSettings(answer_cache_bytes=0, compression_bytes=0), Metrics())
    rows: list[Row] = []
    async with httpx.AsyncClient(transport=httpx.ASGITransport(front), base_url="http://registry", timeout=600) as http:
        started = time.process_time()
        await http.get("/ui/subjects")
        rows.append({"page": "index of subjects, once", "HTML ms": round((time.process_time() - started) * 1000)})
        started, began = time.process_time(), time.perf_counter()
        while True:
            fields = (await http.get("/ui/subjects.json?q=id&by=field")).json()["fields"]
            if fields["done"] == fields["total"]:
                break
        used = time.process_time() - started
        share = used / (time.perf_counter() - began)
        rows.append({"page": f"index of fields, once, {share:.0%} of a core", "HTML ms": round(used * 1000)})
        story = f"/ui/subjects/{_LONG}/history"
        for name, (html, twin) in {**_PAGES, "story line, 300 versions": (story, f"{story}.json")}.items():
            (page_ms, size), (twin_ms, _) = await measure_page(http, html), await measure_page(http, twin)
            rows.append(
                {
                    "page": name,
                    "HTML ms": round(page_ms, 1),
                    "JSON ms": round(twin_ms, 1),
                    "HTML / JSON": round(page_ms / twin_ms, 1) if twin_ms else 0,
                    "kB": round(size / 1000, 1),
                }
            )
    await registry.close()
    return rows


def main() -> None:
    """Measure, print and keep the figures."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    words = sys.argv[1:]
    subjects = int(words[0]) if words else 10_000
    versions = int(words[1]) if len(words) > 1 else 10
    rows = asyncio.run(measure_pages(subjects, versions))
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    notes = [f"{subjects:,} subjects of {versions} versions", f"{megabytes:,.0f} MB of memory at most"]
    report("ui" if subjects == 10_000 else f"ui_{subjects}", rows, notes)


if __name__ == "__main__":
    main()
