"""Histories of registries: requests to the Confluent dialect that create everything that a registry can hold."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import httpx
from hypothesis import strategies as st

ALLOW = {"compatibility": "NONE"}


class Step(NamedTuple):
    """One request."""

    method: str
    target: str
    body: Any = None


def play(http: httpx.Client, steps: list[Step]) -> list[int]:
    """Send the requests and return the statuses. Refusals are allowed, server errors raise AssertionError."""
    statuses = [http.request(step.method, step.target, json=step.body).status_code for step in steps]
    assert all(status < 500 for status in statuses), [*zip(statuses, steps, strict=True)]
    return statuses


def record(name: str, *fields: str) -> str:
    """Return an Avro record schema with int fields."""
    return json.dumps({"type": "record", "name": name, "fields": [{"name": f, "type": "int"} for f in fields]})


def register(subject: str, schema: str, **more: Any) -> Step:
    """Return the request that registers a schema."""
    return Step("POST", f"/subjects/{subject}/versions", {"schema": schema, **more})


_RULES = {
    "domainRules": [
        {"name": "check", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "message.a > 0", "tags": ["P"]},
        {"name": "mask", "type": "ENCRYPT", "params": {"k": "v"}, "onFailure": "ERROR", "disabled": True},
    ],
    "migrationRules": [{"name": "up", "mode": "UPGRADE", "type": "JSONATA", "expr": "$", "doc": "why"}],
}
_METADATA = {"properties": {"owner": "me"}, "tags": {"R.a": ["PII", "A"]}, "sensitive": ["owner"]}

KEK = {"name": "k", "kmsType": "aws-kms", "kmsKeyId": "arn:1", "kmsProps": {"region": "eu"}, "doc": "why"}
DEKS = "/dek-registry/v1/keks/k/deks"


def dek(subject: str, version: int, material: str, **more: Any) -> dict[str, Any]:
    """Return the body of a request for a wrapped data encryption key (DEK)."""
    return {"subject": subject, "version": version, "encryptedKeyMaterial": material, **more}


BESIDE = [
    Step("POST", "/dek-registry/v1/keks", KEK),
    Step("POST", "/dek-registry/v1/keks", {**KEK, "name": "gone", "kmsProps": None, "doc": None}),
    Step("DELETE", "/dek-registry/v1/keks/gone"),
    Step("POST", DEKS, dek("orders", 1, "AAAA")),
    Step("POST", DEKS, dek("orders", 2, "BBBB")),
    Step("POST", DEKS, dek("orders", 10, "CCCC", algorithm="AES256_SIV")),
    Step("POST", DEKS, dek(":.team:mine", 1, "DDDD")),
    Step("DELETE", f"{DEKS}/orders/versions/2"),
    Step("POST", "/contexts/.team/dek-registry/v1/keks", {**KEK, "kmsKeyId": "arn:2"}),
    Step("POST", DEKS, dek(":.team:yours", 1, "EEEE")),
    Step(
        "POST",
        "/associations",
        {
            "resourceName": "t",
            "resourceNamespace": "lkc",
            "resourceId": "id",
            "associations": [{"subject": "orders", "lifecycle": "STRONG"}],
        },
    ),
    Step(
        "POST",
        "/exporters",
        {
            "name": "e",
            "contextType": "CUSTOM",
            "context": "dc",
            "subjects": ["o*"],
            "config": {"schema.registry.url": "http://x", "basic.auth.user.info": "u:p"},
        },
    ),
    Step("PUT", "/exporters/e/pause"),
    Step("POST", "/exporters", {"name": "f", "subjectRenameFormat": "dc_${subject}"}),
]
"""Requests for keys, associations and exporters. They need a version of `orders`."""

EVERYTHING = [
    Step("PUT", "/config", {"compatibility": "FULL"}),
    Step("PUT", "/config/:.__GLOBAL:", {"compatibility": "FORWARD", "compatibilityGroup": "major"}),
    Step("PUT", "/config/:.team:", {"compatibility": "NONE", "normalize": False}),
    Step("PUT", "/config/orders", ALLOW),
    Step("PUT", "/config/strict", {"steleCompatibility": {"kind": "deny_all", "checkers": ["lint"]}}),
    Step("PUT", "/config/nobody", {"alias": "orders", "validateFields": True}),
    # versions with inherited attachments and without
    register("orders", record("R", "a"), metadata=_METADATA, ruleSet=_RULES),
    *BESIDE,
    register("orders", record("R", "a", "b")),
    register("orders", record("R", "a", "b", "c"), metadata={"properties": {"other": "é\n"}}),
    Step("POST", "/subjects/orders/versions/1/tags", {"tagsToAdd": [
        {"schemaEntity": {"entityPath": "R.b", "entityType": "sr_field"}, "tags": ["X"]}]}),
    # one schema in several subjects, and a name that needs care
    register("copy%2Fof%20orders", record("R", "a", "b", "c"), metadata={"properties": {"other": "é\n"}}),
    register("copy%2Fof%20orders", record("R", "a", "b", "c"), metadata={"properties": {"other": "0"}}),
    # soft deletion, re-registration, permanent deletion
    Step("DELETE", "/subjects/orders/versions/2"),
    register("orders", record("R", "a", "b")),
    register("gone", '"int"'),
    Step("DELETE", "/subjects/gone"),
    register("purged", record("P", "x")),
    register("purged", record("P", "x"), metadata={"properties": {"n": "1"}}),
    Step("DELETE", "/subjects/purged/versions/1"),
    Step("DELETE", "/subjects/purged/versions/1?permanent=true"),
    register("vanished", record("V", "x")),
    Step("DELETE", "/subjects/vanished"),
    Step("DELETE", "/subjects/vanished?permanent=true"),
    # references: within a subject's context, across contexts, deleted referrers, three formats
    register("zz-base", '{"type":"enum","name":"E","symbols":["A","B"]}'),
    register("aa-user", '{"type":"record","name":"U","fields":[{"name":"e","type":"E"}]}',
             references=[{"name": "E", "subject": "zz-base", "version": 1}]),
    register(":.team:aa-user", '{"type":"record","name":"T","fields":[{"name":"e","type":"E"}]}',
             references=[{"name": "E", "subject": ":.:zz-base", "version": 1}]),
    register(":.team:b", '{"type":"record","name":"B","fields":[{"name":"t","type":"T"}]}',
             references=[{"name": "T", "subject": "aa-user", "version": 1}]),
    Step("DELETE", "/subjects/:.team:b"),
    register("common.proto", 'syntax = "proto3"; package c; message C { int32 a = 1; } // gone', schemaType="PROTOBUF"),
    register("uses.proto", 'syntax = "proto3"; import "common.proto"; message M { c.C c = 1; }', schemaType="PROTOBUF",
             references=[{"name": "common.proto", "subject": "common.proto", "version": 1}]),
    register("def", '{"type": "object", "properties": {"x": {"type": "string"}}}', schemaType="JSON"),
    register("ref", '{"type":"object","properties":{"d":{"$ref":"d.json"}}}', schemaType="JSON",
             references=[{"name": "d.json", "subject": "def", "version": 1}]),
    # contexts, one of them without versions, and ids of purged schemas
    register(":.empty:x", '"int"'),
    Step("DELETE", "/subjects/:.empty:x"),
    Step("DELETE", "/subjects/:.empty:x?permanent=true"),
    register(":.other:only", '"long"'),
    register(":.other:more", '"float"'),
    Step("DELETE", "/subjects/:.other:more"),
    Step("DELETE", "/subjects/:.other:more?permanent=true"),
    # imported versions: gaps in the numbers, a schema with two ids, a text in another spelling
    Step("PUT", "/mode/:.moved:", {"mode": "IMPORT"}),
    register(":.moved:m", '{"type" : "string"}', id=900, version=7),
    register(":.moved:m", '{"type" : "string"}', id=901, version=9),
    Step("PUT", "/mode/:.moved:", {"mode": None}),
    # settings of every kind; modes come last, because they forbid further writes
    Step("PUT", "/config/orders", {"compatibility": "BACKWARD_TRANSITIVE", "compatibilityPolicy": "LENIENT",
                                   "overrideMetadata": {"properties": {"late": "yes"}}, "defaultRuleSet": _RULES}),
    Step("PUT", "/config/aa-user", {"alias": "zz-base"}),
    Step("PUT", "/mode/gone", {"mode": "READONLY"}),
    Step("PUT", "/mode/orders", {"mode": "READWRITE"}),
    Step("PUT", "/mode/:.other:", {"mode": "READONLY"}),
    Step("PUT", "/mode", {"mode": "READONLY"}),
]  # fmt: skip
"""Requests that create at least one of everything."""


_SUBJECTS = st.sampled_from(["a", "b", "c", ":.t:a", ":.t:b", ":.u:a"])
_FIELDS = st.sampled_from([("x",), ("x", "y"), ("x", "z"), ("z",)])
_METADATA_OF = st.sampled_from([None, {"properties": {"p": "1"}}, {"tags": {"R.x": ["T"]}}])


@st.composite
def _registration(draw: st.DrawFn) -> Step:
    subject = draw(_SUBJECTS)
    target = draw(st.none() | st.tuples(st.sampled_from(["a", "b", ":.t:a", ":.:a"]), st.integers(1, 2)))
    more: dict[str, Any] = {"metadata": draw(_METADATA_OF)}
    if target is None:
        return register(subject, record("R", *draw(_FIELDS)), **more)
    more["references"] = [{"name": "R", "subject": target[0], "version": target[1]}]
    name = draw(st.sampled_from(["Q", "S"]))
    return register(
        subject, json.dumps({"type": "record", "name": name, "fields": [{"name": "r", "type": "R"}]}), **more
    )


@st.composite
def _deletion(draw: st.DrawFn) -> Step:
    version = draw(st.sampled_from(["", "/versions/1", "/versions/2", "/versions/latest"]))
    return Step("DELETE", f"/subjects/{draw(_SUBJECTS)}{version}{draw(st.sampled_from(['', '?permanent=true']))}")


@st.composite
def _setting(draw: st.DrawFn) -> Step:
    level = draw(st.sampled_from(["", "/:.__GLOBAL:", "/:.t:", "/a", "/b", "/:.t:b"]))
    changes = st.sampled_from([ALLOW, {"compatibility": "FULL"}, {"normalize": True}, {"compatibilityGroup": "g"}])
    return Step("PUT", f"/config{level}", draw(changes))


@st.composite
def _mode(draw: st.DrawFn) -> Step:
    level = draw(st.sampled_from(["", "/:.t:", "/a", "/:.t:b", "/:.__GLOBAL:"]))
    mode = draw(st.sampled_from(["READWRITE", "READONLY", None, "READONLY_OVERRIDE"]))
    return Step("PUT", f"/mode{level}", {"mode": mode})


def histories() -> st.SearchStrategy[list[Step]]:
    """Return a strategy for random histories: mostly registrations and deletions.

    Modes come last, so that they do not refuse the other requests.
    """
    body = st.lists(st.one_of(_registration(), _registration(), _registration(), _deletion(), _setting()), max_size=25)
    modes = st.lists(_mode(), max_size=3)
    return st.builds(lambda steps, ends: [Step("PUT", "/config", ALLOW), *steps, *ends], body, modes)
