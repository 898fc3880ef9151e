"""One registry, several dialects: changes through these dialects apply in the Confluent dialect, and vice versa."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import httpx
import pytest
from tests.conformance.apis.schema_repo.conftest import TEXT, World

from stele.apis.schema_repo.translate import parse_policy
from stele.core import events as ev
from stele.core import queries
from stele.core.commands import ChangeSettings, CreateSubject, RegisterSchema, SubjectDefaults
from stele.core.model import ComparisonScope, SchemaDocument, SettingsLevel, SubjectKey
from stele.core.policy import ALL_VERSIONS, ALLOW_ANY, BACKWARD, LATEST_VERSION, Policy, RangeKind, VersionRange
from stele.service.registry import Registry

S = SubjectKey("", "s")
INT, LONG, STRING = '"int"', '"long"', '"string"'


async def put(client: httpx.AsyncClient, schema: str) -> httpx.Response:
    """Register through schema-repo."""
    return await client.put("/schema-repo/s/register", content=schema, headers=TEXT)


async def post(client: httpx.AsyncClient, schema: str, **fields: str) -> httpx.Response:
    """Register through AVRO-1124."""
    return await client.post("/avro1124/schemas/groups/s", data={"schema": schema, **fields})


async def tell(plain: httpx.AsyncClient, schema: str, **members: Any) -> httpx.Response:
    """Register through the Confluent dialect."""
    return await plain.post("/subjects/s/versions", json={"schema": schema, **members})


async def level(plain: httpx.AsyncClient, name: str) -> None:
    """Set the compatibility level of the subject through the Confluent dialect."""
    assert (await plain.put("/config/s", json={"compatibility": name})).status_code == 200


async def config(client: httpx.AsyncClient) -> list[str]:
    """Return the lines of the subject's config below comment and date."""
    return (await client.get("/schema-repo/s/config")).text.splitlines()[2:]


async def model(client: httpx.AsyncClient) -> str:
    """Return the group's model as AVRO-1124 shows it."""
    return (await client.get("/avro1124/schemas/s")).headers["x-compatibility-model"]


@pytest.fixture
async def plain(world: World, node: Registry) -> httpx.AsyncClient:
    """A client of the Confluent dialect on the same node."""
    return await world.confluent(node)


async def test_numbers_and_bytes_agree(client: httpx.AsyncClient, plain: httpx.AsyncClient) -> None:
    """All dialects show the same versions byte for byte, numbered from 0 in schema-repo and from 1 in the others."""
    await level(plain, "NONE")
    texts = ['{ "type":\t"int" }', '{"type":"string"}', '"long"']
    assert (await post(client, texts[0])).text == "1"
    assert (await tell(plain, texts[1])).status_code == 200
    assert (await put(client, texts[2])).text == "2"
    for number, text in enumerate([texts[0], STRING, texts[2]]):
        assert (await client.get(f"/schema-repo/s/id/{number}")).text == text
        assert (await client.get(f"/avro1124/schemas/s/{number + 1}")).text == text
        assert (await plain.get(f"/subjects/s/versions/{number + 1}")).json()["schema"] == text
        assert (await plain.get(f"/subjects/s/versions/{number + 1}/schema")).text == text


async def test_the_default_of_a_new_subject_is_written_down(client: httpx.AsyncClient, node: Registry) -> None:
    """The event that creates a subject contains its default policy, and that version numbers are never reused."""
    await post(client, INT)
    await client.put("/schema-repo/t", data={"repo.validators": "full"})
    created = [
        event for _, row in await node.read_log(0, 99) for event in row.events if isinstance(event, ev.SubjectCreated)
    ]
    assert [(event.key.name, event.default_policy, event.numbering.value) for event in created] == [
        ("s", ALLOW_ANY, "never_reuse"),
        ("t", parse_policy(["full"], {}), "never_reuse"),
    ]
    entries = [(row.metadata.via, type(row.events[-1]).__name__) for _, row in await node.read_log(0, 99)]
    assert entries[-2:] == [("avro1124", "VersionRegistered"), ("schema-repo", "SubjectCreated")]


async def test_what_is_created_here_is_not_checked_there(client: httpx.AsyncClient, plain: httpx.AsyncClient) -> None:
    """A subject that is created here allows any schema; the default BACKWARD applies to the Confluent dialect only."""
    await post(client, INT)
    assert (await tell(plain, STRING)).status_code == 200
    assert (await plain.post("/subjects/other/versions", json={"schema": INT})).status_code == 200
    assert (await plain.post("/subjects/other/versions", json={"schema": STRING})).status_code == 409
    refused = await client.post("/avro1124/schemas/groups/other", data={"schema": STRING})
    assert refused.status_code == 403


