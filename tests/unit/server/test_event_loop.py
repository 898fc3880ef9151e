"""Long work is done in slices, or outside of the event loop, so that other requests are answered meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import msgspec
import pytest
import pytest_asyncio

from stele.apis.confluent.operations import schemas
from stele.apis.http import requests
from stele.errors import TooLarge
from stele.server.app import Server
from stele.server.settings import ServerSettings
from stele.service import time_slices

SUBJECTS = 150
VERSIONS = 150
LISTS = {
    "/subjects": SUBJECTS,
    "/schemas?latestOnly=true": SUBJECTS,
    "/schemas?offset=200": SUBJECTS,
    "/schemas/guids/00000000-0000-0000-0000-000000000000": VERSIONS,
    "/v1/groups?limit=1000": SUBJECTS,
    "/v1/groups/s0/schemas": VERSIONS,
    "/v1/groups/s0/schemas/versions": VERSIONS,
    "/v1/groups/s0/history": VERSIONS,
    "/schemagroups/default/schemas": SUBJECTS,
    "/$schemaGroups/default/schemas": SUBJECTS,
    "/avro1124/schemas": SUBJECTS,
    "/avro1124/schemas/s0": VERSIONS,
    "/schema-repo": SUBJECTS,
    "/schema-repo-browser": SUBJECTS,
    "/schema-repo/s0/all": VERSIONS,
    "/schema-registry/v1/cluster/c/tenant/default/subjects": SUBJECTS,
    "/schema-registry/v1/cluster/c/tenant/default/subject/s0/schema/versions": VERSIONS,
    "/schema-registry/v1/tenant/default/schemas": SUBJECTS,
    "/schema-registry/v1/tenant/default/schema/s0": VERSIONS,
    "/openschema/subjects": SUBJECTS,
}
"""Lists of every dialect, and the number of subjects or versions that each reads."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server in this event loop, with many subjects, and many versions of one of them."""
    server = Server(ServerSettings(store="memory:"))
    await server.start()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(server), base_url="http://stele.test") as client:
        names = [f"s{number}" for number in range(SUBJECTS)]
        await client.put("/config", json={"compatibility": "NONE"})
        for number, subject in enumerate(names + ["s0"] * VERSIONS):
            schema = json.dumps({"type": "fixed", "name": f"F{number}", "size": 1})
            answer = await client.post(f"/subjects/{subject}/versions", json={"schema": schema})
            assert answer.status_code == 200, answer.text
        yield client
    await server.stop()


@contextmanager
def count_turns() -> Iterator[list[int]]:
    """Count the iterations of the event loop while the block runs."""
    loop, turns = asyncio.get_running_loop(), [0]

    def count_turn() -> None:
        turns[0] += 1
        ticking[0] = loop.call_soon(count_turn)

    ticking = [loop.call_soon(count_turn)]
    try:
        yield turns
    finally:
        ticking[0].cancel()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("path", "items"), LISTS.items())
async def test_long_lists_are_made_in_slices(
    path: str, items: int, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other tasks run after each slice: with slices of zero length, at every item of every list."""
    monkeypatch.setattr(time_slices, "_SLICE_SECONDS", 0)
    with count_turns() as turns:
        answer = await client.get(path)
    assert answer.status_code == (404 if "guids" in path else 200), answer.text
    assert turns[0] >= items


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("path", ["/subjects/s0", "/subjects/s0/versions"])
async def test_a_subject_of_many_versions_is_searched_in_slices(
    path: str, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searching many versions for an equal schema is done in slices, so that other tasks run meanwhile."""
    monkeypatch.setattr(time_slices, "_SLICE_SECONDS", 0)
    monkeypatch.setattr(schemas, "_FEW_VERSIONS", VERSIONS - 1)  # fewer are searched in one slice
    with count_turns() as turns:
        answer = await client.post(path, json={"schema": '{"type":"fixed","name":"New","size":2}'})
    assert answer.status_code == (200 if "versions" in path else 404), answer.text
    assert turns[0] >= VERSIONS


async def test_several_long_lists_take_turns() -> None:
    """Of ten lists only one advances in each iteration of the loop, so that ten do not delay others more than one."""
    slices, loop, steps, most = time_slices.TimeSlices(), asyncio.get_running_loop(), 0, 0

    async def go_through_list() -> None:
        nonlocal steps
        async for _ in slices.iterate(range(50)):
            steps += 1

    def look() -> None:
        nonlocal steps, most
        most, steps = max(most, steps), 0
        if not done.done():
            loop.call_soon(look)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time_slices, "_SLICE_SECONDS", 0)
        done = asyncio.gather(*(go_through_list() for _ in range(10)))
        loop.call_soon(look)
        await done
    assert most <= 2  # The turn that was given, and the start of a list.


async def test_a_list_that_is_given_up_holds_up_nobody() -> None:
    """A list that ends early, or is cancelled while it waits, passes its turn to the next one."""
    slices = time_slices.TimeSlices()

    async def go_through_list(most: int) -> int:
        number = 0
        async for number in slices.iterate(range(100)):
            if number == most:
                break
        return number

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time_slices, "_SLICE_SECONDS", 0)
        tasks = [asyncio.create_task(go_through_list(most)) for most in (5, 100, 100)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        assert await asyncio.wait_for(tasks[0], 60) == 5
        assert await asyncio.wait_for(tasks[2], 60) == 99


@pytest.mark.asyncio(loop_scope="module")
async def test_long_bodies_are_decoded_off_the_loop(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long bodies are decoded in a thread, with few or many values."""
    threads = []

    def get_decoder(shape: type) -> Any:
        threads.append(threading.get_ident())
        return msgspec.json.Decoder(shape, strict=False)

    monkeypatch.setattr(requests, "_get_decoder", get_decoder)
    for schema in ('"string"', '"string"' + " " * 100_000):
        assert (await client.post("/subjects/t/versions", json={"schema": schema})).status_code == 200
    assert threads[0] == threading.get_ident()
    assert threads[1] != threading.get_ident()


@pytest.mark.parametrize(
    ("item", "count", "is_refused"),
    [
        (b"1", 99_000, False),
        (b"1", 101_000, True),
        (b"[{}]", 40_000, True),
        (b'{"a":{"a":{"a":{}}}}', 30_000, True),
        (b'"\\\\"', 1_400_000, True),
        (b'","', 99_000, False),
        (b'"' + b'\\",[' * 10_000 + b'"', 300, False),
        (b'"\\\\\\"' + b"{," * 5_000 + b'\\\\"', 300, False),
    ],
    ids=["just fits", "numbers", "objects", "nested", "strings", "commas in strings", "quotes in strings", "escapes"],
)
def test_values_are_counted_outside_strings(item: bytes, count: int, is_refused: bool) -> None:
    """Bodies with too many values are refused; long strings are accepted, whatever they contain."""
    body = b'{"x":[' + b",".join([item] * count) + b"]}"
    if is_refused:
        with pytest.raises(TooLarge, match="values; the limit for one request is 100000"):
            requests.decode_body(body, dict[str, Any])
    else:
        assert len(requests.decode_body(body, dict[str, Any])["x"]) == count
