"""Stele's own API: policies, exactly; and the check of a schema against all versions of a subject."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from tests.property.dialect_model.confluent import names
from tests.property.dialect_model.exchange import Ask, Op, Reply, Request, segment
from tests.property.dialect_model.model import Model, Refused
from tests.property.dialect_model.model_types import LEVELS, Key, KindOfSchema, Policy
from tests.property.dialect_model.schemas import Draft

NAME = "native"

_POLICIES: dict[str, Policy] = {
    **LEVELS,
    "deny": Policy("deny"),
    "since": Policy("compare", "none", 3),
    "mixed": Policy("compare", "all", "latest"),
    "reject": Policy("compare", "latest", reject=True),
}


def form(policy: Policy) -> dict[str, Any]:
    """Return a policy in the notation of this API."""
    kind = {"allow": "allow_any", "deny": "deny_all", "compare": "directional"}[policy.kind]
    ways = {name: way if isinstance(way, str) else f"since:{way}" for name, way in policy.directions}
    return {"kind": kind, **ways, "checkers": ["repo.reject"] if policy.reject else []}


def draw(random: Random, model: Model, key: Key) -> Op:
    """An operation on the policy of a subject, or (rarely) of its space or the registry."""
    what = random.choice(["policy", "policy", "clear", "space", "registry", "clear space"])
    return Op(NAME, what, *key, word=random.choice(list(_POLICIES)))


def _place(op: Op, key: Key) -> tuple[str, tuple[str | None, str | None]]:
    if op.what == "registry":
        return "", (None, None)
    if "space" in op.what:
        return f"/{segment(f':.{key.namespace}:')}", (key.namespace, None)
    return f"/{segment(names(key))}", key


def act(model: Model, op: Op) -> Ask:
    """Apply an operation to the model. Return its request with the expected answer."""
    key = Key(op.namespace, op.name)
    path, level = _place(op, key)
    clearing = op.what.startswith("clear")
    body = None if clearing else {"policy": form(_POLICIES[op.word])}
    request = Request("DELETE" if clearing else "PUT", f"/api/policies{path}", body)
    try:
        if level == key:
            model.writable(key)
        if clearing:
            model.policies.pop(level, None)
            if level in model.notes:  # The level still has settings, but they are empty.
                model.policies[level] = None
        else:
            model.policies[level] = _POLICIES[op.word]
        in_force = model.policy(key) if level == key else _in_force(model, level)
        return Ask(request, (200, form(in_force)), _policy)
    except Refused:
        return Ask(request, (403, "read_only"), _policy)


def _in_force(model: Model, level: tuple[str | None, str | None]) -> Policy:
    policy = model.policies.get(level) or model.policies.get((None, None))
    return policy if policy is not None else LEVELS["BACKWARD"]


def _policy(reply: Reply) -> Any:
    body = reply.json
    return reply.status, body["error"]["kind"] if reply.status >= 400 else body["policy"]


def reads(model: Model, key: Key, drafts: Sequence[Draft]) -> Iterator[Ask]:
    """Yield reads of the exact effective policy, its nearest level, and the verdicts of the levels on schemas."""
    policy = model.policy(key)
    expected = (200, form(policy), policy.level, policy.level if policy.exact else None)
    yield Ask(Request("GET", f"/api/policies/{segment(names(key))}"), expected, _read_policy)
    subject = model.subject(key)
    if subject is None or subject.made.scope != "subject" or not policy.exact:
        return
    live = subject.live
    for draft in drafts:
        if draft.format == "opaque" or any(row.schema_kind.format != draft.format for row in live):
            continue
        fits = model.accepts(key, KindOfSchema(draft.format, draft.type), draft.meaning, policy)
        against = [{"schema": row.draft.raw} for row in live]
        body = {"format": draft.format, "schema": draft.raw, "policy": policy.level, "against": against}
        yield Ask(Request("POST", "/api/check", body), (200, fits), _verdict)


def _read_policy(reply: Reply) -> Any:
    return reply.status, reply.json["policy"], reply.json["nearest"], reply.json["name"]


def _verdict(reply: Reply) -> Any:
    return reply.status, reply.json["compatible"]


def lists(model: Model) -> Iterator[Ask]:
    """The policies of the registry and its spaces."""
    for level, path in (((None, None), ""), (("", None), "/:.:"), (("t", None), "/:.t:")):
        policy = _in_force(model, level)
        expected = (200, form(policy), policy.level, policy.level if policy.exact else None)
        yield Ask(Request("GET", f"/api/policies{path}"), expected, _read_policy)
