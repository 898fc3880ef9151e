"""Translation between the terms of the Confluent dialect and those of the core."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.apis.confluent.conftest import Put

from stele.apis.confluent import models as api
from stele.apis.confluent.metadata import apply_tag_changes, find_reserved_name_violations, tag_attachments
from stele.apis.confluent.translate import (
    changes_in,
    config_out,
    format_messages,
    mode_in,
    references_in,
    rule_set_in,
    rule_set_out,
    tags_out,
    update_out,
)
from stele.apis.http.requests import WrongShape
from stele.core.findings import Finding, Severity
from stele.core.metadata import ENABLE_AT, RULE_KINDS, RULE_MODES, DataRule, DataRuleSet, Metadata
from stele.core.model import NO_ATTACHMENTS, Attachments, Mode, Reference, Settings, SubjectKey
from stele.core.policy import (
    ALL_VERSIONS,
    ALLOW_ANY,
    DENY_ALL,
    LATEST_VERSION,
    NO_VERSIONS,
    POLICIES,
    Policy,
    RangeKind,
    VersionRange,
)
from stele.core.policy_json import PolicyJson
from stele.core.ports import Field
from stele.errors import InvalidRuleSet, UnknownMode, UnknownPolicy
from stele.formats.avro import AVRO
from stele.service.registry import Registry

names = st.text(min_size=1, max_size=5)
optional = st.none() | names
rules = st.builds(
    DataRule,
    name=optional,
    doc=optional,
    kind=st.sampled_from(RULE_KINDS),
    mode=st.sampled_from(RULE_MODES),
    type=optional,
    tags=st.none() | st.lists(names, min_size=1, unique=True).map(lambda tags: tuple(sorted(tags))),
    params=st.none() | st.dictionaries(names, names, min_size=1).map(lambda params: dict(sorted(params.items()))),
    expr=optional,
    on_success=optional,
    on_failure=optional,
    disabled=st.booleans(),
)
phases = st.none() | st.lists(rules, min_size=1, max_size=3).map(tuple)
rule_sets = st.builds(DataRuleSet, phases, phases, phases, st.sampled_from([None, *ENABLE_AT]))


@given(rule_sets)
def test_rule_sets_come_back(rule_set: DataRuleSet) -> None:
    """A stored rule set that is shown to a client and sent back is the same."""
    assert rule_set_in(rule_set_out(rule_set)) == rule_set


extents = st.sampled_from([NO_VERSIONS, LATEST_VERSION, ALL_VERSIONS]) | st.integers(1, 9).map(
    lambda number: VersionRange(RangeKind.SINCE, number)
)
bare = st.sampled_from([ALLOW_ANY, DENY_ALL]) | st.builds(Policy, backward=extents, forward=extents).filter(
    lambda policy: policy != Policy()
)
checked = st.lists(st.sampled_from(["lint", "lint:DOC_REQUIRED", "repo.reject"]), unique=True, max_size=2).map(tuple)
settings = st.builds(
    Settings,
    policy=st.none() | st.sampled_from(list(POLICIES.values())) | st.builds(replace, bare, validators=checked),
    ruleset=st.sampled_from([None, "confluent", "confluent-lenient"]),
    normalize=st.none() | st.booleans(),
    alias=optional,
    group=optional,
    validate_fields=st.none() | st.booleans(),
    validate_new_schemas=st.none() | st.booleans(),
    validate_rules=st.none() | st.booleans(),
    default_rule_set=st.none() | rule_sets,
    override_rule_set=st.none() | rule_sets,
    dialect_data=st.none() | st.fixed_dictionaries({"confluent": st.fixed_dictionaries({"aliasForDeks": names})}),
)


@given(settings)
def test_settings_come_back(stored: Settings) -> None:
    """The response to PUT, sent again, gives the same settings."""
    sent = changes_in(update_out(stored))
    assert Settings(**sent) == stored


def test_config_shows_the_nearest_stricter_level() -> None:
    """A policy without a name is shown as the nearest stricter level, with the policy in full beside it."""
    odd = Policy(backward=VersionRange(RangeKind.SINCE, 3), forward=LATEST_VERSION)
    assert config_out(Settings(), odd).compatibility_level == "FULL_TRANSITIVE"
    assert config_out(Settings(), DENY_ALL).compatibility_level == "FULL_TRANSITIVE"
    assert config_out(Settings(), odd).stele_compatibility == PolicyJson(backward="since:3", forward="latest")
    assert [config_out(Settings(), policy).stele_compatibility for policy in POLICIES.values()] == [None] * 7
    assert config_out(Settings(ruleset="buf:WIRE"), None) == api.Config()
    assert config_out(Settings(ruleset="confluent@1"), None) == api.Config(compatibility_policy="STRICT")


def test_settings_nobody_knows() -> None:
    """Unknown levels, policies and modes are refused with different errors."""
    with pytest.raises(UnknownPolicy):
        changes_in(api.ConfigUpdateRequest(compatibility="UP"))
    with pytest.raises(WrongShape):
        changes_in(api.ConfigUpdateRequest(compatibility_policy="UP"))
    with pytest.raises(WrongShape, match="must be FULL_TRANSITIVE"):
        changes_in(api.ConfigUpdateRequest(compatibility="FULL", stele_compatibility=PolicyJson("deny_all")))
    for mode in (api.ModeUpdateRequest("UP"), api.ModeUpdateRequest()):
        with pytest.raises(UnknownMode):
            mode_in(mode)
    assert mode_in(api.ModeUpdateRequest(None)) is None
    assert [mode_in(api.ModeUpdateRequest(mode.value.lower())) for mode in Mode] == list(Mode)


def test_references_into_the_core() -> None:
    """Unqualified subjects are in the schema's own namespace, qualified ones in theirs."""
    sent = [
        api.SchemaReference("A", "a", 1),
        api.SchemaReference("B", ":.d:b", -1),
        api.SchemaReference("C", ":.:c", 2),
        api.SchemaReference("D", "x/y", 1),
    ]
    assert references_in(sent, "c") == (
        Reference("A", "c", "a", 1),
        Reference("B", "d", "b", -1),
        Reference("C", "", "c", 2),
        Reference("D", "c", "x/y", 1),
    )
    assert references_in(None, "c") == ()


