"""schema-repo, by the numbered list of required behaviours in the reference."""

from __future__ import annotations

import asyncio
import html
import json
import re

import httpx
import pytest
from markupsafe import escape
from tests.conformance.apis.schema_repo.conftest import JSON, TEXT, World

from stele.apis.schema_repo import SchemaRepoOptions
from stele.core.commands import SetMode
from stele.core.model import Mode, SettingsLevel
from stele.errors import UnknownPolicy
from stele.service.registry import Registry

ROOT = "/schema-repo"
INT, LONG, STRING = '"int"', '"long"', '"string"'


async def create(client: httpx.AsyncClient, name: str = "s", **config: str) -> None:
    """Create a subject; `_` in a key stands for a dot."""
    form = {key.replace("_", "."): value for key, value in config.items()}
    answer = await client.put(f"{ROOT}/{name}", data=form)
    assert (answer.status_code, answer.text) == (200, name)


async def put(client: httpx.AsyncClient, path: str, schema: str | bytes) -> httpx.Response:
    """Send a schema."""
    return await client.put(f"{ROOT}/{path}", content=schema, headers=TEXT)


async def register_schemas(client: httpx.AsyncClient, *schemas: str, name: str = "s") -> list[str]:
    """Register schemas in order and return their ids."""
    answers = [await put(client, f"{name}/register", schema) for schema in schemas]
    assert all(answer.status_code == 200 for answer in answers), [answer.text for answer in answers]
    return [answer.text for answer in answers]


async def text(client: httpx.AsyncClient, path: str) -> str:
    """Return the body of a successful GET."""
    answer = await client.get(f"{ROOT}/{path}".rstrip("/"))
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    return answer.text


async def config(client: httpx.AsyncClient, name: str = "s") -> list[str]:
    """Return the lines of a subject's config below comment and date."""
    comment, date, *members = (await text(client, f"{name}/config")).splitlines()
    assert comment.startswith("#")
    assert re.fullmatch(r"#[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d UTC \d{4}", date)
    return members


async def test_15_a_subject_is_created_once(client: httpx.AsyncClient) -> None:
    """PUT returns the name; a second PUT does too, and does not change the config."""
    assert (await client.get(f"{ROOT}/s")).status_code == 404
    await create(client, owner="ann", repo_validators="backward")
    await create(client, owner="bob", repo_validators="")
    assert await config(client) == ["owner=ann", "repo.validators=backward"]
    assert await text(client, "s") == ""
    assert (await client.put(f"{ROOT}/empty")).text == "empty", "without any config"
    assert await config(client, "empty") == []


async def test_16_a_config_is_told_as_java_properties(client: httpx.AsyncClient) -> None:
    """The members of a form are returned in the escapes that `java.util.Properties` reads."""
    form = {"a key": " x =1:#!\\", "naïve": "grün\t☃\r\n𝄞", "repo.validators": "none, lint:NAMING", "": ""}
    assert (await client.put(f"{ROOT}/s", data=form)).status_code == 200
    assert await config(client) == [
        "=",
        "a\\ key=\\ x \\=1\\:\\#\\!\\\\",
        "na\\u00EFve=gr\\u00FCn\\t\\u2603\\r\\n\\uD834\\uDD1E",
        "repo.validators=none, lint\\:NAMING",
    ]
    assert (await client.get(f"{ROOT}/s/config", headers=JSON)).status_code == 406
    for wrong in ({"repo.other": "x"}, {"repo.": ""}, {"repo.validators": "lint,no-such"}, {"x": "x" * 2_000_000}):
        assert (await client.put(f"{ROOT}/t", data=wrong)).status_code in {400, 413}
    assert await text(client, "") == "s\n"


async def test_17_ids_count_from_zero(client: httpx.AsyncClient) -> None:
    """The first schema is 0, the next 1; a repeated registration returns the old id; ids are integers."""
    await create(client)
    assert await register_schemas(client, INT, LONG, INT, STRING, LONG) == ["0", "1", "0", "2", "1"]
    assert await text(client, "s/integral") == "true"


