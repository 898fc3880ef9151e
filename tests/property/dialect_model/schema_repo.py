"""AVRO-1124 and schema-repo: operations and reads, and the expected answers.

Both have only the default namespace. They read a text in the format of the subject's newest schema, at first as Avro.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any
from urllib.parse import urlencode

from tests.property.dialect_model.exchange import Ask, Op, Reply, Request, segment, status, text
from tests.property.dialect_model.model import Model, Refused
from tests.property.dialect_model.model_types import (
    ALLOW,
    LEVELS,
    Creation,
    Key,
    KindOfSchema,
    Policy,
    Row,
    Schema,
    Subject,
)
from tests.property.dialect_model.schemas import DRAFTS, Draft, interpret_bytes, pick_draft

NAME = "schema-repo"

_REFUSALS = {
    "SubjectNotFound": 404,
    "ContentNotFound": 404,
    "Incompatible": 403,
    "ReadOnly": 403,
    "PreconditionFailed": 409,
    "FormatMismatch": 400,
    "MalformedSchema": 400,
    "Incomparable": 400,
}
_WORDS = {name.lower(): policy for name, policy in LEVELS.items()} | {
    "deny": Policy("deny"),
    "full_transitive,repo.reject": Policy("compare", "all", "all", reject=True),
    "backward,forward_transitive": Policy("compare", "latest", "all"),
}
_FORM = {"content-type": "application/x-www-form-urlencoded"}
_PLAIN = {"content-type": "text/plain"}


def _words(policy: Policy) -> str:
    """Return the validator names for a policy; together they are at least as strict."""
    if policy.kind == "deny":
        words = ["deny"]
    else:
        far = {name: way if way in {"none", "latest"} else "all" for name, way in policy.directions}
        plain = Policy("compare", far["backward"], far["forward"])
        words = [name for name, known in _WORDS.items() if known == plain and "," not in name]
        if not words:
            words = [_half(name, way) for name, way in far.items() if way != "none"]
    words = [word for word in words if word != "none"]
    return ",".join([*words, *(["repo.reject"] if policy.reject else [])])


def _half(name: str, way: str | int) -> str:
    return name if way == "latest" else f"{name}_transitive"


def _exact(policy: Policy) -> str | None:
    """Return the exact policy as text, if its validator names are stricter; None otherwise."""
    if not any(isinstance(way, int) for _, way in policy.directions):
        return None
    ways = [(name, f"since {way}" if isinstance(way, int) else way) for name, way in policy.directions]
    return ", ".join(f"{name} {way}" for name, way in ways if way != "none")


# --- operations -----------------------------------------------------------------------------------------------------


def draw(random: Random, model: Model, key: Key) -> Op:
    """An operation on a subject of the default space."""
    key = Key("", key.name)
    what = random.choice(["post"] * 4 + ["put", "put", "post model", "force"] + ["create"] * 3 + ["after"] * 3)
    newest = subject.latest if (subject := model.subject(key)) is not None else None
    number = random.choice([newest.version_number if newest is not None else 0] * 3 + [0, 1, 2, 99])
    word = random.choice(["", *_WORDS]) if what in {"create", "post model"} else ""
    if what == "post model":
        word = word or "none"
    return Op(NAME, what, *key, pick_draft(random, model.language(key)), number, word)


def act(model: Model, op: Op) -> Ask:
    """Apply an operation to the model. Return its request with the expected answer."""
    key = Key(op.namespace, op.name)
    if model.language(key) == "json" and DRAFTS[op.draft].format == "avro":
        # Avro read leniently as JSON Schema is not tested here: use a draft that is valid as both.
        op = op._replace(draft=next(n for n, draft in enumerate(DRAFTS) if draft.meaning == "word"))
    try:
        expected: Any = (200, _apply_operation(model, op, key))
    except Refused as refused:
        expected = (_REFUSALS[refused.kind], None)
    return Ask(_request(op, key), expected, text)


def _request(op: Op, key: Key) -> Request:
    raw, name = DRAFTS[op.draft].raw, segment(key.name)
    match op.what:
        case "create":
            form = {"owner": "ann", **({"repo.validators": op.word} if op.word else {})}
            return Request("PUT", f"/schema-repo/{name}", urlencode(form).encode(), _FORM)
        case "put":
            return Request("PUT", f"/schema-repo/{name}/register", raw.encode(), _PLAIN)
        case "after":
            number = str(op.number - 1) if op.number else ""
            return Request("PUT", f"/schema-repo/{name}/register_if_latest/{number}", raw.encode(), _PLAIN)
        case _:
            form = {"schema": raw}
            if op.what == "post model":
                form["compatibility_model"] = op.word
            if op.what == "force":
                form["force_override"] = "true"
            return Request("POST", f"/avro1124/schemas/groups/{name}", urlencode(form).encode(), _FORM)


def _apply_operation(model: Model, op: Op, key: Key) -> str:
    if op.what == "create":
        _create(model, key, op.word)
        return key.name
    if op.what in {"post", "post model", "force"}:
        policy = _WORDS[op.word] if op.what == "post model" else None
        creation = Creation(False, policy=ALLOW if policy is None else policy)
        return str(_register_draft(model, key, op, creation, policy=policy, opaque=False).version_number)
    if op.what == "after":
        subject = _find_visible(model, key)
        newest = subject.latest
        row = subject.row(op.number) if op.number else None
        if op.number and (row is None or not row.live):
            raise Refused("ContentNotFound")
        if op.number != (newest.version_number if newest is not None else 0):
            raise Refused("PreconditionFailed")
    return str(_register_draft(model, key, op, None, opaque=True).version_number - 1)


def _create(model: Model, key: Key, word: str) -> None:
    subject = model.subject(key)
    if subject is None:
        policy = _WORDS[word] if word else model.policies.get(key) or ALLOW
        model.create(key, Creation(False, policy=policy), dialect=NAME)
    elif not subject.is_visible(NAME):
        model.writable(key)
        subject.kept.add(NAME)


def _register_draft(
    model: Model, key: Key, op: Op, creation: Creation | None, *, policy: Policy | None = None, opaque: bool
) -> Row:
    data = DRAFTS[op.draft].raw.encode()
    schema_kind = _lane(model.subject(key), data, opaque=opaque)
    row = same(model.live(key), data)
    if row is not None:
        model.demand(key, policy)
        return row
    return model.register(key, schema_kind, data, creation, policy=policy, force=op.what == "force")


def same(rows: list[Row], data: bytes) -> Row | None:
    """The oldest version of exactly this text."""
    return next((row for row in rows if row.schema.text == data), None)


def _lane(subject: Subject | None, data: bytes, *, opaque: bool) -> KindOfSchema:
    """Return the kind that a text is registered as."""
    newest = subject.latest if subject is not None else None
    language = (subject.made.format if subject is not None else "") or "avro"
    if newest is not None and (newest.schema_kind.format != "opaque" or newest.schema_kind.custom_format):
        language = newest.schema_kind.format
    if language == "opaque":
        custom_format = subject.made.custom_format if subject is not None else ""
        return KindOfSchema("opaque", "", newest.schema_kind.custom_format if newest is not None else custom_format)
    draft = interpret_bytes(data, language)
    if draft is None:
        if not opaque:
            raise Refused("MalformedSchema")
        return KindOfSchema("opaque", "")
    return KindOfSchema(language, draft.type)


def _find_visible(model: Model, key: Key) -> Subject:
    subject = model.subject(key)
    if subject is None or not subject.is_visible(NAME):
        raise Refused("SubjectNotFound")
    return subject


# --- reads ----------------------------------------------------------------------------------------------------------


def reads(model: Model, key: Key, drafts: Sequence[Draft]) -> Iterator[Ask]:
    """Yield all reads of a subject through these dialects."""
    if key.namespace:
        return
    subject, name = model.subject(key), segment(key.name)
    repo, group = f"/schema-repo/{name}", f"/avro1124/schemas/{name}"
    if subject is None or not subject.is_visible(NAME):
        for path in (repo, f"{repo}/all", f"{repo}/latest", f"{repo}/config", f"{repo}/id/0", group, f"{group}/1"):
            yield Ask(Request("GET", path), 404, status)
        return
    live = subject.live
    texts = {row.version_number: row.schema.text.decode("utf-8", "replace") for row in live}
    yield Ask(Request("GET", repo), (200, ""), text)
    listed = "".join(f"{number}\n" for number in texts)
    policy = model.policy(key)
    model_told = (200, listed, _words(policy) or "none", _exact(policy))
    yield Ask(Request("GET", group), model_told, _of_group)
    rows = [{"id": str(number - 1), "schema": schema_text} for number, schema_text in reversed(texts.items())]
    yield Ask(Request("GET", f"{repo}/all", None, {"accept": "application/json"}), (200, rows), _of_json)
    yield Ask(Request("GET", f"{repo}/config"), (200, policy), _of_config(policy))
    newest = subject.latest
    latest_entry = (
        (200, b"%d\t%s" % (newest.version_number - 1, newest.schema.text)) if newest is not None else (404, None)
    )
    yield Ask(Request("GET", f"{repo}/latest"), latest_entry, _bytes)
    latest = (200, newest.schema.text) if newest is not None else (404, None)
    yield Ask(Request("GET", f"{group}/latest"), latest, _bytes)
    for row in [*subject.rows, Row(99, KindOfSchema("", ""), 0, Schema(b"", ""), 0, policy, 0, live=False)]:
        expected = (200, row.schema.text) if row.live else (404, None)
        yield Ask(Request("GET", f"{repo}/id/{row.version_number - 1}"), expected, _bytes)
        yield Ask(Request("GET", f"{group}/{row.version_number}"), expected, _bytes)
    for draft in drafts:
        found_row = same(live, draft.raw.encode())
        expected_id = (200, str(found_row.version_number - 1)) if found_row is not None else (404, None)
        yield Ask(Request("POST", f"{repo}/schema", draft.raw.encode(), _PLAIN), expected_id, text)


def _bytes(reply: Reply) -> Any:
    return reply.status, reply.body if reply.status < 400 else None


def _of_json(reply: Reply) -> Any:
    return reply.status, reply.json


def _of_group(reply: Reply) -> Any:
    return reply.status, reply.text, reply.headers.get("x-compatibility-model"), reply.headers.get("x-stele-policy")


def _of_config(policy: Policy) -> Any:
    """Return a function that reads the policy from a config: that of its validators, or the exact one beside them."""

    def read(reply: Reply) -> Any:
        members = dict(line.split("=", 1) for line in reply.text.splitlines() if "=" in line and line[0] != "#")
        exact, words = members.get("stele.policy"), members.get("repo.validators", "")
        same = set(words.split(",")) - {"none"} == set(_words(policy).split(","))
        return reply.status, policy if (same or words == "none") and exact == _exact(policy) else (words, exact)

    return read


def lists(model: Model) -> Iterator[Ask]:
    """Yield all lists of subjects of these dialects."""
    visible_names = [key.name for key in model.names() if not key.namespace and model.present(key).is_visible(NAME)]
    names = "".join(f"{name}\n" for name in visible_names)
    yield Ask(Request("GET", "/avro1124/schemas"), (200, names), text)
    yield Ask(Request("GET", "/schema-repo"), (200, names), text)