def tag(path: str, *names: str) -> api.SchemaTags:
    """Return tags of a field."""
    return api.SchemaTags(api.SchemaEntity(path), list(names))


def test_tags_are_added_and_removed() -> None:
    """Tags of a path are a set; a path without tags is removed."""
    before = Attachments(metadata=Metadata(tags={"a": ("x",), "b": ("y",)}, properties={"k": "v"}))
    request = api.TagSchemaRequest(
        tags_to_add=[tag("a", "w"), tag("c", "z", "z")], tags_to_remove=[tag("b", "y"), tag("q", "y")]
    )
    after = tag_attachments(before, request).metadata
    assert after == Metadata(tags={"a": ("w", "x"), "c": ("z",)}, properties={"k": "v"})
    assert tags_out(after, ["z"]) == [tag("c", "z")]
    assert tags_out(after, ["*"]) == [tag("a", "w", "x"), tag("c", "z")]
    assert tags_out(after, []) == []
    assert tags_out(None, ["*"]) == []


def test_registrations_bring_tags() -> None:
    """Tag changes of a registration become part of its metadata; without tag changes it is returned unchanged."""
    request = api.RegisterSchemaRequest(schema="{}")
    assert apply_tag_changes(request, None) is request
    tagged = apply_tag_changes(api.RegisterSchemaRequest(schema="{}", schema_tags_to_add=[tag("a", "x")]), None)
    assert tagged.metadata == Metadata(tags={"a": ("x",)})


def test_rules_are_merged_and_removed() -> None:
    """Rules are merged and removed by name in every phase; a request cannot also replace the whole rule set."""
    old = DataRuleSet(
        domain_rules=(DataRule("a", type="X"), DataRule("b", type="X")), migration_rules=(DataRule("c", type="X"),)
    )
    before = Attachments(rule_set=old)
    merged = tag_attachments(
        before,
        api.TagSchemaRequest(
            rules_to_merge=api.RuleSet(domain_rules=[api.Rule(name="b", type="Y")]), rules_to_remove=["c"]
        ),
    ).rule_set
    assert merged == DataRuleSet(domain_rules=(DataRule("a", type="X"), DataRule("b", type="Y")))
    assert tag_attachments(before, api.TagSchemaRequest()).rule_set == old
    assert tag_attachments(NO_ATTACHMENTS, api.TagSchemaRequest(rules_to_remove=["a"])).rule_set is None
    with pytest.raises(InvalidRuleSet):
        tag_attachments(before, api.TagSchemaRequest(rule_set=api.RuleSet(), rules_to_remove=["a"]))


