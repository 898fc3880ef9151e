"""AVRO-1124, by the numbered list of required behaviours in the reference."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import httpx
import pytest
from tests.conformance.apis.schema_repo.conftest import World

from stele.apis.schema_repo import SchemaRepoOptions
from stele.formats.registry import get_format
from stele.service.registry import Registry

ROOT = "/avro1124/schemas"
PERSON = '{"type":"record","name":"Person","fields":[{"name":"age","type":"int"}]}'
OLDER = '{"type":"record","name":"Person","fields":[{"name":"age","type":"string"}]}'
TALLER = PERSON.replace("]}", ',{"name":"height","type":"int","default":0}]}')


async def post(client: httpx.AsyncClient, group: str, schema: str, **fields: str) -> httpx.Response:
    """Register a schema."""
    return await client.post(f"{ROOT}/groups/{group}", data={"schema": schema, **fields})


async def register_schema(client: httpx.AsyncClient, group: str, schema: str, **fields: str) -> str:
    """Register a schema and return its id."""
    answer = await post(client, group, schema, **fields)
    assert answer.status_code == 200, answer.text
    return answer.text


async def text(client: httpx.AsyncClient, path: str) -> str:
    """Return the body of a successful GET."""
    answer = await client.get(f"{ROOT}{path}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    return answer.text


async def test_1_groups_are_listed_one_per_line(client: httpx.AsyncClient) -> None:
    """GET /schemas is plain text, one name on each line, nothing at all for an empty registry."""
    assert await text(client, "") == ""
    for name in ("b", "a", "groups"):
        await register_schema(client, name, PERSON)
    assert await text(client, "") == "a\nb\ngroups\n"


async def test_2_ids_are_listed_in_order_of_registration(client: httpx.AsyncClient) -> None:
    """GET /schemas/g is one id on each line, the oldest first; a group may be called groups."""
    for group in ("g", "groups"):
        ids = [await register_schema(client, group, schema) for schema in (PERSON, '"int"', OLDER)]
        assert await text(client, f"/{group}") == "".join(f"{name}\n" for name in ids)
        assert await text(client, f"/{group}/{ids[1]}") == '"int"'
        assert await text(client, f"/{group}/latest") == OLDER


async def test_3_what_is_not_there_is_404(client: httpx.AsyncClient) -> None:
    """An unknown group, an unknown id, and the latest schema of an unknown group are not found."""
    await register_schema(client, "g", PERSON)
    for path in ("/no", "/no/1", "/no/latest", "/g/2", "/g/0", "/g/01", "/g/x", "/g/99999999999", "/g/" + 32 * "a"):
        answer = await client.get(f"{ROOT}{path}")
        assert answer.status_code == 404
        assert answer.text.startswith("ERROR: This ")


async def test_4_a_new_group_comes_with_its_first_schema(client: httpx.AsyncClient) -> None:
    """POST to an unknown group creates it with model and schema; the body is the id."""
    assert await register_schema(client, "g", PERSON, compatibility_model="full") == "1"
    assert await text(client, "") == "g\n"
    assert await text(client, "/g/1") == PERSON
    assert (await client.get(f"{ROOT}/g")).headers["x-compatibility-model"] == "full"
    assert (await client.post(f"{ROOT}/h", data={"schema": PERSON})).text == "1", "without the literal, too"


async def test_5_the_same_schema_has_the_same_id(world: World, node: Registry) -> None:
    """An identical schema gets the existing id, also if many clients register it at once through two nodes."""
    clients = [await world.repo(node), await world.repo(await world.node())]
    texts = [f'{{"type":"fixed","name":"F","size":{size}}}' for size in range(1, 5)]
    registrations = [(texts[number % 4], clients[number % 2]) for number in range(40)]
    ids = await asyncio.gather(*(register_schema(client, "g", schema) for schema, client in registrations))
    ids_by_schema = {
        schema: {schema_id for (wanted, _), schema_id in zip(registrations, ids, strict=True) if wanted == schema}
        for schema in texts
    }
    assert all(len(schema_ids) == 1 for schema_ids in ids_by_schema.values())
    assert sorted(schema_ids.pop() for schema_ids in ids_by_schema.values()) == ["1", "2", "3", "4"]
    assert await register_schema(clients[0], "g", texts[0]) == ids[0]


async def test_6_an_incompatible_schema_is_refused(client: httpx.AsyncClient) -> None:
    """The response is 403 with the reason; neither the schema nor a new model is stored."""
    await register_schema(client, "g", PERSON, compatibility_model="backward")
    answer = await post(client, "g", OLDER)
    assert answer.status_code == 403
    assert "TYPE_MISMATCH at /fields/0/type" in answer.text
    assert (await post(client, "g", OLDER, compatibility_model="full")).status_code == 403
    listed = await client.get(f"{ROOT}/g")
    assert (listed.text, listed.headers["x-compatibility-model"]) == ("1\n", "backward")


async def test_7_force_override_stores_it_all_the_same(client: httpx.AsyncClient) -> None:
    """With force_override=true the refused schema is registered and is the latest; the model stays."""
    await register_schema(client, "g", PERSON, compatibility_model="backward")
    assert (await post(client, "g", OLDER, force_override="false")).status_code == 403
    assert await register_schema(client, "g", OLDER, force_override="true") == "2"
    assert await text(client, "/g/latest") == OLDER
    assert (await post(client, "g", PERSON.replace("int", "long"))).status_code == 403
    assert (await post(client, "g", PERSON, force_override="perhaps")).status_code == 400


async def test_8_an_unknown_model_is_refused(client: httpx.AsyncClient) -> None:
    """An unknown model is answered with 400, forced or not, and nothing is stored."""
    for fields in ({}, {"force_override": "true"}):
        answer = await post(client, "g", PERSON, compatibility_model="db_policy", **fields)
        assert answer.status_code == 400
        assert "db_policy" in answer.text
    assert await text(client, "") == ""
    await register_schema(client, "g", PERSON)
    assert (await post(client, "g", OLDER, compatibility_model="db_policy")).status_code == 400
    assert await text(client, "/g") == "1\n"


async def test_8_models_have_names_of_the_operators_own(world: World, node: Registry) -> None:
    """A configured name stands for policies and validators, and each group can have another one."""
    models = {"db_policy": ("full_transitive", "lint:DOC_REQUIRED"), "noop": ("none",)}
    client = await world.repo(node, SchemaRepoOptions(models=models))
    assert (await post(client, "db", PERSON, compatibility_model="db_policy")).status_code == 403
    assert await register_schema(client, "log", PERSON, compatibility_model="noop") == "1"
    assert await register_schema(client, "log", OLDER) == "2"


async def test_9_without_a_model_nothing_is_checked(client: httpx.AsyncClient) -> None:
    """A new group is not checked by default, and its model is shown as `none`."""
    for number, schema in enumerate((PERSON, OLDER, '"int"', '"string"'), 1):
        assert await register_schema(client, "g", schema) == str(number)
    assert (await client.get(f"{ROOT}/g")).headers["x-compatibility-model"] == "none"


async def test_10_a_group_keeps_its_model(client: httpx.AsyncClient) -> None:
    """A later POST without a model is checked with the model of the group; a POST with a model sets it."""
    await register_schema(client, "g", PERSON, compatibility_model="backward")
    assert (await post(client, "g", OLDER)).status_code == 403
    assert await register_schema(client, "g", OLDER, compatibility_model="none") == "2"
    assert await register_schema(client, "g", '"int"') == "3"
    assert await register_schema(client, "g", PERSON, compatibility_model="forward") == "1"
    assert (await post(client, "g", '"string"')).status_code == 403


async def test_11_texts_come_back_as_they_were_sent(client: httpx.AsyncClient) -> None:
    """Layout, doc, custom attributes and letters of any script are kept; a changed doc gets a new id."""
    first = (
        '{ "type" : "record", "name":"R",\n\t"doc":"größer \\u00e9 ☃", "hive.column" : {"x":[1, 2.0]}, "fields":[] }'
    )
    second = first.replace("größer", "kleiner")
    assert await register_schema(client, "g", first) == "1"
    assert await register_schema(client, "g", second) == "2"
    assert (await client.get(f"{ROOT}/g/1")).content == first.encode()
    assert (await client.get(f"{ROOT}/g/latest")).content == second.encode()


EXPECTED = {
    "sequential": ["1", "2"],
    "md5": [hashlib.md5(schema.encode()).hexdigest() for schema in (PERSON, TALLER)],
    "crc-64-avro": [
        get_format("avro").fingerprints(get_format("avro").parse(schema.encode(), {}))["rabin"].hex()
        for schema in (PERSON, TALLER)
    ],
}


@pytest.mark.parametrize("kind", EXPECTED)
async def test_12_ids_are_of_the_kind_chosen(kind: str, world: World, node: Registry) -> None:
    """Ids are URL-safe and always mean the same text of the group; ids of other strategies are still accepted."""
    client = await world.repo(node, SchemaRepoOptions(ids=kind))
    assert [await register_schema(client, "g", schema) for schema in (PERSON, TALLER)] == EXPECTED[kind]
    assert await text(client, "/g") == "".join(f"{name}\n" for name in EXPECTED[kind])
    for names in EXPECTED.values():
        assert [await text(client, f"/g/{name}") for name in names] == [PERSON, TALLER]
    assert (await client.get(f"{ROOT}/other/{EXPECTED[kind][0]}")).status_code == 404
    assert await register_schema(client, "other", TALLER) == (EXPECTED[kind][1] if kind != "sequential" else "1")


@pytest.mark.parametrize(
    ("kind", "alike"),
    [("md5", PERSON.replace(":", " : ")), ("crc-64-avro", PERSON.replace('"name":"P', '"doc":"d","name":"P'))],
)
async def test_12_what_has_the_same_digest_is_the_same_schema(
    kind: str, alike: str, world: World, node: Registry
) -> None:
    """If ids are digests, a text with the digest of a registered one gets its id, also if both are sent at once."""
    client = await world.repo(node, SchemaRepoOptions(ids=kind))
    other = await world.repo(await world.node(), SchemaRepoOptions(ids=kind))
    ids = await asyncio.gather(
        *(register_schema(way, "g", schema) for schema in (PERSON, alike) for way in (client, other))
    )
    assert len(set(ids)) == 1
    assert await text(client, "/g") == f"{ids[0]}\n"


async def test_12_one_digest_means_one_schema_of_a_group(world: World, node: Registry) -> None:
    """Versions of another dialect that share a digest are listed once; the id means the first active one."""
    numbers = await world.repo(node)
    prints = await world.repo(node, SchemaRepoOptions(ids="crc-64-avro"))
    documented = PERSON.replace('"name":"P', '"doc":"d","name":"P')
    for schema in (PERSON, documented, '"int"'):
        await register_schema(numbers, "g", schema)
    name = EXPECTED["crc-64-avro"][0]
    assert (await text(prints, "/g")).splitlines()[0] == name
    assert len((await text(prints, "/g")).splitlines()) == 2
    assert await text(prints, f"/g/{name}") == PERSON
    plain = await world.confluent(node)
    assert (await plain.delete("/subjects/g/versions/1")).status_code == 200
    assert await text(prints, f"/g/{name}") == documented
    assert (await plain.delete("/subjects/g/versions/1?permanent=true")).status_code == 200
    assert await text(prints, f"/g/{name}") == documented
    assert (await numbers.get(f"{ROOT}/g/1")).status_code == 404


@pytest.mark.parametrize(
    "model", ["backward", "BACKWARD", "ruleset:avro", "forward", "full_transitive", "backward,lint"]
)
async def test_13_avro_resolution_decides(model: str, client: httpx.AsyncClient) -> None:
    """Every model that compares refuses a change of int to string, and accepts a new field with a default."""
    good = json.loads(PERSON) | {"doc": "d", "namespace": "n"}
    good["fields"][0]["doc"] = "d"
    bad = json.loads(json.dumps(good).replace('"int"', '"string"'))
    taller = good | {"fields": [*good["fields"], {"name": "height", "type": "int", "default": 0, "doc": "d"}]}
    await register_schema(client, "g", json.dumps(good), compatibility_model=model)
    assert (await post(client, "g", json.dumps(bad))).status_code == 403
    assert await register_schema(client, "g", json.dumps(taller)) == "2"


async def test_13_deny_takes_no_second_schema(client: httpx.AsyncClient) -> None:
    """The model deny refuses every schema of a group after the first."""
    await register_schema(client, "g", PERSON, compatibility_model="deny")
    assert (await post(client, "g", TALLER)).status_code == 403
    assert await register_schema(client, "g", PERSON) == "1"


class Table:
    """Put and get as in the proposal: rows are stored with the id of their schema, and ids and texts are cached."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.calls = 0
        self.rows: dict[str, tuple[str, bytes]] = {}
        self._client = client
        self._ids: dict[str, str] = {}
        self._texts: dict[str, str] = {}

    async def put(self, key: str, record: Any, schema: str) -> None:
        """Store a record under its schema's id."""
        if schema not in self._ids:
            self.calls += 1
            self._ids[schema] = await register_schema(self._client, "table", schema)
        avro = get_format("avro")
        self.rows[key] = (self._ids[schema], avro.codec(avro.parse(schema.encode(), {})).encode(record))

    async def get(self, key: str) -> Any:
        """Return a stored record."""
        name, data = self.rows[key]
        if name not in self._texts:
            self.calls += 1
            self._texts[name] = await text(self._client, f"/table/{name}")
        avro = get_format("avro")
        return avro.codec(avro.parse(self._texts[name].encode(), {})).decode(data)


