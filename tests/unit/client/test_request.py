"""Requests as values: what each call sends, and how names are escaped in URLs."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.client import (
    BaselineSchema,
    ConfigUpdateRequest,
    Metadata,
    ReferenceText,
    Rule,
    RuleSet,
    Schema,
    SchemaReference,
    endpoints,
    journal,
    settings,
    usage,
)
from stele.client.request import CachePolicy, Effect, Request, build_path, build_query
from stele.errors import InvalidName, InvalidRequest

AVRO = Schema('"string"')
GUID = UUID("89791762-2336-4186-9674-299b90a802e2")


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("orders-value", "orders-value"),
        ("a/b", "a%2Fb"),
        ("100%", "100%25"),
        ("%2F", "%252F"),
        ("two words", "two%20words"),
        ("naïve-ключ-键", "na%C3%AFve-%D0%BA%D0%BB%D1%8E%D1%87-%E9%94%AE"),
        (":.team:orders", "%3A.team%3Aorders"),
        ("a?b#c;d", "a%3Fb%23c%3Bd"),
        ("..", "%2E%2E"),
        (".", "%2E"),
        ("", ""),
    ],
)
def test_names_are_data_in_a_path(name: str, segment: str) -> None:
    """Any subject name is one segment of the path."""
    assert build_path("subjects", name, "versions") == f"/subjects/{segment}/versions"


@given(st.text())
def test_any_name_survives_the_path(name: str) -> None:
    """Escaping is reversible for any text, and leaves no character with a meaning in a URL."""
    segment = build_path(name).removeprefix("/")
    assert unquote(segment) == name
    assert not set(segment) & set("/?#&=+; ")
    assert segment not in {".", ".."}


def test_texts_beyond_utf8_are_refused() -> None:
    """Lone surrogates raise an error of Stele wherever they occur."""
    with pytest.raises(InvalidName):
        endpoints.versions("\ud800")
    with pytest.raises(InvalidName):
        endpoints.subjects(subject_prefix="\ud800")
    with pytest.raises(InvalidRequest):
        endpoints.register("s", Schema("\ud800"))


def test_query_leaves_out_what_was_not_said() -> None:
    """None and False are left out; '' and 0 are sent."""
    assert build_query({"a": None, "b": False, "c": "", "d": 0, "e": True, "f": "x y&z"}) == "c=&d=0&e=true&f=x%20y%26z"


@pytest.mark.parametrize(
    ("request_", "method", "target"),
    [
        (endpoints.ping(), "GET", "/"),
        (endpoints.server_version(), "GET", "/v1/metadata/version"),
        (endpoints.cluster_id(), "GET", "/v1/metadata/id"),
        (endpoints.deployment(), "GET", "/v1/metadata/deployment"),
        (
            endpoints.schemas(subject_prefix=":*:", latest_only=True),
            "GET",
            "/schemas?subjectPrefix=%3A%2A%3A&latestOnly=true",
        ),
        (endpoints.schema_types(), "GET", "/schemas/types"),
        (endpoints.schema_by_id(7), "GET", "/schemas/ids/7"),
        (endpoints.schema_by_id(7, style="serialized"), "GET", "/schemas/ids/7?format=serialized"),
        (endpoints.schema_text_by_id(7, subject="s"), "GET", "/schemas/ids/7/schema?subject=s"),
        (endpoints.subjects_of_id(7, deleted=True), "GET", "/schemas/ids/7/subjects?deleted=true"),
        (endpoints.versions_of_id(7), "GET", "/schemas/ids/7/versions"),
        (endpoints.schema_by_guid(GUID), "GET", f"/schemas/guids/{GUID}"),
        (endpoints.ids_of_guid(GUID), "GET", f"/schemas/guids/{GUID}/ids"),
        (endpoints.subjects(subject_prefix="", deleted_only=True), "GET", "/subjects?subjectPrefix=&deletedOnly=true"),
        (endpoints.lookup("s", AVRO, normalize=True), "POST", "/subjects/s?normalize=true"),
        (endpoints.delete_subject("s", permanent=True), "DELETE", "/subjects/s?permanent=true"),
        (endpoints.versions("s", offset=2, limit=3), "GET", "/subjects/s/versions?offset=2&limit=3"),
        (endpoints.register("s", AVRO), "POST", "/subjects/s/versions"),
        (endpoints.version("s"), "GET", "/subjects/s/versions/latest"),
        (endpoints.version("s", 3, deleted=True), "GET", "/subjects/s/versions/3?deleted=true"),
        (endpoints.version_text("s", 3), "GET", "/subjects/s/versions/3/schema"),
        (endpoints.referenced_by("s", 3), "GET", "/subjects/s/versions/3/referencedby"),
        (endpoints.delete_version("s", 3), "DELETE", "/subjects/s/versions/3"),
        (
            endpoints.latest_with_metadata("s", {"a b": "1", "c": "2"}, deleted=True),
            "GET",
            "/subjects/s/metadata?key=a%20b&value=1&key=c&value=2&deleted=true",
        ),
        (settings.check_compatibility("s", AVRO), "POST", "/compatibility/subjects/s/versions?verbose=true"),
        (settings.check_compatibility("s", AVRO, 2, verbose=False), "POST", "/compatibility/subjects/s/versions/2"),
        (settings.config(), "GET", "/config"),
        (settings.config("s", default_to_global=True), "GET", "/config/s?defaultToGlobal=true"),
        (settings.set_config("FULL", "s"), "PUT", "/config/s"),
        (settings.delete_config("s"), "DELETE", "/config/s"),
        (settings.mode(), "GET", "/mode"),
        (settings.set_mode("IMPORT", force=True), "PUT", "/mode?force=true"),
        (settings.delete_mode(":.team:", recursive=True), "DELETE", "/mode/%3A.team%3A?recursive=true"),
        (settings.contexts(context_prefix=".t"), "GET", "/contexts?contextPrefix=.t"),
        (settings.delete_context(".team"), "DELETE", "/contexts/.team"),
        (settings.check("avro", "{}", []), "POST", "/api/check"),
        (journal.journal(limit=0), "GET", "/api/journal?after=0&limit=0"),
        (usage.record_usage("table a/b", usage.CensusRecord(1)), "PUT", "/api/usage/table%20a%2Fb"),
        (usage.forget_usage("s3://a"), "DELETE", "/api/usage/s3%3A%2F%2Fa"),
        (usage.preview_deletion(":.t:a", 2), "GET", "/api/deletions/%3A.t%3Aa?version=2"),
        (
            journal.journal(7, namespace="", subject="a/b"),
            "GET",
            "/api/journal?after=7&limit=1000&namespace=&subject=a%2Fb",
        ),
    ],
)
def test_routes(request_: Request[Any], method: str, target: str) -> None:
    """Each call has the method and target of the API."""
    assert (request_.method, request_.target) == (method, target)


def body(request: Request[Any]) -> Any:
    """Return the JSON body of a request."""
    assert request.body is not None
    return msgspec.json.decode(request.body)


def test_registration_body_has_only_what_was_said() -> None:
    """The body has only the members that were set, because old servers refuse unknown ones."""
    assert body(endpoints.register("s", AVRO)) == {"schema": '"string"'}


def test_registration_body_in_full() -> None:
    """Type, references and metadata have the API's names."""
    schema = Schema("{}", "JSON", (SchemaReference("a.json", "a", 1),), Metadata(properties={"owner": "me"}))
    assert body(endpoints.register("s", schema)) == {
        "schema": "{}",
        "schemaType": "JSON",
        "references": [{"name": "a.json", "subject": "a", "version": 1}],
        "metadata": {"properties": {"owner": "me"}},
    }


