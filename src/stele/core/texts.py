"""Schema texts in memory, packed: many small similar texts per compressed block.

Texts of one registry resemble their neighbours (versions of one subject, subjects of one team). So a block of them
compresses far better than each alone, and one block needs one Python object. A handle is a row number in four columns
(block, start, length, end of the tag), and has no meaning for callers. A tag is a few uncompressed bytes beside a text.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import repeat

from stele.core import zstd

BLOCK_BYTES = 128 * 1024
"""Raw bytes per block: a read decompresses one block, under 0.1 ms, when it is not among the last ones read."""

_CACHED_BLOCKS = 32


DumpedTexts = tuple[list[bytes], bytes, bytes, bytes, bytes, bytes]
"""Blocks, columns and tags as plain data."""


class PackedTexts:
    """An append-only store of byte strings.

    `pack_block` assigns handles, `get_text` returns the bytes, `drop_text` removes them permanently.
    """

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._block = array("I")
        self._start = array("I")
        self._length = array("I")
        self._tag_end = array("I")
        self._tags = bytearray()
        self._cache: OrderedDict[int, bytes] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of handles assigned so far."""
        return len(self._block)

    @property
    def packed_bytes(self) -> int:
        """Size of the compressed blocks in bytes."""
        return sum(map(len, self._blocks))

    @property
    def text_bytes(self) -> int:
        """Total length of all texts that were not dropped, in bytes, before compression."""
        return sum(length for start, length in zip(self._start, self._length, strict=True) if start != _DROPPED)

    def pack_block(self, texts: Sequence[bytes], tags: Sequence[bytes] = ()) -> list[int]:
        """Store texts as one block, with their tags if there are any. Return their handles, in order."""
        first = len(self._block)
        number = len(self._blocks)
        position = 0
        for text, tag in zip(texts, tags or repeat(b""), strict=False):
            self._tags += tag
            self._tag_end.append(len(self._tags))
            self._block.append(number)
            self._start.append(position)
            self._length.append(len(text))
            position += len(text)
        self._blocks.append(zstd.compress(b"".join(texts)))
        return list(range(first, first + len(texts)))

    def get_text(self, handle: int) -> bytes:
        """Return the text of a handle. Raises KeyError after `drop`."""
        length = self._length[handle]
        start = self._start[handle]
        if start == _DROPPED:
            raise KeyError(handle)
        return self._decompress_block(self._block[handle])[start : start + length]

    def get_length(self, handle: int) -> int:
        """Return the length of a text in bytes, also after `drop`."""
        return self._length[handle]

    def get_tag(self, handle: int) -> bytes:
        """Return the tag of a handle, also after `drop`."""
        return bytes(self._tags[self._tag_end[handle - 1] if handle else 0 : self._tag_end[handle]])

    def get_end_of_tag(self, handle: int, length: int) -> bytes:
        """Return the last bytes of the tag of a handle."""
        end = self._tag_end[handle]
        return bytes(self._tags[end - length : end])

    def drop_text(self, handle: int) -> None:
        """Remove a text: its bytes leave memory at once. Raises KeyError the second time."""
        number = self._block[handle]
        start, length = self._start[handle], self._length[handle]
        if start == _DROPPED:
            raise KeyError(handle)
        raw = bytearray(self._decompress_block(number))
        raw[start : start + length] = bytes(length)
        self._blocks[number] = zstd.compress(raw)
        self._cache.pop(number, None)
        self._start[handle] = _DROPPED

    def dump(self) -> DumpedTexts:
        """Return the store as plain data, for snapshots."""
        block, start, length, tag_end = (column.tobytes() for column in self._columns())
        return self._blocks, block, start, length, tag_end, bytes(self._tags)

    @classmethod
    def load(cls, blocks: list[bytes], columns: Iterable[bytes | memoryview]) -> PackedTexts:
        """Return the store that `dump` returned, from its blocks and from the other parts.

        Each other part is read completely before the next is taken.
        """
        texts = cls()
        texts._blocks = blocks
        rest = iter(columns)
        for column in texts._columns():
            column.frombytes(next(rest))
        texts._tags += next(rest)
        return texts

    def _columns(self) -> tuple[array[int], ...]:
        return self._block, self._start, self._length, self._tag_end

    def _decompress_block(self, number: int) -> bytes:
        raw = self._cache.get(number)
        if raw is None:
            raw = self._cache[number] = zstd.decompress(self._blocks[number])
            if len(self._cache) > _CACHED_BLOCKS:
                self._cache.popitem(last=False)
        else:
            self._cache.move_to_end(number)
        return raw


_DROPPED = 2**32 - 1
