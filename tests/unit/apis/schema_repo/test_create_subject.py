"""Creating a subject while another client purges it."""

from __future__ import annotations

from tests.conformance.apis.in_process import client_of
from tests.support.overtaken_log import OvertakenLog

from stele.apis import confluent
from stele.apis.schema_repo import application
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog, MemoryStore


async def test_a_purge_right_before_a_revival_makes_it_a_creation() -> None:
    """A deleted subject that is purged right before it is shown again is created again."""
    store = MemoryStore()
    log = OvertakenLog(store)
    first, second = await Registry.open(log), await Registry.open(MemoryLog(store))
    async with client_of(application(first)) as client, client_of(confluent.application(second)) as other:
        for subject in ("s", "other"):
            assert (await other.post(f"/subjects/{subject}/versions", json={"schema": '"int"'})).status_code == 200
        assert (await client.put("/schema-repo/third")).status_code == 200
        assert (await other.delete("/subjects/s")).status_code == 200
        await first.fresh_state()

        async def purge() -> None:
            assert (await other.delete("/subjects/s?permanent=true")).status_code == 200

        log.before = purge
        created = await client.put("/schema-repo/s")
        assert (created.status_code, created.text) == (200, "s")
        assert log.before is None
        assert (await client.get("/schema-repo/s/all")).status_code == 200
    await first.close()
    await second.close()
