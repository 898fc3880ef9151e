"""Translates compatibility models and subject configs into policies and back; renders responses. Pure.

A model (AVRO-1124) and the list `repo.validators` (schema-repo) are the same thing: policy words, which are combined,
and names of validators. A policy from another dialect is shown in the same words. If they cannot express it, the
nearest stricter ones are shown, with the exact policy in `stele.policy`.

Bodies are rendered in the exact form of the original: plain text, JSON, Java properties, HTML pages.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from stele.apis.schema_repo.options import SchemaRepoOptions, split_words
from stele.core import queries
from stele.core.model import Subject
from stele.core.policy import ALLOW_ANY, DENY_ALL, POLICIES, Policy, PolicyKind, RangeKind, VersionRange
from stele.core.state import State
from stele.errors import InvalidRequest, UnknownPolicy
from stele.service import validators
from stele.templates import render_template

DIALECT = "schema-repo"
"""Key of the config with which a subject was created."""

VALIDATORS = "repo.validators"
EXACT = "stele.policy"
"""Config key of a policy that no list of validators can express."""

_RESERVED = "repo."
_WORDS = {
    **{name.lower(): policy for name, policy in POLICIES.items()},
    "noop": ALLOW_ANY,
    "deny": DENY_ALL,
}


# --- policies -------------------------------------------------------------------------------------------------------


def parse_policy(words: Iterable[str], models: Mapping[str, tuple[str, ...]]) -> Policy:
    """Return the policy that a list of words combines to. A model of the operator stands for several words.

    Raises `UnknownPolicy` for a word that is neither a policy nor an installed validator.
    """
    policy = ALLOW_ANY
    for word in _expand_models(words, models):
        named = _WORDS.get(word.lower())
        policy = _combine(
            policy, named if named is not None else Policy(PolicyKind.ALLOW_ANY, validators=(_require_validator(word),))
        )
    return policy


def _expand_models(words: Iterable[str], models: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for word in words:
        yield from models.get(word, (word,))


def _require_validator(word: str) -> str:
    kind, _, rest = word.partition(":")
    if (kind in {validators.LINT, validators.RULESET} and rest) or word in validators.list_validators():
        return word
    known = ", ".join((*_WORDS, *validators.list_validators()))
    raise UnknownPolicy(f"{word!r} is neither a compatibility policy nor a validator; known: {known}")


def _combine(one: Policy, other: Policy) -> Policy:
    """Return the policy that accepts what both policies accept."""
    checkers = tuple(dict.fromkeys((*one.validators, *other.validators)))
    kinds = {one.kind, other.kind}
    if PolicyKind.DENY_ALL in kinds:
        return replace(DENY_ALL, validators=checkers)
    if kinds == {PolicyKind.ALLOW_ANY}:
        return replace(ALLOW_ANY, validators=checkers)
    backward = one.backward if one.backward.covers(other.backward) else other.backward
    forward = one.forward if one.forward.covers(other.forward) else other.forward
    return Policy(backward=backward, forward=forward, validators=checkers)


def policy_words(policy: Policy) -> tuple[str, ...]:
    """Return a policy in words that `parse_policy` reads; if none are exact, in the nearest stricter ones."""
    return (*_base_words(policy), *policy.validators)


def _base_words(policy: Policy) -> tuple[str, ...]:
    if policy.kind is PolicyKind.DENY_ALL:
        return ("deny",)
    halves = (Policy(backward=policy.backward), Policy(forward=policy.forward))
    words = tuple(half.nearest_name.lower() for half in halves if half != Policy())
    common = parse_policy(words, {}).exact_name
    return (common.lower(),) if len(words) == 2 and common is not None else words


def exact_words(policy: Policy) -> str | None:
    """Return a policy exactly if `policy_words` had to be stricter, else None."""
    directions = (("backward", policy.backward), ("forward", policy.forward))
    if all(extent.kind is not RangeKind.SINCE for _, extent in directions):
        return None
    return ", ".join(
        f"{name} {_range_words(extent)}" for name, extent in directions if extent.kind is not RangeKind.NONE
    )


def _range_words(extent: VersionRange) -> str:
    return f"since {extent.since}" if extent.kind is RangeKind.SINCE else extent.kind.value


# --- configs --------------------------------------------------------------------------------------------------------


def parse_config(form: Mapping[str, str], options: SchemaRepoOptions) -> Policy:
    """Return the policy in the config of a new subject; without `repo.validators`, the server's default.

    Raises `InvalidRequest` for another reserved key, `UnknownPolicy`.
    """
    for key in form:
        if key.startswith(_RESERVED) and key != VALIDATORS:
            raise InvalidRequest(f"{key!r} is reserved: the only key that may begin with 'repo.' is {VALIDATORS!r}")
    words = split_words(form[VALIDATORS]) if VALIDATORS in form else options.default_validators
    return parse_policy(words, options.models)


def build_config(state: State, subject: Subject, options: SchemaRepoOptions) -> dict[str, str]:
    """Return the config of a subject as it was sent, but with its present policy."""
    sent: dict[str, str] | None = (subject.dialect_data or {}).get(DIALECT)
    policy = queries.policy_for(state, subject.key)
    config = dict(sent or {})
    if sent is None or not _is_policy_of(sent, policy, options):
        config[VALIDATORS] = ",".join(policy_words(policy))
        if (exact := exact_words(policy)) is not None:
            config[EXACT] = exact
    return config


def _is_policy_of(config: Mapping[str, str], policy: Policy, options: SchemaRepoOptions) -> bool:
    try:
        return parse_config(config, options) == policy
    except UnknownPolicy:  # A model or validator that was removed since.
        return False


MANY_LINES = (
    "ERROR: A schema of this subject has several lines, so the schemas in this list cannot be separated by lines. "
    "Ask for application/json instead.\n"
)


def format_lines(names: Iterable[str]) -> str:
    """Return one name per line, each with its line end."""
    return "".join(f"{name}\n" for name in names)


def format_entry(name: str, text: str) -> str:
    """Return an id, a tab, and its schema."""
    return f"{name}\t{text}"


def format_entries(rows: Iterable[tuple[str, str]]) -> str:
    """Return ids and their schemas, one per line, after a warning if a schema has several lines."""
    rows = list(rows)
    warning = MANY_LINES if any("\n" in text or "\r" in text for _, text in rows) else ""
    return warning + format_lines(format_entry(name, text) for name, text in rows)


def encode_names(names: Iterable[str]) -> bytes:
    """Return subjects as JSON."""
    return _pretty_json([{"name": name} for name in names])


def encode_entries(rows: Iterable[tuple[str, str]]) -> bytes:
    """Return ids and their schemas as JSON."""
    return _pretty_json([{"id": name, "schema": text} for name, text in rows])


def _pretty_json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2)


# --- properties -----------------------------------------------------------------------------------------------------

_NAMED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
_SPECIAL = re.compile(r"[\\=:#!\t\n\r\f]|[^\x20-\x7e]")


def format_properties(title: str, members: Mapping[str, str], seconds: float) -> str:
    """Return members as `java.util.Properties` stores them: a title, the date, sorted lines.

    Args:
        title: Comment in the first line.
        members: Keys and values.
        seconds: Date in seconds since 1970.
    """
    date = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime(seconds))
    lines = (f"{_escape_key(key)}={_escape_value(value)}\n" for key, value in sorted(members.items()))
    return f"#{title}\n#{date}\n" + "".join(lines)


def _escape_key(text: str) -> str:
    return _SPECIAL.sub(_escape_character, text).replace(" ", "\\ ")


def _escape_value(text: str) -> str:
    """Return a value in its escaped form. Of its blanks, only one at the start is escaped."""
    escaped = _SPECIAL.sub(_escape_character, text)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def _escape_character(match: re.Match[str]) -> str:
    char = match[0]
    if char in _NAMED:
        return _NAMED[char]
    if " " <= char <= "~":
        return f"\\{char}"
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))


# --- pages -----------------------------------------------------------------------------------------------------------

_PACKAGE = "stele.apis.schema_repo"


def render_subjects(root: str, names: Sequence[str]) -> str:
    """Return the page of all subjects, with links to the views of each; root is the path of the browser."""
    return render_template(
        _PACKAGE, "subjects.html.j2", title="Subjects", root=root, names=names, show_index_link=False
    )


def render_schemas(root: str, name: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return the page of a subject's schemas from pairs of id and text, with a link to each."""
    return render_template(_PACKAGE, "schemas.html.j2", title=name, root=root, rows=list(rows), show_index_link=True)


def render_text(root: str, title: str, text: str) -> str:
    """Return the page of one text as it is."""
    return render_template(_PACKAGE, "text.html.j2", title=title, root=root, text=text, show_index_link=True)
