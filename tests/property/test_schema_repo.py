"""AVRO-1124, schema-repo and Confluent on one registry: random operations through all three, compared with a model.

For any request, the two dialects answer in their own format.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.apis.in_process import client_of
from tests.support.examples import scale_examples

from stele.apis import confluent, schema_repo
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog

NAMES = ("a", "b/c")
TEXTS = ('"int"', '"long"', '"string"', '{"type":"array","items":"int"}')
TEXT = {"content-type": "text/plain"}


class Op(NamedTuple):
    """An operation: its dialect, subject, and text, number or id."""

    door: str
    name: str
    text: str
    number: int


ops = st.builds(
    Op,
    st.sampled_from(["post", "tell", *["register", "after", "create"] * 2, *["drop"] * 3]),
    st.sampled_from([*NAMES, *[NAMES[0]] * 3]),
    st.sampled_from(TEXTS),
    st.sampled_from([0, 1, 1, 1, 2, 2, 3, 4]),
)


class Row(NamedTuple):
    """A version: its text, and whether it is active."""

    text: str
    live: bool


class Model:
    """The expected state by the rules of the reference: (rows by version number, created with PUT) by subject."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {}
        self.created: set[str] = set()

    def live(self, name: str) -> dict[int, str]:
        """Return the texts of the active versions, by version number."""
        rows = self.rows.get(name, [])
        return {number: row.text for number, row in enumerate(rows, 1) if row.live}

    def is_visible(self, name: str) -> bool:
        """Whether the two dialects show the subject."""
        return name in self.rows and (not self.rows[name] or name in self.created or bool(self.live(name)))

    def register_text(self, name: str, text: str) -> int:
        """Return the version number that a text has or gets."""
        for number, known in self.live(name).items():
            if known == text:
                return number
        self.rows.setdefault(name, []).append(Row(text, live=True))
        return len(self.rows[name])

    def predict_answer(self, op: Op) -> tuple[int, str]:
        """Apply an operation to the model. Return the status and, if it is an id or a name, the body of the answer."""
        match op.door:
            case "post":
                return 200, str(self.register_text(op.name, op.text))
            case "register":
                return (404, "") if op.name not in self.rows else (200, str(self.register_text(op.name, op.text) - 1))
            case "after":
                return self._after(op)
            case "tell":
                self.register_text(op.name, op.text)
                return 200, ""
            case "drop":
                return self._drop_schema(op)
            case _:
                if not self.is_visible(op.name):
                    self.rows.setdefault(op.name, [])
                    self.created.add(op.name)
                return 200, op.name

    def _after(self, op: Op) -> tuple[int, str]:
        live = self.live(op.name)
        if not self.is_visible(op.name) or (op.number and op.number not in live):
            return 404, ""
        if op.number != max(live, default=0):
            return 409, ""
        return 200, str(self.register_text(op.name, op.text) - 1)

    def _drop_schema(self, op: Op) -> tuple[int, str]:
        live = self.live(op.name)
        if op.number not in live:
            return 404, ""
        self.rows[op.name][op.number - 1] = Row(live[op.number], live=False)
        return 200, ""


class World:
    """Clients of all three dialects on one node in memory."""

    def __init__(self, node: Registry, repo: httpx.AsyncClient, plain: httpx.AsyncClient) -> None:
        self.node = node
        self.repo = repo
        self.plain = plain

    async def perform(self, op: Op) -> tuple[int, str]:
        """Status and body of an operation."""
        name = op.name.replace("/", "%2F")
        after = str(op.number - 1) if op.number else ""
        match op.door:
            case "post":
                answer = await self.repo.post(f"/avro1124/schemas/groups/{name}", data={"schema": op.text})
            case "register":
                answer = await self.repo.put(f"/schema-repo/{name}/register", content=op.text, headers=TEXT)
            case "after":
                path = f"/schema-repo/{name}/register_if_latest/{after}"
                answer = await self.repo.put(path, content=op.text, headers=TEXT)
            case "tell":
                answer = await self.plain.post(f"/subjects/{name}/versions", json={"schema": op.text})
            case "drop":
                answer = await self.plain.delete(f"/subjects/{name}/versions/{op.number or 99}")
            case _:
                answer = await self.repo.put(f"/schema-repo/{name}", data={"owner": "ann"})
        return answer.status_code, answer.text

    async def agrees(self, model: Model, name: str) -> None:
        """Assert that every read of a subject agrees with the model."""
        live, path = model.live(name), name.replace("/", "%2F")
        status = 200 if model.is_visible(name) else 404
        listed = await self.repo.get(f"/avro1124/schemas/{path}")
        assert listed.status_code == status
        rows = await self.repo.get(f"/schema-repo/{path}/all", headers={"accept": "application/json"})
        assert rows.status_code == status
        if status == 200:
            assert listed.text == "".join(f"{number}\n" for number in live)
            assert rows.json() == [{"id": str(n - 1), "schema": text} for n, text in reversed(live.items())]
        newest = await self.repo.get(f"/schema-repo/{path}/latest")
        assert newest.status_code == (200 if live else 404)
        assert not live or newest.text == f"{max(live) - 1}\t{live[max(live)]}"
        for number in range(1, len(model.rows.get(name, [])) + 2):
            response = await self.repo.get(f"/schema-repo/{path}/id/{number - 1}")
            assert (
                (response.status_code, response.text) == (200, live[number])
                if number in live
                else response.status_code == 404
            )
        versions = await self.plain.get(f"/subjects/{path}/versions")
        assert (versions.json() == list(live)) if live else versions.status_code == 404


