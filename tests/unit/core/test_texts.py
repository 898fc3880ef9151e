"""Packed texts are returned unchanged, and no byte of a dropped one remains."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.core import zstd
from stele.core.model import Content, UnpackedText
from stele.core.state import State
from stele.core.texts import BLOCK_BYTES, PackedTexts

rows = st.tuples(st.binary(max_size=50), st.binary(max_size=9))
batches = st.lists(st.lists(rows, min_size=1, max_size=5), max_size=6)


@given(batches, st.data())
def test_every_text_comes_back_until_it_is_dropped(drawn: list[list[tuple[bytes, bytes]]], data: st.DataObject) -> None:
    """Handles keep their text and tag when others are packed or dropped, and through a dump."""
    texts, expected = PackedTexts(), dict[int, tuple[bytes, bytes]]()
    for batch in drawn:
        handles = texts.pack_block([text for text, _ in batch], [tag for _, tag in batch])
        expected |= dict(zip(handles, batch, strict=True))
    assert len(texts) == len(expected)
    dropped_handles = data.draw(st.sets(st.sampled_from(sorted(expected)))) if expected else set()
    for handle in dropped_handles:
        texts.drop_text(handle)
    blocks, *columns = texts.dump()
    for packed_texts in (texts, PackedTexts.load(blocks, columns)):
        for handle, (text, tag) in expected.items():
            assert packed_texts.get_tag(handle) == tag
            if handle in dropped_handles:
                with pytest.raises(KeyError):
                    packed_texts.get_text(handle)
            else:
                assert packed_texts.get_text(handle) == text


def test_a_dropped_text_is_in_no_block() -> None:
    """After a drop no snapshot would contain the secret, and dropping it again is an error."""
    texts = PackedTexts()
    handles = texts.pack_block([b"before", b"SECRET" * 10, b"after"])
    assert texts.get_text(handles[1]) == b"SECRET" * 10
    texts.drop_text(handles[1])
    assert all(b"SECRET" not in zstd.decompress(block) for block in texts.dump()[0])
    assert [texts.get_text(handles[0]), texts.get_text(handles[2])] == [b"before", b"after"]
    with pytest.raises(KeyError):
        texts.drop_text(handles[1])


def test_similar_texts_share_their_bytes() -> None:
    """A block of versions takes a small part of what the texts take."""
    rows = [b'{"type":"record","name":"Order","fields":[%s]}' % (b'{"name":"f","type":"long"},' * n) for n in range(99)]
    texts = PackedTexts()
    texts.pack_block(rows)
    assert texts.packed_bytes * 20 < sum(map(len, rows))


def test_a_state_packs_blocks_of_bounded_size() -> None:
    """However many texts wait, a read unpacks about one block; the rest waits until requested."""
    state = State()
    expected = [bytes([n % 256]) * 1000 for n in range(500)]
    contents = [
        Content(state.packed_texts, UnpackedText(text, bytes([n % 256]) * 32, b"digests", n), "avro")
        for n, text in enumerate(expected)
    ]
    for content in contents:
        state.keep_unpacked(content)
    state.pack_texts()
    assert 0 < len(state.loose) < BLOCK_BYTES // 1000 + 1
    assert len(state.packed_texts.dump()[0]) >= 500 * 1000 // BLOCK_BYTES - 1
    state.pack_texts(rest=True)
    assert state.loose == []
    assert [state.get_text(content) for content in contents] == expected
    assert all(isinstance(content.text_or_handle, int) for content in contents)
    assert {state.get_digests(content) for content in contents} == {b"digests"}
    assert [state.get_seq(content) for content in contents] == list(range(500))
    assert [content.sha for content in contents] == [bytes([n % 256]) * 32 for n in range(500)]


def test_nothing_is_packed_within_a_draft() -> None:
    """Texts of a draft are not packed, because it may be rolled back."""
    state = State()
    state.begin_draft()
    state.keep_unpacked(Content(state.packed_texts, UnpackedText(b"text", b"x"), "avro"))
    state.pack_texts(rest=True)
    assert len(state.packed_texts) == 0
    state.roll_back()
    assert state.loose == []
