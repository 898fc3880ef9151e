"""Histories, fields, matrices and neighbours from a registry."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import pytest_asyncio

from stele.core.commands import ChangeSettings, CompatibilityCheck, DeleteMode, DeleteVersion, RegisterSchema
from stele.core.compatibility_requests import SchemaSource
from stele.core.findings import Verdict
from stele.core.model import Reference, SettingsLevel, SubjectKey, VersionNumber
from stele.core.policy import POLICIES, find_policy
from stele.errors import SubjectNotFound
from stele.protocol.history import FieldLifeline
from stele.service import history, lifelines, version_verdicts
from stele.service.history import get_history, get_matrix
from stele.service.lifelines import get_lifelines
from stele.service.neighbours import get_atlas, get_neighbourhood
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog

ORDERS = SubjectKey("", "orders")
YES, NO = Verdict.COMPATIBLE, Verdict.INCOMPATIBLE


@pytest_asyncio.fixture
async def registry(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Registry]:
    """Yield an empty node with a policy that refuses nothing and enough time."""
    for module in (version_verdicts, lifelines):
        monkeypatch.setattr(module, "SECONDS", 600.0)
    node = await Registry.open(MemoryLog())
    await node.execute(ChangeSettings(SettingsLevel(), {"policy": POLICIES["NONE"]}))
    yield node
    await node.close()


def field(name: str, kind: Any = "int", **more: Any) -> dict[str, Any]:
    """Return a field of an Avro record."""
    return {"name": name, "type": kind, **more}


async def register(
    registry: Registry,
    key: SubjectKey,
    *fields: dict[str, Any],
    references: Sequence[Reference] = (),
    check: CompatibilityCheck = CompatibilityCheck.POLICY,
) -> None:
    """Register an Avro record with these fields as the next version."""
    text = json.dumps({"type": "record", "name": key.name.title(), "fields": list(fields)}).encode()
    prepared = await registry.parser.prepare_schema(await registry.fresh_state(), "avro", text, references)
    command = RegisterSchema(key, document=prepared.document, references=prepared.references, check=check)
    await registry.execute(command)


async def delete(registry: Registry, key: SubjectKey, number: int) -> None:
    """Soft-delete a version."""
    await registry.execute(DeleteVersion(key, number, DeleteMode.SOFT))


async def fill(registry: Registry) -> None:
    """Register four versions: one adds a default, one breaks old data, and one repairs that."""
    await register(registry, ORDERS, field("a"))
    await register(registry, ORDERS, field("a"), field("b", default=0))
    await register(registry, ORDERS, field("a"), field("b", default=0), field("c"))
    await register(registry, ORDERS, field("a"), field("b", default=0), field("c", default=1))


async def test_each_version_is_compared_with_the_one_before(registry: Registry) -> None:
    """A link has the verdicts of both directions, with the findings that break."""
    await fill(registry)
    subject_history = await get_history(registry, ORDERS)
    assert [row.version for row in subject_history.versions] == [1, 2, 3, 4]
    links = [row.link for row in subject_history.versions]
    assert links[0] is None
    assert [(link.before, link.backward, link.forward) for link in links if link] == [
        (1, YES, YES),
        (2, NO, YES),
        (3, YES, YES),
    ]
    assert links[2] is not None
    assert links[2].reasons == ("READER_FIELD_MISSING_DEFAULT_VALUE at /fields/2",)
    assert subject_history.complete


async def test_a_deleted_version_leaves_the_line(registry: Registry) -> None:
    """The version after a soft-deleted one is compared with the nearest earlier active one."""
    await fill(registry)
    await delete(registry, ORDERS, 3)
    subject_history = await get_history(registry, ORDERS)
    assert [(row.version, row.deleted, row.link.before if row.link else 0) for row in subject_history.versions] == [
        (1, False, 0),
        (2, False, 1),
        (3, True, 2),
        (4, False, 2),
    ]


async def test_the_newest_version_is_compared_with_all_others(registry: Registry) -> None:
    """Each version says whether the newest active one reads its data, also on a page without that one."""
    await fill(registry)
    await register(registry, ORDERS, field("b"), field("d", default=1))
    subject_history = await get_history(registry, ORDERS)
    assert (subject_history.newest, [row.newest_reads for row in subject_history.versions]) == (
        5,
        [NO, YES, YES, YES, None],
    )
    page = await get_history(registry, ORDERS, before=3)
    assert (page.newest, [row.newest_reads for row in page.versions]) == (5, [NO, YES])
    await delete(registry, ORDERS, 5)
    assert [row.newest_reads for row in (await get_history(registry, ORDERS)).versions] == [YES, YES, YES, None, NO]


async def test_forced_is_what_the_policy_then_forbade(registry: Registry) -> None:
    """A break counts as forced only if the policy at its registration required that direction."""
    await fill(registry)
    await registry.execute(ChangeSettings(SettingsLevel(*ORDERS), {"policy": POLICIES["BACKWARD"]}))
    await register(registry, ORDERS, field("a"), field("b"), field("d"), check=CompatibilityCheck.SKIP)
    subject_history = await get_history(registry, ORDERS)
    assert [row.link.forced for row in subject_history.versions if row.link] == [False, False, False, True]
    assert (subject_history.policy, subject_history.versions[0].policy, subject_history.versions[-1].policy) == (
        "BACKWARD",
        "NONE",
        "BACKWARD",
    )


async def test_pages_go_backwards(registry: Registry) -> None:
    """A page has the newest versions below a number, the count of earlier ones, and the link of its first version."""
    await fill(registry)
    page = await get_history(registry, ORDERS, before=4, limit=2)
    assert ([row.version for row in page.versions], page.earlier) == ([2, 3], 1)
    assert page.versions[0].link is not None
    assert page.versions[0].link.before == 1
    with pytest.raises(SubjectNotFound):
        await get_history(registry, SubjectKey("", "nothing"))


async def test_verdicts_are_found_as_far_as_time_goes(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the time is up, the rest is not compared. The next answer continues without repeating comparisons."""
    await fill(registry)
    monkeypatch.setattr(version_verdicts, "SECONDS", -1.0)
    none = await get_history(registry, ORDERS)
    assert not none.complete
    assert {row.link.backward for row in none.versions if row.link} == {None}
    monkeypatch.setattr(version_verdicts, "SECONDS", 600.0)
    assert (await get_history(registry, ORDERS)).complete
    monkeypatch.setattr(version_verdicts, "SECONDS", -1.0)
    assert (await get_history(registry, ORDERS)).complete