def test_config_updates_tell_clearing_from_leaving() -> None:
    """None clears a setting, an unset member keeps it, and a single word is the level."""
    assert body(settings.set_config("FULL")) == {"compatibility": "FULL"}
    change = settings.set_config(ConfigUpdateRequest(alias=None, normalize=True))
    assert body(change) == {"alias": None, "normalize": True}


def test_mode_removal_says_null() -> None:
    """Removing the mode sends null."""
    assert body(settings.set_mode(None, "s")) == {"mode": None}


def test_check_body() -> None:
    """The stateless check sends every document with its references."""
    request = settings.check(
        "avro",
        "{}",
        [BaselineSchema("[]", (ReferenceText("r", "1"),))],
        references=[ReferenceText("q", "2")],
        policy="FULL",
    )
    assert body(request) == {
        "format": "avro",
        "schema": "{}",
        "policy": "FULL",
        "references": [{"name": "q", "schema": "2"}],
        "against": [{"schema": "[]", "references": [{"name": "r", "schema": "1"}]}],
    }
    assert request.media == "application/json"


@pytest.mark.parametrize(
    ("request_", "lifetime"),
    [
        (endpoints.schema_by_id(1), CachePolicy.IMMUTABLE),
        (endpoints.schema_by_guid(GUID), CachePolicy.IMMUTABLE),
        (endpoints.version("s", 1), CachePolicy.IMMUTABLE),
        (endpoints.version("s", 1, deleted=True), CachePolicy.TTL),
        (endpoints.version("s"), CachePolicy.TTL),
        (endpoints.lookup("s", AVRO), CachePolicy.TTL),
        (endpoints.versions("s"), CachePolicy.NEVER),
        (endpoints.register("s", AVRO), CachePolicy.NEVER),
    ],
)
def test_lifetimes(request_: Request[Any], lifetime: CachePolicy) -> None:
    """Ids and numbered versions are immutable, `latest` and lookups are cached for a time, and lists are not cached."""
    assert request_.cache_policy is lifetime


def test_effects() -> None:
    """A lookup by POST is a read, settings may be sent twice, deletions may not."""
    assert endpoints.lookup("s", AVRO).effect is Effect.READ
    assert settings.set_mode("READONLY").effect is Effect.WRITE
    assert settings.delete_mode("s").effect is Effect.DELETE


def test_null_is_the_same_as_nothing() -> None:
    """Members that other registries write as null get their defaults; null in a required member is refused."""
    names = ("doc", "kind", "mode", "type", "tags", "params", "expr", "onSuccess", "onFailure", "disabled")
    rules = {"domainRules": [{"name": "r", **dict.fromkeys(names)}], "migrationRules": None, "enableAt": None}
    answer = {"id": 3, "schema": "{}", "references": None, "metadata": {"tags": None}, "ruleSet": rules, "guid": None}
    version = endpoints.version("s").read(msgspec.json.encode(answer))
    assert version.rule_set == RuleSet(domain_rules=[Rule("r")])
    assert (version.id, version.guid, version.references, version.metadata) == (3, "", (), Metadata())
    config = settings.config("s").read(msgspec.json.encode({"compatibilityLevel": "FULL", "defaultRuleSet": rules}))
    assert config.default_rule_set == version.rule_set
    for body in (b'[{"id": null}]', b'{"id": "x"}', b'{"references": [{"name": null}]}', b"[" * 100_000):
        with pytest.raises(msgspec.MsgspecError):
            endpoints.version("s").read(body)
