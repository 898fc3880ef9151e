"""The CNCF dialect and its Azure variant: operations and reads, and the expected answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from tests.property.dialect_model.confluent import exact_form
from tests.property.dialect_model.exchange import Ask, Op, Reply, Request, segment, status
from tests.property.dialect_model.model import Learned, Model, Refused
from tests.property.dialect_model.model_types import ALLOW, LEVELS, Creation, Key, KindOfSchema, Policy, Row
from tests.property.dialect_model.schemas import DRAFTS, Draft, interpret_bytes, pick_draft

NAME = "cncf"

_REFUSALS = {
    "SpaceNotFound": 404,
    "SubjectNotFound": 404,
    "VersionNotFound": 404,
    "ContentNotFound": 404,
    "Incompatible": 409,
    "FormatMismatch": 400,
    "MalformedSchema": 400,
    "InvalidName": 400,
    "Incomparable": 400,
    "ReadOnly": 403,
}
_AZURE_REFUSALS = {**_REFUSALS, "FormatMismatch": 415}
_TYPES = {
    "avro": "application/json;format=avro",
    "json": "application/schema+json",
    "protobuf": "text/x-protobuf",
    "opaque": "text/plain",
}
_AZURE_TYPES = {
    "avro": "application/json; serialization=Avro",
    "json": "application/json; serialization=Json",
    "protobuf": "text/vnd.ms.protobuf",
}
_CUSTOM = "words"
"""Name of a format that the registry does not know."""


def _group(namespace: str, azure: bool = False) -> str:
    return f"/{'$schemaGroups' if azure else 'schemagroups'}/{namespace or 'default'}"


def _at(key: Key, path: str = "", *, azure: bool = False) -> str:
    return f"{_group(key.namespace, azure)}/schemas/{segment(key.name)}{path}"


# --- operations -----------------------------------------------------------------------------------------------------


def draw(random: Random, model: Model, key: Key) -> Op:
    """An operation on a schema, or (rarely) on its group."""
    live = model.live(key)
    number = random.choice([*(row.version_number for row in live), 99])
    what = random.choice(["post"] * 6 + ["azure"] * 3 + ["delete", "delete", "drop", "group", "group"])
    draft = pick_draft(random, model.language(key))
    if what == "azure" and DRAFTS[draft].format == "opaque":
        what = "post"
    word = random.choice(["", *LEVELS]) if what == "group" else ""
    return Op(NAME, what, *key, draft, number, word)


def act(model: Model, op: Op) -> Ask:
    """Apply an operation to the model. Return its request with the expected answer."""
    key = Key(op.namespace, op.name)
    request, read_reply = _request(op, key)
    try:
        return Ask(request, _apply_operation(model, op, key), read_reply)
    except Refused as refused:
        refusals = _AZURE_REFUSALS if op.what == "azure" else _REFUSALS
        return Ask(request, (refusals[refused.kind], None), read_reply)


def _request(op: Op, key: Key) -> tuple[Request, Any]:
    draft = DRAFTS[op.draft]
    match op.what:
        case "post":
            query = f"?format={_CUSTOM}" if draft.format == "opaque" else ""
            headers = {"content-type": _TYPES[draft.format]}
            return Request("POST", f"{_at(key)}{query}", draft.raw.encode(), headers), _read_written
        case "azure":
            headers = {"content-type": _AZURE_TYPES[draft.format]}
            return Request("PUT", _at(key, azure=True), draft.raw.encode(), headers), _read_written
        case "delete":
            return Request("DELETE", _at(key, f"/versions/{op.number}")), _plain
        case "group":
            return Request("PUT", _group(key.namespace), {"compatibility": op.word} if op.word else {}), _plain
        case _:
            return Request("DELETE", _at(key)), _plain


def _apply_operation(model: Model, op: Op, key: Key) -> Any:
    match op.what:
        case "post" | "azure":
            row = _register_draft(model, op, key)
            return (204 if op.what == "azure" else 200), (row.version_number, Learned(model.learned, row.uid))
        case "delete":
            _delete_version(model, key, op.number)
            return 204, None
        case "group":
            return (201 if _put(model, key.namespace, LEVELS.get(op.word)) else 200), None
        case _:
            _require_group(model, key.namespace)
            if not model.live(key):
                raise Refused("SubjectNotFound")
            model.close(key)
            return 204, None


def _require_group(model: Model, namespace: str) -> None:
    if not model.namespaces[namespace].is_visible:
        raise Refused("SpaceNotFound")


def _put(model: Model, namespace: str, policy: Policy | None) -> bool:
    place = model.namespaces[namespace]
    fresh = not place.is_visible
    if fresh and policy is None and namespace and model.policies.get((None, None)) is None:
        policy = ALLOW
    if policy is not None:
        model.policies[namespace, None] = policy
    place.made = True
    return fresh


def _register_draft(model: Model, op: Op, key: Key) -> Row:
    _require_group(model, key.namespace)
    subject, draft = model.subject(key), DRAFTS[op.draft]
    if subject is None and "/" in key.name:
        raise Refused("InvalidName")
    named = (draft.format, _CUSTOM if draft.format == "opaque" else "")
    if fixed := _language(model, key):
        if fixed != named:
            raise Refused("FormatMismatch")
        draft = interpret_bytes(draft.raw.encode(), fixed[0]) or draft
    media = (_AZURE_TYPES if op.what == "azure" else _TYPES)[draft.format]
    schema_kind = KindOfSchema(draft.format, draft.type, named[1])
    row = same(model.live(key), schema_kind, draft.raw.encode(), media, azure=op.what == "azure")
    if row is not None:
        return row
    levels = ((key.namespace, None), (None, None))
    policy = None if any(model.policies.get(level) is not None for level in levels) else ALLOW
    creation = Creation(
        False, policy=policy, format=schema_kind.format, custom_format=schema_kind.custom_format, restarts=False
    )
    return model.register(key, schema_kind, draft.raw.encode(), creation, media=media)


def _language(model: Model, key: Key) -> tuple[str, str] | None:
    live, subject = model.live(key), model.subject(key)
    if live:
        return live[-1].schema_kind.format, live[-1].schema_kind.custom_format
    if subject is not None and subject.made.format:
        return subject.made.format, subject.made.custom_format
    return None


def same(rows: Sequence[Row], schema_kind: KindOfSchema, data: bytes, media: str, *, azure: bool) -> Row | None:
    """Return the oldest version with that text.

    Outside the Azure variant its format and content type must be the same, too.
    """
    for row in rows:
        typed = (row.schema_kind.format, row.schema_kind.custom_format) == (
            schema_kind.format,
            schema_kind.custom_format,
        ) and row.media in {"", media}
        if row.schema.text == data and (azure or typed):
            return row
    return None


def _delete_version(model: Model, key: Key, number: int) -> None:
    subject = model.subject(key)
    row = subject.row(number) if subject is not None else None
    if subject is None or row is None or not row.live:
        raise Refused("VersionNotFound")
    if len(subject.live) > 1:
        model.retire(key, number)
    else:
        model.close(key)


def _plain(reply: Reply) -> Any:
    return reply.status, None


def _read_written(reply: Reply) -> Any:
    if reply.status >= 400:
        return reply.status, None
    return reply.status, (int(reply.headers["schema-version"]), reply.headers["schema-id"])


# --- reads ----------------------------------------------------------------------------------------------------------


def reads(model: Model, key: Key, drafts: Sequence[Draft]) -> Iterator[Ask]:
    """Yield all reads of a schema through these dialects."""
    live = model.live(key)
    for azure in (False, True):
        newest = _document(model, live[-1]) if live else (404, None)
        yield Ask(Request("GET", _at(key, azure=azure)), newest, _of_document)
        numbers = (200, [row.version_number for row in live]) if live else (404, None)
        yield Ask(Request("GET", _at(key, "/versions", azure=azure)), numbers, _of_numbers)
        for row in [*(model.present(key).rows if model.subject(key) is not None else [])]:
            expected = _document(model, row) if row.live else (404, None)
            yield Ask(Request("GET", _at(key, f"/versions/{row.version_number}", azure=azure)), expected, _of_document)
    yield from _ask_by_name(model, key)
    if not live:
        return
    for draft in drafts:
        if draft.format == "opaque":
            continue
        named = (draft.format, "")
        request = Request(
            "POST", f"{_at(key, azure=True)}:get-id", draft.raw.encode(), {"content-type": _AZURE_TYPES[draft.format]}
        )
        if _language(model, key) != named:
            yield Ask(request, (415, None), _read_written)
            continue
        known = next((row for row in live if row.schema.text == draft.raw.encode()), None)
        is_match = known is not None and known.schema_kind.format == draft.format
        expected_id = (
            (204, (known.version_number, Learned(model.learned, known.uid))) if known and is_match else (404, None)
        )
        yield Ask(request, expected_id, _read_written)


def _document(model: Model, row: Row) -> Any:
    return 200, (row.version_number, Learned(model.learned, row.uid), row.schema.text)


def _ask_by_name(model: Model, key: Key) -> Iterator[Ask]:
    """Yield reads of versions by id and by URI. By id, versions of deleted schemas are read, too."""
    past = [subject for name, subject in model.namespaces[key.namespace].past if name == key.name]
    subject = model.subject(key)
    for known in [*past[-1:], *([subject] if subject is not None else [])]:
        for row in known.rows:
            if row.uid in model.learned:
                path = f"/$schemaGroups/$schemas/{model.learned[row.uid]}"
                yield Ask(Request("GET", path), _document(model, row), _of_document)
    for row in subject.rows if subject is not None else []:
        uri = segment(f"{_at(key, f'/versions/{row.version_number}')}".lstrip("/"))
        expected = _document(model, row) if row.live else (404, None)
        yield Ask(Request("GET", f"/schema?uri={uri}"), expected, _of_document)


def _of_document(reply: Reply) -> Any:
    if reply.status >= 400:
        return reply.status, None
    return reply.status, (int(reply.headers["schema-version"]), reply.headers["schema-id"], reply.body)


def _of_numbers(reply: Reply) -> Any:
    if reply.status >= 400:
        return reply.status, None
    return reply.status, reply.json["Value"] if isinstance(reply.json, dict) else reply.json


def lists(model: Model) -> Iterator[Ask]:
    """Yield all lists of groups and schemas of these dialects."""
    groups = [name or "default" for name, place in model.namespaces.items() if place.is_visible]
    for azure in (False, True):
        path = "/$schemaGroups" if azure else "/schemagroups"
        yield Ask(Request("GET", path), (200, sorted(groups)), _of_numbers)
        for namespace, place in model.namespaces.items():
            if not place.is_visible:
                yield Ask(Request("GET", _group(namespace, azure)), 404, status)
                continue
            names = sorted(name for name, subject in place.subjects.items() if subject.live)
            yield Ask(Request("GET", f"{_group(namespace, azure)}/schemas"), (200, names), _of_numbers)
    for namespace, place in model.namespaces.items():
        if place.is_visible:
            policy = model.policies.get((namespace, None)) or model.policies.get((None, None))
            compatibility = (policy.level, exact_form(policy)) if policy is not None else (None, None)
            yield Ask(Request("GET", _group(namespace)), (200, compatibility), _of_group)


def _of_group(reply: Reply) -> Any:
    group = reply.json
    return reply.status, (group.get("compatibility"), group.get("steleCompatibility"))
