"""Every endpoint that only reads, while the store is unavailable: it answers from memory, or 503 with `Retry-After`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.support.access_samples import SAMPLES
from tests.support.access_world import Endpoint, World, list_endpoints

from stele.core.access import Operation
from stele.core.ports import Log
from stele.errors import NewerLog, StoreError, StoreTimeout
from stele.server.dialects import MOUNTS, DialectEntry
from stele.service.registry import Registry
from stele.storage import open_log
from stele.ui.work import journal_feed

pytestmark = pytest.mark.asyncio(loop_scope="module")

_WHY = "The store db.example:5432/registry cannot be reached: connection refused"


class Outage:
    """A log whose store can become unavailable, and that must be read before each request."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.failure: StoreError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    @property
    def notices_at_once(self) -> bool:
        """False: other writers are only noticed by reading the store."""
        return False

    def has_changed(self) -> bool:
        """Return True while the store is unavailable, else whether the log changed."""
        return self.failure is not None or self._log.has_changed()

    async def head(self) -> int:
        """Return the newest sequence number. Raises the failure while the store is unavailable."""
        self._require_store()
        return await self._log.head()

    async def tail(self, after: int, limit: int) -> Any:
        """Return records. Raises the failure while the store is unavailable."""
        self._require_store()
        return await self._log.tail(after, limit)

    async def append(self, expected: int, records: Any) -> bool:
        """Append records. Raises the failure while the store is unavailable."""
        self._require_store()
        return await self._log.append(expected, records)

    def _require_store(self) -> None:
        if self.failure is not None:
            raise self.failure


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def outage() -> AsyncIterator[Outage]:
    """The log of the sample registry."""
    yield Outage(await open_log("memory:"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(outage: Outage) -> AsyncIterator[World]:
    """A registry with data for every endpoint; streams of its journal are short."""
    registry = await Registry.open(outage)
    world = World(registry)
    await world.create()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_feed, "_SHARE_OF_LIMIT", 0.005)
        yield world
    await registry.close()


def _is_own_shape(endpoint: Endpoint, answer: httpx.Response) -> bool:
    if endpoint.dialect == "ui" and not endpoint.template.endswith(".json"):
        return answer.headers["content-type"].startswith("text/html") and 'role="alert"' in answer.text
    if endpoint.dialect in {"pravega", "schema-repo"}:
        return answer.headers["content-type"].startswith("text/plain") and _WHY in answer.text
    body = json.loads(answer.text)
    match endpoint.dialect:
        case "confluent":
            return bool(body == {"error_code": 503, "message": _WHY})
        case "native" | "ui":
            return bool(body["error"]["message"] == _WHY)
        case "cncf" if endpoint.template.startswith("/$"):
            return bool(body["error"] == {"code": "ServerBusy", "message": _WHY})
        case "cncf":
            return bool(body["status"] == 503 and body["detail"] == _WHY)
        case "xregistry":
            return bool(str(body["type"]).endswith("#server_busy") and body["detail"] == _WHY)
        case "rocketmq":
            return bool(body == {"status": 50301, "message": _WHY})
        case _:
            return bool(body == {"errorCode": 50301, "errorMessage": _WHY})


@pytest.mark.parametrize(
    "failure", [StoreError(_WHY), StoreTimeout(_WHY), NewerLog(_WHY)], ids=["away", "slow", "newer"]
)
@pytest.mark.parametrize("dialect", MOUNTS, ids=lambda dialect: dialect.name)
async def test_reads_while_the_store_is_away(
    world: World, outage: Outage, dialect: DialectEntry, failure: StoreError
) -> None:
    """No read answers 500: the response comes from memory, or is 503 in the dialect's own shape."""
    affected_reads, wrong = 0, []
    for endpoint in list_endpoints(world.registry, dialect):
        sample = SAMPLES[dialect.name][endpoint.handler]
        assert endpoint.wanted is not None
        if endpoint.method != "GET" and endpoint.wanted.operation not in {Operation.READ, Operation.LIST}:
            continue
        before = await world.send(endpoint, sample, "admin")
        outage.failure = failure
        try:
            answer = await world.send(endpoint, sample, "admin")
        finally:
            outage.failure = None
        if answer.status_code == before.status_code:
            continue
        affected_reads += 1
        if answer.status_code != 503 or not answer.headers.get("retry-after") or not _is_own_shape(endpoint, answer):
            wrong.append(f"{endpoint}: {answer.status_code} {answer.text[:300]}")
    assert not wrong, "\n".join(wrong)
    assert affected_reads


@pytest.mark.parametrize("dialect", MOUNTS, ids=lambda dialect: dialect.name)
async def test_changes_on_top_of_a_record_of_a_newer_release(
    world: World, outage: Outage, dialect: DialectEntry
) -> None:
    """With a log of a newer release, changes answer 503 in the dialect's shape, and nothing is written."""
    refused, wrong, head = 0, [], await outage.head()
    for endpoint in list_endpoints(world.registry, dialect):
        assert endpoint.wanted is not None
        if endpoint.method == "GET" or endpoint.wanted.operation in {Operation.READ, Operation.LIST}:
            continue
        outage.failure = NewerLog(_WHY)
        try:
            answer = await world.send(endpoint, SAMPLES[dialect.name][endpoint.handler], "admin")
        finally:
            outage.failure = None
        refused += answer.status_code == 503 and _is_own_shape(endpoint, answer)
        if answer.status_code >= 500 and not (answer.status_code == 503 and _is_own_shape(endpoint, answer)):
            wrong.append(f"{endpoint}: {answer.status_code} {answer.text[:300]}")
    assert not wrong, "\n".join(wrong)
    assert refused
    assert await outage.head() == head
