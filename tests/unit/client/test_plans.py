"""Workflows: their requests, the order of these, and their results. No client, no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import msgspec
import pytest

from stele.client import (
    RegisteredSchema,
    ResolvedSchema,
    Schema,
    SchemaReference,
    SchemaSnapshot,
    Workflow,
    journal,
    workflows,
)
from stele.errors import ContentNotFound, InvalidRequest, SubjectNotFound, TooLarge, VersionNotFound

T = TypeVar("T")
GUID = UUID("89791762-2336-4186-9674-299b90a802e2")


def run(plan: Workflow[T], answers: dict[str, Any]) -> T:
    """Return the workflow's result, given answers by target."""
    result = None
    while True:
        try:
            request = plan.send(result)
        except StopIteration as end:
            value: T = end.value
            return value
        result = answers[request.target]


def document(text: str, *names: str, **more: Any) -> RegisteredSchema:
    """Return a registered schema that refers to version 1 of each named subject."""
    references = tuple(SchemaReference(name, name, 1) for name in names)
    return RegisteredSchema(text, references=references, **more)


def old(name: str) -> str:
    """Return the target of the request for a reference."""
    return f"/subjects/{name}/versions/1?deleted=true"


def test_references_come_with_their_own_dependencies_first() -> None:
    """All references are listed once, dependencies before dependants."""
    answers = {
        "/schemas/ids/1": document("root", "a", "b", id=1),
        old("a"): document("A", "c"),
        old("b"): document("B", "c"),
        old("c"): document("C"),
    }
    resolved_schema = run(workflows.resolve(1), answers)
    assert list(resolved_schema.references.items()) == [("c", "C"), ("a", "A"), ("b", "B")]


def test_references_in_a_circle_end() -> None:
    """Circular references are resolved without an endless loop."""
    answers = {"/schemas/ids/1": document("root", "a"), old("a"): document("A", "b"), old("b"): document("B", "a")}
    assert set(run(workflows.resolve(1), answers).references) == {"a", "b"}


def test_deep_chains_are_followed_and_endless_ones_are_not() -> None:
    """Long chains of references are followed up to a limit, beyond which `TooLarge` is raised."""
    answers = {"/schemas/ids/1": document("root", "n0")}
    answers |= {old(f"n{number}"): document(str(number), f"n{number + 1}") for number in range(1001)}
    with pytest.raises(TooLarge, match="1000"):
        run(workflows.resolve(1), answers)
    answers[old("n999")] = document("999")
    assert len(run(workflows.resolve(1), answers).references) == 1000


def test_a_context_is_kept_through_references() -> None:
    """Unqualified references use the context of the schema that holds them; qualified ones keep their own."""
    references = (SchemaReference("a", "a", 1), SchemaReference("b", ":.other:b", 1))
    answers = {
        "/schemas/ids/1?subject=%3A.team%3A": RegisteredSchema("root", references=references, id=1),
        "/subjects/%3A.team%3Aa/versions/1?deleted=true": document("A"),
        "/subjects/%3A.other%3Ab/versions/1?deleted=true": document("B", "c"),
        "/subjects/%3A.other%3Ac/versions/1?deleted=true": document("C"),
    }
    resolved_schema = run(workflows.resolve(1, context="team"), answers)
    assert (set(resolved_schema.references), resolved_schema.context) == ({"a", "b", "c"}, "team")


def test_guids_need_no_context() -> None:
    """A guid is looked up without a context."""
    assert run(workflows.resolve(GUID), {f"/schemas/guids/{GUID}": document("x", guid=str(GUID))}).text == "x"


def test_a_schema_at_hand_is_resolved_without_being_registered() -> None:
    """For a given schema only its references are requested."""
    schema = Schema("root", "JSON", (SchemaReference("a.json", "a", 1),))
    resolved_schema = run(workflows.resolve_schema(schema), {old("a"): document("A")})
    assert (resolved_schema.text, resolved_schema.schema_type, resolved_schema.references) == (
        "root",
        "JSON",
        {"a.json": "A"},
    )


@pytest.fixture
def snapshot() -> SchemaSnapshot:
    """Two versions of one subject in a context, and one schema by id alone."""
    answers = {
        "/subjects/%3A.team%3As/versions": [1, 2],
        "/subjects/%3A.team%3As/versions/1": document("one", id=1, version=1, subject=":.team:s"),
        "/subjects/%3A.team%3As/versions/2": document("two", "a", id=2, version=2, subject=":.team:s", guid=str(GUID)),
        "/subjects/%3A.team%3Aa/versions/1?deleted=true": document("A"),
        "/schemas/ids/9?subject=%3A.team%3A": document("nine", id=9),
    }
    return run(workflows.snapshot(subjects=["s"], ids=[9], context="team"), answers)


def test_snapshot_answers_like_a_client(snapshot: SchemaSnapshot) -> None:
    """A snapshot finds schemas by id in its context, by guid, by subject and version, and by newest version."""
    assert snapshot.resolve(1, context="team").text == "one"
    assert snapshot.resolve(9, context="team").text == "nine"
    assert snapshot.resolve(GUID).references == {"a": "A"}
    assert snapshot.resolve_version(":.team:s", 1).text == "one"
    assert snapshot.resolve_version(":.team:s").text == "two"


def test_snapshot_says_what_it_lacks(snapshot: SchemaSnapshot) -> None:
    """A snapshot raises for missing schemas, and for an id of another context."""
    with pytest.raises(ContentNotFound):
        snapshot.resolve(1)
    with pytest.raises(ContentNotFound):
        snapshot.resolve(UUID(int=0))
    with pytest.raises(SubjectNotFound):
        snapshot.resolve_version("s")
    with pytest.raises(VersionNotFound):
        snapshot.resolve_version(":.team:s", 3)


def test_snapshot_survives_a_file(snapshot: SchemaSnapshot, tmp_path: Path) -> None:
    """A loaded snapshot equals the saved one."""
    snapshot.save(tmp_path / "schemas.json")
    again = SchemaSnapshot.load(tmp_path / "schemas.json")
    assert again == snapshot
    assert isinstance(again.resolve(9, context="team"), ResolvedSchema)


def test_other_files_are_refused() -> None:
    """An invalid file raises an error of Stele, not of the parser."""
    with pytest.raises(InvalidRequest, match="snapshot"):
        SchemaSnapshot.from_json(b'{"schemas": 1}')


def test_texts_are_asked_for_until_all_came() -> None:
    """Texts are requested a hundred at a time, missing ones again. Bytes that are not UTF-8 arrive unchanged."""
    names = [f"{number:064x}" for number in range(101)]
    plan = journal.schema_texts([*names, names[0]])
    batches: list[list[str]] = []
    request = plan.send(None)

    def reply(texts: list[dict[str, str]], omitted: list[str]) -> Any:
        batches.append([pair.removeprefix("sha256=") for pair in request.query.split("&")])
        return request.read(msgspec.json.encode({"texts": texts, "omitted": omitted}))

    request = plan.send(reply([{"sha256": names[0], "base64": "/w=="}], names[1:3]))
    request = plan.send(reply([], names[1:2]))
    with pytest.raises(StopIteration) as end:
        plan.send(reply([], []))
    assert end.value.value == {names[0]: b"\xff"}
    assert batches == [names[:100], [*names[1:3], names[100]], names[1:2]]
