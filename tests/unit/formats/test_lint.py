"""Lint: every rule of every language fires where it should and nowhere else, can be silenced, and stays bounded."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.examples import scale_examples
from tests.support.time_limit import limit_time
from tests.unit.formats.lint_cases import CASES, REFERENCES, LintCase, make_logical_type, make_record

from stele.core.findings import Finding, Severity
from stele.core.ports import Field
from stele.errors import SteleError, UnknownRule
from stele.formats.capabilities import Lintable
from stele.formats.graph import strongly_connected
from stele.formats.lint import (
    MAX_FINDINGS,
    RULES,
    ignored_rules_in_comment,
    lint_rules_of,
    lint_schema,
    require_known_rules,
    restyle_name,
)
from stele.formats.registry import get_format

LANGUAGES = ("avro", "json", "protobuf", "thrift", "xsd")
SECONDS = 60
"""Time limit in seconds for work that takes a second or two on an idle machine."""


def lint_text(format_name: str, text: bytes, before: bytes | None = None, *rules: str) -> list[Finding]:
    """The findings about a text."""
    fmt = get_format(format_name)
    references = REFERENCES.get(format_name, {})
    parsed = fmt.parse(text, references, strict=False)
    old = None if before is None else fmt.parse(before, references, strict=False)
    return lint_schema(fmt, parsed, old, rules or None)


def case_name(case: LintCase) -> str:
    """Return the name of a case in reports."""
    return f"{case.format}-{case.rule}"


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_a_rule_fires_at_its_place(case: LintCase) -> None:
    """The bad schema gets a warning at the right path, with a reason and a fix."""
    findings = lint_text(case.format, case.bad, case.before, case.rule)
    assert case.path in [finding.path for finding in findings]
    for finding in findings:
        assert finding.level is Severity.WARNING
        assert not finding.breaks
        assert finding.why.endswith(".")
        assert finding.fix


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_a_rule_keeps_quiet(case: LintCase) -> None:
    """The good schema of the case gets no finding of the rule."""
    assert [f for f in lint_text(case.format, case.good, case.before, case.rule) if f.path == case.path] == []


@pytest.mark.parametrize("case", [case for case in CASES if case.before is not None], ids=case_name)
def test_rules_about_changes_need_a_change(case: LintCase) -> None:
    """Without a previous version, or with an equal one, rules about changes report nothing."""
    rule = case.rule
    assert lint_text(case.format, case.bad, None, rule) == []
    assert lint_text(case.format, case.bad, case.bad, rule) == []


@pytest.mark.parametrize("format_name", LANGUAGES)
def test_every_rule_has_a_case(format_name: str) -> None:
    """Every listed rule is triggered by a case, and every triggered rule is listed."""
    fmt = get_format(format_name)
    assert isinstance(fmt, Lintable)
    cases = {case.rule for case in CASES if case.format == format_name}
    assert cases == set(lint_rules_of(fmt)) - {"LINT_INCOMPLETE"}
    fired = {
        f.rule for case in CASES if case.format == format_name for f in lint_text(format_name, case.bad, case.before)
    }
    assert fired <= set(lint_rules_of(fmt))


def test_the_catalogue_says_it_in_a_sentence() -> None:
    """Rule names are in upper case and sorted, each with one sentence; every rule belongs to a language."""
    assert list(RULES) == sorted(RULES)
    for rule, sentence in RULES.items():
        assert rule == rule.upper()
        assert sentence.endswith(".")
    assert {rule for name in LANGUAGES for rule in lint_rules_of(get_format(name))} == set(RULES)


# --- choosing and silencing -----------------------------------------------------------------------------------------


def test_unknown_rules_are_refused_by_name() -> None:
    """A name that no language has raises an error with a similar name; a rule of another language reports nothing."""
    with pytest.raises(UnknownRule, match=r"'DOC_REQIRED'.*did you mean DOC_REQUIRED.*ENUM_DEFAULT"):
        lint_text("avro", b'"string"', None, "DOC_REQIRED")
    assert lint_text("avro", b'"string"', None, "DRAFT_DECLARED") == []
    assert require_known_rules(get_format("avro"), ["NAMING"]) == {"NAMING"}


SILENCED = [
    ("avro", json.dumps(make_record(("a", "int"), **{"stele.lint-ignore": ["DOC_REQUIRED"]})), "DOC_REQUIRED"),
    (
        "avro",
        json.dumps(make_record({"name": "a", "type": ["null", "int"], "stele.lint-ignore": "NULLABLE_DEFAULT"})),
        "NULLABLE_DEFAULT",
    ),
    (
        "avro",
        json.dumps(
            make_record({"name": "a", "type": make_logical_type("long", "x"), "stele.lint-ignore": ["LOGICAL_TYPE"]})
        ),
        "LOGICAL_TYPE",
    ),
    ("json", '{"x-stele-lint-ignore": ["DRAFT_DECLARED"]}', "DRAFT_DECLARED"),
    ("json", '{"properties": {"a": {"properties": {"B": {}}, "x-stele-lint-ignore": ["NAMING"]}}}', "NAMING"),
    ("protobuf", 'syntax = "proto3";\n// stele:lint-ignore NAMING, DOC_REQUIRED\nmessage m { int32 A = 1; }', "NAMING"),
    ("protobuf", '// stele:lint-ignore NAMESPACE_REQUIRED\nsyntax = "proto3"; message M {}', "NAMESPACE_REQUIRED"),
    ("protobuf", 'syntax = "proto3"; message M {\n int32 A = 1; // stele:lint-ignore NAMING\n}', "NAMING"),
    ("thrift", "/** S.\n * stele:lint-ignore NAMING\n */\nstruct s { 1: i32 A }", "NAMING"),
    ("thrift", "/** stele:lint-ignore NAMING */ namespace * n\nstruct s {}", "NAMING"),
    (
        "xsd",
        (
            '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:annotation><xs:appinfo>stele:lint-ignore'
            ' NAMESPACE_REQUIRED TYPE_DECLARED</xs:appinfo></xs:annotation><xs:element name="a"/></xs:schema>'
        ),
        "TYPE_DECLARED",
    ),
]


@pytest.mark.parametrize(("format_name", "text", "rule"), SILENCED)
def test_an_author_can_silence_a_rule(format_name: str, text: str, rule: str) -> None:
    """A rule that is silenced on a declaration is silent there and inside; without the directive it reports."""
    assert lint_text(format_name, text.encode(), None, rule) == []
    loud = text.replace("lint-ignore", "lint-attend")
    assert lint_text(format_name, loud.encode(), None, rule)


def test_silencing_one_rule_silences_no_other() -> None:
    """Only the named rule is silent, and only below the declaration."""
    quiet = make_record({"name": "A", "type": "int", "stele.lint-ignore": ["NAMING"]}, ("B", "int"))
    paths = {(f.rule, f.path) for f in lint_text("avro", json.dumps(quiet).encode())}
    assert ("NAMING", "/fields/0") not in paths
    assert {("NAMING", "/fields/1"), ("DOC_REQUIRED", "/fields/0")} <= paths


@pytest.mark.parametrize("value", [1, None, {}, [1], [["NAMING"]]])
def test_nonsense_silences_nothing(value: Any) -> None:
    """A lint-ignore attribute with a wrong value is no error and has no effect."""
    text = json.dumps(make_record(("A", "int"), **{"stele.lint-ignore": value}))
    assert [f.rule for f in lint_text("avro", text.encode(), None, "NAMING")] == ["NAMING"]


def test_comments_silence_line_by_line() -> None:
    """The directive counts only at the start of a line, with blanks or commas between names."""
    assert ignored_rules_in_comment("An order.\nstele:lint-ignore A_B C, D\nmore") == {"A_B", "C", "D"}
    assert ignored_rules_in_comment("we write stele:lint-ignore A here") == frozenset()


def test_types_of_references_are_left_alone() -> None:
    """Types of references are not checked, because they have their own subjects."""
    fmt = get_format("avro")
    inner = json.dumps({"type": "record", "name": "bad_name", "fields": [{"name": "X", "type": "int"}]}).encode()
    text = json.dumps(make_record({"name": "a", "type": "bad_name", "doc": "d"}, doc="d")).encode()
    assert lint_schema(fmt, fmt.parse(text, {"bad_name": inner})) == []


# --- formats without rules ------------------------------------------------------------------------------------------


class FormatWithoutLint:
    """The smallest format that a plug-in can have."""

    name = "plain"

    def fields(self, parsed: Sequence[Field]) -> list[Field]:
        """Return the schema, which is a list of fields."""
        return list(parsed)


def test_a_plug_in_without_rules_is_judged_by_its_fields() -> None:
    """Documentation, names and added fields are checked in any format; a plug-in without rules has no others."""
    fmt: Any = FormatWithoutLint()
    before: Any = [Field("a", "int", doc="d")]
    now: Any = [Field("a", "int"), Field("b.c", "int", doc="d"), Field("b.C", "int", default="0", doc="d")]
    assert {(f.rule, f.path) for f in lint_schema(fmt, now, before)} == {
        ("DOC_REQUIRED", "a"),
        ("FIELD_DEFAULT", "b.c"),
        ("CASE_CLASH", "b"),
    }
    assert lint_schema(fmt, before) == []
    assert lint_schema(get_format("opaque"), get_format("opaque").parse(b"x", {})) == []


# --- bounds ---------------------------------------------------------------------------------------------------------


def _avro_wide() -> bytes:
    return json.dumps(make_record(*((f"F{n}", ["int", "null"]) for n in range(30_000)))).encode()


def _avro_deep() -> bytes:
    deep: Any = "int"
    for level in range(190):
        deep = {"type": "array", "items": deep} if level % 2 else make_record(("X", deep), name=f"r{level}")
    return json.dumps(deep).encode()


def _avro_strange() -> bytes:
    return json.dumps(make_record(*({"name": f"f{n}", "type": "int", f"defaul{n}": n} for n in range(4_000)))).encode()


def _json_wide() -> bytes:
    inner = {f"F{n}": {f"typo{n}": 1, "format": f"x{n}", "required": [f"q{n}"]} for n in range(4_000)}
    return json.dumps({"properties": inner, "$defs": {f"d{n}": {} for n in range(4_000)}}).encode()


def _json_deep() -> bytes:
    return b'{"not":' * 190 + b"{}" + b"}" * 190


HOSTILE: Mapping[str, tuple[str, Any]] = {
    "avro wide": ("avro", _avro_wide),
    "avro deep": ("avro", _avro_deep),
    "avro strange attributes": ("avro", _avro_strange),
    "json wide": ("json", _json_wide),
    "json deep": ("json", _json_deep),
    "json recursive": (
        "json",
        lambda: json.dumps({"properties": {f"p{n}": {"$ref": "#"} for n in range(5_000)}}).encode(),
    ),
    "protobuf": (
        "protobuf",
        lambda: (
            b'syntax = "proto3"; message M {' + b"".join(b"string F%d = %d;" % (n, n) for n in range(1, 2_001)) + b"}"
        ),
    ),
    "thrift": ("thrift", lambda: b"struct s {" + b"".join(b"%d: i32 F_%d;" % (n, n) for n in range(1, 10_001)) + b"}"),
    "xsd": (
        "xsd",
        lambda: (
            b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">'
            + b"".join(b'<xs:element name="e_%d"/>' % n for n in range(2_000))
            + b"</xs:schema>"
        ),
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_schemas_are_bounded(kind: str) -> None:
    """Wide, deep and strange schemas are linted in bounded time, and no rule lists more than its share."""
    format_name, text = HOSTILE[kind]
    fmt = get_format(format_name)
    parsed = fmt.parse(text(), {}, strict=False)
    with limit_time(SECONDS, time.monotonic):
        findings = lint_schema(fmt, parsed, parsed)
    for rule in lint_rules_of(fmt):
        mine = [finding for finding in findings if finding.rule == rule]
        assert len(mine) <= MAX_FINDINGS + 1
        if len(mine) > MAX_FINDINGS:
            assert "more findings of this rule are left out" in mine[-1].why


def test_what_was_not_looked_at_is_said_whatever_was_asked() -> None:
    """A schema beyond the limit ends with a LINT_INCOMPLETE finding, even if only one rule was requested."""
    findings = lint_text("avro", _avro_wide(), None, "RECURSIVE_TYPE")
    assert [finding.rule for finding in findings] == ["LINT_INCOMPLETE"]


# --- parts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "style", "wanted"),
    [
        ("orderId", "lower_snake_case", "order_id"),
        ("HTTPServer2", "lower_snake_case", "http_server2"),
        ("order-line item", "UpperCamelCase", "OrderLineItem"),
        ("ORDER_LINE", "lowerCamelCase", "orderLine"),
        ("orderLine", "UPPER_SNAKE_CASE", "ORDER_LINE"),
        ("ä", "UpperCamelCase", "Name"),
    ],
)
def test_names_in_another_style(text: str, style: str, wanted: str) -> None:
    """Advice on a name proposes the name in the right style."""
    assert restyle_name(text, style) == wanted


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))))
    )
)
def test_circles_are_what_reaches_itself(graph: tuple[int, set[tuple[int, int]]]) -> None:
    """The groups are exactly the nodes that reach each other over one edge or more."""
    count, edges = graph
    reach = set(edges)
    for middle in range(count):
        reach |= {(a, b) for a in range(count) for b in range(count) if {(a, middle), (middle, b)} <= reach}
    groups = strongly_connected(range(count), lambda node: sorted(b for a, b in edges if a == node))
    wanted = {frozenset(b for b in range(count) if {(a, b), (b, a)} <= reach) for a in range(count) if (a, a) in reach}
    assert {frozenset(group) for group in groups} == wanted
    assert len(groups) == len(wanted)


_WORDS = (
    "properties",
    "required",
    "type",
    "$ref",
    "$defs",
    "items",
    "allOf",
    "anyOf",
    "not",
    "default",
    "enum",
    "pattern",
)
_MORE = ("format", "additionalProperties", "minItems", "a", "title", "$schema", "const", "x-stele-lint-ignore", "if")
_LEAVES = st.sampled_from(
    ["object", "array", "string", "#", "#/$defs/a", "#/properties/a", "a", "", 0, 1.5, -1, True, None]
)
_KEYED = st.sampled_from((*_WORDS, *_MORE))
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYED, inner, max_size=4), max_leaves=25
)


@settings(max_examples=scale_examples(150), deadline=None)
@given(st.dictionaries(_KEYED, _VALUES, max_size=6), st.dictionaries(_KEYED, _VALUES, max_size=6))
def test_keywords_of_any_shape_are_no_trouble(schema: dict[str, Any], before: dict[str, Any]) -> None:
    """A JSON Schema accepted by lenient parsing can have any value for a keyword; lint still returns findings."""
    fmt = get_format("json")
    try:
        parsed, old = (fmt.parse(json.dumps(value).encode(), {}, strict=False) for value in (schema, before))
    except SteleError:
        return
    for finding in lint_schema(fmt, parsed, old):
        assert finding.rule in lint_rules_of(fmt)
        assert finding.path.startswith("#")


_KINDS = st.recursive(
    st.sampled_from(["int", "string", "null", "bytes", "R", "n.R"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.fixed_dictionaries({"type": st.just("array"), "items": inner})
        | st.fixed_dictionaries({"type": st.sampled_from(["int", "bytes"]), "logicalType": _LEAVES, "scale": _LEAVES})
    ),
    max_leaves=8,
)
_FIELDS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("aAbc"), "type": _KINDS},
        optional={"default": _VALUES, "logicalType": _LEAVES, "doc": _LEAVES, "stele.lint-ignore": _VALUES},
    ),
    max_size=4,
    unique_by=lambda field: field["name"],
)


@settings(max_examples=scale_examples(150), deadline=None)
@given(_FIELDS, _FIELDS)
def test_attributes_of_any_shape_are_no_trouble(fields: list[Any], before: list[Any]) -> None:
    """The same holds for Avro: defaults that do not fit, logical types that are numbers, records inside themselves."""
    fmt = get_format("avro")
    try:
        sides = (json.dumps(make_record(*side)).encode() for side in (fields, before))
        parsed, old = (fmt.parse(side, {}, strict=False) for side in sides)
    except SteleError:
        return
    for finding in lint_schema(fmt, parsed, old):
        assert finding.rule in lint_rules_of(fmt)
        assert finding.path.startswith("/")