@pytest.mark.parametrize("words", ["backward", "full", "forward_transitive", "ruleset:avro", "deny", "repo.reject"])
async def test_a_policy_set_here_holds_there(
    words: str, client: httpx.AsyncClient, plain: httpx.AsyncClient, node: Registry
) -> None:
    """Models and validators refuse schemas that come through the Confluent dialect, with its status and code."""
    await client.put("/schema-repo/s", data={"repo.validators": words})
    await post(client, INT, force_override="true")
    answer = await tell(plain, STRING)
    assert (answer.status_code, answer.json()["error_code"]) == (409, 409)
    assert (await put(client, STRING)).status_code == 403
    assert (await post(client, STRING)).status_code == 403
    level = (await plain.get("/config/s?defaultToGlobal=true")).json()["compatibilityLevel"]
    assert level == queries.policy_for(await node.fresh_state(), S).nearest_name


async def test_a_policy_set_there_holds_here(client: httpx.AsyncClient, plain: httpx.AsyncClient) -> None:
    """A level of the Confluent dialect is shown in the words of these dialects and refuses; NONE allows any schema."""
    await client.put("/schema-repo/s", data={"repo.validators": "lint", "owner": "ann"})
    await level(plain, "FULL_TRANSITIVE")
    assert await config(client) == ["owner=ann", "repo.validators=full_transitive"]
    assert await model(client) == "full_transitive"
    assert (await put(client, INT)).text == "0"
    assert (await put(client, LONG)).status_code == 403
    assert (await post(client, LONG)).status_code == 403
    await level(plain, "NONE")
    assert await config(client) == ["owner=ann", "repo.validators="]
    assert (await put(client, STRING)).text == "1"
    assert (await plain.delete("/config/s")).status_code == 200
    assert await config(client) == ["owner=ann", "repo.validators=lint"], "what it was created with is in force again"


async def test_subjects_of_the_other_dialect_are_shown_with_their_policy(
    client: httpx.AsyncClient, plain: httpx.AsyncClient
) -> None:
    """The config of a subject from another dialect shows its policy; creating it again changes nothing."""
    await tell(plain, INT)
    assert await config(client) == ["repo.validators=backward"]
    assert (await client.put("/schema-repo/s", data={"repo.validators": ""})).text == "s"
    assert await config(client) == ["repo.validators=backward"]
    assert await model(client) == "backward"


@pytest.mark.parametrize(
    ("policy", "words", "exact"),
    [
        (Policy(backward=VersionRange(RangeKind.SINCE, 2)), "backward_transitive", "backward since 2"),
        (Policy(backward=LATEST_VERSION, forward=ALL_VERSIONS), "backward,forward_transitive", None),
        (
            Policy(backward=VersionRange(RangeKind.SINCE, 2), forward=ALL_VERSIONS),
            "full_transitive",
            "backward since 2, forward all",
        ),
        (Policy(backward=ALL_VERSIONS, validators=("lint",)), "backward_transitive,lint", None),
        (
            Policy(forward=VersionRange(RangeKind.SINCE, 1), validators=("lint",)),
            "forward_transitive,lint",
            "forward since 1",
        ),
    ],
)
async def test_what_has_no_words_is_shown_as_something_stricter(
    policy: Policy, words: str, exact: str | None, client: httpx.AsyncClient, node: Registry
) -> None:
    """Such a policy is shown in the nearest stricter words, with an extension for the exact one, which is enforced."""
    await put_subject(node, policy)
    assert await config(client) == [f"repo.validators={words}", *([f"stele.policy={exact}"] if exact else [])]
    await node.execute(ChangeSettings(SettingsLevel(*S), {"policy": ALLOW_ANY}))
    await post(client, INT)
    await node.execute(ChangeSettings(SettingsLevel(*S), {"policy": policy}))
    headers = (await client.get("/avro1124/schemas/s")).headers
    assert (headers["x-compatibility-model"], headers.get("x-stele-policy")) == (words, exact)


async def put_subject(node: Registry, policy: Policy) -> None:
    """Create a subject as another dialect does."""
    await node.execute(CreateSubject(S, SubjectDefaults(policy=policy)))


async def test_a_model_named_here_replaces_the_one_set_there(
    client: httpx.AsyncClient, plain: httpx.AsyncClient, node: Registry
) -> None:
    """A model or config with a policy replaces a policy that another dialect set; a config without one does not."""
    await level(plain, "FULL")
    assert (await post(client, INT, compatibility_model="backward")).text == "1"
    assert (await plain.get("/config/s")).json() == {"compatibilityLevel": "BACKWARD"}
    assert queries.policy_for(await node.fresh_state(), S) == BACKWARD
    await plain.put("/config/t", json={"compatibility": "FULL"})
    await client.put("/schema-repo/t", data={"repo.validators": "forward"})
    assert (await plain.get("/config/t")).json() == {"compatibilityLevel": "FORWARD"}
    await plain.put("/config/u", json={"compatibility": "FULL"})
    await client.put("/schema-repo/u", data={"owner": "ann"})
    assert (await plain.get("/config/u")).json() == {"compatibilityLevel": "FULL"}


