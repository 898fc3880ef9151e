"""Access decisions, compared with a model that checks every rule, and rules as text."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples

from stele.core.access import (
    ANY,
    ANYBODY,
    REGISTRY_RESOURCE,
    ROLES,
    AccessDecision,
    AccessRule,
    AccessRules,
    NamePattern,
    Operation,
    Resource,
    ResourceType,
)
from stele.core.access_rule_text import check_rule, parse_rule, parse_rules, print_rule
from stele.errors import InvalidRequest

# --- the model ------------------------------------------------------------------------------------------------------


def decide_by_looking_at_all(
    rules: list[AccessRule],
    default_allow: bool,
    principals: frozenset[str],
    operation: Operation,
    resource: Resource,
    host: str,
) -> AccessDecision:
    """Return the expected result of `AccessRules.decide`."""
    allowing = None
    for rule in rules:
        if rule.principal in {ANYBODY, *principals} and matches(rule, operation, resource, host):
            if not rule.allow:
                return AccessDecision(False, rule)
            allowing = allowing or rule
    return AccessDecision(default_allow if allowing is None else True, allowing)


def matches(rule: AccessRule, operation: Operation, resource: Resource, host: str) -> bool:
    """Return whether a rule applies."""
    if operation not in rule.operations and not any(operation in ROLES.get(name, ()) for name in rule.operations):
        return False
    if rule.host not in {ANY, host}:
        return False
    if rule.resource_type is ResourceType.REGISTRY:
        return not rule.itself or resource.type is ResourceType.REGISTRY
    if rule.resource_type is ResourceType.NAMESPACE:
        inside = resource.type in {ResourceType.NAMESPACE, ResourceType.SUBJECT}
        return inside and matches_name(rule.pattern, rule.namespace, resource.namespace)
    if rule.resource_type is not resource.type:
        return False
    return rule.namespace in {ANY, resource.namespace} and matches_name(rule.pattern, rule.name, resource.name)


def matches_name(pattern: NamePattern, wanted: str, name: str) -> bool:
    """Return whether a name matches."""
    match pattern:
        case NamePattern.LITERAL:
            return wanted in {ANY, name}
        case NamePattern.PREFIX:
            return name.startswith(wanted)
        case NamePattern.GLOB:
            return matches_glob(wanted, name)


@cache
def matches_glob(glob: str, name: str) -> bool:
    """Return whether a name matches a glob, by trying everything."""
    if not glob:
        return not name
    if glob[0] == "*":
        return matches_glob(glob[1:], name) or bool(name and matches_glob(glob, name[1:]))
    if glob[0] == "?":
        return bool(name) and matches_glob(glob[1:], name[1:])
    plain, rest = (glob[1], glob[2:]) if glob[0] == "\\" and len(glob) > 1 else (glob[0], glob[1:])
    return name[:1] == plain and matches_glob(rest, name[1:])


# --- rules to try ---------------------------------------------------------------------------------------------------

NAMES = st.text("ab*?\\\n", max_size=5)
PRINCIPALS = ["user:ann", "user:bob", "group:dev"]
HOSTS = ["10.0.0.1", "10.0.0.2"]
OPERATIONS = [Operation.LIST, Operation.READ, Operation.PURGE]


@st.composite
def draw_rule(draw: st.DrawFn, names: st.SearchStrategy[str] = NAMES) -> AccessRule:
    """Return a rule that `check_rule` accepts, before it is simplified."""
    kind = draw(st.sampled_from(ResourceType))
    named = kind in {ResourceType.SUBJECT, ResourceType.KEY}
    pattern = draw(st.sampled_from(NamePattern))
    name = draw(names.filter(bool)) if named else ""
    spaced = kind in {ResourceType.SUBJECT, ResourceType.NAMESPACE}
    namespace = draw(names.filter(bool) if pattern is NamePattern.PREFIX else names) if spaced else ""
    return AccessRule(
        draw(st.sampled_from([*PRINCIPALS, ANYBODY])),
        tuple(draw(st.lists(st.sampled_from([*OPERATIONS, "reader", "admin"]), min_size=1, max_size=2))),
        draw(st.booleans()),
        kind,
        namespace,
        name,
        pattern,
        draw(st.sampled_from([ANY, ANY, *HOSTS])),
        kind is ResourceType.REGISTRY and draw(st.booleans()),
    )


RESOURCES = st.one_of(
    st.just(REGISTRY_RESOURCE),
    st.builds(Resource, st.just(ResourceType.NAMESPACE), NAMES),
    st.builds(Resource, st.just(ResourceType.SUBJECT), NAMES, NAMES),
    st.builds(Resource, st.just(ResourceType.KEY), st.just(""), NAMES),
)
QUESTIONS = st.tuples(
    st.frozensets(st.sampled_from(PRINCIPALS)), st.sampled_from(OPERATIONS), RESOURCES, st.sampled_from([*HOSTS, ""])
)


@given(
    rules=st.lists(draw_rule(), max_size=12, unique=True),
    default=st.booleans(),
    questions=st.lists(QUESTIONS, min_size=1, max_size=8),
)
@settings(max_examples=scale_examples(500))
def test_the_index_decides_as_looking_at_all_rules_does(
    rules: list[AccessRule], default: bool, questions: list[tuple[frozenset[str], Operation, Resource, str]]
) -> None:
    """The index gives the same decision and the same deciding rule as the model, also from the cache."""
    indexed = AccessRules(rules, default_allow=default)
    for question in questions * 2:
        assert indexed.decide(*question) == decide_by_looking_at_all(rules, default, *question)


@given(rule=draw_rule(st.text(max_size=8)), questions=st.lists(QUESTIONS, max_size=4))
@settings(max_examples=scale_examples(500))
def test_a_rule_is_the_same_after_it_was_printed(
    rule: AccessRule, questions: list[tuple[frozenset[str], Operation, Resource, str]]
) -> None:
    """The simplest form of a rule has the same meaning, and parsing its printed line gives it back."""
    checked = check_rule(rule)
    assert parse_rule(print_rule(checked)) == checked
    assert "\n" not in print_rule(checked)
    before, after = (AccessRules((each,), default_allow=not rule.allow) for each in (rule, checked))
    for question in questions:
        assert before.decide(*question).allowed == after.decide(*question).allowed


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (
            "allow user:ann writer subject orders-*",
            AccessRule(
                "user:ann",
                ("writer",),
                resource_type=ResourceType.SUBJECT,
                name="orders-",
                pattern=NamePattern.PREFIX,
            ),
        ),
        ("allow group:ops admin registry", AccessRule("group:ops", ("admin",))),
        ("deny * purge,force registry", AccessRule("*", ("purge", "force"), allow=False)),
        (
            "allow user:bob list registry itself from 10.0.0.1",
            AccessRule("user:bob", ("list",), host="10.0.0.1", itself=True),
        ),
        (
            'allow "user:CN=ann, O=x" read subject *-value in team',
            AccessRule(
                "user:CN=ann, O=x",
                ("read",),
                resource_type=ResourceType.SUBJECT,
                namespace="team",
                name="*-value",
                pattern=NamePattern.GLOB,
            ),
        ),
        (
            'allow * reader namespace ""',
            AccessRule("*", ("reader",), resource_type=ResourceType.NAMESPACE),
        ),
    ],
)
def test_lines_and_their_rules(line: str, rule: AccessRule) -> None:
    """The lines in the documentation are parsed as the expected rules."""
    assert parse_rule(line) == rule
    assert print_rule(rule) == line


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("allow user:ann writer", "is not a rule"),
        ("permit user:ann writer registry", "is not a rule"),
        ("allow ann writer registry", "is not a principal"),
        ("allow user: writer registry", "is not a principal"),
        ("allow user:ann writter registry", "did you mean 'writer'"),
        ("allow user:ann writer topic orders", "nothing a rule can be about"),
        ("allow user:ann writer subject", "nothing a rule can be about"),
        ("allow user:ann writer key main in team", "nothing a rule can be about"),
        ('allow user:ann writer subject "orders', "double quote"),
        ('allow user:ann writer subject ""', "needs a name"),
        ("allow user:ann writer registry from example.org", "is not an address"),
    ],
)
def test_wrong_lines_are_refused_with_a_sentence(line: str, sentence: str) -> None:
    """Each invalid line is refused with an explanation."""
    with pytest.raises(InvalidRequest, match=sentence):
        parse_rule(line)


def test_a_text_of_rules_has_comments_and_says_which_line_is_wrong() -> None:
    """A text of rules may have comments, and an error names its line."""
    assert len(parse_rules("# for the team\n\nallow user:ann reader registry\n")) == 1
    with pytest.raises(InvalidRequest, match="line 2"):
        parse_rules("allow user:ann reader registry\nallow user:ann")


def test_globs_are_matched_in_bounded_time() -> None:
    """A glob that would take forever with backtracking is matched in bounded time."""
    rule = AccessRule(
        "*", ("read",), resource_type=ResourceType.SUBJECT, name="*a" * 50 + "*b", pattern=NamePattern.GLOB
    )
    rules = AccessRules((rule,), default_allow=False)
    name = "a" * 900 + "c"
    assert not rules.decide(frozenset(), Operation.READ, Resource(ResourceType.SUBJECT, "", name)).allowed