async def test_17_ids_that_are_digests(world: World, node: Registry) -> None:
    """Ids of another strategy are not integers."""
    client = await world.repo(node, SchemaRepoOptions(ids="crc-64-avro"))
    await create(client)
    first, second = await register_schemas(client, INT, "no schema at all")
    assert re.fullmatch("[0-9a-f]{16}", first)
    assert re.fullmatch("[0-9a-f]{32}", second), "what is no Avro schema has no such fingerprint"
    assert await text(client, "s/integral") == "false"
    assert await text(client, f"s/id/{second}") == "no schema at all"
    assert (await put(client, f"s/register_if_latest/{second}", INT)).text == first
    assert (await put(client, f"s/register_if_latest/{first}", LONG)).status_code == 409
    assert len(await register_schemas(client, LONG)) == 1


async def test_18_subjects_are_not_created_by_registering(client: httpx.AsyncClient) -> None:
    """Every path of an unknown subject is 404 with the original's text, and nothing is created."""
    for method, path in (
        ("PUT", "register"),
        ("PUT", "register_if_latest/"),
        ("PUT", "register_if_latest/0"),
        ("POST", "schema"),
        ("GET", ""),
        ("GET", "all"),
        ("GET", "config"),
        ("GET", "latest"),
        ("GET", "id/0"),
        ("GET", "integral"),
    ):
        sent = {"content": INT, "headers": TEXT} if method != "GET" else {}
        answer = await client.request(method, f"{ROOT}/s/{path}".removesuffix("/"), **sent)  # type: ignore[arg-type]  # test shorthand
        assert (answer.status_code, answer.text) == (404, "ERROR: This subject does not exist.\n"), path
    assert await text(client, "") == ""


async def test_19_registering_after_the_latest(client: httpx.AsyncClient) -> None:
    """The expected id of an empty subject is ''; a wrong id is 409, an unknown one 404, and neither stores anything."""
    await create(client)
    assert (await put(client, "s/register_if_latest/0", INT)).status_code == 404
    assert (await put(client, "s/register_if_latest/", INT)).text == "0"
    assert (await put(client, "s/register_if_latest", LONG)).status_code == 409
    assert (await put(client, "s/register_if_latest/0", LONG)).text == "1"
    assert (await put(client, "s/register_if_latest/0", STRING)).status_code == 409
    assert (await put(client, "s/register_if_latest/2", STRING)).status_code == 404
    assert (await put(client, "s/register_if_latest/0", INT)).status_code == 409, "though it is registered"
    assert (await put(client, "s/register_if_latest/1", INT)).text == "0"
    assert await text(client, "s/latest") == f"1\t{LONG}"


async def test_19_one_of_many_is_first(world: World, node: Registry) -> None:
    """Of many registrations after the same schema exactly one succeeds, at whichever node."""
    clients = [await world.repo(node), await world.repo(await world.node())]
    await create(clients[0])
    sent = [f'{{"type":"fixed","name":"F","size":{size}}}' for size in range(1, 11)]
    registrations = [put(clients[number % 2], "s/register_if_latest/", schema) for number, schema in enumerate(sent)]
    answers = await asyncio.gather(*registrations)
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 9


async def test_20_schemas_are_read_in_three_ways(client: httpx.AsyncClient) -> None:
    """The latest is id, tab, schema; one by id is the schema alone; all are lines with the newest first."""
    await create(client)
    assert await text(client, "s/all") == ""
    assert (await client.get(f"{ROOT}/s/latest")).text == "ERROR: This schema does not exist.\n"
    await register_schemas(client, INT, LONG, '"größer"')
    assert await text(client, "s/latest") == '2\t"größer"'
    assert [await text(client, f"s/id/{number}") for number in range(3)] == [INT, LONG, '"größer"']
    assert await text(client, "s/all") == f'2\t"größer"\n1\t{LONG}\n0\t{INT}\n'
    assert (await client.post(f"{ROOT}/s/schema", content=LONG, headers=TEXT)).text == "1"
    missing = [await client.get(f"{ROOT}/s/id/3"), await client.post(f"{ROOT}/s/schema", content=STRING, headers=TEXT)]
    assert [(answer.status_code, answer.text) for answer in missing] == [
        (404, "ERROR: This schema does not exist.\n")
    ] * 2


