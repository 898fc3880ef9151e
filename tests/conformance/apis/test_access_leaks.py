"""No response reveals a hidden subject to a caller whose subjects share its namespaces, topics and texts.

Every endpoint that reads is called twice: about the hidden subject, of which the caller then knows the name but not the
schema, and about a subject of the caller's own.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from tests.support.access_samples import MARKER, SAMPLES, SUBJECT, TEAM, Sample
from tests.support.access_world import Endpoint, World, list_endpoints

from stele.core.access import AccessRule, AccessRules, Operation, ResourceType
from stele.server.dialects import MOUNTS, DialectEntry
from stele.service.access import AccessControl
from stele.service.registry import Registry
from stele.storage import open_log
from stele.ui.work import journal_feed

pytestmark = pytest.mark.asyncio(loop_scope="module")

_OWN_TEXT = '{"type":"record","name":"Mine","fields":[{"name":"a","type":"int"}]}'
_REFERRING = json.dumps({"type": "record", "name": f"{MARKER}2", "fields": [{"name": "mine", "type": "Mine"}]})
_REFERENCE = {"name": "Mine", "subject": "mine", "version": 1}
_MORE: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/subjects/mine/versions", {"schema": _OWN_TEXT}),
    ("POST", f"/contexts/.{TEAM}/subjects/mine/versions", {"schema": _OWN_TEXT}),
    ("PUT", f"/config/{SUBJECT}", {"compatibility": "NONE"}),
    ("POST", f"/subjects/{SUBJECT}/versions", {"schema": _REFERRING, "references": [_REFERENCE]}),
    ("POST", "/subjects/shared-a/versions", {"schema": '"string"'}),
    (
        "POST",
        "/associations",
        {
            "resourceName": "secret-topic",
            "resourceNamespace": "cluster",
            "resourceId": "secret-topic-id",
            "associations": [{"subject": "mine", "associationType": "key", "lifecycle": "WEAK"}],
        },
    ),
    ("POST", "/contexts/.vault/subjects/vaulted/versions", {"schema": _REFERRING.replace("Mine", "string")}),
)
_RULES = AccessRules(
    [
        AccessRule("user:admin", ("admin",)),
        *(
            AccessRule("user:neighbour", ("owner",), resource_type=ResourceType.NAMESPACE, namespace=namespace)
            for namespace in ("", TEAM)
        ),
        AccessRule("user:neighbour", ("list", "export"), resource_type=ResourceType.NAMESPACE, namespace="vault"),
        AccessRule(
            "user:neighbour",
            ("admin",),
            allow=False,
            resource_type=ResourceType.SUBJECT,
            namespace="*",
            name=SUBJECT,
        ),
    ],
    default_allow=False,
)
_OWN_PARAMS = {"subject": "mine", "group": "mine", "schema": "mine", "schema_name": "mine"}
_SAFE = {Operation.LIST, Operation.READ, Operation.READ_KEYS}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(brief_logging: None) -> AsyncIterator[World]:
    """The sample registry, with the caller `neighbour` in it. Streams are short."""
    registry = await Registry.open(await open_log("memory:"))
    world = World(registry, has_login=True)
    await world.create(_MORE)
    registry.access = AccessControl(_RULES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal_feed, "_SHARE_OF_LIMIT", 0.005)
        yield world
    await registry.close()


def _own_params(endpoint: Endpoint) -> Mapping[str, str]:
    """Return the parameters with which an endpoint is about the neighbour's own subject."""
    if endpoint.dialect in {"cncf", "xregistry"}:
        return {"schema": "mine", "group": TEAM}
    if endpoint.dialect in {"native", "ui"}:
        return {"name": "mine", "subject": "mine"}
    return _OWN_PARAMS