async def test_what_was_deleted_there_is_gone_here(client: httpx.AsyncClient, plain: httpx.AsyncClient) -> None:
    """Soft-deleted versions, and subjects with no other versions, are not shown; their numbers are not reused."""
    for text in (INT, LONG, STRING):
        await post(client, text)
    await plain.delete("/subjects/s/versions/3")
    assert (await client.get("/avro1124/schemas/s")).text == "1\n2\n"
    assert (await client.get("/schema-repo/s/latest")).text == f"1\t{LONG}"
    assert (await client.get("/schema-repo/s/id/2")).status_code == 404
    assert (await put(client, '"float"')).text == "3"
    assert (await plain.delete("/subjects/s")).status_code == 200
    for path in ("/avro1124/schemas/s", "/schema-repo/s", "/schema-repo/s/all", "/schema-repo/s/id/0"):
        assert (await client.get(path)).status_code == 404, path
    assert (await client.get("/schema-repo")).text == ""
    assert (await client.put("/schema-repo/s")).text == "s"
    assert (await client.get("/schema-repo")).text == "s\n", "it was created again"
    assert (await client.get("/schema-repo/s/all")).text == ""
    assert (await put(client, INT)).text == "4"


async def test_a_deleted_subject_comes_back_with_a_new_schema(
    client: httpx.AsyncClient, plain: httpx.AsyncClient
) -> None:
    """AVRO-1124 creates a group at a registration; the numbers of a soft-deleted one continue."""
    await post(client, INT)
    await plain.delete("/subjects/s")
    assert (await post(client, LONG)).text == "2"
    assert (await client.get("/avro1124/schemas/s")).text == "2\n"
    await plain.delete("/subjects/s")
    await plain.delete("/subjects/s?permanent=true")
    assert (await post(client, LONG)).text == "1", "a subject purged for good begins anew"


async def test_other_languages_are_evolved_in_their_own(client: httpx.AsyncClient, plain: httpx.AsyncClient) -> None:
    """A text for a Protobuf subject is parsed as Protobuf, with the references of the version before."""
    shared = 'syntax = "proto3"; message Money { int64 cents = 1; }'
    await plain.post("/subjects/money/versions", json={"schema": shared, "schemaType": "PROTOBUF"})
    order = 'syntax = "proto3";\nimport "money.proto";\nmessage Order {\n  Money price = 1;\n}\n'
    reference = {"name": "money.proto", "subject": "money", "version": 1}
    assert (await tell(plain, order, schemaType="PROTOBUF", references=[reference])).status_code == 200
    more = order.replace("}\n", "  string note = 2;\n}\n")
    assert (await put(client, more)).text == "1"
    version = (await plain.get("/subjects/s/versions/2")).json()
    assert (version["schemaType"], version["references"], version["schema"]) == ("PROTOBUF", [reference], more)
    assert (await put(client, more.replace("string note", "int32 note"))).status_code == 403
    assert (await post(client, "no protobuf")).status_code == 400


async def test_schemas_are_found_in_whichever_dialect_they_came(
    client: httpx.AsyncClient, plain: httpx.AsyncClient
) -> None:
    """Registering or looking up a schema that another dialect registered returns its number."""
    text = json.dumps({"type": "record", "name": "R", "fields": []}, separators=(",", ":"))
    first = (await tell(plain, text)).json()["id"]
    assert (await put(client, text)).text == "0"
    assert (await post(client, text)).text == "1"
    assert (await client.post("/schema-repo/s/schema", content=text, headers=TEXT)).text == "0"
    assert (await tell(plain, text)).json()["id"] == first
    spaced = json.dumps({"type": "record", "name": "R", "doc": "d", "fields": []}, indent=1)
    assert (await put(client, spaced)).text == "1"
    again = (await tell(plain, spaced)).json()
    assert again["version"] == 2, "one schema in two spellings is registered once"


async def test_a_language_nobody_knows_stays_what_it_is(client: httpx.AsyncClient, node: Registry) -> None:
    """A subject that another dialect created with a custom format gets versions of this format, byte for byte."""
    first = SchemaDocument(b"\xffodd", hashlib.sha256(b"\xffodd").digest(), "opaque", custom_format="cobol")
    await node.execute(
        RegisterSchema(S, first, defaults=SubjectDefaults(comparison_scope=ComparisonScope.ONE_TYPE, policy=ALLOW_ANY))
    )
    assert (await put(client, INT)).text == "1"
    newest = queries.latest_version((await node.fresh_state()).find_subject(S))
    assert newest is not None
    assert (newest.kind.format, newest.kind.custom_format) == ("opaque", "cobol")
    assert (await client.get("/schema-repo/s/id/0")).content == b"\xffodd"
    assert (await client.get("/avro1124/schemas/s/1")).content == b"\xffodd"
    assert (await client.get("/schema-repo/s/all")).text == '1\t"int"\n0\t\ufffdodd\n'
    await node.execute(ChangeSettings(SettingsLevel(*S), {"policy": Policy(validators=("ünknown",))}))
    assert await model(client) == "\\xfcnknown"