async def test_21_lists_are_json_where_it_is_asked_for(client: httpx.AsyncClient) -> None:
    """Lists of subjects and schemas can be JSON, over several lines; single schemas and configs cannot."""
    await create(client)
    assert (await client.put(f"{ROOT}/t%2Fu")).text == "t/u"
    await register_schemas(client, INT, LONG)
    subjects = await client.get(ROOT, headers=JSON)
    assert subjects.text == '[\n  {\n    "name": "s"\n  },\n  {\n    "name": "t/u"\n  }\n]'
    schemas = await client.get(f"{ROOT}/s/all", headers=JSON)
    assert schemas.headers["content-type"] == "application/json"
    assert schemas.json() == [{"id": "1", "schema": LONG}, {"id": "0", "schema": INT}]
    for path in ("latest", "id/0", "config"):
        assert (await client.get(f"{ROOT}/s/{path}", headers=JSON)).status_code == 406


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2", "text/plain"),
        ("image/jpeg", None),
        ("", "text/plain"),
        ("*/*", "text/plain"),
        ("image/png,application/json;q=0.1, text/plain", "application/json"),
        ("text/plain;charset=latin-1, application/json", "text/plain"),
        ("TEXT/PLAIN", "text/plain"),
        ("text/html", None),
    ],
)
async def test_22_the_first_known_media_type_wins(
    accept: str, media_type: str | None, client: httpx.AsyncClient
) -> None:
    """Accept is read from left to right without weights; the header of Java's own client gets plain text."""
    answer = await client.get(ROOT, headers={"accept": accept})
    assert answer.status_code == (406 if media_type is None else 200)
    assert answer.headers["content-type"].startswith(media_type or "text/plain")
    assert media_type is not None or "text/plain, application/json" in answer.text


async def test_23_validators_refuse(world: World, node: Registry) -> None:
    """A refusal is 403 with the reason; an empty list means no validators, even if the server has default ones."""
    client = await world.repo(node, SchemaRepoOptions(default_validators=("repo.reject",)))
    await create(client, repo_validators="repo.reject")
    await create(client, "free", repo_validators="")
    await create(client, "default")
    for name in ("s", "default"):
        for path in ("register", "register_if_latest/"):
            answer = await put(client, f"{name}/{path}", INT)
            assert answer.status_code == 403
            assert "repo.reject" in answer.text
        assert await text(client, f"{name}/all") == ""
    assert await register_schemas(client, INT, STRING, name="free") == ["0", "1"]
    assert await config(client, "default") == []


async def test_23_rules_and_rulesets_are_validators(client: httpx.AsyncClient) -> None:
    """Policies, lint rules and rulesets can be combined; the response has all reasons."""
    await create(client, repo_validators="full,lint:DOC_REQUIRED , ruleset:avro,")
    assert (await put(client, "s/register", '{"type":"fixed","name":"F","size":1}')).status_code == 403
    documented = '{"type":"record","name":"R","doc":"d","fields":[{"name":"a","type":"int","doc":"d"}]}'
    assert await register_schemas(client, documented) == ["0"]
    answer = await put(client, "s/register", documented.replace('"int"', '"string"'))
    assert answer.status_code == 403
    assert "- TYPE_MISMATCH at /fields/0/type: " in answer.text
    assert await register_schemas(client, documented) == ["0"], "what is registered already is not judged again"


async def test_24_schemas_of_several_lines(client: httpx.AsyncClient) -> None:
    """If a schema has several lines, the text of all schemas begins with a warning; JSON has the exact bytes."""
    await create(client)
    lines = '{"type":\r\n  "int"}\n'
    await register_schemas(client, LONG, lines)
    warning, _, rest = (await text(client, "s/all")).partition("\n")
    assert warning.startswith("ERROR: ")
    assert "application/json" in warning
    assert rest == f"1\t{lines}\n0\t{LONG}\n"
    assert (await client.get(f"{ROOT}/s/all", headers=JSON)).json()[0] == {"id": "1", "schema": lines}
    assert (await client.get(f"{ROOT}/s/id/1")).content == lines.encode()