@pytest.mark.parametrize("dialect", MOUNTS, ids=lambda dialect: dialect.name)
async def test_no_answer_tells_of_a_hidden_subject(world: World, dialect: DialectEntry) -> None:
    """Bodies and headers contain neither the hidden subject's name, unless the request did, nor its schema."""
    wrong: list[str] = []
    for endpoint in list_endpoints(world.registry, dialect):
        sample = SAMPLES[dialect.name].get(endpoint.handler)
        if sample is None or endpoint.wanted is None or endpoint.wanted.operation not in _SAFE or _is_echo(sample):
            continue
        about_hidden = await world.send(endpoint, sample, "neighbour")
        if MARKER in about_hidden.text + str(about_hidden.headers):
            wrong.append(f"{endpoint}: {about_hidden.status_code} {about_hidden.text}")
        own = sample._replace(params={**sample.params, **_own_params(endpoint)})
        about_own = await world.send(endpoint, own, "neighbour")
        text = about_own.text + str(about_own.headers)
        if MARKER in text or (SUBJECT in text and SUBJECT not in str(about_own.request.url)):
            wrong.append(f"{endpoint} about one's own: {about_own.status_code} {about_own.text}")
    assert not wrong, "\n".join(wrong)


def _is_echo(sample: Sample) -> bool:
    """Return whether the request itself contains the schema, so that the response may contain it."""
    return MARKER in str(sample.body) or SUBJECT in str(sample.body)


async def test_a_hidden_id_looks_as_if_nobody_had_it(world: World) -> None:
    """Responses of the Confluent dialect about the id and GUID of a hidden schema equal those about unused ids."""
    guid = world.params["confluent"]["guid"]
    unknown = guid[:-4] + ("0000" if guid[-4:] != "0000" else "1111")
    for path in ("/schemas/ids/{}", "/schemas/ids/{}/schema", "/schemas/ids/{}/subjects", "/schemas/ids/{}/versions"):
        for prefix in ("", f"/contexts/.{TEAM}"):
            hidden = await world.ask("neighbour", "GET", prefix + path.format(1))
            missing = await world.ask("neighbour", "GET", prefix + path.format(777))
            assert hidden.status_code == missing.status_code == 404
            assert hidden.text.replace("1 ", "N ") == missing.text.replace("777 ", "N ")
    hidden = await world.ask("neighbour", "GET", f"/schemas/guids/{guid}")
    missing = await world.ask("neighbour", "GET", f"/schemas/guids/{unknown}")
    assert (hidden.status_code, hidden.text) == (404, missing.text.replace(unknown, guid))
    assert (await world.ask("neighbour", "GET", "/schemas/ids/1?subject=mine")).status_code == 404


async def test_a_text_that_one_may_read_elsewhere_is_shown(world: World) -> None:
    """An id that a readable subject has is found, and the response does not name other subjects with it."""
    await world.restore()
    for subject in (SUBJECT, "mine"):
        registration = await world.ask("admin", "POST", f"/subjects/{subject}/versions", {"schema": '"bytes"'})
        if subject == "mine":
            await world.ask("admin", "PUT", "/config/mine", {"compatibility": "NONE"})
            registration = await world.ask("admin", "POST", f"/subjects/{subject}/versions", {"schema": '"bytes"'})
    number = registration.json()["id"]
    assert (await world.ask("neighbour", "GET", f"/schemas/ids/{number}")).json()["schema"] == '"bytes"'
    assert (await world.ask("neighbour", "GET", f"/schemas/ids/{number}/subjects")).json() == ["mine"]
    assert (await world.ask("neighbour", "GET", f"/schemas/ids/{number}/versions")).json() == [
        {"subject": "mine", "version": 2}
    ]
    await world.restore()


