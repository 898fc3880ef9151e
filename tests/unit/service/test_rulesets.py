"""The log decides which rulesets apply: an upgrade changes no verdict, a report previews it, an adoption does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from stele.core import queries
from stele.core.commands import ChangeSettings, RegisterSchema
from stele.core.events import RulesetAdopted
from stele.core.findings import Direction, WhenUndecided
from stele.core.model import NO_ATTACHMENTS, SchemaDocument, SettingsLevel, SubjectKey
from stele.core.policy import POLICIES
from stele.errors import Incompatible, InvalidRequest, UnknownFormat, UnknownRuleset
from stele.service.check import Candidate, CheckRequest, check_compatibility
from stele.service.registry import Registry
from stele.service.ruleset_adoption import adopt_ruleset, adopted_versions
from stele.service.ruleset_impact import ComparedVersions, ImpactRow, ReportPage, ReportRequest, make_report
from stele.service.rulesets import get_ruleset, list_rulesets
from stele.storage import open_log
from stele.storage.memory import MemoryLog, MemoryStore

Install = Callable[[str], None]
KEY = SubjectKey("", "s")
ADOPTED = RulesetAdopted("demo", "words", 2)


async def document(registry: Registry, text: str) -> SchemaDocument:
    """Return a prepared demo schema."""
    return (await registry.parser.prepare_schema(await registry.fresh_state(), "demo", text.encode())).document


async def put(registry: Registry, *texts: str, key: SubjectKey = KEY) -> None:
    """Register demo schemas one after the other."""
    for text in texts:
        await registry.execute(RegisterSchema(key, await document(registry, text)))


async def find_refusing_rule(registry: Registry, text: str) -> str:
    """Return the rule that refuses a schema."""
    with pytest.raises(Incompatible) as caught:
        await put(registry, text)
    return caught.value.findings[0].rule


async def all_rows(registry: Registry, **arguments: object) -> list[ImpactRow]:
    """Return the rows of all pages of a report."""
    rows: list[ImpactRow] = []
    request = ReportRequest(**arguments)  # type: ignore[arg-type]  # test shorthand
    while True:
        page = await make_report(registry, request)
        rows += page.rows
        if page.next is None:
            return rows
        request = ReportRequest(**arguments, after=page.next)  # type: ignore[arg-type]  # as above


async def test_an_upgrade_changes_no_verdict_until_somebody_adopts(install: Install, tmp_path: Path) -> None:
    """@1 decides after the upgrade, the report shows findings of @2, an adoption switches, and a restart keeps it."""
    store = f"sqlite:///{tmp_path}/log.db"
    install("OLD")
    registry = await Registry.open(await open_log(store))
    await put(registry, "a", "a b")
    assert await find_refusing_rule(registry, "b") == "LOST"
    await registry.close()

    install("NEW")
    registry = await Registry.open(await open_log(store))
    assert ("demo", "words") not in registry.state.rulesets
    await put(registry, "a b c")
    (first, second) = await all_rows(registry)
    assert (first.subject, first.version, first.against, first.direction) == ("s", 2, 1, Direction.BACKWARD)
    assert (first.ruleset_now, first.ruleset_then, first.now, first.then) == (
        "words@1",
        "words@2",
        "compatible",
        "incompatible",
    )
    assert [finding.rule for finding in second.findings] == ["NEW"]
    await adopt_ruleset(registry, "demo", "words@2")
    assert await find_refusing_rule(registry, "a b c d") == "NEW"
    assert await all_rows(registry) == []
    assert [row.then for row in await all_rows(registry, format="demo", ruleset="words@1")] == ["compatible"] * 2
    await registry.close()

    registry = await Registry.open(await open_log(store))
    assert registry.state.rulesets["demo", "words"] == 2
    assert await find_refusing_rule(registry, "a b c d") == "NEW"
    await adopt_ruleset(registry, "demo", "words@1")
    await put(registry, "a b c d")
    await registry.close()


async def test_nodes_over_one_log_agree(install: Install) -> None:
    """A node with cached verdicts of @1 decides by @2 as soon as another node adopts it."""
    install("OLD")
    store = MemoryStore()
    first, second = [await Registry.open(MemoryLog(store)) for _ in range(2)]
    await put(first, "a")
    install("NEW")
    assert await second.find_incompatibilities(KEY, await document(second, "a b"), NO_ATTACHMENTS) == ([], None)
    await adopt_ruleset(first, "demo", "words")
    found_now, against = await second.find_incompatibilities(KEY, await document(second, "a b"), NO_ATTACHMENTS)
    assert ([finding.rule for finding in found_now], against) == (["NEW"], 1)
    assert await find_refusing_rule(second, "a b") == "NEW"
    await first.close()
    await second.close()


async def test_a_new_registry_begins_with_the_newest_rules(install: Install) -> None:
    """With an empty log the newest rulesets are adopted; with any other log nothing is adopted automatically."""
    install("NEW")
    store = MemoryStore()
    registry = await Registry.open(MemoryLog(store))
    assert registry.state.seq == 0
    assert (await adopted_versions(registry))["demo", "words"] == 2
    await asyncio.gather(*(put(registry, "a", key=SubjectKey("", name)) for name in "stu"))
    assert registry.state.rulesets == await adopted_versions(registry)
    assert registry.state.rulesets["demo", "words"] == 2
    assert await find_refusing_rule(registry, "a b") == "NEW"
    adoptions = [seq for seq, record in await registry.read_log(0, 99) if record.events[0] == ADOPTED]
    assert adoptions == [1]
    another = await Registry.open(MemoryLog(store))
    assert another.state.seq == registry.state.seq
    await registry.reset(MemoryLog())
    await put(registry, "a")
    assert registry.state.rulesets["demo", "words"] == 2
    await another.close()
    await registry.close()


async def test_a_version_that_is_not_installed_refuses_instead_of_judging_otherwise(install: Install) -> None:
    """After a downgrade, or without an old version, writes are refused with the command that fixes it."""
    install("OLD")
    registry = await Registry.open(MemoryLog())
    await put(registry, "a")
    install("LATE")
    with pytest.raises(UnknownRuleset, match=r"words@1, which is not installed.*stele ruleset adopt demo words@2"):
        await put(registry, "a b")
    assert len(queries.list_versions((await registry.fresh_state()).find_subject(KEY))) == 1
    assert [info.installed for info in list_rulesets(registry.state.rulesets) if info.format == "demo"] == [False, True]
    await adopt_ruleset(registry, "demo", "words")
    assert await find_refusing_rule(registry, "a b") == "NEW"
    await registry.close()


async def test_settings_hold_a_version_against_an_adoption(install: Install) -> None:
    """A pinned version decides whatever was adopted; one that is not installed refuses, but for its own format only."""
    install("NEW")
    registry = await Registry.open(MemoryLog())
    await registry.execute(ChangeSettings(SettingsLevel(*KEY), {"ruleset": "words@1"}))
    await put(registry, "a", "a b")
    assert await all_rows(registry, format="demo", ruleset="words@1") == []
    (row,) = await all_rows(registry, format="demo", ruleset="words@2", everywhere=True)
    assert (row.ruleset_now, row.ruleset_then) == ("words@1", "words@2")
    await registry.execute(ChangeSettings(SettingsLevel(*KEY), {"ruleset": "words@7"}))
    with pytest.raises(UnknownRuleset, match=r"words@7, which is not installed.*name another ruleset in the settings"):
        await put(registry, "a b c")
    await registry.execute(ChangeSettings(SettingsLevel(*KEY), {"ruleset": "confluent@9"}))
    assert await find_refusing_rule(registry, "a b c") == "NEW"
    await registry.close()


async def test_doubt_is_a_setting(install: Install) -> None:
    """An undecided change is refused unless the server allows it; a proved break is refused either way."""
    install("OLD")
    strict = await Registry.open(MemoryLog())
    trusting = await Registry.open(MemoryLog(), undecided=WhenUndecided.ALLOW)
    for registry in (strict, trusting):
        await put(registry, "a")
    assert await find_refusing_rule(strict, "a b?") == "OPEN"
    assert await find_refusing_rule(trusting, "b?") == "LOST"
    await put(trusting, "a b?")
    await strict.close()
    await trusting.close()


async def test_a_plug_in_without_versions_has_version_one(install: Install) -> None:
    """Its ruleset is listed as @1, called by its bare name, and has no other version."""
    install("BARE")
    registry = await Registry.open(MemoryLog())
    await put(registry, "a")
    assert await find_refusing_rule(registry, "b") == "LOST"
    info = get_ruleset("demo", "words", {})
    assert ([row.version for row in info.versions], info.versions[0].summary, info.default) == ([1], "", True)
    check_request = CheckRequest("demo", "b", against=(Candidate("a"),), ruleset="words@1")
    assert check_compatibility(check_request).ruleset == "words@1"
    with pytest.raises(UnknownRuleset, match=r"has no ruleset 'words@2'; it has words@1"):
        await adopt_ruleset(registry, "demo", "words@2")
    await registry.close()


def test_a_check_without_a_registry_takes_the_newest_and_says_which(install: Install) -> None:
    """A bare name is the newest version, a full name that one; with a registry's adoptions, the one in force."""
    install("NEW")

    def ask_check(ruleset: str | None, **more: object) -> str:
        return check_compatibility(
            CheckRequest("demo", "a b", against=(Candidate("a"),), ruleset=ruleset), **more
        ).ruleset  # type: ignore[arg-type]  # test shorthand

    assert [ask_check(name) for name in (None, "words", "words@1", "other")] == [
        "words@2",
        "words@2",
        "words@1",
        "other@1",
    ]
    assert [ask_check(name, adopted={}) for name in (None, "words", "words@2")] == ["words@1", "words@1", "words@2"]
    assert ask_check(None, adopted={("demo", "words"): 2}) == "words@2"
    assert check_compatibility(CheckRequest("demo", "a")).ruleset == ""
    with pytest.raises(UnknownRuleset):
        ask_check("mine", adopted={})


