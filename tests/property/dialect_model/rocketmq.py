"""The RocketMQ dialect: operations and reads, and the expected answers.

Its subjects (for example topics) are bound to versions of schemas. A schema that another dialect registered is found
under its own name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from tests.property.dialect_model.confluent import exact_form
from tests.property.dialect_model.exchange import Ask, Op, Reply, Request, segment, status
from tests.property.dialect_model.model import Model, Refused
from tests.property.dialect_model.model_types import BACKWARD, LEVELS, Creation, Key, KindOfSchema, Row, Subject
from tests.property.dialect_model.schemas import DRAFTS, SAME_DATA, Draft, interpret_bytes, pick_draft

NAME = "rocketmq"

_REFUSALS = {
    "AlreadyExists": (409, 40401),
    "SubjectNotFound": (404, 40402),
    "VersionNotFound": (404, 40402),
    "ContentNotFound": (404, 40402),
    "SameSchema": (409, 40901),
    "Incompatible": (409, 40901),
    "Incomparable": (409, 40901),
    "FormatMismatch": (409, 40901),
    "MalformedSchema": (422, 42201),
    "ReadOnly": (403, 40301),
}
_TYPES = {"avro": "AVRO", "json": "JSON", "protobuf": "PROTOBUF", "opaque": "TEXT"}
_RECORD_BITS = 14


def _at(namespace: str, path: str) -> str:
    place = f"/cluster/default/tenant/{namespace}" if namespace else ""
    return f"/schema-registry/v1{place}{path}"


def _subject(namespace: str, topic: str, path: str = "") -> str:
    return _at(namespace, f"/subject/{segment(topic)}{path}")


# --- operations -----------------------------------------------------------------------------------------------------


def draw(random: Random, model: Model, key: Key) -> Op:
    """Return an operation on a schema. Its word has a topic (of the same name or another one) and a level."""
    subject = model.subject(key)
    number = random.choice([*(row.version_number for row in (subject.live if subject is not None else [])), 99])
    what = random.choice(["register"] * 4 + ["update"] * 6 + ["delete", "delete", "drop", "bind"])
    draft = pick_draft(random, model.language(key))
    level = random.choice(["", "", *LEVELS]) if what == "register" else ""
    return Op(NAME, what, *key, draft, number, f"{random.choice([key.name, key.name, 'topic'])}|{level}")


def act(model: Model, op: Op) -> Ask:
    """Apply an operation to the model. Return its request with the expected answer."""
    key = Key(op.namespace, op.name)
    request = _request(model, op, key)
    try:
        return Ask(request, (200, _apply_operation(model, op, key)), _read_reply)
    except Refused as refused:
        return Ask(request, _REFUSALS[refused.kind], _read_reply)


def _request(model: Model, op: Op, key: Key) -> Request:
    topic, level = op.word.split("|")
    path = _subject(key.namespace, topic, f"/schema/{segment(key.name)}")
    draft = DRAFTS[op.draft]
    match op.what:
        case "register":
            wish = {"compatibility": level} if level else {}
            return Request("POST", path, {"schemaIdl": draft.raw, "schemaType": _TYPES[draft.format], **wish})
        case "update":
            return Request("PUT", path, {"schemaIdl": draft.raw})
        case "delete":
            return Request("DELETE", _subject(key.namespace, topic, f"/schema/versions/{op.number}"))
        case "bind":
            return Request("PUT", _subject(key.namespace, topic, f"/binding/{_record_of(model, key, op.number)}"))
        case _:
            return Request("DELETE", _subject(key.namespace, topic, "/schema"))


def _record_of(model: Model, key: Key, number: int) -> int:
    subject = model.subject(key)
    return record_id(subject, number) if subject is not None else 999 << _RECORD_BITS | number


def record_id(subject: Subject, version_number: int) -> int:
    """Return a record id: the number of its schema, with the version number in the low 14 bits."""
    return subject.serial << _RECORD_BITS | version_number


def _apply_operation(model: Model, op: Op, key: Key) -> Any:
    topic, level = op.word.split("|")
    match op.what:
        case "register":
            return _register_draft(model, key, topic, DRAFTS[op.draft], level)
        case "update":
            return _update_schema(model, key, topic, DRAFTS[op.draft])
        case "delete":
            return _delete_version(model, key.namespace, topic, op.number)
        case "bind":
            return _binding_of(model, key, topic, op.number)
        case _:
            name, subject, row = _find_bound(model, key.namespace, topic)
            newest = subject.latest or row
            model.close(Key(key.namespace, name))
            return record_id(subject, newest.version_number)


def _register_draft(model: Model, key: Key, topic: str, draft: Draft, level: str) -> Any:
    if model.live(key):
        raise Refused("AlreadyExists")
    policy = LEVELS.get(level)
    schema_kind = KindOfSchema(draft.format, draft.type, "TEXT" if draft.format == "opaque" else "")
    creation = Creation(False, policy=policy or BACKWARD)
    row = model.register(key, schema_kind, draft.raw.encode(), creation, policy=policy, again=True, by=NAME)
    return _bind(model, key, topic, row)


def _update_schema(model: Model, key: Key, topic: str, draft: Draft) -> Any:
    live = model.live(key)
    if not live:
        raise Refused("SubjectNotFound")
    data, newest = draft.raw.encode(), live[-1]
    meant = interpret_bytes(data, newest.schema_kind.format)
    if meant is None:
        raise Refused("MalformedSchema")
    schema_kind = KindOfSchema(newest.schema_kind.format, meant.type, newest.schema_kind.custom_format)
    if same(live, schema_kind, meant) is not None:
        raise Refused("SameSchema")
    return _bind(model, key, topic, model.register(key, schema_kind, data, None, by=NAME))


def same(rows: Sequence[Row], schema_kind: KindOfSchema, draft: Draft) -> Row | None:
    """Return the oldest version with the same meaning, of the same kind."""
    return next((row for row in rows if row.schema_kind == schema_kind and row.draft.meaning == draft.meaning), None)


def _bind(model: Model, key: Key, topic: str, row: Row) -> Any:
    model.bindings[key.namespace, topic] = (key.name, row.version_number)
    return record_id(model.present(key), row.version_number), row.version_number


def _find_bound(model: Model, namespace: str, topic: str) -> tuple[str, Subject, Row]:
    """Return the schema of a topic, and the version it is bound to; the newest one without a binding."""
    if (namespace, topic) in model.bindings:
        name, row = model.bindings[namespace, topic][0], model.bound(namespace, topic)
    else:
        name, subject = topic, model.namespaces[namespace].subjects.get(topic)
        row = subject.latest if subject is not None and foreign(subject) else None
    if row is None:
        raise Refused("SubjectNotFound")
    return name, model.namespaces[namespace].subjects[name], row


def foreign(subject: Subject) -> bool:
    """Return whether another dialect registered a schema."""
    return bool(subject.live) and subject.rows[0].by != NAME


def _delete_version(model: Model, namespace: str, topic: str, number: int) -> Any:
    name, subject, _ = _find_bound(model, namespace, topic)
    row = subject.row(number)
    if row is None or not row.live:
        raise Refused("VersionNotFound")
    key = Key(namespace, name)
    if subject.live == [row]:
        model.close(key)
    else:
        model.retire(key, number)
        for place, bound in model.bindings.items():
            if (place[0], *bound) == (namespace, name, number):
                model.bindings[place] = (name, subject.live[-1].version_number)
    return record_id(subject, number)


def _binding_of(model: Model, key: Key, topic: str, number: int) -> Any:
    subject = model.subject(key)
    row = subject.row(number) if subject is not None else None
    if row is None or not row.live:
        raise Refused("ContentNotFound")
    if model.bindings.get((key.namespace, topic)) != (key.name, number):
        model.writable(key)
    return _bind(model, key, topic, row)


def _read_reply(reply: Reply) -> Any:
    if reply.status >= 400:
        return reply.status, reply.json["status"]
    body = reply.json
    return reply.status, (body["recordId"], body["version"]) if "version" in body else body["recordId"]


# --- reads ----------------------------------------------------------------------------------------------------------


def reads(model: Model, key: Key, drafts: Sequence[Draft]) -> Iterator[Ask]:
    """Yield all reads of a subject, and of topics that can be bound to it."""
    for topic in (key.name, "topic"):
        try:
            name, subject, row = _find_bound(model, key.namespace, topic)
        except Refused:
            for path in ("", "/versions", "/versions/1"):
                yield Ask(Request("GET", _subject(key.namespace, topic, f"/schema{path}")), 404, status)
            continue
        yield from _of_topic(model, key.namespace, topic, Key(key.namespace, name), subject, row)
    yield from _records(model, key)
    live = model.live(key)
    expected = (200, _describe_schema(model, key, live)) if live else (404, None)
    path = f"/schema-registry/v1/tenant/{key.namespace or 'default'}/schema/{segment(key.name)}"
    yield Ask(Request("GET", path), expected, _of_schema)


def _told_record(key: Key, subject: Subject, row: Row, topic: str) -> Any:
    tenant = key.namespace or "default"
    return (
        f"default/{tenant}/{topic}",
        f"{tenant}/{key.name}",
        row.version_number,
        record_id(subject, row.version_number),
        row.schema.text.decode("utf-8", "replace"),
        _TYPES[row.schema_kind.format],
    )


def _of_topic(model: Model, namespace: str, topic: str, key: Key, subject: Subject, row: Row) -> Iterator[Ask]:
    bound = (200, _told_record(key, subject, row, topic))
    yield Ask(Request("GET", _subject(namespace, topic, "/schema")), bound, _of_record)
    listed = [
        (old.version_number, record_id(subject, old.version_number), _topics(model, key, old)) for old in subject.live
    ]
    yield Ask(Request("GET", _subject(namespace, topic, "/schema/versions")), (200, listed), _of_list)
    for old in subject.rows:
        expected = (200, _told_record(key, subject, old, topic))
        path = _subject(namespace, topic, f"/schema/versions/{old.version_number}")
        yield Ask(Request("GET", path), expected if old.live else (404, None), _of_record)
        sent = old.schema.text
        meant = interpret_bytes(sent, row.schema_kind.format)
        matching_row = None
        if meant is not None:
            schema_kind = KindOfSchema(row.schema_kind.format, meant.type, row.schema_kind.custom_format)
            matching_row = same(subject.live, schema_kind, meant) or _same_data(subject.live, schema_kind, meant)
        by_text = (200, _told_record(key, subject, matching_row, topic)) if matching_row is not None else (404, None)
        yield Ask(Request("POST", _subject(namespace, topic, "/schema/schema"), sent), by_text, _of_record)


def _same_data(rows: Sequence[Row], schema_kind: KindOfSchema, draft: Draft) -> Row | None:
    """Return the oldest version with the same data, which differs in defaults only."""
    alike = [row for row in rows if row.schema_kind == schema_kind and {row.draft.meaning, draft.meaning} <= SAME_DATA]
    return alike[0] if alike else None


def _topics(model: Model, key: Key, row: Row) -> list[str]:
    topics = [topic for namespace, topic in model.bindings if namespace == key.namespace]
    bound = [topic for topic in topics if model.bindings[key.namespace, topic][0] == key.name]
    return sorted(topic for topic in bound if model.bound(key.namespace, topic) is row)


def _records(model: Model, key: Key) -> Iterator[Ask]:
    """Yield reads of records by id, also of deleted versions and of schemas that no longer exist."""
    past = [subject for name, subject in model.namespaces[key.namespace].past if name == key.name]
    subject = model.subject(key)
    for known in [*past[-1:], *([subject] if subject is not None else [])]:
        for row in known.rows:
            path = _subject(key.namespace, "any", f"/recordId/{record_id(known, row.version_number)}/schema")
            yield Ask(Request("GET", path), (200, _told_record(key, known, row, "any")), _of_record)


def _describe_schema(model: Model, key: Key, live: list[Row]) -> Any:
    policy = model.policy(key)
    return policy.level, exact_form(policy), [row.version_number for row in live]


def _of_record(reply: Reply) -> Any:
    members = ("subjectFullName", "schemaFullName", "version", "recordId", "idl", "type")
    return reply.status, tuple(reply.json[name] for name in members) if reply.status < 400 else None


def _of_list(reply: Reply) -> Any:
    rows = reply.json
    return reply.status, [(row["version"], row["recordId"], [s["subject"] for s in row["subjects"]]) for row in rows]


def _of_schema(reply: Reply) -> Any:
    if reply.status >= 400:
        return reply.status, None
    meta, records = reply.json["meta"], reply.json["details"]["schemaRecords"]
    versions = [row["version"] for row in records]
    return reply.status, (meta["compatibility"], meta.get("steleCompatibility"), versions)


def lists(model: Model) -> Iterator[Ask]:
    """Yield all lists of topics of this dialect."""
    for namespace in model.namespaces:
        bound = {
            topic for place, topic in model.bindings if place == namespace and model.bound(namespace, topic) is not None
        }
        subjects = model.namespaces[namespace].subjects.items()
        names = sorted(bound | {name for name, subject in subjects if foreign(subject)})
        tenant = namespace or "default"
        path = f"/schema-registry/v1/cluster/default/tenant/{tenant}/subjects"
        yield Ask(Request("GET", path), (200, names), _of_names)
        live = sorted(name for name, subject in subjects if subject.live)
        yield Ask(Request("GET", f"/schema-registry/v1/tenant/{tenant}/schemas"), (200, live), _of_names)


def _of_names(reply: Reply) -> Any:
    return reply.status, reply.json
