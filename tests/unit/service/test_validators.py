"""Validators of a policy: each refuses what it should, through the registry, and explains why."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from importlib.metadata import EntryPoint
from typing import Any

import pytest
import pytest_asyncio

from stele.core.commands import ChangeSettings, RegisterSchema, Registration
from stele.core.findings import Finding, Severity
from stele.core.model import SettingsLevel as Place
from stele.core.model import SubjectKey
from stele.core.policy import ALLOW_ANY, Policy
from stele.core.ports import Format, Parsed, TextForm
from stele.errors import Incompatible, UnknownRuleset
from stele.formats.registry import get_format
from stele.service import validators
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog

KEY = SubjectKey("", "orders-value")


def no_answers(fmt: Format[Any], parsed: Parsed, before: Parsed | None) -> list[Finding]:
    """A plug-in that refuses every field called `answer`, and nothing in a first version."""
    names = [field.path for field in fmt.fields(parsed) if field.path == "answer"] if before is not None else []
    return [Finding("HOUSE_RULE", name, why="No answers.", fix="Ask.", level=Severity.WARNING) for name in names]


NO_VALIDATOR = "words"
"""Target of an entry point that is not a validator."""


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install three plug-ins: one that works, one that cannot be imported, one that is not callable."""
    values = {"house": f"{__name__}:no_answers", "broken": "no.such.module:x", "words": f"{__name__}:NO_VALIDATOR"}
    points = [EntryPoint(name, value, validators.GROUP) for name, value in values.items()]
    loaded = {"house": no_answers, "words": NO_VALIDATOR}
    real = EntryPoint.load
    monkeypatch.setattr(EntryPoint, "load", lambda self: loaded[self.name] if self.name in loaded else real(self))
    monkeypatch.setattr(validators, "entry_points", lambda group: points if group == validators.GROUP else [])
    validators.reload_plug_ins()
    yield
    validators.reload_plug_ins()


@pytest_asyncio.fixture
async def registry() -> AsyncIterator[Registry]:
    """An empty node."""
    node = await Registry.open(MemoryLog())
    yield node
    await node.close()


async def demand(registry: Registry, *checkers: str, policy: Policy = ALLOW_ANY) -> None:
    """Set a policy with only those validators on the subject."""
    changed = Policy(policy.kind, policy.backward, policy.forward, checkers)
    await registry.execute(ChangeSettings(Place(*KEY), {"policy": changed}))


async def put(registry: Registry, schema: Any, format_name: str = "avro") -> Registration:
    """Register a schema given as text or JSON value."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    prepared = await registry.parser.prepare_schema(await registry.fresh_state(), format_name, text.encode())
    outcome = await registry.execute(RegisterSchema(KEY, prepared.document, prepared.references))
    assert isinstance(outcome, Registration)
    return outcome


async def refusal(registry: Registry, schema: Any, format_name: str = "avro") -> list[Finding]:
    """Return the findings with which a registration is refused."""
    with pytest.raises(Incompatible) as caught:
        await put(registry, schema, format_name)
    assert all(finding.breaks for finding in caught.value.findings)
    return list(caught.value.findings)


def record(*fields: Any, **more: Any) -> dict[str, Any]:
    """Return a documented record of a namespace; a field given as a name is an int without default."""
    shaped = [{"name": field, "type": "int", "doc": "d"} if isinstance(field, str) else field for field in fields]
    return {"type": "record", "name": "R", "namespace": "n", "doc": "d", "fields": shaped, **more}


async def test_a_lint_rule_refuses(registry: Registry) -> None:
    """A schema that breaks the rule is refused with the rule's finding, as an error; a better one is taken."""
    await demand(registry, "lint:DOC_REQUIRED")
    findings = await refusal(registry, record("a", doc=""))
    assert [(f.rule, f.path, f.level, f.against) for f in findings] == [("DOC_REQUIRED", "/", Severity.ERROR, None)]
    assert (await put(registry, record("a"))).version_number == 1
    assert (await refusal(registry, record("a", "b", doc="")))[0].against == 1
    assert (await put(registry, record("a", "b"))).version_number == 2


async def test_the_text_as_sent_is_judged(registry: Registry) -> None:
    """If another form is registered, validators get the author's text: the stored one has no comments."""
    await demand(registry, "lint:DOC_REQUIRED")
    bare = 'syntax = "proto3";\n\nmessage M {\n  int32 a = 1;\n}\n'
    documented = bare.replace("message", "// A message.\nmessage").replace("int32", "// A number.\n  int32")
    drafts = {
        text: await registry.parser.prepare_schema(
            await registry.fresh_state(), "protobuf", text.encode(), form=TextForm.PRINTED
        )
        for text in (bare, documented)
    }
    assert {draft.document.text for draft in drafts.values()} == {bare.encode()}
    assert drafts[bare].document.submitted is None
    assert list(drafts[documented].document.texts.values()) == [documented.encode(), bare.encode()]
    with pytest.raises(Incompatible):
        await registry.execute(RegisterSchema(KEY, drafts[bare].document))
    outcome = await registry.execute(RegisterSchema(KEY, drafts[documented].document))
    assert isinstance(outcome, Registration)
    again = await registry.execute(RegisterSchema(KEY, drafts[bare].document))
    assert isinstance(again, Registration)
    assert (again.version_number, again.created) == (1, False)


async def test_all_lint_rules_refuse(registry: Registry) -> None:
    """`lint` stands for every rule of the format."""
    await demand(registry, "lint")
    bad = record({"name": "A", "type": ["null", "int"], "doc": "d"}, namespace="")
    assert {f.rule for f in await refusal(registry, bad)} == {"NAMESPACE_REQUIRED", "NAMING", "NULLABLE_DEFAULT"}
    assert (await put(registry, record("a"))).created