@pytest.mark.parametrize("prefix", ["", "/avro1124"])
async def test_25_the_browser_escapes_and_links(prefix: str, client: httpx.AsyncClient) -> None:
    """Every link of every page leads to a page, and content from clients is escaped."""
    evil = '"<script>alert(1)</script>&amp;"'
    root = f"{prefix}/schema-repo-browser"
    assert "no subject" in (await client.get(root)).text
    for name in ("%3Cb%3E%26", "a%2Fb", "empty"):
        assert (await client.put(f"{ROOT}/{name}", data={"<i>": evil})).status_code == 200
    for name in ("%3Cb%3E%26", "a%2Fb"):
        await register_schemas(client, evil, INT, name=name)
    seen: set[str] = set()
    pending = [root]
    while pending:
        page = await client.get(pending.pop())
        assert (page.status_code, page.headers["content-type"].split(";")[0]) == (200, "text/html")
        assert page.headers["content-security-policy"].startswith("default-src 'none';")
        assert "<script" not in page.text
        assert "<i>" not in page.text
        assert "<b>" not in page.text
        links = {html.unescape(link) for link in re.findall('href="([^"]*)"', page.text)}
        pending.extend(links - seen)
        seen |= links
    assert f"{root}/a%2Fb/id/0" in seen
    assert len(seen) == 1 + 3 * 3 + 2 * 2
    text = (await client.get(f"{root}/a%2Fb/id/0")).text
    assert escape(evil) in text
    assert html.unescape(text.partition("<pre>")[2].partition("</pre>")[0]).removeprefix("\n") == evil
    assert "no schema" in (await client.get(f"{root}/empty/all")).text
    assert (await client.get(f"{root}/nobody/all")).status_code == 404


async def test_26_the_status_is_that_of_the_store(client: httpx.AsyncClient, node: Registry) -> None:
    """The status is OK while the store responds, 503 when it is closed, at every path; reads answer 503, too."""
    for place in ("/avro1124", "/schema-repo-admin", ""):
        assert (await client.get(f"{place}/status")).text.startswith("OK : ")
    await node.close()
    for place in ("/avro1124", "/schema-repo-admin", ""):
        assert (await client.get(f"{place}/status")).status_code == 503
    assert (await client.get(ROOT)).status_code == 503


async def test_27_two_servers_on_one_store(world: World) -> None:
    """Two servers see each other's registrations at once, and no id is assigned twice."""
    clients = [await world.repo(await world.node()) for _ in range(2)]
    await create(clients[0])
    assert await register_schemas(clients[1], INT) == ["0"]
    assert await text(clients[0], "s/latest") == f"0\t{INT}"
    sent = [f'{{"type":"fixed","name":"F","size":{size}}}' for size in range(1, 31)]
    answers = await asyncio.gather(
        *(put(clients[number % 2], "s/register", schema) for number, schema in enumerate(sent))
    )
    assert sorted(int(answer.text) for answer in answers) == list(range(1, 31))
    for schema, answer in zip(sent, answers, strict=True):
        assert [await text(client, f"s/id/{answer.text}") for client in clients] == [schema, schema]


WRITES = [
    ("PUT", "/schema-repo/new", "form"),
    ("PUT", "/schema-repo/s/register", "text"),
    ("PUT", "/schema-repo/s/register_if_latest/0", "text"),
    ("POST", "/avro1124/schemas/groups/s", "form"),
    ("POST", "/avro1124/schemas/new", "form"),
]


async def test_28_read_only_repositories_are_read(world: World, node: Registry, client: httpx.AsyncClient) -> None:
    """Every write is refused by the option `read_only` and by the registry's mode; every read is served."""
    await create(client)
    await register_schemas(client, INT)
    still = await world.repo(node, SchemaRepoOptions(read_only=True))
    for refusing in (still, client):
        if refusing is client:
            await node.execute(SetMode(SettingsLevel(), Mode.READONLY))
        for method, path, kind in WRITES:
            sent = {"content": LONG, "headers": TEXT} if kind == "text" else {"data": {"schema": LONG}}
            answer = await refusing.request(method, path, **sent)  # type: ignore[arg-type]  # test shorthand
            assert (answer.status_code, "read-only" in answer.text) == (403, True), path
        assert await text(refusing, "") == "s\n"
        assert await text(refusing, "s/all") == f"0\t{INT}\n"
        assert await config(refusing) == []
        assert (await refusing.post(f"{ROOT}/s/schema", content=INT, headers=TEXT)).text == "0"
        assert (await refusing.get("/avro1124/status")).status_code == 200
    assert await register_schemas(client, INT) == ["0"], "what is there can be asked for by registering it"


