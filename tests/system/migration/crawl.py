"""Every GET of the Confluent dialect about a registry's own contents, with its answer, except states of exporters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

import httpx


def crawl(http: httpx.Client, *, unlisted: Iterable[str] = ()) -> dict[str, Any]:
    """Return the answers by path and query.

    `unlisted` are subjects with settings and no version, which no list names.
    """
    answers: dict[str, Any] = {}

    def get(target: str) -> Any:
        response = http.get(target)
        body = response.text if target.split("?", maxsplit=1)[0].endswith("/schema") else response.json()
        answers[target] = (response.status_code, body)
        return body

    for target in _lists():
        get(target)
    contexts = get("/contexts")
    subjects = get("/subjects?deleted=true")
    for target in _of_levels(contexts, [*subjects, *unlisted]):
        get(target)
    for subject in subjects:
        _crawl_subject(get, subject)
    for context in contexts:
        _crawl_keys(get, f"/contexts/{context}/dek-registry/v1/keks")
    for name in get("/exporters"):
        for part in ("", "/config"):  # The state and progress of an exporter are not moved.
            get(f"/exporters/{name}{part}")
    for target in _of_ids(answers["/schemas?deleted=true&subjectPrefix=:*:"][1]):
        get(target)
    return answers


def _lists() -> list[str]:
    return [
        "/subjects",
        "/subjects?deletedOnly=true",
        "/subjects?subjectPrefix=",
        "/schemas",
        "/schemas?subjectPrefix=:*:",
        "/schemas?deleted=true&subjectPrefix=:*:",
        "/schemas?latestOnly=true&subjectPrefix=:*:&aliases=true",
        "/schemas?ruleType=CEL&subjectPrefix=:*:",
        "/schemas/types",
        "/associations/resources/-/-",
    ]


def _of_levels(contexts: list[str], subjects: list[str]) -> Iterator[str]:
    for kind in ("config", "mode"):
        yield f"/{kind}"
        for level in (":.__GLOBAL:", *(f":{context}:" for context in contexts), *subjects):
            for inherited in ("", "?defaultToGlobal=true"):
                yield f"/{kind}/{_quote_name(level)}{inherited}" if level else f"/{kind}{inherited}"
    for context in contexts:
        yield f"/contexts/{context}/subjects"
        yield f"/contexts/{context}/subjects?deleted=true"
        yield f"/contexts/{context}/schemas?deleted=true"


def _crawl_keys(get: Any, base: str) -> None:
    get(base)
    for name in get(f"{base}?deleted=true"):
        get(f"{base}/{name}")
        get(f"{base}/{name}?deleted=true")
        for subject in get(f"{base}/{name}/deks?deleted=true"):
            for algorithm in ("AES256_GCM", "AES256_SIV"):
                flags = f"?deleted=true&algorithm={algorithm}"
                numbers = get(f"{base}/{name}/deks/{subject}/versions{flags}")
                for number in numbers if isinstance(numbers, list) else []:
                    get(f"{base}/{name}/deks/{subject}/versions/{number}{flags}")


def _crawl_subject(get: Any, subject: str) -> None:
    base = f"/subjects/{_quote_name(subject or ':.:')}"
    get(f"{base}/versions")
    get(f"{base}/versions?deletedOnly=true")
    get(f"{base}/versions?deletedAsNegative=true")
    get(f"{base}/metadata?key=owner&value=me")
    get(f"{base}/versions/latest")
    numbers = get(f"{base}/versions?deleted=true")
    for number in numbers if isinstance(numbers, list) else []:
        for target in ("", "/schema", "/referencedby"):
            for flags in ("", "?deleted=true"):
                get(f"{base}/versions/{number}{target}{flags}")
        for style in ("resolved", "serialized", "ignore_extensions"):
            get(f"{base}/versions/{number}?deleted=true&format={style}")
        get(f"{base}/versions/{number}?deleted=true&referenceFormat=qualified&findTags=*")


def _of_ids(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        subject = _quote_name(row["subject"] or ":.:")
        context = row["subject"].split(":")[1] if row["subject"].startswith(":.") else "."
        for suffix in ("", "/schema", "/subjects", "/versions"):
            yield f"/schemas/ids/{row['id']}{suffix}?subject={subject}&deleted=true"
            yield f"/contexts/{context}/schemas/ids/{row['id']}{suffix}"
        yield f"/contexts/{context}/schemas/ids/{row['id']}?fetchMaxId=true"
        yield f"/schemas/guids/{row['guid']}"
        yield f"/schemas/guids/{row['guid']}/ids"


def _quote_name(name: str) -> str:
    return quote(name, safe="")


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return one line for each path that two registries answer differently."""
    return [
        f"{target}: {one.get(target)} against {other.get(target)}"
        for target in sorted({*one, *other})
        if one.get(target) != other.get(target)
    ]
