"""Policies in words, configs and properties: translations of AVRO-1124 and schema-repo."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.apis.schema_repo.options import SchemaRepoOptions, parse_models, split_words
from stele.apis.schema_repo.translate import (
    encode_entries,
    exact_words,
    format_entries,
    format_properties,
    parse_config,
    parse_policy,
    policy_words,
)
from stele.core.policy import (
    ALL_VERSIONS,
    ALLOW_ANY,
    DENY_ALL,
    LATEST_VERSION,
    POLICIES,
    Policy,
    PolicyKind,
    RangeKind,
    VersionRange,
)
from stele.errors import InvalidRequest, UnknownPolicy

CHECKERS = ("lint", "lint:NAMING", "ruleset:avro", "repo.reject")
extents = st.sampled_from(
    [VersionRange(), LATEST_VERSION, ALL_VERSIONS, VersionRange(RangeKind.SINCE, 2), VersionRange(RangeKind.SINCE, 5)]
)
policies = st.builds(
    Policy,
    kind=st.sampled_from(PolicyKind),
    backward=extents,
    forward=extents,
    validators=st.lists(st.sampled_from(CHECKERS), unique=True, max_size=3).map(tuple),
).map(lambda row: row if row.kind is PolicyKind.DIRECTIONAL else Policy(row.kind, validators=row.validators))
words = st.lists(st.sampled_from([*(name.lower() for name in POLICIES), "deny", "noop", *CHECKERS]), max_size=4)


def at_least(strict: Policy, lax: Policy) -> bool:
    """Return whether a policy refuses everything that another one refuses."""
    if not set(lax.validators) <= set(strict.validators):
        return False
    if strict.kind is PolicyKind.DENY_ALL or lax.kind is PolicyKind.ALLOW_ANY:
        return True
    return (
        lax.kind is not PolicyKind.DENY_ALL
        and strict.backward.covers(lax.backward)
        and strict.forward.covers(lax.forward)
    )


@given(words)
def test_words_are_told_as_words_of_the_same_policy(word_list: list[str]) -> None:
    """A policy from words is shown in words that give the same policy, without the extension."""
    policy = parse_policy(word_list, {})
    assert parse_policy(policy_words(policy), {}) == policy
    assert exact_words(policy) is None


@given(words, words)
def test_more_words_never_let_in_more(some: list[str], others: list[str]) -> None:
    """A longer list of words refuses everything that a part of it refuses."""
    assert at_least(parse_policy([*some, *others], {}), parse_policy(some, {}))
    assert at_least(parse_policy([*some, *others], {}), parse_policy(others, {}))


@given(policies)
def test_no_policy_is_shown_as_a_laxer_one(policy: Policy) -> None:
    """The words for a policy are at least as strict; if they are stricter, the exact policy is shown beside them."""
    worded_policy = parse_policy(policy_words(policy), {})
    assert at_least(worded_policy, policy)
    assert (exact_words(policy) is None) == at_least(policy, worded_policy)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Policy(backward=VersionRange(RangeKind.SINCE, 3)), "backward since 3"),
        (Policy(backward=LATEST_VERSION, forward=VersionRange(RangeKind.SINCE, 7)), "backward latest, forward since 7"),
        (Policy(), None),
        (DENY_ALL, None),
        (ALLOW_ANY, None),
    ],
)
def test_exact_policies_are_told_in_a_sentence(policy: Policy, expected: str | None) -> None:
    """The exact policy is shown only if the words cannot express it."""
    assert exact_words(policy) == expected


def test_words_of_the_operators_own() -> None:
    """A configured model stands for its words, alone or among other words; an invalid definition raises."""
    models = parse_models(" db = full , lint ; noop=none;; all = backward_transitive,forward_transitive")
    assert models == {
        "db": ("full", "lint"),
        "noop": ("none",),
        "all": ("backward_transitive", "forward_transitive"),
    }
    assert parse_policy(["db", "repo.reject"], models) == Policy(
        backward=LATEST_VERSION, forward=LATEST_VERSION, validators=("lint", "repo.reject")
    )
    assert parse_policy(["all"], models) == POLICIES["FULL_TRANSITIVE"]
    for wrong in ("db", "=full", "a,b=full"):
        with pytest.raises(InvalidRequest):
            parse_models(wrong)


@pytest.mark.parametrize("word", ["backwards", "lint:", "ruleset:", "ruleset", "repo.accept", ""])
def test_unknown_words_are_refused(word: str) -> None:
    """A word that is neither a policy nor a validator raises an error that lists the known ones."""
    with pytest.raises(UnknownPolicy, match="full_transitive"):
        parse_policy([word], {})


def test_configs_have_one_reserved_key() -> None:
    """Without validators the server's default applies, an empty list means none; other reserved keys are refused."""
    options = SchemaRepoOptions(default_validators=("full",))
    assert parse_config({"owner": "ann"}, options) == POLICIES["FULL"]
    assert parse_config({"repo.validators": " , "}, options) == ALLOW_ANY
    assert parse_config({"repo.validators": "noop, lint,"}, options) == Policy(
        PolicyKind.ALLOW_ANY, validators=("lint",)
    )
    with pytest.raises(InvalidRequest, match=r"repo\.owner"):
        parse_config({"repo.owner": "ann"}, options)
    assert split_words(" a,,b ") == ("a", "b")


# --- properties -----------------------------------------------------------------------------------------------------


def load_properties(text: str) -> dict[str, str]:
    """Return what `java.util.Properties.load` reads, according to its documentation."""
    properties = {}
    for line in text.split("\n"):
        if not line or line[0] in "#!":
            continue
        key, value = _halves(line)
        properties[_plain_text(key)] = _plain_text(value)
    return properties


def _halves(line: str) -> tuple[str, str]:
    position = 0
    while position < len(line) and line[position] not in "=: \t\f":
        position += 2 if line[position] == "\\" else 1
    rest = line[position:].lstrip(" \t\f")
    if rest[:1] in {"=", ":"}:
        rest = rest[1:].lstrip(" \t\f")
    return line[:position], rest


def _plain_text(text: str) -> str:
    units, position = bytearray(), 0
    while position < len(text):
        char = text[position]
        if char != "\\":
            units += char.encode("utf-16-be")
            position += 1
        elif text[position + 1] == "u":
            units += bytes.fromhex(text[position + 2 : position + 6])
            position += 6
        else:
            escaped = text[position + 1]
            units += {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(escaped, escaped).encode("utf-16-be")
            position += 2
    return units.decode("utf-16-be")


texts = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(" \\=:#!\t\n\r\f\v\x85u"), max_size=12)


@given(st.dictionaries(texts, texts, max_size=5))
def test_java_reads_back_every_config(members: dict[str, str]) -> None:
    """Java's reader reads any keys and values back; the text is ASCII, one property per line."""
    text = format_properties("title", members, 0.0)
    assert text.isascii()
    assert text.splitlines()[:2] == ["#title", "#Thu Jan 01 00:00:00 UTC 1970"]
    assert len(text.split("\n")) == len(members) + 3
    assert load_properties(text) == members


# --- lists ----------------------------------------------------------------------------------------------------------


def test_lists_of_schemas() -> None:
    """Schemas are listed one per line, after a warning if one has several lines; JSON keeps every byte."""
    assert format_entries([]) == ""
    assert format_entries([("1", "b"), ("0", "a")]) == "1\tb\n0\ta\n"
    assert format_entries([("0", "a\rb")]).splitlines()[0].startswith("ERROR: ")
    assert encode_entries([]) == b"[]"
    assert b'"a\\nb\xc3\xa9"' in encode_entries([("0", "a\nbé")])