async def test_what_is_no_schema_is_kept_unread(client: httpx.AsyncClient) -> None:
    """Any text can be registered, as in the original; a policy that compares refuses a text that it cannot parse."""
    await create(client)
    assert await register_schemas(client, "anything <at> all", INT, '{"type":"no.such.Type"}') == ["0", "1", "2"]
    assert await text(client, "s/id/0") == "anything <at> all"
    await create(client, "strict", repo_validators="backward")
    assert await register_schemas(client, INT, name="strict") == ["0"]
    assert (await put(client, "strict/register", "anything")).status_code == 403


async def test_bodies_that_cannot_be_read(client: httpx.AsyncClient) -> None:
    """Empty, malformed and too long bodies, other media types and charsets are refused, and nothing is stored."""
    await create(client)
    assert (await put(client, "s/register", "")).status_code == 400
    assert (await put(client, "s/register", b'"\xff"')).status_code == 400
    assert (await put(client, "s/register", "x" * 2_000_000)).status_code == 413
    for content_type in ("application/json", "text/plain; charset=zlib", "application/x-www-form-urlencoded"):
        answer = await client.put(f"{ROOT}/s/register", content=INT, headers={"content-type": content_type})
        assert answer.status_code == 415, content_type
    latin = {"content-type": 'text/plain; charset="ISO-8859-1"'}
    assert await text(client, "s/all") == ""
    assert (await client.put(f"{ROOT}/s/register", content='"é"'.encode("latin-1"), headers=latin)).text == "0"
    assert await text(client, "s/id/0") == '"é"'
    assert (await client.delete(f"{ROOT}/s")).status_code == 405
    assert (await put(client, "/register", INT)).status_code == 404


async def test_the_settings_of_the_server_are_told(world: World, node: Registry) -> None:
    """Changed or all settings are shown, as properties or as a page; invalid settings raise at the start."""
    options = SchemaRepoOptions(ids="md5", models={"db": ("full", "lint")}, default_validators=("db",))
    client = await world.repo(node, options)
    properties = (await client.get("/avro1124/config")).text.splitlines()[2:]
    assert properties == [
        "schema-repo.ids=md5",
        "schema-repo.validation.default.validators=db",
        "schema-repo.validator.db=full,lint",
    ]
    everything = await client.get("/schema-repo-admin/config?includeDefaults=true", headers={"accept": "text/html"})
    assert "schema-repo.read-only=false" in everything.text
    assert everything.headers["content-type"].startswith("text/html")
    with pytest.raises(UnknownPolicy):
        await world.repo(node, SchemaRepoOptions(default_validators=("no-such",)))


async def test_everything_is_below_avro1124_too(client: httpx.AsyncClient) -> None:
    """The subjects are also below `/avro1124`, where the Java client finds status and config beside them."""
    assert (await client.put("/avro1124/schema-repo/s")).text == "s"
    assert (await client.put("/avro1124/schema-repo/s/register", content=INT, headers=TEXT)).text == "0"
    assert await text(client, "s/latest") == f"0\t{INT}"
    assert (await client.get("/avro1124/schema-repo", headers=JSON)).json() == [{"name": "s"}]


async def test_the_description_has_every_route(client: httpx.AsyncClient) -> None:
    """The OpenAPI document contains paths, bodies and errors."""
    document = (await client.get("/_docs/schema-repo/openapi.json")).json()
    register = document["paths"]["/schema-repo/{subject}/register"]["put"]
    assert list(register["requestBody"]["content"]) == ["text/plain"]
    assert {"403", "404"} <= set(register["responses"])
    posted = document["paths"]["/avro1124/schemas/groups/{group}"]["post"]
    assert "force_override" in json.dumps(posted["requestBody"])
