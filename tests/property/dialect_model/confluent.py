"""The Confluent dialect: operations and reads, and the expected answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from tests.property.dialect_model.exchange import Ask, Op, Reply, Request, segment, text
from tests.property.dialect_model.model import Model, Refused
from tests.property.dialect_model.model_types import LEVELS, Creation, Key, KindOfSchema, Policy, Row, Subject
from tests.property.dialect_model.schemas import COMPILED, DRAFTS, Draft, pick_draft

NAME = "confluent"

_REFUSALS = {
    "SubjectNotFound": (404, 40401),
    "VersionNotFound": (404, 40402),
    "AllRetired": (404, 40404),
    "SubjectNotRetired": (404, 40405),
    "AlreadyRetired": (404, 40406),
    "NotRetired": (404, 40407),
    "Incompatible": (409, 409),
    "FormatMismatch": (422, 42201),
    "Incomparable": (422, 42201),
    "ReadOnly": (422, 42205),
}


def names(key: Key) -> str:
    """Return the name of a subject in this dialect."""
    return f":.{key.namespace}:{key.name}" if key.namespace else key.name


def _path(key: Key) -> str:
    return f"/subjects/{segment(names(key))}"


# --- operations -----------------------------------------------------------------------------------------------------


def draw(random: Random, model: Model, key: Key) -> Op:
    """An operation on a subject."""
    draft = pick_draft(random, model.language(key), opaque=False)
    subject = model.subject(key)
    version_numbers = [row.version_number for row in subject.rows] if subject is not None else []
    number = random.choice([*version_numbers, *version_numbers, 0, 99])
    what = random.choice(
        ["register"] * 9 + ["retire", "purge", "retire", "purge", "retire all", "purge all", "level", "level", "clear"]
        + ["exact", "space", "mode", "unmode", "unmode", "unmode", "force"]
    )  # fmt: skip
    if what == "purge" and (retired := [row.version_number for row in subject.rows if not row.live] if subject else []):
        number = random.choice(retired)
    word = random.choice([*LEVELS, "NONE", "BACKWARD"]) if what in {"level", "space"} else random.choice(list(_EXACT))
    return Op(NAME, what, *key, draft, number, word if what in {"level", "space", "exact"} else "")


def act(model: Model, op: Op) -> Ask:
    """Apply an operation to the model. Return its request with the expected answer."""
    key = Key(op.namespace, op.name)
    request = _request(op, key)
    try:
        return Ask(request, _apply_operation(model, op, key), _build_reader(op.what))
    except Refused as refused:
        return Ask(request, _REFUSALS[refused.kind], _build_reader(op.what))


def _request(op: Op, key: Key) -> Request:
    number = op.number or "latest"
    match op.what:
        case "register" | "force":
            path = f"{_path(key)}/versions" + ("?force=true" if op.what == "force" else "")
            return Request("POST", path, _encode_draft(DRAFTS[op.draft]))
        case "retire":
            return Request("DELETE", f"{_path(key)}/versions/{number}")
        case "purge":
            return Request("DELETE", f"{_path(key)}/versions/{number}?permanent=true")
        case "retire all":
            return Request("DELETE", _path(key))
        case "purge all":
            return Request("DELETE", f"{_path(key)}?permanent=true")
        case "level":
            return Request("PUT", f"/config/{segment(names(key))}", {"compatibility": op.word})
        case "exact":
            return Request("PUT", f"/config/{segment(names(key))}", {"steleCompatibility": _EXACT[op.word][1]})
        case "space":
            return Request("PUT", f"/config/{segment(f':.{key.namespace}:')}", {"compatibility": op.word})
        case "clear":
            return Request("DELETE", f"/config/{segment(names(key))}")
        case "mode":
            return Request("PUT", f"/mode/{segment(names(key))}", {"mode": "READONLY"})
        case _:
            return Request("PUT", f"/mode/{segment(names(key))}", {"mode": "READWRITE"})


def _apply_operation(model: Model, op: Op, key: Key) -> Any:
    match op.what:
        case "register" | "force":
            draft = DRAFTS[op.draft]
            row = same(model.live(key), draft)
            if row is None:
                text = draft.printed.encode()
                row = model.register(
                    key, KindOfSchema(draft.format, draft.type), text, Creation(), force=op.what == "force"
                )
            return 200, (row.schema_id, row.version_number, print_version(row))
        case "retire":
            return 200, model.retire(key, op.number or None).version_number
        case "purge":
            return 200, model.purge(key, op.number or None).version_number
        case "retire all":
            return 200, [row.version_number for row in model.retire_all(key)]
        case "purge all":
            return 200, [row.version_number for row in model.purge_all(key)]
        case "level" | "exact":
            model.writable(key)
            model.policies[key] = LEVELS[op.word] if op.what == "level" else _EXACT[op.word][0]
            return 200, None
        case "space":
            model.policies[key.namespace, None] = LEVELS[op.word]
            return 200, None
        case "clear":
            if key not in model.policies:
                raise Refused("SubjectNotFound")
            model.writable(key)
            del model.policies[key]
            model.notes.pop(key, None)
            return 200, None
        case "mode":
            model.closed.add(key)
            return 200, None
        case _:
            model.closed.discard(key)
            return 200, None


def _build_reader(what: str) -> Any:
    def read(reply: Reply) -> Any:
        if reply.status >= 400:
            return reply.status, reply.json["error_code"]
        if what in {"register", "force"}:
            return reply.status, (reply.json["id"], reply.json["version"], reply.json["schema"])
        return reply.status, reply.json if what.startswith(("retire", "purge")) else None

    return read


_EXACT: dict[str, tuple[Policy, dict[str, Any]]] = {
    "deny": (Policy("deny"), {"kind": "deny_all"}),
    "since": (Policy("compare", 2), {"backward": "since:2"}),
    "mixed": (Policy("compare", "latest", "all"), {"backward": "latest", "forward": "all"}),
    "reject": (Policy("allow", reject=True), {"kind": "allow_any", "checkers": ["repo.reject"]}),
}
"""Policies that are none of the levels, each with its notation in this dialect."""


def exact_form(policy: Policy) -> dict[str, Any] | None:
    """Return the exact policy that is shown beside the level, None if the level is exact."""
    if policy.exact:
        return None
    kind = {"allow": "allow_any", "deny": "deny_all", "compare": "directional"}[policy.kind]
    ways = {name: way if isinstance(way, str) else f"since:{way}" for name, way in policy.directions}
    return {"kind": kind, **ways, "checkers": ["repo.reject"] if policy.reject else []}


def _encode_draft(draft: Draft) -> dict[str, Any]:
    return {"schema": draft.raw, **({} if draft.format == "avro" else {"schemaType": draft.format.upper()})}


def same(rows: list[Row], draft: Draft) -> Row | None:
    """Return the newest version that equals a draft: with the same text, else with the same printed text."""
    newest_first = sorted(rows, key=lambda row: -row.version_number)
    alike = [
        row for row in newest_first if row.schema_kind.format == draft.format and row.draft.printed == draft.printed
    ]
    return next((row for row in alike if row.schema.text == draft.printed.encode()), alike[0] if alike else None)


def print_version(row: Row) -> str:
    """The text of a version: as it is stored, compiled ones printed with the JSON names of their fields."""
    if row.schema.text not in COMPILED:
        return row.schema.text.decode()
    return re.sub(r"(\w+) = (\d+);", r'\1 = \2 [json_name = "\1"];', row.draft.printed)


# --- reads ----------------------------------------------------------------------------------------------------------


def reads(model: Model, key: Key, drafts: Sequence[Draft]) -> Iterator[Ask]:
    """Yield all reads of a subject through this dialect."""
    subject, path = model.subject(key), _path(key)
    rows = subject.rows if subject is not None else []
    live = [row for row in rows if row.live]
    yield from _numbers(path, rows, live)
    yield from _versions(model, key, subject, path)
    for draft in drafts:
        if draft.format != "opaque":
            yield from _content(model, key, draft)
    yield from _ids(model, key, rows)
    yield from _settings(model, key)


def _numbers(path: str, rows: list[Row], live: list[Row]) -> Iterator[Ask]:
    signed = [row.version_number if row.live else -row.version_number for row in rows]
    yield _expect_list(f"{path}/versions", [row.version_number for row in live])
    yield _expect_list(f"{path}/versions?deleted=true", [row.version_number for row in rows])
    yield _expect_list(f"{path}/versions?deletedAsNegative=true", signed)


def _expect_list(path: str, expected: list[Any]) -> Ask:
    return Ask(Request("GET", path), (200, expected) if expected else (404, 40401), _read_answer)


def _read_answer(reply: Reply) -> tuple[int, Any]:
    return reply.status, reply.json if reply.status < 400 else reply.json["error_code"]


def _version(key: Key, row: Row) -> dict[str, Any]:
    return {
        "subject": names(key),
        "version": row.version_number,
        "id": row.schema_id,
        "schemaType": row.schema_kind.format.upper(),
        "schema": print_version(row),
        "deleted": not row.live,
    }


def _of_version(reply: Reply) -> tuple[int, Any]:
    if reply.status >= 400:
        return reply.status, reply.json["error_code"]
    members = ("subject", "version", "id", "schemaType", "schema", "deleted")
    return reply.status, {name: reply.json.get(name) for name in members}


def _find_other_subject(model: Model, key: Key, *, deleted: bool) -> Key:
    """Return the subject that a bare name means: that of another namespace if the default one has no such subject."""
    if key.namespace:
        return key
    for namespace in ("", "t"):
        subject = model.namespaces[namespace].subjects.get(key.name)
        if subject is not None and any(row.live or deleted for row in subject.rows):
            return Key(namespace, key.name)
    return key


def _versions(model: Model, key: Key, subject: Subject | None, path: str) -> Iterator[Ask]:
    numbers = [*(row.version_number for row in subject.rows), 99] if subject is not None else [1]
    for deleted in (False, True):
        there = _find_other_subject(model, key, deleted=deleted)
        meant = model.subject(there)
        suffix = "?deleted=true" if deleted else ""
        for number in numbers:
            row = meant.row(number) if meant is not None else None
            there_are = meant is not None and (meant.live or (deleted and meant.rows))
            expected: Any = (404, 40402 if there_are else 40401)
            if row is not None and (row.live or deleted):
                expected = (200, _version(there, row))
            yield Ask(Request("GET", f"{path}/versions/{number}{suffix}"), expected, _of_version)
    meant = model.subject(there := _find_other_subject(model, key, deleted=False))
    newest = meant.latest if meant is not None else None
    expected = (200, _version(there, newest)) if newest is not None else (404, 40401)
    yield Ask(Request("GET", f"{path}/versions/latest"), expected, _of_version)
    plain = (200, print_version(newest)) if newest is not None else (404, None)
    yield Ask(Request("GET", f"{path}/versions/latest/schema"), plain, text)


def _content(model: Model, key: Key, draft: Draft) -> Iterator[Ask]:
    for deleted in (False, True):
        there = _find_other_subject(model, key, deleted=deleted)
        subject = model.subject(there)
        rows = [row for row in subject.rows if row.live or deleted] if subject is not None else []
        row = same(rows, draft)
        expected: Any = (404, 40403 if rows else 40401) if row is None else (200, _version(there, row))
        suffix = "?deleted=true" if deleted else ""
        yield Ask(Request("POST", f"{_path(key)}{suffix}", _encode_draft(draft)), expected, _of_version)
    try:
        schema_kind = KindOfSchema(draft.format, draft.type)
        expected = (200, model.accepts(key, schema_kind, draft.meaning, model.policy(key)))
    except Refused as refused:
        expected = _REFUSALS[refused.kind]
    path = f"/compatibility{_path(key)}/versions"
    yield Ask(Request("POST", path, _encode_draft(draft)), expected, _verdict)


def _verdict(reply: Reply) -> tuple[int, Any]:
    return reply.status, reply.json["is_compatible"] if reply.status < 400 else reply.json["error_code"]


def _ids(model: Model, key: Key, rows: list[Row]) -> Iterator[Ask]:
    scope = f"?subject={segment(f':.{key.namespace}:')}" if key.namespace else ""
    closed = [row for _, subject in model.namespaces[key.namespace].past for row in subject.rows]
    past = [row for row in closed if not model.holders(key.namespace, row.schema_id)]
    for row in [*rows, *past[-2:]]:
        kind = row.schema.format.upper()
        expected = (200, (print_version(row), kind))
        path = f"/schemas/ids/{row.schema_id}"
        yield Ask(Request("GET", f"{path}{scope}"), expected, _of_id)
        yield Ask(Request("GET", f"{path}/schema{scope}"), (200, print_version(row)), text)
        uses = [(names(Key(key.namespace, name)), use) for name, use in model.holders(key.namespace, row.schema_id)]
        all_versions = [(name, use.version_number) for name, use in uses]
        live = [(name, use.version_number) for name, use in uses if use.live]
        suffix = scope.replace("?", "&")
        for flag, versions in (("false", live), ("true", all_versions)):
            expected_uses: Any = (200, versions) if all_versions else (404, 40403)
            yield Ask(Request("GET", f"{path}/versions?deleted={flag}{suffix}"), expected_uses, _of_uses)
    high = model.namespaces[key.namespace].highest_schema_id
    yield Ask(Request("GET", f"/schemas/ids/{high + 1}{scope}"), (404, 40403), _read_answer)


def _of_id(reply: Reply) -> tuple[int, Any]:
    body = reply.json
    return reply.status, (body["schema"], body["schemaType"]) if reply.status < 400 else body["error_code"]


def _of_uses(reply: Reply) -> tuple[int, Any]:
    if reply.status >= 400:
        return reply.status, reply.json["error_code"]
    return reply.status, [(use["subject"], use["version"]) for use in reply.json]


def _settings(model: Model, key: Key) -> Iterator[Ask]:
    policy = model.policy(key)
    shown_policy = (200, (policy.level, exact_form(policy)))
    path = segment(names(key))
    yield Ask(Request("GET", f"/config/{path}?defaultToGlobal=true"), shown_policy, _of_config)
    subject = model.subject(key)
    has_own = key in model.policies or (subject is not None and subject.made.policy is not None)
    own = shown_policy if has_own else (404, 40408)
    yield Ask(Request("GET", f"/config/{path}"), own, _of_config)
    mode = "READONLY" if key in model.closed else "READWRITE"
    yield Ask(Request("GET", f"/mode/{path}?defaultToGlobal=true"), (200, {"mode": mode}), _read_answer)


def _of_config(reply: Reply) -> tuple[int, Any]:
    if reply.status >= 400:
        return reply.status, reply.json["error_code"]
    return reply.status, (reply.json["compatibilityLevel"], reply.json.get("steleCompatibility"))


def lists(model: Model) -> Iterator[Ask]:
    """Yield all lists of subjects of this dialect."""
    subjects = {names(key): model.present(key) for key in model.names()}
    everything = sorted(subjects.items())
    live = [name for name, subject in everything if subject.live]
    names_with_versions = [name for name, subject in everything if subject.rows]
    prefix = segment(":*:")
    yield Ask(Request("GET", f"/subjects?subjectPrefix={prefix}"), (200, live), _read_answer)
    yield Ask(
        Request("GET", f"/subjects?subjectPrefix={prefix}&deleted=true"), (200, names_with_versions), _read_answer
    )
    dead = [name for name in names_with_versions if name not in live]
    yield Ask(Request("GET", f"/subjects?subjectPrefix={prefix}&deletedOnly=true"), (200, dead), _read_answer)
    rows = [
        (names(key), row.version_number, row.schema_id, print_version(row), not row.live)
        for key in sorted(model.names(), key=names)
        for row in model.present(key).rows
    ]
    yield Ask(Request("GET", f"/schemas?subjectPrefix={prefix}&deleted=true"), (200, rows), _of_schemas)


def _of_schemas(reply: Reply) -> tuple[int, Any]:
    members = ("subject", "version", "id", "schema", "deleted")
    return reply.status, [tuple(row[name] for name in members) for row in reply.json]
