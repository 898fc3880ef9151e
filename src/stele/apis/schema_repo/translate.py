"""Compatibility models and subject configs: these dialects' words into the core's and back. Pure.

A model (AVRO-1124) and the list `repo.validators` (schema-repo) are the same thing here: policy words, which add up,
and names of validators. What is set in another dialect is shown in the same words; where those cannot say it, as the
nearest stricter ones, and `stele.policy` has the exact policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from stele.apis.schema_repo.options import SchemaRepoOptions, words_in
from stele.core import queries
from stele.core.model import Subject
from stele.core.policy import ALLOW_ANY, DENY_ALL, POLICIES, Policy, PolicyKind, RangeKind, VersionRange
from stele.core.state import State
from stele.errors import InvalidRequest, UnknownPolicy
from stele.service import validators

DIALECT = "schema-repo"
"""Under which name a subject keeps the config it was created with."""

VALIDATORS = "repo.validators"
EXACT = "stele.policy"
"""Config key that tells a policy no list of validators can express."""

_RESERVED = "repo."
_WORDS = {
    **{name.lower(): policy for name, policy in POLICIES.items()},
    "noop": ALLOW_ANY,
    "deny": DENY_ALL,
}


# --- policies -------------------------------------------------------------------------------------------------------


def policy_of(words: Iterable[str], models: Mapping[str, tuple[str, ...]]) -> Policy:
    """The policy a list of words adds up to; a word of the operator's own stands for several.

    Raises `UnknownPolicy` for a word that is neither a policy nor a validator somebody installed.
    """
    policy = ALLOW_ANY
    for word in _spelled_out(words, models):
        named = _WORDS.get(word.lower())
        policy = _sum(
            policy, named if named is not None else Policy(PolicyKind.ALLOW_ANY, validators=(_checker(word),))
        )
    return policy


def _spelled_out(words: Iterable[str], models: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for word in words:
        yield from models.get(word, (word,))


def _checker(word: str) -> str:
    kind, _, rest = word.partition(":")
    if (kind in {validators.LINT, validators.RULESET} and rest) or word in validators.list_validators():
        return word
    known = ", ".join((*_WORDS, *validators.list_validators()))
    raise UnknownPolicy(f"{word!r} is neither a compatibility policy nor a validator; known: {known}")


def _sum(one: Policy, other: Policy) -> Policy:
    """The policy that lets in what both let in."""
    checkers = tuple(dict.fromkeys((*one.validators, *other.validators)))
    kinds = {one.kind, other.kind}
    if PolicyKind.DENY_ALL in kinds:
        return replace(DENY_ALL, validators=checkers)
    if kinds == {PolicyKind.ALLOW_ANY}:
        return replace(ALLOW_ANY, validators=checkers)
    backward = one.backward if one.backward.covers(other.backward) else other.backward
    forward = one.forward if one.forward.covers(other.forward) else other.forward
    return Policy(backward=backward, forward=forward, validators=checkers)


def words_of(policy: Policy) -> tuple[str, ...]:
    """A policy in words that `policy_of` reads, the nearest stricter ones where there are no exact ones."""
    return (*_base(policy), *policy.validators)


def _base(policy: Policy) -> tuple[str, ...]:
    if policy.kind is PolicyKind.DENY_ALL:
        return ("deny",)
    halves = (Policy(backward=policy.backward), Policy(forward=policy.forward))
    words = tuple(half.nearest_name.lower() for half in halves if half != Policy())
    common = policy_of(words, {}).exact_name
    return (common.lower(),) if len(words) == 2 and common is not None else words


def exact_words(policy: Policy) -> str | None:
    """What a policy is exactly, when `words_of` had to be stricter; else None."""
    directions = (("backward", policy.backward), ("forward", policy.forward))
    if all(extent.kind is not RangeKind.SINCE for _, extent in directions):
        return None
    return ", ".join(f"{name} {_reach(extent)}" for name, extent in directions if extent.kind is not RangeKind.NONE)


def _reach(extent: VersionRange) -> str:
    return f"since {extent.since}" if extent.kind is RangeKind.SINCE else extent.kind.value


# --- configs --------------------------------------------------------------------------------------------------------


def config_in(form: Mapping[str, str], options: SchemaRepoOptions) -> Policy:
    """The policy the config of a new subject asks for; without `repo.validators` that of the server's defaults.

    Raises `InvalidRequest` for another key of the reserved kind, `UnknownPolicy`.
    """
    for key in form:
        if key.startswith(_RESERVED) and key != VALIDATORS:
            raise InvalidRequest(f"{key!r} is reserved: of the keys that begin with 'repo.' only {VALIDATORS!r} is one")
    words = words_in(form[VALIDATORS]) if VALIDATORS in form else options.default_validators
    return policy_of(words, options.models)


def config_out(state: State, subject: Subject, options: SchemaRepoOptions) -> dict[str, str]:
    """The config of a subject: as it was sent, but for a policy that was changed since or comes from elsewhere."""
    sent: dict[str, str] | None = (subject.dialect_data or {}).get(DIALECT)
    policy = queries.policy_for(state, subject.key)
    config = dict(sent or {})
    if sent is None or not _means(sent, policy, options):
        config[VALIDATORS] = ",".join(words_of(policy))
        if (exact := exact_words(policy)) is not None:
            config[EXACT] = exact
    return config


def _means(config: Mapping[str, str], policy: Policy, options: SchemaRepoOptions) -> bool:
    try:
        return config_in(config, options) == policy
    except UnknownPolicy:  # A model or validator that has gone since.
        return False
