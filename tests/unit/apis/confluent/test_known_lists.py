"""Cached lists: a page costs its rows only, and shows the present state."""

from collections.abc import Iterator

import httpx
import pytest

from stele.apis.confluent import lists
from stele.testing import registry
from stele.testing.registry_box import RegistryBox


@pytest.fixture
def box() -> Iterator[RegistryBox]:
    """A registry with three subjects."""
    with registry() as box:
        box.register_all({name: f'{{"type":"fixed","name":"{name}","size":1}}' for name in "abc"})
        yield box


def read_page(box: RegistryBox, offset: int, query: str = "", limit: int = 2) -> list[str]:
    """Return the subjects of a page of the list of schemas."""
    with httpx.Client(transport=box.transport, base_url=box.url) as client:
        answer = client.get(f"/schemas?offset={offset}&limit={limit}{query}")
    return [row["subject"] for row in answer.json()]


def test_pages_of_one_list_are_made_once(box: RegistryBox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages of a list are computed once, and again after each change."""
    calls = []
    inner = lists.list_subjects

    async def count_lists(*values: object, **options: object) -> object:
        calls.append(values)
        return await inner(*values, **options)  # type: ignore[arg-type]  # passed on as they are

    monkeypatch.setattr(lists, "list_subjects", count_lists)
    assert (read_page(box, 0), read_page(box, 2), len(calls)) == (["a", "b"], ["c"], 1)
    box.register_all({"b": '{"type":"fixed","name":"b","aliases":["x"],"size":1}'})
    assert (read_page(box, 0), read_page(box, 2), len(calls)) == (["a", "b"], ["b", "c"], 2)
    assert (read_page(box, 0, "&latestOnly=true"), read_page(box, 2, "&latestOnly=true")) == (["a", "b"], ["c"])
    box.client.delete_subject("a")
    assert (read_page(box, 0), read_page(box, 0, "&deleted=true")) == (["b", "b"], ["a", "b"])
    assert read_page(box, 0, "&subjectPrefix=c") == ["c"]


def test_lists_with_associations_are_told_apart(box: RegistryBox) -> None:
    """Lists with different filters for associations are cached separately."""
    assert read_page(box, 0, limit=9) == ["a", "b", "c"]
    assert read_page(box, 0, "&resourceType=topic&lifecycle=STRONG", limit=9) == []
    assert read_page(box, 0, "&resourceType=topic&lifecycle=NONE", limit=9) == ["a", "b", "c"]
    assert read_page(box, 0, limit=9) == ["a", "b", "c"]
