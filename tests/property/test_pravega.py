"""The Pravega dialect against a small oracle of its rules: numbers, deletion, encodings, references, policies."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conformance.apis.in_process import client_of
from tests.support.examples import scale_examples

from stele.apis.pravega import application
from stele.service.registry import Registry
from stele.storage import open_log

GROUPS = ("a", "b/c")
CODECS = ("", "z")
TEXTS = tuple((f"R{number % 2}", number) for number in range(5))
"""Type and number of the schemas: two types, each text is different."""


class Op(NamedTuple):
    """One request: the operation, the group, and the arguments."""

    what: str
    group: str
    one: int = 0
    two: int = 0


_groups = st.sampled_from([GROUPS[0]] * 4 + [GROUPS[1]])
_numbers = st.integers(0, 4)
_texts = st.integers(0, len(TEXTS) - 1)
_adding = st.builds(Op, st.just("add"), _groups, _texts)
_removing = st.builds(Op, st.just("remove"), _groups, _numbers)
_encoding = st.builds(Op, st.just("encode"), _groups, _numbers, st.integers(0, 1))
_rest = st.one_of(
    st.builds(Op, st.just("create"), _groups, st.integers(0, 1), st.integers(0, 1)),
    st.builds(Op, st.just("codec"), _groups),
    st.builds(Op, st.just("policy"), _groups, st.integers(0, 1), st.integers(0, 1)),
    st.builds(Op, st.just("drop"), _groups),
)
_ops = st.sampled_from([_adding] * 4 + [_removing] * 2 + [_encoding] * 3 + [_rest]).flatmap(lambda kind: kind)
_beginnings = st.integers(0, 1).map(
    lambda several: [Op("create", "a", several, 0), Op("add", "a", 0), Op("add", "a", 1), Op("add", "a", 2)]
)
"""The first operations of every example, because random operations rarely fill a group."""

POLICIES = ("AllowAny", "DenyAll")


class Group:
    """A group by the rules."""

    def __init__(self, several: bool, policy: str) -> None:
        self.several = several
        self.policy = policy
        self.rows: list[tuple[int, int]] = []  # (text, version)
        self.dead: set[int] = set()
        self.codecs = {""}
        self.encodings: list[tuple[int, str]] = []

    def live(self) -> list[int]:
        """Ids that are not deleted."""
        return [number for number in range(len(self.rows)) if number not in self.dead]

    def info(self, number: int) -> dict[str, Any]:
        """The version of an id."""
        text, version = self.rows[number]
        return {"type": TEXTS[text][0], "serializationFormat": "Avro", "version": version, "id": number}

    def find(self, text: int) -> int | None:
        """Return the lowest active id of a text."""
        return next((number for number in self.live() if self.rows[number][0] == text), None)


class Oracle:
    """The expected answers of the registry: (status, body or None for any)."""

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}

    def answer(self, op: Op) -> tuple[int, Any]:
        """Carry out an operation by the rules."""
        group = self.groups.get(op.group)
        if op.what == "create":
            if group is not None:
                return 409, None
            self.groups[op.group] = Group(bool(op.one), POLICIES[op.two])
            return 201, None
        if op.what == "drop":
            self.groups.pop(op.group, None)
            return 204, None
        if group is None:
            return 404, None
        return getattr(self, f"_{op.what}")(group, op)  # type: ignore[no-any-return]  # one of the four below

    def _add(self, group: Group, op: Op) -> tuple[int, Any]:
        known = group.find(op.one)
        if known is not None:
            return 201, group.info(known)
        live = group.live()
        types = {TEXTS[group.rows[number][0]][0] for number in live}
        strange = not group.several and types - {TEXTS[op.one][0]}
        if strange or (group.policy == "DenyAll" and live):
            return 409, None
        version = sum(1 for text, _ in group.rows if TEXTS[text][0] == TEXTS[op.one][0])
        group.rows.append((op.one, version))
        return 201, group.info(len(group.rows) - 1)

    def _remove(self, group: Group, op: Op) -> tuple[int, Any]:
        if op.one >= len(group.rows):
            return 404, None
        group.dead.add(op.one)
        return 204, None

    def _codec(self, group: Group, op: Op) -> tuple[int, Any]:
        group.codecs.add(CODECS[1])
        return 201, None

    def _encode(self, group: Group, op: Op) -> tuple[int, Any]:
        if CODECS[op.two] not in group.codecs:
            return 412, None
        pair = (op.one, CODECS[op.two])
        if op.one >= len(group.rows) or (op.one in group.dead and pair not in group.encodings):
            return 404, None
        if pair not in group.encodings:
            group.encodings.append(pair)
        return 200, {"encodingId": group.encodings.index(pair)}

    def _policy(self, group: Group, op: Op) -> tuple[int, Any]:
        if group.policy != POLICIES[op.two]:
            return 409, None
        group.policy = POLICIES[op.one]
        return 200, None


def schema(text: int) -> dict[str, Any]:
    """Return a schema in the notation of requests."""
    name, number = TEXTS[text]
    body = f'{{"type":"record","name":"{name}","fields":[{{"name":"f{number}","type":"int"}}]}}'
    data = base64.b64encode(body.encode()).decode()
    return {"type": name, "serializationFormat": {"serializationFormat": "Avro"}, "schemaData": data}


class World:
    """The registry and a client of its dialect, on a loop of their own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.registry = self.loop.run_until_complete(self._open())
        self.client = client_of(application(self.registry))

    async def _open(self) -> Registry:
        return await Registry.open(await open_log("memory:"))

    async def empty(self) -> None:
        """Clear the registry."""
        await self.registry.reset(await open_log("memory:"))

    async def close(self) -> None:
        """Close the client and the registry."""
        await self.client.aclose()
        await self.registry.close()

    async def ask(self, oracle: Oracle, op: Op) -> httpx.Response:
        """Send an operation. A request for an encoding contains the group's version info of the id."""
        path = "/v1/groups/" + op.group.replace("/", "%2F")
        match op.what:
            case "create":
                properties = {
                    "serializationFormat": {"serializationFormat": "Avro"},
                    "compatibility": {"policy": POLICIES[op.two]},
                    "allowMultipleTypes": bool(op.one),
                }
                return await self.client.post("/v1/groups", json={"groupName": op.group, "groupProperties": properties})
            case "drop":
                return await self.client.delete(path)
            case "add":
                return await self.client.post(f"{path}/schemas", json=schema(op.one))
            case "remove":
                return await self.client.delete(f"{path}/schemas/schema/{op.one}")
            case "codec":
                return await self.client.post(f"{path}/codecTypes", json={"name": CODECS[1]})
            case "policy":
                now, before = ({"policy": POLICIES[number]} for number in (op.one, op.two))
                body = {"compatibility": now, "previousCompatibility": before}
                return await self.client.put(f"{path}/compatibility", json=body)
            case _:
                group = oracle.groups.get(op.group)
                known = group is not None and op.one < len(group.rows)
                info = group.info(op.one) if group is not None and known else {"type": "R0", "version": 0, "id": op.one}
                body = {"versionInfo": info, "codecType": CODECS[op.two]}
                return await self.client.put(f"{path}/encodings", json=body)

    async def read(self, path: str) -> Any:
        """Return the answer to a GET."""
        answer = await self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def compare(self, oracle: Oracle) -> None:
        """Every read agrees with the oracle."""
        assert list((await self.read("/v1/groups"))["groups"]) == sorted(oracle.groups)
        for text in range(len(TEXTS)):
            places = await self.client.post("/v1/schemas/addedTo", json=schema(text))
            numbers = {name: group.find(text) for name, group in oracle.groups.items()}
            expected = {
                name: oracle.groups[name].info(number) for name, number in numbers.items() if number is not None
            }
            assert places.json() == {"groups": expected}
        for name, group in oracle.groups.items():
            path = "/v1/groups/" + name.replace("/", "%2F")
            listed = (await self.read(f"{path}/schemas/versions"))["schemas"]
            assert [row["versionInfo"] for row in listed] == [group.info(number) for number in group.live()]
            latest = {group.info(number)["type"]: group.info(number) for number in group.live()}
            schemas = (await self.read(f"{path}/schemas"))["schemas"]
            assert {row["versionInfo"]["type"]: row["versionInfo"] for row in schemas} == latest
            for number, (text, version) in enumerate(group.rows):
                by_id = await self.read(f"{path}/schemas/schema/{number}")
                assert by_id["schemaData"] == schema(text)["schemaData"]
                assert by_id == await self.read(f"{path}/schemas/format/Avro/type/{TEXTS[text][0]}/versions/{version}")
            for encoding, (number, codec) in enumerate(group.encodings):
                meant = await self.read(f"{path}/encodings/{encoding}")
                assert (meant["versionInfo"], meant["codecType"]["name"]) == (group.info(number), codec)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """One registry for all examples, emptied for each: building an application takes longer than an example."""
    shared_world = World()
    yield shared_world
    shared_world.loop.run_until_complete(shared_world.close())
    shared_world.loop.close()


@given(_beginnings, st.lists(_ops, min_size=10, max_size=25))
@settings(max_examples=scale_examples(40), deadline=None)
def test_the_dialect_does_what_its_rules_say(world: World, beginning: list[Op], drawn: list[Op]) -> None:
    """For any sequence of requests, answers and reads are those of the rules."""

    async def play() -> None:
        await world.empty()
        oracle = Oracle()
        for op in [*beginning, *drawn]:
            answer = await world.ask(oracle, op)
            status, body = oracle.answer(op)
            assert answer.status_code == status, (op, answer.text)
            assert body is None or answer.json() == body, op
        await world.compare(oracle)

    world.loop.run_until_complete(play())