def test_a_check_weighs_doubt_as_it_is_told(install: Install) -> None:
    """The setting in the request applies, else the default of the server."""
    install("OLD")

    def compatible(request: WhenUndecided | None, server: WhenUndecided) -> bool:
        check_request = CheckRequest("demo", "a b?", against=(Candidate("a"),), undecided=request)
        return check_compatibility(check_request, undecided=server).compatible

    assert [compatible(None, choice) for choice in WhenUndecided] == [False, True]
    assert [compatible(choice, WhenUndecided.REFUSE) for choice in WhenUndecided] == [False, True]
    assert not compatible(WhenUndecided.REFUSE, WhenUndecided.ALLOW)


async def history(registry: Registry) -> None:
    """Register three versions each of a subject checked only forward, one with the default policy, one unchecked."""
    for key in (KEY, SubjectKey("ö", "s"), SubjectKey("ö", "t")):
        await registry.execute(ChangeSettings(SettingsLevel(*key), {"policy": POLICIES["NONE"]}))
        await put(registry, "a", "a b", "a b c", key=key)
    await registry.execute(ChangeSettings(SettingsLevel(*KEY), {"policy": POLICIES["FORWARD"]}))
    await registry.execute(ChangeSettings(SettingsLevel("ö", "s"), {"policy": None}))


