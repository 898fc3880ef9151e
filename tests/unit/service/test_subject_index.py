"""Rows of subjects: kept up to date, filtered, counted and sorted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from tests.support.access_world import World

from stele.core.access import AccessRule, AccessRules, ResourceType
from stele.service.access import CALLER, AccessControl, Caller, Principal
from stele.service.field_index import FieldIndex
from stele.service.registry import Registry
from stele.service.subject_index import SORT_KEYS, Facets, RowFilter, SubjectIndex, SubjectRow, select_rows
from stele.service.text_search import search_texts
from stele.storage import open_log

pytestmark = pytest.mark.asyncio(loop_scope="module")


def make_record(*fields: str) -> str:
    """The text of a record with these fields."""
    described = [{"name": name, "type": "int", "default": 0} for name in fields]
    return json.dumps({"type": "record", "name": "R", "fields": described})


@pytest_asyncio.fixture(loop_scope="module")
async def world() -> AsyncIterator[World]:
    """Yield an empty registry with all of its APIs."""
    registry = await Registry.open(await open_log("memory:"))
    yield World(registry)
    await registry.close()


async def register(world: World, subject: str, *fields: str) -> None:
    """Register a record with these fields."""
    answer = await world.ask("", "POST", f"/subjects/{subject}/versions", {"schema": make_record(*fields)})
    assert answer.is_success, answer.text


async def test_rows_follow_the_log(world: World) -> None:
    """After any changes, an index that followed them has the same rows as a new one."""
    following = SubjectIndex(world.registry)
    rules = AccessRules(
        [
            AccessRule("user:lister", ("list",), resource_type=ResourceType.SUBJECT, namespace="*", name="a"),
            AccessRule("user:lister", ("read",), resource_type=ResourceType.NAMESPACE, namespace="n"),
        ],
        default_allow=False,
    )
    steps = [
        ("POST", "/subjects/b/versions", {"schema": make_record("x")}),
        ("POST", "/subjects/a/versions", {"schema": make_record("x")}),
        ("POST", "/contexts/.n/subjects/a/versions", {"schema": make_record("y")}),
        ("PUT", "/config/a", {"compatibility": "FULL"}),
        ("PUT", "/config", {"compatibility": "NONE"}),
        ("POST", "/subjects/a/versions", {"schema": make_record("x", "z")}),
        ("PUT", "/config/:.n:", {"compatibility": "FORWARD"}),
        ("DELETE", "/subjects/a/versions/2", None),
        ("DELETE", "/subjects/b", None),
        ("DELETE", "/subjects/b?permanent=true", None),
        ("DELETE", "/config/a", None),
    ]
    snapshots = []
    for method, path, body in steps:
        answer = await world.ask("", method, path, body)
        assert answer.is_success, (path, answer.text)
        rows = list(await following.list_rows())
        assert rows == list(await SubjectIndex(world.registry).list_rows()), path
        world.registry.access, before = AccessControl(rules), world.registry.access
        caller = CALLER.set(Caller(Principal("lister")))
        listed = list(await following.list_rows())
        assert listed == list(await SubjectIndex(world.registry).list_rows()), path
        assert [row.name for row in listed] == [row.name for row in rows if row.name == "a"]
        assert [row.is_readable for row in listed] == [row.namespace == "n" for row in listed]
        CALLER.reset(caller)
        world.registry.access = before
        snapshots.append(rows)
    assert len({str(rows) for rows in snapshots}) >= len(steps) - 2
    assert [(row.namespace, row.name) for row in snapshots[-1]] == [("", "a"), ("n", "a")]


_ROWS = st.lists(
    st.builds(
        lambda namespace, name, facets, number: SubjectRow(
            namespace, name, Facets(*facets), number, number, number, number, name.casefold()
        ),
        st.sampled_from(["", "n"]),
        st.text("abAB-", max_size=4),
        st.tuples(
            st.sampled_from(["avro", "json"]), st.sampled_from(["NONE", "FULL"]), st.sampled_from(["active", "deleted"])
        ),
        st.integers(0, 3),
    ),
    max_size=12,
).map(lambda rows: sorted(rows, key=lambda row: (row.namespace, row.name)))


@given(
    _ROWS,
    st.builds(
        RowFilter,
        st.sampled_from(["", "a", "A b", "-"]),
        st.sampled_from([None, "", "n"]),
        st.sampled_from(["", "avro", "xsd"]),
        st.sampled_from(["", "FULL"]),
        st.sampled_from(["", "active"]),
    ),
    st.sampled_from([*SORT_KEYS, *(f"-{key}" for key in SORT_KEYS)]),
)
async def test_selections_are_what_their_filter_says(rows: list[SubjectRow], wanted: RowFilter, sort: str) -> None:
    """A selection has each matching row once; the count of a facet value is the number of rows it would leave."""
    selection = select_rows(rows, wanted, sort)

    def passes(row: SubjectRow, chosen: RowFilter) -> bool:
        return (
            chosen.namespace in (None, row.namespace)
            and all(word in row.name.casefold() for word in chosen.words.casefold().split())
            and chosen.format in ("", row.facets.format)
            and chosen.policy in ("", row.facets.policy)
            and chosen.state in ("", row.facets.state)
        )

    assert sorted(map(str, selection.rows)) == sorted(str(row) for row in rows if passes(row, wanted))
    for member, counts in (
        ("format", selection.formats),
        ("policy", selection.policies),
        ("state", selection.states),
    ):
        for value, count in counts.items():
            chosen = wanted._replace(**{member: value})
            assert count == sum(passes(row, chosen) for row in rows)
    values = [getattr(row.facets, sort.strip("-"), None) for row in selection.rows]
    if sort.strip("-") in ("format", "policy"):
        assert values == sorted(values, reverse=sort.startswith("-"))


async def test_fields_are_found_with_their_first_version(world: World) -> None:
    """A search lists whole names first, then beginnings, then parts, each with its first and last version."""
    index = FieldIndex(world.registry, duty=1)
    await register(world, "orders", "id", "mail")
    await register(world, "orders", "id", "mail", "email")
    await register(world, "orders", "id", "email", "email_kind")
    await index.finish()
    matches = await index.find_fields("EMAIL", 10, lambda key: True)
    assert [(hit.path, hit.first, hit.last, hit.is_current) for hit in matches.hits] == [
        ("email", 2, 3, True),
        ("email_kind", 3, 3, True),
    ]
    assert (matches.done, matches.total, matches.is_cut) == (1, 1, False)
    parts = await index.find_fields("mail", 10, lambda key: True)
    assert [(hit.path, hit.first, hit.last, hit.is_current) for hit in parts.hits] == [
        ("mail", 1, 2, False),
        ("email", 2, 3, True),
        ("email_kind", 3, 3, True),
    ]
    cut = await index.find_fields("mail", 1, lambda key: True)
    assert ([hit.path for hit in cut.hits], cut.is_cut) == (["mail"], True)
    assert not (await index.find_fields("mail", 10, lambda key: False)).hits


async def test_fields_follow_the_log(world: World) -> None:
    """Registrations, deletions and purges after the index was built change its results."""
    index = FieldIndex(world.registry, duty=1)
    await register(world, "a", "one")
    await index.finish()
    await register(world, "b", "one", "two")
    await register(world, "a", "one", "three")
    await index.finish()
    assert {hit.key.name for hit in (await index.find_fields("one", 10, lambda key: True)).hits} == {"a", "b"}
    assert len((await index.find_fields("three", 10, lambda key: True)).hits) == 1
    for path in ("/subjects/b", "/subjects/b?permanent=true", "/subjects/a/versions/2"):
        assert (await world.ask("", "DELETE", path)).is_success
    await index.finish()
    assert [hit.key.name for hit in (await index.find_fields("o", 10, lambda key: True)).hits] == ["a"]
    assert not (await index.find_fields("three", 10, lambda key: True)).hits


async def test_texts_are_searched_in_parts(world: World) -> None:
    """Each request continues after the one before; together they find every subject with such a text."""
    for number in range(120):
        await register(world, f"s{number}", f"f{number}", "shared")
    position, names = 0, set()
    for _ in range(1000):
        matches = await search_texts(world.registry, '"shared"', position)
        assert matches.position > position
        position = matches.position
        names |= {version.subject.key.name for version in matches.versions}
        if position == matches.total:
            break
    assert names == {f"s{number}" for number in range(120)}
    assert not (await search_texts(world.registry, "Shared")).versions
