"""A check against the latest version while another node deletes that version."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from stele.apis.confluent import application
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog, MemoryStore


def _body(kind: str) -> dict[str, str]:
    return {"schema": json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]})}


@pytest.mark.parametrize(
    ("versions", "is_compatible"), [(["int", "long"], True), (["long"], True), (["long", "double"], False)]
)
async def test_the_latest_is_the_one_that_is_left(
    versions: list[str], is_compatible: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check continues with the version that is the latest then, and does not answer that there is no `latest`."""
    store = MemoryStore()
    nodes = [await Registry.open(MemoryLog(store)) for _ in range(2)]
    mine, other = (
        httpx.AsyncClient(transport=httpx.ASGITransport(application(node)), base_url="http://stele.test")
        for node in nodes
    )
    for kind in versions:
        assert (await other.post("/subjects/s/versions", json=_body(kind))).status_code == 200
    compare = nodes[0].find_incompatibilities
    numbers = [len(versions)]

    async def compare_after_deletion(*arguments: Any, **options: Any) -> Any:
        if numbers:
            assert (await other.delete(f"/subjects/s/versions/{numbers.pop()}")).status_code == 200
        return await compare(*arguments, **options)

    monkeypatch.setattr(nodes[0], "find_incompatibilities", compare_after_deletion)
    answer = await mine.post("/compatibility/subjects/s/versions/latest", json=_body("int"))
    assert (answer.status_code, answer.json()) == (200, {"is_compatible": is_compatible})
    for node in nodes:
        await node.close()
