"""A registry with hostile names and texts: HTML markup, bidirectional controls, control characters, extreme length."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from stele.core.audit_chain import AuditEntry
from stele.service.audit_file import AuditFile
from stele.spark.pipeline.journal import BatchEntry, BatchJournal, BatchReport, DeadLetterSample
from stele.spark.pipeline.schema_evolution import ColumnChange, TableChange

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
CONTROLS = "\x00\x07\x1b[31m\x7f\x9b"
NAMES = (
    f"{IMAGE}{SCRIPT}",
    "javascript:alert(1)",
    "\u202egnisrever\u202c \u200fright",
    "{{ 7*7 }}{% raw %}",
    "a/b?c#d&e;f=.json",
    f"{IMAGE}\u202e" + "n" * 9_960,
)
MARKUP = ("<script>", "<img", "onerror=alert(1)>", 'href="javascript:')
PIPELINE = f"{IMAGE}\u202e{'p' * 150}"
NAMESPACE = "<b>team\u202e"
EXPORTER = "\u05d0" * 256
REPLICATION = "r" * 100


def make_schema(number: int) -> dict[str, object]:
    """Return a record schema whose names, docs and defaults are hostile."""
    doc = f"{SCRIPT}\u202e{CONTROLS}" + "d" * 10_000
    long = {"name": "f" * 10_000, "type": "int", "default": 0}
    field = {"name": f"f{number}", "type": "string", "doc": doc, "default": SCRIPT + CONTROLS}
    return {"type": "record", "name": "R", "doc": SCRIPT, "aliases": [f"A{number}"], "fields": [field, long]}


def write_files(folder: Path) -> dict[str, str]:
    """Write a pipeline journal and an audit file with hostile texts, and return the settings that name them."""
    journal = BatchJournal(str(folder / "pipelines" / PIPELINE.replace("/", "-")))
    entry = BatchEntry(0, ())
    journal.save_entry(entry)
    text = f"{SCRIPT}{CONTROLS}\u202e" + "r" * 2_000
    change = TableChange(text, ColumnChange("add", (text,), text))
    tables = {text: 1}
    reasons = {text: 2}
    versions = {NAMES[0]: 1, NAMES[5]: 1}
    sample = DeadLetterSample(text, text, base64.b64encode(SCRIPT.encode()).decode(), 9, text)
    codes = {text: 2}
    report = BatchReport(
        0,
        1.0,
        0,
        2,
        tables=tables,
        reasons=reasons,
        codes=codes,
        versions=versions,
        changes=(change,),
        samples=(sample,),
    )
    journal.finish_batch(entry, report)
    journal.save_lag({text: 1, f"{text}2": 2})
    details = {"method": "GET", "path": f"/{text}", "status": 403, "operation": "read", "resource": text}
    file = AuditFile(folder / "audit.jsonl")
    file.append([AuditEntry(1, "refused", actor=text, address=text, details=details)], 1)
    file.close()
    return {
        "ui_pipelines": str(folder / "pipelines"),
        "audit_file": str(folder / "audit.jsonl"),
        "ui_environment": SCRIPT,
        "public_url": "https://registry.example.org",
    }


def fill_registry(client: httpx.Client) -> None:
    """Register two versions under every hostile name, and create other documents that refer to these names."""
    for name in NAMES:
        path = f"/subjects/{quote(name, safe='')}/versions"
        _post(client, path, {"schema": json.dumps(make_schema(1)), "metadata": {"properties": {SCRIPT: SCRIPT}}})
        _post(client, path, {"schema": json.dumps(make_schema(2))})
    _post(client, f"/contexts/.{quote(NAMESPACE, safe='')}/subjects/s/versions", {"schema": json.dumps(make_schema(1))})
    usages = [{"subject": name, "version": 1, "schema_id": 1, "records": 1} for name in NAMES]
    census = {"counted_at": 1, "records": len(usages), "seen": usages}
    place = quote(f"topic {IMAGE}{'t' * 900}", safe="")
    answer = client.put(f"/api/usage/{place}", json=census)
    assert answer.is_success, answer.text[:500]
    subscription = {"sink": f"https://shop.example.org/{quote(SCRIPT)}", "protocol": "HTTP"}
    _post(client, "/subscriptions", subscription)
    texts = {"subjects": [f"{IMAGE}*", *NAMES], "subjectRenameFormat": f"{SCRIPT}${{subject}}"}
    _post(client, "/exporters", {"name": EXPORTER, "config": {f"{IMAGE}{'c' * 900}": SCRIPT}, **texts})
    registry = {"url": f"http://127.0.0.1:1/{SCRIPT}{'u' * 2_000}", "user": SCRIPT, "authority": f"{IMAGE}\u202e"}
    names = {"subjects": NAMES[:-1], "rename": f"{SCRIPT}${{subject}}", "namespace": f"{NAMESPACE}${{namespace}}"}
    sent = {"name": REPLICATION, "direction": "pull", "registry": registry, "state": "paused", **names}
    _post(client, "/api/replications", sent)


def _post(client: httpx.Client, path: str, body: dict[str, Any]) -> None:
    answer = client.post(path, json=body)
    assert answer.is_success, answer.text[:500]


def find_addresses(client: httpx.Client, template: str, names: tuple[str, ...] = NAMES) -> Iterator[str]:
    """Yield the addresses of a page for each of these names, in the path or in the query."""
    if template.startswith("/ui/events/{"):
        (row,) = client.get("/ui/events.json").json()["subscriptions"]
        yield template.replace("{subscription}", row["id"])
    elif "{exporter}" in template:
        yield template.replace("{exporter}", quote(EXPORTER, safe=""))
    elif "{replication}" in template:
        yield template.replace("{replication}", REPLICATION)
    elif "{pipeline}" in template:
        yield template.replace("{pipeline}", quote(PIPELINE.replace("/", "-"), safe=""))
    elif template.startswith("/ui/levels/"):
        yield template.replace("{name}", quote(f":.{NAMESPACE}:", safe=""))
    elif "{name}" in template:
        yield from (template.replace("{name}", quote(name, safe="")) for name in names)
    else:
        assert "{" not in template, f"no hostile value is known for {template}"
        yield template
        query = "&".join(f"{key}={quote(NAMES[0], safe='')}" for key in ("q", "subject", "who", "ns", "text", "data"))
        yield f"{template}?{query}"