Run = Callable[[Awaitable[None]], None]


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[World, Run]]:
    """The three clients, and a function that runs coroutines."""

    async def open_world() -> World:
        node = await Registry.open(MemoryLog())
        stack.push_async_callback(node.close)
        repo = await stack.enter_async_context(client_of(schema_repo.application(node)))
        plain = await stack.enter_async_context(client_of(confluent.application(node)))
        return World(node, repo, plain)

    stack = AsyncExitStack()
    with asyncio.Runner() as runner:
        yield runner.run(open_world()), runner.run  # type: ignore[misc]  # takes any awaitable a coroutine function gives
        runner.run(stack.aclose())


@settings(
    max_examples=scale_examples(30),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(ops, min_size=8, max_size=24))
def test_three_dialects_tell_of_one_registry(world: tuple[World, Run], drawn: list[Op]) -> None:
    """After any operation through any dialect, answers and all reads through all of them are those of the model."""
    there, run = world

    async def play_operations() -> None:
        await there.node.reset(MemoryLog())
        assert (await there.plain.put("/config", json={"compatibility": "NONE"})).status_code == 200
        model = Model()
        for op in drawn:
            status, body = model.predict_answer(op)
            answer = await there.perform(op)
            assert answer[0] == status, (op, answer)
            assert not body or answer[1] == body, (op, answer)
            await there.agrees(model, op.name)
        groups = "".join(f"{name}\n" for name in sorted(model.rows) if model.is_visible(name))
        assert (await there.repo.get("/avro1124/schemas")).text == groups
        assert (await there.repo.get("/schema-repo")).text == groups

    run(play_operations())


_SEGMENTS = (
    "avro1124 schemas groups schema-repo schema-repo-browser s all latest register config register_if_latest id 0 "
    "status schema integral %2F %00 %FF%FE %ED%A0%80 .."
)
segments = st.sampled_from(["", *_SEGMENTS.split()])
headers = st.fixed_dictionaries(
    {},
    optional={
        "accept": st.sampled_from(["*", "text/plain", "application/json", "text/html", ",;=,", "x/y", "*/*;q=x", "é"]),
        "content-type": st.sampled_from(
            [
                "text/plain",
                "application/x-www-form-urlencoded",
                "text/plain;charset=utf-16",
                "x",
                "text/plain;charset=é",
            ]
        ),
    },
)
bodies = st.sampled_from(
    [
        b"",
        b'"int"',
        b"\xff\xfe",
        b"schema=%22int%22",
        b"schema=%ff",
        b"schema=" + b"%5B" * 3000,
        b"&&==&",
        b"repo.validators=%00",
        b"repo.validators=" + b"lint:X," * 50,
        b"a=\x00&b=%E2%98%83",
        b"a=1&" * 1500,
        b"[" * 50_000,
        b"%",
    ]
)


@settings(
    max_examples=scale_examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.sampled_from(["GET", "PUT", "POST", "DELETE", "PATCH"]),
    st.lists(segments, min_size=1, max_size=6),
    headers,
    bodies,
)
def test_anything_is_answered(
    world: tuple[World, Run], method: str, path: list[str], sent: dict[str, Any], body: bytes
) -> None:
    """No request causes a server error: the answer is one of the dialects' own, and an error has a text."""
    there, run = world

    async def ask_all() -> None:
        encoded = {name: value.encode("latin-1") for name, value in sent.items()}
        answer = await there.repo.request(method, "http://registry/" + "/".join(path), headers=encoded, content=body)
        assert answer.status_code < 500, answer.text
        if answer.status_code >= 400:
            assert answer.headers["content-type"].startswith("text/plain")
            assert answer.text.startswith("ERROR: ")
            assert answer.text.endswith("\n")

    run(ask_all())