async def test_14_one_call_for_an_empty_cache_and_none_for_a_warm_one(client: httpx.AsyncClient) -> None:
    """Put registers a schema once, get reads a text once, and records are read as they were written."""
    table = Table(client)
    for number in range(5):
        await table.put(f"p{number}", {"age": number}, PERSON)
        await table.put(f"t{number}", {"age": number, "height": 7}, TALLER)
    assert table.calls == 2
    for number in range(5):
        assert await table.get(f"p{number}") == {"age": number}
        assert await table.get(f"t{number}") == {"age": number, "height": 7}
    assert table.calls == 4
    reader = Table(client)
    reader.rows = table.rows
    assert await reader.get("t1") == {"age": 1, "height": 7}
    assert reader.calls == 1


NO_SCHEMAS: list[tuple[dict[str, str], int]] = [
    ({}, 400),
    ({"schema": ""}, 400),
    ({"schema": "{"}, 400),
    ({"schema": '{"type":"record","name":"R"}'}, 400),
    ({"schema": "[" * 100_000}, 400),
    ({"schema": '"' + "x" * 2_000_000 + '"'}, 413),
    ({"schema": PERSON, "compatibility_model": "ruleset:no-such"}, 400),
    ({"schema": PERSON, "compatibility_model": "lint:NO_SUCH"}, 400),
    ({"schema": PERSON, "compatibility_model": "lint:"}, 400),
]


