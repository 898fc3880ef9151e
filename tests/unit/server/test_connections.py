"""Connections that wait too long are closed; pauses of the server itself do not count."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import pytest

from stele.server import connections, run
from stele.server.connection_limits import ConnectionLimits
from stele.server.connections import ConnectionTable
from stele.server.settings import ServerSettings


class WaitingConnection:
    """Simulates a connection that waits for its client, and records when it was closed."""

    def __init__(self) -> None:
        self.closed_at = 0.0
        self.is_closed = asyncio.Event()

    def give_up(self) -> None:
        """Record the time."""
        self.closed_at = asyncio.get_running_loop().time()
        self.is_closed.set()


@pytest.mark.parametrize("pause", [0.0, 0.8])
async def test_a_held_up_loop_is_no_fault_of_a_client(pause: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a pause of the process, clients get that time in addition."""
    monkeypatch.setattr(connections, "_SWEEP_SECONDS", 0.05)
    table, waiting = ConnectionTable(ConnectionLimits(), lambda reason: None), WaitingConnection()
    table.begin_wait(cast("Any", waiting), (until := asyncio.get_running_loop().time() + 0.3))
    sweeping = asyncio.create_task(table.close_overdue())
    await asyncio.sleep(0)
    time.sleep(pause)  # noqa: ASYNC251 - holds the loop up on purpose
    async with asyncio.timeout(60):
        await waiting.is_closed.wait()
    sweeping.cancel()
    assert waiting.closed_at >= until + max(pause - 0.1, 0)


def test_no_connection_becomes_a_web_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed web socket library does not take over connections, which would bypass their limits."""
    monkeypatch.setattr("uvicorn.protocols.websockets.auto.AutoWebSocketsProtocol", object)
    monkeypatch.setattr(run, "make_worker_app", lambda: None)
    config = run._make_config(ServerSettings())
    config.load()
    assert config.ws_protocol_class is None
