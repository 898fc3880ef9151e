"""The table of contents behaves as a dict does, whatever was sorted in and when, in less memory."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.core.content_table import ContentTable
from stele.core.model import Content, UnpackedText
from stele.core.texts import PackedTexts

SHAS: Final = [head + tail * 24 for head in (bytes(8), b"\xff" * 8, b"middle..") for tail in (b"a", b"b")]
"""Pairs of digests with the same beginning."""
steps = st.lists(st.tuples(st.sampled_from(["set", "delete", "sort", "load"]), st.sampled_from(SHAS)), max_size=25)


def _make_content(sha: bytes) -> Content:
    return Content(PackedTexts(), UnpackedText(b"text", sha), "avro")


@given(steps)
def test_it_holds_what_a_dict_holds(done: list[tuple[str, bytes]]) -> None:
    """After any changes the table has the same digests and contents as a dict, in the same order."""
    table, model = ContentTable(), dict[bytes, Content]()
    for what, sha in done:
        if what == "sort":
            table.dump()
        elif what == "load":
            digests = table.dump()
            table = ContentTable.load(list(table.values()), digests)
        elif what == "set":
            table[sha] = model[sha] = _make_content(sha)
        elif sha in model:
            del table[sha], model[sha]
        assert list(table) == list(model)
        assert all(one is other for one, other in zip(table.values(), model.values(), strict=True))
        assert [table.get(each) is model.get(each) for each in SHAS] == [True] * len(SHAS)
        assert [each in table for each in SHAS] == [each in model for each in SHAS]
        assert len(table) == len(model)


def test_a_text_that_is_not_there_is_a_key_error() -> None:
    """Look-ups and removals of an unknown or removed digest raise KeyError."""
    table = ContentTable()
    table[SHAS[0]] = _make_content(SHAS[0])
    table.dump()
    del table[SHAS[0]]
    for sha in SHAS:
        for look_up in (table.__getitem__, table.__delitem__):
            with pytest.raises(KeyError):
                look_up(sha)


def test_what_is_added_is_sorted_in_once_it_is_much() -> None:
    """Many added contents are sorted in, so that their digests are not stored twice."""
    table = ContentTable()
    for number in range(50_000):
        sha = number.to_bytes(4, "little") * 8
        table[sha] = _make_content(sha)
        table.sort_added()
    assert len(table._added) < 10_000
    assert len(table) == 50_000
    assert all(table[number.to_bytes(4, "little") * 8] is not None for number in range(0, 50_000, 777))


def test_packing_a_text_leaves_its_digest_where_it_is_found() -> None:
    """The digest of a packed text is in its tag, that of an unpacked one in the content."""
    texts = PackedTexts()
    content = Content(texts, UnpackedText(b"text", SHAS[2]), "avro")
    table = ContentTable()
    table[SHAS[2]] = content
    table.dump()
    (content.text_or_handle,) = texts.pack_block([b"text"], [b"digests" + bytes(7) + SHAS[2]])
    assert content.sha == SHAS[2]
    assert table[SHAS[2]] is content