async def test_a_report_follows_the_policy_in_force_and_comes_in_pages(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transitive policy compares all predecessors, newest first; pages of any size give the same rows."""
    monkeypatch.setattr("stele.service.ruleset_impact.SECONDS", 600.0)
    install("OLD")
    registry = await Registry.open(MemoryLog())
    await history(registry)
    install("NEW")
    rows = await all_rows(registry)
    assert [(row.namespace, row.version, row.against, row.direction) for row in rows] == [
        ("ö", 2, 1, Direction.BACKWARD),
        ("ö", 3, 2, Direction.BACKWARD),
    ]
    everything = await all_rows(registry, format="demo", ruleset="other@1", everywhere=True)
    assert everything == [msg_with(row, "other@1") for row in rows]
    assert await all_rows(registry, limit=1) == rows
    assert await all_rows(registry, namespace="") == []
    page = await make_report(registry, ReportRequest(limit=1))
    assert (len(page.rows), page.next) == (1, ComparedVersions("ö", "s", 2, 1))
    assert await make_report(registry, ReportRequest(after=ComparedVersions("ö", "t", 0, 0))) == ReportPage((), 0)
    await registry.execute(ChangeSettings(SettingsLevel(*KEY), {"policy": POLICIES["FULL_TRANSITIVE"]}))
    rows = await all_rows(registry, namespace="", format="demo")
    assert [(row.version, row.against) for row in rows] == [(2, 1), (3, 2), (3, 1)]
    assert {row.direction for row in rows} == {Direction.BACKWARD}
    await registry.close()


def msg_with(row: ImpactRow, ruleset: str) -> ImpactRow:
    """Return the row with another ruleset as the other one."""
    return ImpactRow(**{name: getattr(row, name) for name in ImpactRow.__struct_fields__} | {"ruleset_then": ruleset})


async def test_a_page_ends_when_its_time_is_up(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the comparisons are, a page has at least one pair and says where to continue."""
    install("OLD")
    registry = await Registry.open(MemoryLog())
    await history(registry)
    install("NEW")
    whole = await all_rows(registry)
    monkeypatch.setattr("stele.service.ruleset_impact.SECONDS", 0.0)
    page = await make_report(registry, ReportRequest())
    assert page.compared <= 2
    assert page.next is not None
    assert await all_rows(registry) == whole
    await registry.close()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"ruleset": "words@2"}, InvalidRequest),
        ({"format": "demo", "everywhere": True}, InvalidRequest),
        ({"format": "demo", "ruleset": "words@3"}, UnknownRuleset),
        ({"format": "demo", "ruleset": "words@"}, UnknownRuleset),
        ({"format": "nothing"}, UnknownFormat),
        ({"format": "opaque", "ruleset": "x"}, UnknownRuleset),
    ],
)
async def test_reports_on_what_there_is_not_are_refused(
    install: Install, arguments: dict[str, object], error: type[Exception]
) -> None:
    """A report with a ruleset that is not installed, or with `everywhere` but without a ruleset, is refused."""
    install("NEW")
    registry = await Registry.open(MemoryLog())
    with pytest.raises(error):
        await make_report(registry, ReportRequest(**arguments))  # type: ignore[arg-type]  # test shorthand
    await registry.close()