async def test_formats_are_not_compared(registry: Registry) -> None:
    """Neighbours of two formats have no verdict."""
    await register(registry, ORDERS, field("a"))
    state = await registry.fresh_state()
    prepared = await registry.parser.prepare_schema(state, "json", b'{"type":"object"}')
    await registry.execute(RegisterSchema(ORDERS, document=prepared.document))
    subject_history = await get_history(registry, ORDERS)
    assert [row.format for row in subject_history.versions] == ["avro", "json"]
    assert subject_history.versions[1].link is not None
    assert (subject_history.versions[1].link.backward, subject_history.versions[1].link.forward) == (None, None)
    assert subject_history.complete


async def test_the_matrix_has_every_pair(registry: Registry) -> None:
    """Rows are readers, columns are writers, and comparisons that the policy requires are marked."""
    await fill(registry)
    matrix = await get_matrix(registry, ORDERS, policy=find_policy("BACKWARD_TRANSITIVE"))
    assert matrix.versions == (1, 2, 3, 4)
    assert matrix.reads == ((YES, YES, YES, YES), (YES, YES, YES, YES), (NO, NO, YES, YES), (YES, YES, YES, YES))
    assert matrix.demands == ((2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (4, 3))
    part = await get_matrix(registry, ORDERS, limit=2)
    assert (part.versions, part.earlier, part.policy, part.demands) == ((3, 4), 2, "NONE", ())


def _by_path(fields: Sequence[FieldLifeline]) -> dict[str, list[tuple[int, int, str]]]:
    return {line.path: [(span.first, span.last, span.type) for span in line.spans] for line in fields}


async def test_fields_have_lifelines(registry: Registry) -> None:
    """A lifeline goes from a field's first version to its last, with a new span after each change or gap."""
    await register(registry, ORDERS, field("a"), field("gone"))
    await register(registry, ORDERS, field("a", "long"))
    await register(registry, ORDERS, field("b", ["null", "int"], default=None), field("a", "long"), field("gone"))
    await register(registry, ORDERS, field("b", ["null", "int"], default=None), field("a", "long", doc="why"))
    lifelines = await get_lifelines(registry, ORDERS)
    assert _by_path(lifelines.fields) == {
        "b": [(3, 4, "null | int")],
        "a": [(1, 1, "int"), (2, 3, "long"), (4, 4, "long")],
        "gone": [(1, 1, "int"), (3, 3, "int")],
    }
    assert [line.path for line in lifelines.fields] == ["b", "a", "gone"]
    assert lifelines.fields[0].spans[0].optional
    assert lifelines.fields[1].spans[-1].doc == "why"
    assert (lifelines.versions, lifelines.earlier, lifelines.complete) == ((1, 2, 3, 4), 0, True)


async def test_renames_are_known_by_their_aliases(registry: Registry) -> None:
    """A field with an alias of an earlier field was renamed; a field without one is new."""
    await register(registry, ORDERS, field("mail"), field("x"))
    await register(registry, ORDERS, field("email", aliases=["mail"]), field("y"))
    lifelines = await get_lifelines(registry, ORDERS)
    assert {line.path: line.renamed_from for line in lifelines.fields} == {
        "email": "mail",
        "mail": None,
        "y": None,
        "x": None,
    }


async def test_the_newest_versions_are_read_first(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit, or when the time is up, the oldest versions are left out and counted."""
    await fill(registry)
    part = await get_lifelines(registry, ORDERS, limit=2)
    assert (part.versions, part.earlier, part.complete) == ((3, 4), 2, True)
    monkeypatch.setattr(lifelines, "SECONDS", -1.0)
    none = await get_lifelines(registry, ORDERS)
    assert (none.versions, none.fields, none.earlier, none.complete) == ((), (), 4, False)


async def test_subjects_that_are_all_deleted_have_fields(registry: Registry) -> None:
    """The fields of a soft-deleted subject can be looked at before it is recovered."""
    await register(registry, ORDERS, field("a"))
    await delete(registry, ORDERS, 1)
    assert _by_path((await get_lifelines(registry, ORDERS)).fields) == {"a": [(1, 1, "int")]}


async def fill_references(registry: Registry) -> None:
    """Register an address in two versions, an order that uses the first, and an invoice that uses the order."""
    address = SubjectKey("", "address")
    await register(registry, address, field("city"))
    await register(registry, address, field("city"), field("zip", default=0))
    to_address = Reference("Address", "", "address", VersionNumber(1))
    await register(registry, ORDERS, field("to", "Address"), references=[to_address])
    to_order = Reference("Orders", "", "orders", VersionNumber(1))
    await register(registry, SubjectKey("", "invoice"), field("order", "Orders"), references=[to_order])


async def test_neighbours_are_found_both_ways(registry: Registry) -> None:
    """Used subjects have negative distances and users positive ones, each with the version in use."""
    await fill_references(registry)
    neighbourhood = await get_neighbourhood(registry, ORDERS)
    assert [(node.subject, node.distance, node.version, node.latest) for node in neighbourhood.nodes] == [
        ("orders", 0, 1, 1),
        ("address", -1, 1, 2),
        ("invoice", 1, 1, 1),
    ]
    assert [(row.user[1], row.used[1], row.stale) for row in neighbourhood.references] == [
        ("invoice", "orders", False),
        ("orders", "address", True),
    ]
    around = await get_neighbourhood(registry, SubjectKey("", "address"), depth=2)
    assert [(node.subject, node.distance) for node in around.nodes] == [("address", 0), ("orders", 1), ("invoice", 2)]


async def test_a_reference_that_was_given_up_is_past(registry: Registry) -> None:
    """A user whose newest version no longer has the reference is listed, and marked as past."""
    await fill_references(registry)
    await register(registry, ORDERS, field("to", default=0))
    neighbourhood = await get_neighbourhood(registry, SubjectKey("", "address"))
    assert [(row.user[1], row.user_version, row.past) for row in neighbourhood.references] == [("orders", 1, True)]


async def test_the_atlas_has_the_subjects_of_a_namespace(registry: Registry) -> None:
    """Subjects come by name, with the references of their newest versions; those over the limit are counted."""
    await fill_references(registry)
    atlas = await get_atlas(registry, "")
    assert [(node.subject, node.versions) for node in atlas.nodes] == [("address", 2), ("invoice", 1), ("orders", 1)]
    assert [(row.user[1], row.used[1]) for row in atlas.references] == [("invoice", "orders"), ("orders", "address")]
    part = await get_atlas(registry, "", after="address", limit=1)
    assert ([node.subject for node in part.nodes], part.omitted, part.references) == (["invoice"], 1, ())
    assert (await get_atlas(registry, "nowhere")).nodes == ()


async def test_what_cannot_be_answered_is_no_verdict(registry: Registry) -> None:
    """A ruleset that is not installed, or a purged text, leaves only its own pair without a verdict."""
    await fill(registry)
    state = await registry.fresh_state()
    rows = history.list_history_versions(registry, ORDERS)
    question = version_verdicts.VersionQuestions(state, ORDERS).ask(rows[1], rows[0])
    assert question is not None
    strange = question._replace(adopted=(("avro", 99),))
    textless = question._replace(reader=SchemaSource(b"\0" * 32))
    verdicts = await version_verdicts.find_verdicts(registry, [strange, textless, question])
    assert verdicts.is_complete
    assert verdicts.findings == {strange: None, question: ()}
    assert [verdicts.find_verdict(each) for each in (strange, textless, question, None)] == [None, None, YES, None]
    assert strange not in registry.compatibility.verdicts