def test_reserved_fields() -> None:
    """Internal and reserved top-level names are reported; nested ones are not."""
    fields = [Field("$$a", "int"), Field("b", "int"), Field("c.$$d", "int"), Field("c.b", "int")]
    reserving = Attachments(metadata=Metadata(properties={"confluent:reserved": "b, x"}))
    assert [(f.rule, f.path) for f in find_reserved_name_violations(fields, reserving, None)] == [
        ("FIELD_NAME_INTERNAL", "$$a"),
        ("FIELD_NAME_RESERVED", "b"),
    ]
    assert find_reserved_name_violations(fields[1:], NO_ATTACHMENTS, None) == []


FINDING = Finding("SOME_RULE", "/a", "int", "string", "It broke.", "Mend it.")


async def test_avro_messages_carry_what_both_sides_have(registry: Registry, put: Put) -> None:
    """A message has an entry in single quotes with reader and writer, then the old version, its text and the level."""
    await put(":a", '"string"')
    description, information = "It broke, at path '/a'. Mend it", "reader: int, writer: string"
    assert format_messages(registry.state, SubjectKey("", "a"), [FINDING], 1) == [
        f"{{errorType:'SOME_RULE', description:'{description}', additionalInfo:'{information}'}}",
        "{oldSchemaVersion: 1}",
        "{oldSchema: '\"string\"'}",
        "{validateFields: 'false', compatibility: 'BACKWARD'}",
    ]


async def test_a_long_old_schema_is_cut_and_marked(registry: Registry, put: Put) -> None:
    """An old text of more than 10 KiB is truncated, and the message says so."""
    long = json.dumps({"type": "record", "name": "R", "doc": "d" * 20_000, "fields": []})
    await put(":a", long)
    message = format_messages(registry.state, SubjectKey("", "a"), [FINDING], 1)[2]
    assert message.startswith("{oldSchema: <truncated> '{")
    assert message.endswith("d...'}")
    assert len(message) == 10 * 1024 + len("{oldSchema: <truncated> '...'}")


async def test_doubt_is_told_apart_from_a_break(registry: Registry) -> None:
    """The message about an undecided finding says that it is undecided; that about a proven break does not."""
    findings = [Finding("R", "/a", why="It may break.", level=level) for level in (Severity.ERROR, Severity.UNKNOWN)]
    proven, doubtful, _ = format_messages(registry.state, SubjectKey("", "a"), findings, None)
    assert "description:'It may break, at path '/a''" in proven
    assert "description:'Not decided, hence refused: It may break, at path '/a''" in doubtful


@pytest.mark.parametrize(
    ("old", "new", "information"),
    [
        ({"fields": []}, {"fields": [{"name": "a", "type": "int"}]}, "a"),
        ({"type": "enum", "symbols": ["A", "B", "C"]}, {"type": "enum", "symbols": ["A"]}, "[B, C]"),
        ({"type": "fixed", "size": 5}, {"type": "fixed", "size": 4}, "expected: 5, found: 4"),
        ({"name": "R", "fields": []}, {"name": "Q", "fields": []}, "expected: R"),
    ],
)
async def test_the_additional_information_names_the_offender(
    registry: Registry, put: Put, old: dict[str, Any], new: dict[str, Any], information: str
) -> None:
    """Avro's messages end with the field, the symbols, the name or the sizes that do not match, as clients expect."""
    texts = [json.dumps({"type": "record", "name": "R", **schema}) for schema in (old, new)]
    await put(":a", texts[0])
    writer, reader = (AVRO.parse(text.encode(), {}) for text in texts)
    first = format_messages(registry.state, SubjectKey("", "a"), AVRO.check(reader, writer), 1)[0]
    assert first.endswith(f", additionalInfo:'{information}'}}")