async def test_references_want_the_right_to_read(world: World) -> None:
    """References, aliases and look-ups in other contexts reveal no subject that the caller may not read."""
    refers = {
        "schema": _REFERRING.replace("Mine", MARKER),
        "references": [{"name": MARKER, "subject": SUBJECT, "version": 1}],
    }
    for path in ("/subjects/mine/versions", "/subjects/mine", "/compatibility/subjects/mine/versions/latest"):
        assert (await world.ask("neighbour", "POST", path, refers)).status_code == 403
    assert (await world.ask("neighbour", "GET", "/subjects/mine/versions/1/referencedby")).json() == []
    assert (await world.ask("admin", "GET", "/subjects/mine/versions/1/referencedby")).json() != []
    assert (await world.ask("admin", "PUT", "/config/door", {"alias": SUBJECT})).status_code == 200
    opened = await world.ask("neighbour", "POST", "/subjects/door/versions", {"schema": _OWN_TEXT})
    assert opened.status_code == 403
    opened = await world.ask("neighbour", "GET", "/subjects/door/versions/1")
    assert opened.status_code == 403
    assert SUBJECT not in opened.text
    assert (await world.ask("admin", "GET", "/subjects/door/versions/1")).json()["subject"] == SUBJECT
    elsewhere = await world.ask("neighbour", "GET", "/subjects/vaulted/versions/1")
    assert (elsewhere.status_code, elsewhere.json()["error_code"]) == (404, 40401)
    assert (await world.ask("admin", "GET", "/subjects/vaulted/versions/1")).status_code == 200
    await world.restore()


async def test_kept_answers_and_lists_belong_to_who_asked(world: World) -> None:
    """Cached responses to the admin are not given to other callers, nor vice versa."""
    remembering = World(world.registry, answer_cache_bytes=1_000_000, confluent_profile="karapace")
    paths = (
        "/subjects",
        "/schemas",
        "/schemas/ids/1?includeSubjects=true",
        "/v1/groups",
        "/schema-repo",
        "/api/journal",
    )
    for callers in (("admin", "neighbour"), ("neighbour", "admin")):
        for path in paths:
            for caller in (*callers, *callers):
                answer = await remembering.ask(caller, "GET", path)
                assert (SUBJECT in answer.text or MARKER in answer.text) is (caller == "admin"), (caller, answer.text)


async def test_what_is_only_tried_wants_the_same_right(world: World) -> None:
    """A dry run of associations does not reveal whether a hidden subject exists."""
    for subject in (SUBJECT, "nobody-has-it"):
        body = {
            "resourceName": "other-topic",
            "resourceNamespace": "cluster",
            "resourceId": "other-id",
            "associations": [{"subject": f":.vault:{subject}" if subject != SUBJECT else subject}],
        }
        tried = await world.ask("neighbour", "POST", "/associations?dryRun=true", body)
        assert tried.status_code == 403


async def test_hidden_subjects_do_not_count(world: World) -> None:
    """A page has as many names as requested, regardless of hidden subjects between them."""
    names = (await world.ask("neighbour", "GET", "/subjects")).json()
    pages = [(await world.ask("neighbour", "GET", f"/subjects?offset={n}&limit=1")).json() for n in range(len(names))]
    assert [name for page in pages for name in page] == names
    assert SUBJECT not in names
    assert len((await world.ask("admin", "GET", "/subjects")).json()) > len(names)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/contexts/a:b/subjects/x/versions"),
        ("GET", "/subjects/%FF/versions"),
        ("GET", "/api/policies/%FF"),
        ("GET", "/api/policies/:.half"),
        ("GET", "/api/deletions/:.x:"),
        ("GET", "/v1/groups/%FF"),
        ("GET", f"/v1/groups/{SUBJECT}?namespace=elsewhere&namespace="),
        ("GET", "/schemagroups/%FF"),
        ("GET", "/schemagroups//schemas/x"),
        ("DELETE", "/schemagroups/"),
        ("GET", "/$schemaGroups/%FF/schemas/x"),
        ("GET", "/schema-repo/%FF/latest"),
        ("GET", "/schema-registry/v1/tenant/%FF/schema/x"),
        ("GET", "/openschema/subjects/x?tenant=a%7Cb"),
        ("GET", f"/openschema/subjects/{SUBJECT}?tenant=elsewhere&tenant="),
    ],
)
async def test_names_that_cannot_be_read(world: World, method: str, path: str) -> None:
    """Invalid names, and a parameter that is given twice, are refused and reveal nothing."""
    for caller in ("neighbour", "nobody"):
        answer = await world.ask(caller, method, path)
        assert 400 <= answer.status_code < 500, answer.text
        assert MARKER not in answer.text
