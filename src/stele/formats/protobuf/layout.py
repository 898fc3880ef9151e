"""What only the source text tells: the order of declarations, the author's spelling of type names, comments."""

from __future__ import annotations

import re
from functools import cached_property

from stele.formats.protobuf.model import ProtobufSchema

MAX_LOCATIONS = 400_000
"""A schema with more places than this is printed as if it had come without source, to bound the time."""

_NAME = re.compile(r"\.?[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_MAP_VALUE = re.compile(rb"map\s*<\s*\w+\s*,\s*([.\w]+)\s*>")
_TAB = 8
"""The compiler counts a tab as moving to the next multiple of so many columns."""

_ONE_LINE = 3
"""So many numbers has a span that begins and ends on one line: line, column, end column."""
_LONGEST = 2000
"""No type name is longer, in bytes."""
_TABBED = 4000
"""In longer lines columns are not counted through tabs."""

Path = tuple[int, ...]
NO_POSITION: tuple[int, ...] = (1 << 31,)
"""The place of what has none: behind everything."""


class SourceLayout:
    """Positions and spellings by path in the FileDescriptorProto; empty for a schema without source."""

    def __init__(self, schema: ProtobufSchema) -> None:
        locations = schema.source.location
        self._locations = locations if len(locations) <= MAX_LOCATIONS else ()
        self._text = schema.text

    @cached_property
    def _span_by_path(self) -> dict[Path, tuple[int, ...]]:
        spans: dict[Path, tuple[int, ...]] = {}
        for location in self._locations:
            path = tuple(location.path)
            # A custom option has places for its parts only: they stand in for the whole.
            for shorter in (path, path[:-1], path[:-2]):
                spans.setdefault(shorter, tuple(location.span))
        return spans

    @cached_property
    def _comment_by_path(self) -> dict[Path, str]:
        return {
            tuple(location.path): _decode_comment(text)
            for location in self._locations
            if (text := location.leading_comments or location.trailing_comments)
        }

    @cached_property
    def _source_lines(self) -> list[bytes]:
        return self._text.removeprefix(b"\xef\xbb\xbf").split(b"\n")

    def start_position(self, path: Path) -> tuple[int, ...]:
        """Return where the element starts, for sorting; elements without a position come last."""
        return self._span_by_path.get(path, NO_POSITION)

    def comment_at(self, path: Path) -> str:
        """Return the comment before the element, else the one behind it, without stars and outer white space."""
        lines = (line.strip() for line in self._comment_by_path.get(path, "").strip().splitlines())
        return "\n".join(line.removeprefix("*").strip() if line.startswith("*") else line for line in lines)

    def type_spelling(self, path: Path) -> str:
        """Return the type name at path as the author wrote it; '' when the source does not show it."""
        text = self._source_slice(path).decode("ascii", "replace")
        return text if _NAME.fullmatch(text) else ""

    def map_value_spelling(self, path: Path) -> str:
        """Return the value type of the map field at path as the author wrote it, '' where the source has none."""
        match = _MAP_VALUE.match(self._source_slice(path))
        return match[1].decode() if match else ""

    def _source_slice(self, path: Path) -> bytes:
        """Return the part of an element's source that is on its first line."""
        span = self._span_by_path.get(path)
        if not self._text or span is None:
            return b""
        line = self._source_lines[span[0]] if span[0] < len(self._source_lines) else b""
        start = _byte_offset(line, span[1])
        stop = _byte_offset(line, span[2]) if len(span) == _ONE_LINE else start + _LONGEST
        return line[start : min(stop, start + _LONGEST)]


def _decode_comment(text: str | bytes) -> str:
    """Return a comment as text: the library gives bytes where they are no UTF-8, against its own type hints."""
    return text if isinstance(text, str) else text.decode("utf-8", "replace")


def _byte_offset(line: bytes, column: int) -> int:
    """Return the index of the byte at a column, or the end of a line too long to count through."""
    if len(line) > _TABBED:
        return len(line) if b"\t" in line[:column] else column
    at = 0
    for index, byte in enumerate(line):
        if at >= column:
            return index
        at = (at // _TAB + 1) * _TAB if byte == ord("\t") else at + 1
    return len(line)
