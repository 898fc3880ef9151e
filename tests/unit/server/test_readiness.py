"""The readiness of a node, and the metrics of its log."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

import httpx
import pytest
from tests.unit.service.test_registry import put, record

from stele.server import app
from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.settings import ServerSettings
from stele.service.registry import Registry
from stele.storage import open_log


def read_metric(client: httpx.Client, name: str) -> float:
    """Return the value of a gauge."""
    match = re.search(rf"^{name} (\S+)$", client.get("/metrics").text, re.MULTILINE)
    assert match is not None
    return float(match[1])


def test_a_node_that_has_not_read_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node whose follower hangs is not ready, and is ready again once it has caught up."""
    monkeypatch.setattr(app, "_MAX_AGE_SECONDS", 55.0)  # a busy machine may delay the follower
    begun = time.monotonic()
    server = InProcessServer(ServerSettings(store=f"sqlite:///{tmp_path}/log.db"))
    try:
        with httpx.Client(transport=InProcessTransport(server), base_url="http://stele") as client:
            assert client.get("/health/ready").json() == {"status": "ready"}
            assert 0 <= read_metric(client, "stele_log_age_seconds") <= time.monotonic() - begun
            assert read_metric(client, "stele_log_lag") == 0
            server.run(_stop_following(server.registry))
            answer = client.get("/health/ready")
            assert answer.status_code == 503
            body = answer.json()
            match = re.fullmatch(r"the log was last read to its end (\d+) seconds ago", body.pop("reason"))
            assert body == {"status": "catching up"}
            assert match is not None
            # The last check was up to a second before the follower was stopped.
            assert 60 <= int(match[1]) <= 60 + round(time.monotonic() - begun)
            assert read_metric(client, "stele_log_age_seconds") >= 60
            client.post("/subjects/a/versions", json={"schema": '"string"'})
            assert client.get("/health/ready").status_code == 200
    finally:
        server.stop()


async def _stop_following(registry: Registry) -> None:
    assert registry._follower is not None
    registry._follower.cancel()
    registry.caught_up_at -= 60


async def test_lag_is_what_others_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The follower records how many records it lacked when it checked the log."""
    url = f"sqlite:///{tmp_path}/log.db"
    registry = await Registry.open(await open_log(url))
    lags: list[int] = []
    catch_up = registry._catch_up

    async def note() -> None:
        lags.append(registry.lag_records)
        await catch_up()

    monkeypatch.setattr(registry, "_catch_up", note)
    writer = await Registry.open(await open_log(url))
    async with asyncio.timeout(120):
        # Repeat if a record was appended just after the follower had read the head.
        while not max(lags, default=0):
            await put(writer, record("a", *(f"f{number}" for number in range(writer.state.seq))))
            while registry.state.seq < writer.state.seq:  # noqa: ASYNC110 - the follower looks once in a while
                await asyncio.sleep(0.01)
    assert max(lags) > 0
    await writer.close()
    await registry.close()