async def test_what_is_no_schema_is_refused(client: httpx.AsyncClient) -> None:
    """A text that is no Avro schema, and a model that cannot be applied, are refused and store nothing."""
    for fields, status in NO_SCHEMAS:
        answer = await client.post(f"{ROOT}/groups/g", data=fields)
        assert answer.status_code == status, fields
        assert len(answer.text) < 2000, "what is wrong is told in a few words"
    assert await text(client, "") == ""


async def test_other_bodies_are_refused(client: httpx.AsyncClient) -> None:
    """A body that is no form, is no UTF-8 or has too many fields is refused as the client's error."""
    url = f"{ROOT}/groups/g"
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert (await client.post(url, json={"schema": PERSON})).status_code == 415
    assert (await client.post(url, content=b"schema=%ff", headers=form)).status_code == 400
    assert (await client.post(url, content=b"\xff=1", headers=form)).status_code == 400
    assert (await client.post(url, content=b"a=1&" * 5000, headers=form)).status_code == 400
    assert (await client.post(f"{ROOT}/groups/a%00b", data={"schema": PERSON})).status_code == 400
    assert (await client.post(f"{ROOT}/groups/%20", data={"schema": PERSON})).status_code == 400
    assert (await client.post(f"{ROOT}/groups//g", data={"schema": PERSON})).status_code == 404
    assert await text(client, "") == ""


async def test_names_may_have_slashes(client: httpx.AsyncClient) -> None:
    """The name of a group can be any text, which is percent-encoded in paths."""
    assert await register_schema(client, "a%2Fb%20%C3%A9", PERSON) == "1"
    assert await text(client, "") == "a/b é\n"
    assert await text(client, "/a%2Fb%20%C3%A9/latest") == PERSON
