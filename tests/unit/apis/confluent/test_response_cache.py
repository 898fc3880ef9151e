"""Prebuilt answers are those of the endpoint, or none."""

import httpx
from tests.unit.apis.confluent.conftest import Put

from stele.apis.confluent import ConfluentOptions, SchemaResponseCache, application
from stele.core.commands import DeleteMode, DeleteSubject
from stele.core.model import SubjectKey
from stele.service.registry import Registry


async def test_same_as_the_endpoint(registry: Registry, put: Put) -> None:
    """Status, headers and body, byte for byte, in every profile, the first time and from the cache."""
    for number in range(5):
        await put("a", f'{{"type":"fixed","name":"ä{number}","size":1}}')
    await registry.fresh_state()
    for options in (ConfluentOptions(), ConfluentOptions(profile="7.9")):
        hot = SchemaResponseCache(registry, options)
        transport = httpx.ASGITransport(application(registry, options))
        async with httpx.AsyncClient(transport=transport, base_url="http://registry") as client:
            for gid in [*range(1, 6)] * 2:
                slow = await client.get(f"/schemas/ids/{gid}")
                quick = hot.get(f"/schemas/ids/{gid}")
                assert quick is not None
                head, body, _ = quick
                assert (head["status"], body["body"]) == (slow.status_code, slow.content)
                assert sorted(head["headers"]) == sorted(slow.headers.raw)


async def test_only_what_is_surely_there(registry: Registry, put: Put) -> None:
    """Other paths, unknown ids, and anything while the node is behind are left to the endpoint."""
    hot = SchemaResponseCache(registry, ConfluentOptions())
    await put("a", '"int"')
    await registry.fresh_state()
    odd = (
        "",
        "/schemas/ids/",
        "/schemas/ids/0",
        "/schemas/ids/01",
        "/schemas/ids/2",
        "/schemas/ids/1/schema",
        "/config",
    )
    assert [hot.get(path) for path in (*odd, "/schemas/ids/9999999999", "/schemas/ids/١")] == [None] * 9
    assert hot.get("/schemas/ids/1") is not None
    behind = SchemaResponseCache(registry, ConfluentOptions())
    registry._behind = True
    assert behind.get("/schemas/ids/1") is None


async def test_purged_ids_are_forgotten(registry: Registry, put: Put) -> None:
    """A purge empties the cache before the next answer."""
    hot = SchemaResponseCache(registry, ConfluentOptions())
    await put("a", '"int"')
    await registry.fresh_state()
    assert hot.get("/schemas/ids/1") is not None
    for removal in (DeleteMode.SOFT, DeleteMode.HARD):
        await registry.execute(DeleteSubject(SubjectKey("", "a"), removal))
    await registry.fresh_state()
    assert hot.get("/schemas/ids/1") is None


async def test_cache_is_bounded(registry: Registry, put: Put) -> None:
    """The oldest answers go when the bytes run out, and a giant is not kept at all."""
    for number in range(20):
        await put("a", f'{{"type":"fixed","name":"N{number}","size":1}}')
    await put("a", '{"type":"fixed","name":"N","size":1,"doc":"' + "x" * 5000 + '"}')
    await registry.fresh_state()
    hot = SchemaResponseCache(registry, ConfluentOptions(), max_bytes=8000)
    for gid in range(1, 22):
        assert hot.get(f"/schemas/ids/{gid}") is not None
    assert 0 < len(hot._answers) < 20
    assert sum(len(body["body"]) for _, body, _ in hot._answers.values()) < 8000
    assert "/schemas/ids/20" in hot._answers
    assert "/schemas/ids/21" not in hot._answers