async def test_rules_about_changes_spare_the_first_version(registry: Registry) -> None:
    """The first document has no version before it; the second is compared with it."""
    await demand(registry, "lint:FIELD_DEFAULT")
    await put(registry, record("a"))
    assert [f.path for f in await refusal(registry, record("a", "b"))] == ["/fields/1"]
    assert (await put(registry, record("a", {"name": "b", "type": "int", "default": 1}))).version_number == 2


async def test_every_validator_is_heard(registry: Registry) -> None:
    """A schema that two validators object to is refused with the findings of both."""
    await demand(registry, "lint:DOC_REQUIRED", "lint:NAMING", "repo.reject")
    rules = [finding.rule for finding in await refusal(registry, record(name="bad_name", doc=""))]
    assert rules == ["DOC_REQUIRED", "NAMING", "REPO_REJECT"]


async def test_a_rule_of_another_language_says_nothing(registry: Registry) -> None:
    """A policy of a whole namespace can name rules that not every format has."""
    await demand(registry, "lint:ENUM_ZERO_UNSPECIFIED")
    assert (await put(registry, record("a"))).created
    assert [f.rule for f in await refusal(registry, 'syntax = "proto3"; enum E { A = 0; }', "protobuf")]


async def test_a_version_of_another_format_is_no_version_before(registry: Registry) -> None:
    """After a version of another format, a document is checked like a first one instead of failing to parse."""
    await demand(registry, "lint:FIELD_DEFAULT", "ruleset:confluent")
    await put(registry, record("a"))
    assert (await put(registry, 'syntax = "proto3"; message M { int32 a = 1; }', "protobuf")).version_number == 2


async def test_a_ruleset_refuses(registry: Registry) -> None:
    """The new schema must read the newest version by that ruleset, although the policy allows any change."""
    await demand(registry, "ruleset:avro")
    await put(registry, record("a"))
    findings = await refusal(registry, record("a", "b"))
    assert [(f.rule, f.against) for f in findings] == [("READER_FIELD_MISSING_DEFAULT_VALUE", 1)]
    assert (await put(registry, record())).version_number == 2


async def test_warnings_of_a_ruleset_do_not_refuse(registry: Registry) -> None:
    """A readable change is accepted although the ruleset warns; the lint rule about it refuses the change."""
    timed = [
        record({"name": "t", "type": {"type": "long", "logicalType": f"timestamp-{u}"}}) for u in ("millis", "micros")
    ]
    await demand(registry, "ruleset:avro")
    await put(registry, timed[0])
    await demand(registry, "lint:TIMESTAMP_UNIT")
    assert [f.rule for f in await refusal(registry, timed[1])] == ["TIMESTAMP_UNIT"]
    await demand(registry, "ruleset:avro")
    assert (await put(registry, timed[1])).version_number == 2


async def test_repo_reject_refuses_everything(registry: Registry) -> None:
    """The validator of schema-repo refuses everything, even a first document."""
    await demand(registry, "repo.reject")
    assert [f.rule for f in await refusal(registry, record("a"))] == ["REPO_REJECT"]


@pytest.mark.parametrize(
    "name",
    ["house-rules", "lint:NO_SUCH_RULE", "ruleset:no-such", "ruleset", "repo.accept", "lint:", "broken", "words"],
)
@pytest.mark.usefixtures("plugins")
async def test_a_name_nobody_installed_lets_nothing_in(name: str, registry: Registry) -> None:
    """An unknown validator, rule or ruleset, and a plug-in that cannot be loaded, refuse with their names."""
    await demand(registry, name)
    with pytest.raises(UnknownRuleset, match=name.partition(":")[2] or name):
        await put(registry, record("a"))


@pytest.mark.usefixtures("plugins")
async def test_plug_ins(registry: Registry) -> None:
    """A plug-in gets the version before, None for the first; its findings refuse, whatever their severity."""
    await demand(registry, "house")
    await put(registry, record("answer"))
    findings = await refusal(registry, record("answer", "b"))
    assert [(f.rule, f.path, f.level) for f in findings] == [("HOUSE_RULE", "answer", Severity.ERROR)]
    assert validators.list_validators() == (
        "lint",
        "lint:RULE",
        "ruleset:NAME",
        "repo.reject",
        "broken",
        "house",
        "words",
    )


def test_a_ruleset_is_the_version_the_registry_adopted() -> None:
    """A bare name means the adopted version; one that is not installed is refused, not replaced by another."""
    fmt = get_format("avro")
    parsed = fmt.parse(b'"int"', {})
    assert validators.run_validator("ruleset:avro", fmt, parsed, parsed, {"avro": 1}) == ()
    with pytest.raises(UnknownRuleset, match="avro@99"):
        validators.run_validator("ruleset:avro", fmt, parsed, parsed, {"avro": 99})


@pytest.mark.parametrize("name", ["lint", "lint:DOC_REQUIRED", "ruleset:avro", "ruleset:confluent", "repo.reject"])
def test_known_validators(name: str) -> None:
    """A name that some installed format has is accepted."""
    validators.require_known([name])


@pytest.mark.parametrize("name", ["lint:", "lint:NO_SUCH", "ruleset", "ruleset:avro@99", "nobody", ""])
def test_unknown_validators(name: str) -> None:
    """An unknown name is refused with a reason, before a policy uses it."""
    with pytest.raises(UnknownRuleset, match="validator"):
        validators.require_known(["lint", name])


def test_known_plug_ins(plugins: None) -> None:
    """A plug-in is known if it is callable."""
    validators.require_known(["house"])
    for name in ("broken", "words"):
        with pytest.raises(UnknownRuleset):
            validators.require_known([name])
