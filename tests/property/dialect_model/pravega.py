"""The Pravega dialect: operations and reads, and the expected answers."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from tests.property.dialect_model.exchange import Ask, Op, Reply, Request, segment, status
from tests.property.dialect_model.model import Model, Refused
from tests.property.dialect_model.model_types import LEVELS, Creation, Key, KindOfSchema, Policy, Row, Subject
from tests.property.dialect_model.schemas import DRAFTS, Draft, compile_draft, decompile_draft, pick_draft

NAME = "pravega"

_REFUSALS = {
    "SubjectNotFound": 404,
    "VersionNotFound": 404,
    "AlreadyExists": 409,
    "Incompatible": 409,
    "PreconditionFailed": 409,
    "CodecNotFound": 412,
    "FormatMismatch": 417,
    "Incomparable": 400,
    "ReadOnly": 403,
}
_LANGUAGES = {"avro": "Avro", "json": "Json", "protobuf": "Protobuf"}
_CUSTOM = "words"
"""Name of a format that the registry does not know."""

_NAMED = {
    "AllowAny": LEVELS["NONE"],
    "DenyAll": Policy("deny"),
    "Backward": LEVELS["BACKWARD"],
    "BackwardTransitive": LEVELS["BACKWARD_TRANSITIVE"],
    "Forward": LEVELS["FORWARD"],
    "ForwardTransitive": LEVELS["FORWARD_TRANSITIVE"],
    "Full": LEVELS["FULL"],
    "FullTransitive": LEVELS["FULL_TRANSITIVE"],
}
_TILL = {"BackwardTill": Policy("compare", 2), "ForwardTill": Policy("compare", "none", 2)}
_POLICIES = {**_NAMED, **_TILL, "Both": Policy("compare", 1, 2)}


def _policy_in(word: str) -> dict[str, Any]:
    if word in _NAMED:
        return {"policy": word}
    advanced = {}
    for name, way in _POLICIES[word].directions:
        if isinstance(way, int):
            info = {"type": "", "version": 0, "id": way - 1}
            advanced[f"{name}Policy"] = {f"{name}Policy": {"name": f"{name.title()}Till", "versionInfo": info}}
    return {"policy": "Advanced", "advanced": advanced}


def _visible(policy: Policy) -> Policy:
    """Return a policy as this dialect shows it: without validators."""
    return policy._replace(reject=False)


def _policy_out(compatibility: Any) -> Policy:
    """Return the policy of an answer. Answers have no validators."""
    assert set(compatibility) <= {"policy", "advanced"}
    if compatibility["policy"] != "Advanced":
        return _NAMED[compatibility["policy"]]
    ways: dict[str, str | int] = {"backward": "none", "forward": "none"}
    for name in ways:
        if stretch := compatibility["advanced"].get(f"{name}Policy"):
            stretch = stretch[f"{name}Policy"]
            kind = stretch["name"].removeprefix(name.title())
            ways[name] = {"": "latest", "Transitive": "all"}.get(kind) or stretch["versionInfo"]["id"] + 1
    return Policy("compare", **ways)


def _at(key: Key, path: str = "") -> str:
    namespace = f"/namespace/{key.namespace}" if key.namespace else ""
    return f"/v1{namespace}/groups/{segment(key.name)}{path}"


def _language(schema_kind: KindOfSchema | Creation) -> dict[str, str]:
    name = _LANGUAGES.get(schema_kind.format)
    if name is None:
        name = schema_kind.custom_format or "opaque" if schema_kind.format else "Any"
        return {"serializationFormat": "Custom" if schema_kind.format else "Any", "fullTypeName": name}
    return {"serializationFormat": name, "fullTypeName": name}


# --- operations -----------------------------------------------------------------------------------------------------


_WHAT = (
    *(["add"] * 10 + ["delete"] * 4 + ["encode"] * 6 + ["create"] * 3),
    *["policy", "policy", "policy if", "codec", "drop"],
)
_MADE = (["", "avro", "protobuf", "custom"], ["", "several"], list(_POLICIES))


def draw(random: Random, model: Model, key: Key) -> Op:
    """An operation on a group."""
    subject = model.subject(key)
    rows = subject.rows if subject is not None else []
    number = random.choice([*(row.version_number for row in rows), 1, 99])
    what = random.choice(_WHAT if subject is not None else [*_WHAT, *["create"] * 20])
    word = ""
    if what in {"policy", "policy if"}:
        word = random.choice(list(_POLICIES))
    elif what == "create":
        word = "/".join(random.choice(words) for words in _MADE)
    elif what == "encode":
        word = random.choice(["", "z"])
    elif what == "add":
        word = random.choice(["", "compiled", "named", "other"])
    return Op(NAME, what, *key, pick_draft(random, model.language(key)), number, word)


def act(model: Model, op: Op) -> Ask:
    """Apply an operation to the model. Return its request with the expected answer."""
    key = Key(op.namespace, op.name)
    request, read_reply = _request(model, op, key)
    try:
        return Ask(request, _apply_operation(model, op, key), read_reply)
    except Refused as refused:
        return Ask(request, (_REFUSALS[refused.kind], None), read_reply)


def _request(model: Model, op: Op, key: Key) -> tuple[Request, Any]:
    match op.what:
        case "add":
            return Request("POST", _at(key, "/schemas"), _encode_draft(*_draw_document(op), _type_of(key, op))), _json
        case "create":
            body = {"groupName": key.name, "groupProperties": _properties(op.word)}
            return Request("POST", _at(key).rpartition("/")[0], body), _plain
        case "delete":
            return Request("DELETE", _at(key, f"/schemas/schema/{op.number - 1}")), _plain
        case "policy" | "policy if":
            body = {"compatibility": _policy_in(op.word)}
            if op.what == "policy if":
                body["previousCompatibility"] = {"policy": "Backward"}
            return Request("PUT", _at(key, "/compatibility"), body), _plain
        case "codec":
            return Request("POST", _at(key, "/codecTypes"), {"name": "z"}), _plain
        case "encode":
            subject = model.subject(key)
            row = subject.row(op.number) if subject is not None else None
            info = _info(key, row) if row is not None else {"type": "n.R", "version": 0, "id": op.number - 1}
            return Request("PUT", _at(key, "/encodings"), {"versionInfo": info, "codecType": op.word}), _json
        case _:
            return Request("DELETE", _at(key)), _plain


def _properties(word: str) -> dict[str, Any]:
    creation = _creation(word)
    policy = word.split("/")[2]
    return {
        "serializationFormat": _language(creation),
        "compatibility": _policy_in(policy),
        "allowMultipleTypes": creation.scope == "lane",
        "properties": {"made": "here"},
    }


def _creation(word: str) -> Creation:
    language, several, policy = word.split("/")
    scope = "lane" if several else "one type"
    custom = language == "custom"
    return Creation(False, scope, _POLICIES[policy], "opaque" if custom else language, _CUSTOM if custom else "")


def _draw_document(op: Op) -> tuple[Draft, bytes]:
    draft = DRAFTS[op.draft]
    data = compile_draft(draft.meaning) if draft.format == "protobuf" and op.word == "compiled" else draft.raw.encode()
    return draft, data


def _type_of(key: Key, op: Op) -> str:
    """Return the type that the client sends. A schema without a type name can have one, also that of its group."""
    draft = DRAFTS[op.draft]
    if draft.type or draft.format == "avro":
        return draft.type
    return {"named": key.name, "other": "Other"}.get(op.word, "")


def kind_of(draft: Draft, default_type: str = "") -> KindOfSchema:
    """Return the kind of a draft in this dialect. A format that the registry does not know has a name."""
    return KindOfSchema(draft.format, draft.type or default_type, _CUSTOM if draft.format == "opaque" else "")


def _encode_draft(draft: Draft, data: bytes, default_type: str = "") -> dict[str, Any]:
    language = _language(KindOfSchema(draft.format, "", _CUSTOM if draft.format == "opaque" else ""))
    return {
        "type": draft.type or default_type,
        "serializationFormat": language,
        "schemaData": base64.b64encode(data).decode(),
    }


def same(rows: list[Row], schema_kind: KindOfSchema, draft: Draft) -> Row | None:
    """Return the oldest version with the same meaning, of the same kind."""
    return next((row for row in rows if row.schema_kind == schema_kind and row.draft.meaning == draft.meaning), None)


def _comparable(policy: Policy, format_name: str) -> None:
    if policy.kind == "compare" and format_name == "opaque":
        raise Refused("Incomparable")


def _apply_operation(model: Model, op: Op, key: Key) -> Any:
    if op.what == "create":
        creation = _creation(op.word)
        assert creation.policy is not None
        _comparable(creation.policy, creation.format)
        model.create(key, creation).labels = {"made": "here"}
        return 201, None
    if op.what == "drop":
        if model.subject(key) is not None:
            model.close(key)
        return 204, None
    subject = model.present(key)
    match op.what:
        case "add":
            return _add_schema(model, key, subject, op)
        case "delete":
            row = subject.row(op.number)
            if row is None:
                raise Refused("VersionNotFound")
            if row.live:
                model.retire(key, op.number)
            return 204, None
        case "policy" | "policy if":
            _comparable(_POLICIES[op.word], subject.made.format)
            model.writable(key)
            if op.what == "policy if" and _visible(model.policy(key)) != LEVELS["BACKWARD"]:
                raise Refused("PreconditionFailed")
            model.policies[key] = _POLICIES[op.word]
            noted = (model.notes.pop(key, set()) - {NAME}) | (set() if op.word in _NAMED else {NAME})
            if noted:
                model.notes[key] = noted
            return 200, None
        case "codec":
            if "z" not in subject.codecs:
                model.writable(key)
                subject.codecs.append("z")
            return 201, None
        case _:
            return _encode_version(model, key, subject, op)


def _add_schema(model: Model, key: Key, subject: Subject, op: Op) -> Any:
    draft, data = _draw_document(op)
    type_name = _type_of(key, op)
    schema_kind = kind_of(draft, "" if type_name == key.name else type_name)
    creation = subject.made
    if creation.format and (creation.format, creation.custom_format) != (schema_kind.format, schema_kind.custom_format):
        raise Refused("FormatMismatch")
    row = same(subject.live, schema_kind, draft)
    if row is None:
        _comparable(model.policy(key), schema_kind.format)
        row = model.register(key, schema_kind, data, None)
    return 201, _info(key, row)


def _encode_version(model: Model, key: Key, subject: Subject, op: Op) -> Any:
    if op.word and op.word not in subject.codecs:
        raise Refused("CodecNotFound")
    row = subject.row(op.number)
    if row is None:
        raise Refused("VersionNotFound")
    encodings = [(id(known), codec) for known, codec in subject.encodings]
    if (id(row), op.word) not in encodings:
        if not row.live:
            raise Refused("VersionNotFound")
        model.writable(key)
        subject.encodings.append((row, op.word))
        encodings.append((id(row), op.word))
    return 200, {"encodingId": encodings.index((id(row), op.word))}


def _plain(reply: Reply) -> Any:
    return reply.status, None


def _json(reply: Reply) -> Any:
    return reply.status, reply.json if reply.status < 400 else None


# --- reads ----------------------------------------------------------------------------------------------------------


def _type(key: Key, row: Row) -> str:
    return row.schema_kind.type or key.name


def _info(key: Key, row: Row) -> dict[str, Any]:
    name = _language(row.schema_kind)["fullTypeName"]
    return {
        "type": _type(key, row),
        "serializationFormat": name,
        "version": row.number - 1,
        "id": row.version_number - 1,
    }


def _schema(key: Key, row: Row) -> dict[str, Any]:
    return {"type": _type(key, row), "serializationFormat": _language(row.schema_kind), "schemaData": _data(row)}


def _data(row: Row) -> Any:
    """Return the bytes. A Protobuf source is returned compiled, and any compilation is accepted."""
    return ("protobuf", row.draft.meaning) if row.schema_kind.format == "protobuf" else row.schema.text


def _read(schema_info: Any) -> dict[str, Any]:
    data: Any = base64.b64decode(schema_info["schemaData"])
    if schema_info["serializationFormat"]["serializationFormat"] == "Protobuf":
        data = ("protobuf", decompile_draft(data))
    return {"type": schema_info["type"], "serializationFormat": schema_info["serializationFormat"], "schemaData": data}


def reads(model: Model, key: Key, drafts: Sequence[Draft]) -> Iterator[Ask]:
    """Yield all reads of a group through this dialect."""
    subject = model.subject(key)
    if subject is None:
        for path in ("", "/schemas", "/schemas/versions", "/history", "/codecTypes", "/encodings/0"):
            yield Ask(Request("GET", _at(key, path)), 404, status)
        return
    yield Ask(Request("GET", _at(key)), (200, _group_properties(model, key, subject)), _of_group)
    live = subject.live
    rows = [(_schema(key, row), _info(key, row)) for row in live]
    yield Ask(Request("GET", _at(key, "/schemas/versions")), (200, rows), _of_list)
    latest = {_type(key, row): row for row in live}
    newest = [
        (_schema(key, row), _info(key, row)) for row in sorted(latest.values(), key=lambda row: row.version_number)
    ]
    yield Ask(Request("GET", _at(key, "/schemas")), (200, newest), _of_list)
    history = [(_schema(key, row), _info(key, row), _visible(row.policy)) for row in live]
    yield Ask(Request("GET", _at(key, "/history")), (200, history), _of_history)
    yield Ask(Request("GET", _at(key, "/codecTypes")), (200, subject.codecs), _of_codecs)
    yield from _by_number(key, subject)
    for draft in drafts:
        yield from _content(model, key, subject, draft)


def _by_number(key: Key, subject: Subject) -> Iterator[Ask]:
    for row in subject.rows:
        info, expected = _info(key, row), (200, _schema(key, row))
        yield Ask(Request("GET", _at(key, f"/schemas/schema/{row.version_number - 1}")), expected, _of_schema)
        place = f"{segment(info['serializationFormat'])}/type/{segment(info['type'])}/versions/{info['version']}"
        yield Ask(Request("GET", _at(key, f"/schemas/format/{place}")), expected, _of_schema)
    yield Ask(Request("GET", _at(key, f"/schemas/schema/{subject.high}")), (404, None), _of_schema)
    for number, (row, codec) in enumerate(subject.encodings):
        there = any(row is known for known in subject.rows)
        meant = (200, (_schema(key, row), _info(key, row), codec)) if there else (404, None)
        yield Ask(Request("GET", _at(key, f"/encodings/{number}")), meant, _of_encoding)
    yield Ask(Request("GET", _at(key, f"/encodings/{len(subject.encodings)}")), (404, None), _of_encoding)


def _content(model: Model, key: Key, subject: Subject, draft: Draft) -> Iterator[Ask]:
    schema_kind, creation = kind_of(draft), subject.made
    row = same(subject.live, schema_kind, draft)
    expected_version = (200, _info(key, row)) if row is not None else (404, None)
    sent = _encode_draft(draft, draft.raw.encode())
    yield Ask(Request("POST", _at(key, "/schemas/versions/find"), sent), expected_version, _json)
    expected: Any
    if creation.format and (creation.format, creation.custom_format) != (schema_kind.format, schema_kind.custom_format):
        expected = (417, None)
    else:
        try:
            if row is None:
                _comparable(model.policy(key), schema_kind.format)
            valid = row is not None or model.accepts(key, schema_kind, draft.meaning, model.policy(key))
            expected = (200, {"valid": valid})
        except Refused as refused:
            expected = (_REFUSALS[refused.kind], None)
    yield Ask(Request("POST", _at(key, "/schemas/versions/validate"), {"schemaInfo": sent}), expected, _json)


def _group_properties(model: Model, key: Key, subject: Subject) -> Any:
    several = subject.made.scope == "lane"
    if subject.made.scope == "subject":
        several = len({row.schema_kind.type for row in subject.rows}) > 1
    return _language(subject.made), _visible(model.policy(key)), several, subject.labels


def _read_group(group: Any) -> Any:
    policy = _policy_out(group["compatibility"])
    return group["serializationFormat"], policy, group["allowMultipleTypes"], group["properties"]


def _of_group(reply: Reply) -> Any:
    return reply.status, _read_group(reply.json)


def _of_list(reply: Reply) -> Any:
    return reply.status, [(_read(row["schemaInfo"]), row["versionInfo"]) for row in reply.json["schemas"]]


def _of_history(reply: Reply) -> Any:
    rows = reply.json["history"]
    return reply.status, [
        (_read(row["schemaInfo"]), row["versionInfo"], _policy_out(row["compatibility"])) for row in rows
    ]


def _of_codecs(reply: Reply) -> Any:
    return reply.status, [row["name"] for row in reply.json["codecTypes"]]


def _of_schema(reply: Reply) -> Any:
    return reply.status, _read(reply.json) if reply.status < 400 else None


def _of_encoding(reply: Reply) -> Any:
    if reply.status >= 400:
        return reply.status, None
    encoding = reply.json
    return reply.status, (_read(encoding["schemaInfo"]), encoding["versionInfo"], encoding["codecType"]["name"])


def lists(model: Model) -> Iterator[Ask]:
    """Yield all lists of groups of this dialect."""
    for namespace in model.namespaces:
        keys = [key for key in model.names() if key.namespace == namespace]
        groups = [(key.name, _group_properties(model, key, model.present(key))) for key in keys]
        yield Ask(Request("GET", _at(Key(namespace, "x")).removesuffix("/x")), (200, groups), _of_groups)
        for draft in DRAFTS[::5]:
            versions = {
                key.name: _info(key, row)
                for key in keys
                if (row := same(model.live(key), kind_of(draft), draft)) is not None
            }
            path = _at(Key(namespace, "x")).removesuffix("/groups/x") + "/schemas/addedTo"
            yield Ask(
                Request("POST", path, _encode_draft(draft, draft.raw.encode())), (200, {"groups": versions}), _json
            )


def _of_groups(reply: Reply) -> Any:
    return reply.status, [(name, _read_group(group)) for name, group in reply.json["groups"].items()]
