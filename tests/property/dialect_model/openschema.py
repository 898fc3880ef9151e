"""The OpenSchema dialect: operations and reads, and the expected answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from tests.property.dialect_model.confluent import exact_form
from tests.property.dialect_model.exchange import Ask, Op, Reply, Request, segment, status
from tests.property.dialect_model.model import Model, Refused
from tests.property.dialect_model.model_types import BACKWARD, LEVELS, Creation, Key, KindOfSchema, Policy, Row, Subject
from tests.property.dialect_model.schemas import DRAFTS, Draft, pick_draft

NAME = "openschema"

_REFUSALS = {
    "SubjectNotFound": 40401,
    "ContentNotFound": 40401,
    "VersionNotFound": 40402,
    "Incompatible": 40901,
    "Incomparable": 40901,
    "FormatMismatch": 42201,
    "ReadOnly": 40301,
}
_KINDS = {"avro": "AVRO", "json": "JSON", "protobuf": "PB", "opaque": "WORDS"}


def _at(key: Key, path: str = "", root: str = "subjects") -> str:
    tenant = f"?tenant={key.namespace or 'default'}"
    return f"/openschema/{root}/{segment(key.name)}{path}{tenant}"


# --- operations -----------------------------------------------------------------------------------------------------


def draw(random: Random, model: Model, key: Key) -> Op:
    """An operation on a subject."""
    subject = model.subject(key)
    live = subject.live if subject is not None else []
    number = random.choice([*(row.version_number for row in live), 0, 99])
    what = random.choice(["register"] * 6 + ["put", "put", "config", "delete", "delete", "drop"])
    words = {"put": ["", *LEVELS], "config": [*LEVELS]}.get(what, [""])
    return Op(NAME, what, *key, pick_draft(random, model.language(key)), number, random.choice(words))


def act(model: Model, op: Op) -> Ask:
    """Apply an operation to the model. Return its request with the expected answer."""
    key = Key(op.namespace, op.name)
    request = _request(op, key)
    try:
        return Ask(request, (200, _apply_operation(model, op, key)), _build_reader(op.what))
    except Refused as refused:
        code = _REFUSALS[refused.kind]
        return Ask(request, (code // 100, code), _build_reader(op.what))


def _request(op: Op, key: Key) -> Request:
    match op.what:
        case "register":
            return Request("POST", _at(key, "/versions"), _encode_draft(DRAFTS[op.draft]))
        case "put":
            place = {"tenant": key.namespace or "default", "namespace": "default", "subject": key.name}
            wish = {"compatibility": op.word} if op.word else {}
            return Request("POST", _at(key), {**place, "status": "released", **wish})
        case "config":
            return Request("PUT", _at(key, root="config"), {"compatibility": op.word})
        case "delete":
            return Request("DELETE", _at(key, f"/versions/{op.number or 'latest'}"))
        case _:
            return Request("DELETE", _at(key))


def _encode_draft(draft: Draft) -> dict[str, str]:
    return {"schemaDefinition": draft.raw, "serialization": _KINDS[draft.format]}


def _lane(draft: Draft) -> KindOfSchema:
    return KindOfSchema(draft.format, draft.type, "WORDS" if draft.format == "opaque" else "")


def format_schema_id(key: Key, schema_id: int) -> str:
    """Return the id of a schema in this dialect: its schema id with its namespace in front."""
    return f"{key.namespace}:{schema_id}" if key.namespace else str(schema_id)


def _apply_operation(model: Model, op: Op, key: Key) -> Any:
    match op.what:
        case "register":
            draft = DRAFTS[op.draft]
            row = same(model.live(key), draft)
            if row is None:
                row = model.register(key, _lane(draft), draft.raw.encode(), Creation(False, policy=BACKWARD))
            return format_schema_id(key, row.schema_id)
        case "put":
            _put(model, key, LEVELS.get(op.word))
            return model.policy(key).level
        case "config":
            subject = _find_visible(model, key)
            _require_consistent(subject, LEVELS[op.word])
            model.writable(key)
            model.policies[key] = LEVELS[op.word]
            model.notes.setdefault(key, set()).add(NAME)
            return op.word
        case "delete":
            return _delete_version(model, key, op.number)
        case _:
            live = [row.version_number for row in _find_visible(model, key).live]
            model.close(key)
            return live


def same(rows: Sequence[Row], draft: Draft) -> Row | None:
    """Return the oldest version with the same meaning, of the same kind in this dialect."""
    schema_kind = _lane(draft)
    return next((row for row in rows if row.schema_kind == schema_kind and row.draft.meaning == draft.meaning), None)


def _put(model: Model, key: Key, policy: Policy | None) -> None:
    subject = model.subject(key)
    if subject is None:
        initial_policy = policy or model.policies.get(key) or BACKWARD
        model.create(key, Creation(False, policy=initial_policy), dialect=NAME)
        return
    if policy is not None and policy != model.policy(key):
        _require_consistent(subject, policy)
        model.writable(key)
        model.policies[key] = policy
    model.writable(key)
    subject.kept.add(NAME)


def _find_visible(model: Model, key: Key) -> Subject:
    subject = model.subject(key)
    if subject is None or not subject.is_visible(NAME):
        raise Refused("SubjectNotFound")
    return subject


def _require_consistent(subject: Subject, policy: Policy) -> None:
    """Raise `Refused` if the existing versions, in their order, would not have satisfied the policy."""
    if policy.kind != "compare":
        return
    for position, row in enumerate(subject.live):
        _judge(subject, row, subject.live[:position], policy)


def _judge(subject: Subject, row: Row, before: list[Row], policy: Policy) -> None:
    model = Model()
    key = Key("", "judged")
    rows = [Row(other.version_number, other.schema_kind, 0, other.schema, 0, policy, 0) for other in before]
    model.namespaces[""].subjects["judged"] = Subject(subject.made, 0, rows)
    model.judge(key, row.schema_kind, row.draft.meaning, policy._replace(reject=False))


def _delete_version(model: Model, key: Key, number: int) -> int:
    subject = _find_visible(model, key)
    row = subject.latest if not number else subject.row(number)
    if row is None or not row.live:
        raise Refused("VersionNotFound")
    live, policy = subject.live, model.policy(key)
    backward, forward = (way if way == "latest" else "none" for _, way in policy.directions)
    near = Policy("compare", backward, forward)
    if subject.made.scope == "lane":
        live = [other for other in live if other.schema_kind == row.schema_kind]
    place = live.index(row)
    if 0 < place < len(live) - 1:
        _judge(subject, live[place + 1], [live[place - 1]], near)
    return model.retire(key, row.version_number).version_number


def _build_reader(what: str) -> Any:
    members = {"register": "id", "put": "compatibility", "config": "compatibility"}

    def read(reply: Reply) -> Any:
        if reply.status >= 400:
            return reply.status, reply.json["errorCode"]
        return reply.status, reply.json[members.get(what, "version")]

    return read


# --- reads ----------------------------------------------------------------------------------------------------------


def reads(model: Model, key: Key, drafts: Sequence[Draft]) -> Iterator[Ask]:
    """Yield all reads of a subject through this dialect."""
    subject = model.subject(key)
    if subject is None or not subject.is_visible(NAME):
        for path in ("", "/versions", "/versions/1/schema", "/versions/latest/schema"):
            yield Ask(Request("GET", _at(key, path)), 404, status)
        yield Ask(Request("GET", _at(key, root="config")), 404, status)
        return
    policy = (200, (model.policy(key).level, exact_form(model.policy(key))))
    yield Ask(Request("GET", _at(key)), policy, _of_policy)
    yield Ask(Request("GET", _at(key, root="config")), policy, _of_policy)
    numbers = [row.version_number for row in subject.live]
    yield Ask(Request("GET", _at(key, "/versions")), (200, numbers), _of_numbers)
    for row in subject.rows:
        expected = (200, _schema(key, row)) if row.live else (404, 40402)
        yield Ask(Request("GET", _at(key, f"/versions/{row.version_number}/schema")), expected, _of_version)
    newest = subject.latest
    expected = (200, _schema(key, newest)) if newest is not None else (404, 40402)
    yield Ask(Request("GET", _at(key, "/versions/latest/schema")), expected, _of_version)
    yield from _ids(model, key, subject)


def _schema(key: Key, row: Row) -> Any:
    kind = row.schema_kind.custom_format or _KINDS[row.schema_kind.format]
    if row.schema_kind.format == "opaque" and not row.schema_kind.custom_format:
        kind = "USER-DEFINED"
    text = row.schema.text.decode("utf-8", "replace")
    return format_schema_id(key, row.schema_id), kind, text, row.version_number


def _ids(model: Model, key: Key, subject: Subject) -> Iterator[Ask]:
    for row in subject.rows:
        named = f"/openschema/schemas/{segment(format_schema_id(key, row.schema_id))}"
        uses = [use for use in model.everywhere(key.namespace) if use[1].schema_id == row.schema_id]
        uses.sort(key=lambda use: use[1].uid)
        closed = {id(old) for _, past in model.namespaces[key.namespace].past for old in past.rows}
        live = [use for use in uses if use[1].live and id(use[1]) not in closed]
        name, first = (live or uses)[0]
        yield Ask(Request("GET", named), (200, _schema(key, first)), _of_schema)
        yield Ask(Request("GET", f"{named}/subject"), (200, (name, first.version_number)), _of_place)


def _of_policy(reply: Reply) -> Any:
    return reply.status, (reply.json["compatibility"], reply.json.get("steleCompatibility"))


def _of_numbers(reply: Reply) -> Any:
    return reply.status, reply.json["version"]


def _of_version(reply: Reply) -> Any:
    if reply.status >= 400:
        return reply.status, reply.json["errorCode"]
    return reply.status, _read_schema(reply.json["schema"])


def _of_schema(reply: Reply) -> Any:
    return reply.status, _read_schema(reply.json)


def _read_schema(schema: Any) -> Any:
    return schema["id"], schema["serialization"], schema["schemaDefinition"], schema["version"]


def _of_place(reply: Reply) -> Any:
    return reply.status, (reply.json["subject"], reply.json["version"])


def lists(model: Model) -> Iterator[Ask]:
    """Yield all lists of subjects of this dialect."""
    visible_keys = [key for key in model.names() if model.present(key).is_visible(NAME)]
    for tenant, keys in (("", visible_keys), ("?tenant=t", [key for key in visible_keys if key.namespace])):
        names = sorted({key.name for key in keys})
        yield Ask(Request("GET", f"/openschema/subjects{tenant}"), (200, names), _of_names)


def _of_names(reply: Reply) -> Any:
    return reply.status, reply.json["name"]
