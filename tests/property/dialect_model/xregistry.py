"""The xRegistry dialect: operations and reads, and the expected answers."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from tests.property.dialect_model.exchange import Ask, Op, Reply, Request, status
from tests.property.dialect_model.model import Model, Refused
from tests.property.dialect_model.model_types import ALLOW, BACKWARD, Creation, Key, KindOfSchema
from tests.property.dialect_model.schemas import DRAFTS, Draft

NAME = "xregistry"

_REFUSALS = {
    "SubjectNotFound": 404,
    "VersionNotFound": 404,
    "Incompatible": 400,
    "OtherFormat": 400,
    "ReadOnly": 400,
    "FormatMismatch": 409,
}
_FORMATS = {"avro": "Avro/1.12", "json": "JsonSchema/draft-07", "protobuf": "Protobuf/3"}
_CUSTOM = "words"
"""Name of a format that the registry does not know."""
_IDS = {"a": "a", "b/c": "b~2Fc", "c": "c", "ü": "_~~~C3~BC"}
"""Ids of the subjects of the walk."""


def _group(namespace: str) -> str:
    return f"/xregistry/schemagroups/{namespace or 'default'}"


def _at(key: Key, path: str = "") -> str:
    return f"{_group(key.namespace)}/schemas/{_IDS[key.name]}{path}"


# --- operations -----------------------------------------------------------------------------------------------------


def draw(random: Random, model: Model, key: Key) -> Op:
    """Return an operation on a schema: a new version, a deletion of one, or a deletion of all."""
    number = random.choice([*(row.version_number for row in model.live(key)), 99])
    what = random.choice(["put"] * 6 + ["delete", "delete", "drop"])
    language = model.language(key)
    suited = [number for number, draft in enumerate(DRAFTS) if draft.format == language]
    draft = random.choice(suited) if suited and random.random() < 0.8 else random.randrange(len(DRAFTS))
    return Op(NAME, what, *key, draft, number)


def act(model: Model, op: Op) -> Ask:
    """Apply an operation to the model. Return its request with the expected answer."""
    key = Key(op.namespace, op.name)
    if op.what == "put" and not _follows_latest(model, key):
        return Ask(Request("GET", "/xregistry/model"), 200, status)
    request = _request(model, op, key)
    try:
        return Ask(request, _apply_operation(model, op, key), status)
    except Refused as refused:
        return Ask(request, _REFUSALS[refused.kind], status)


def _follows_latest(model: Model, key: Key) -> bool:
    """Return whether the policy compares with the latest version at most: the model has no other ancestors."""
    policy = model.policy(key) if model.subject(key) is not None else _policy_of_new(model, key)
    return all(way in {"none", "latest"} for _, way in policy.directions)


def _policy_of_new(model: Model, key: Key) -> Any:
    return model.policies.get(key) or _above(model, key) or ALLOW


def _above(model: Model, key: Key) -> Any:
    levels = ((key.namespace, None), (None, None))
    return next((policy for level in levels if (policy := model.policies.get(level)) is not None), None)


def _request(model: Model, op: Op, key: Key) -> Request:
    draft = DRAFTS[op.draft]
    match op.what:
        case "put":
            live = model.live(key)
            body = {
                "format": _FORMATS.get(draft.format, _CUSTOM),
                "schemabase64": base64.b64encode(draft.raw.encode()).decode(),
                "contenttype": "text/x-walk",
                "ancestorid": str(live[-1].version_number) if live else "request",
            }
            return Request("PUT", _at(key, f"/versions/{_next_number(model, key)}$details"), body)
        case "delete":
            return Request("DELETE", _at(key, f"/versions/{op.number}"))
        case _:
            return Request("DELETE", _at(key))


def _next_number(model: Model, key: Key) -> int:
    subject = model.subject(key)
    return (subject.high if subject is not None else model.namespaces[key.namespace].used.get(key.name, 0)) + 1


def _apply_operation(model: Model, op: Op, key: Key) -> int:
    if op.what == "put":
        _register_draft(model, key, DRAFTS[op.draft])
        return 201
    live = model.live(key)
    if not live:
        raise Refused("SubjectNotFound")
    if op.what == "delete":
        if op.number not in {row.version_number for row in live}:
            raise Refused("VersionNotFound")
        if len(live) > 1:
            model.retire(key, op.number)
            return 204
    model.close(key)
    model.namespaces[key.namespace].made = True
    return 204


def _register_draft(model: Model, key: Key, draft: Draft) -> None:
    schema_kind = KindOfSchema(draft.format, draft.type, _CUSTOM if draft.format == "opaque" else "")
    live = model.live(key)
    if live:
        model.writable(key)
    if any(_format_of(row.schema_kind).casefold() != _format_of(schema_kind).casefold() for row in live):
        raise Refused("OtherFormat")
    policy = model.policy(key) if model.subject(key) is not None else _policy_of_new(model, key)
    is_unread = draft.format == "opaque" and policy.kind == "compare" and not policy.reject
    creation = Creation(reuses=False, policy=None if _above(model, key) is not None else ALLOW)
    model.register(key, schema_kind, draft.raw.encode(), creation, force=is_unread, again=True, media="text/x-walk")
    if not live:
        model.namespaces[key.namespace].made = True


def _format_of(schema_kind: KindOfSchema) -> str:
    if schema_kind.format == "opaque":
        return schema_kind.custom_format or schema_kind.type or "Custom"
    return _FORMATS[schema_kind.format]


# --- reads ----------------------------------------------------------------------------------------------------------


def reads(model: Model, key: Key, drafts: Sequence[Draft]) -> Iterator[Ask]:
    """Yield all reads of a schema through this dialect."""
    live = model.live(key)
    numbers = {str(row.version_number) for row in live}
    yield Ask(Request("GET", _at(key, "/versions")), (200, numbers) if live else (404, None), _of_keys)
    for row in [*(model.present(key).rows if model.subject(key) is not None else [])]:
        expected = (200, row.schema.text) if row.live else (404, None)
        yield Ask(Request("GET", _at(key, f"/versions/{row.version_number}")), expected, _of_document)
    yield Ask(Request("GET", _at(key, "/meta")), (200, _word(model, key)) if live else (404, None), _of_meta)
    if len(live) == 1:
        yield Ask(Request("GET", _at(key)), (200, live[0].schema.text), _of_document)


def _word(model: Model, key: Key) -> str | None:
    policy = model.policy(key)
    if policy != ALLOW:
        return policy.level.lower()
    initial_policy = model.present(key).made.policy
    inherited = initial_policy if initial_policy is not None else _above(model, key) or BACKWARD
    return "none" if model.policies.get(key) is not None and inherited != ALLOW else None


def _of_keys(reply: Reply) -> Any:
    return reply.status, set(reply.json) if reply.status < 400 else None


def _of_document(reply: Reply) -> Any:
    return reply.status, reply.body if reply.status < 400 else None


def _of_meta(reply: Reply) -> Any:
    return reply.status, reply.json.get("compatibility") if reply.status < 400 else None


def lists(model: Model) -> Iterator[Ask]:
    """Yield all lists of groups and schemas of this dialect."""
    visible_groups = {
        name or "default"
        for name, place in model.namespaces.items()
        if (place.is_visible if name else place.subjects or place.made)
    }
    yield Ask(Request("GET", "/xregistry/schemagroups"), (200, visible_groups), _of_keys)
    for namespace, place in model.namespaces.items():
        path = f"{_group(namespace)}/schemas"
        if (namespace or "default") not in visible_groups:
            yield Ask(Request("GET", path), 404, status)
            continue
        names = {_IDS[name] for name, subject in place.subjects.items() if subject.live}
        yield Ask(Request("GET", path), (200, names), _of_keys)
