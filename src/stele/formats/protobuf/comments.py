"""The comments of a source text, by declaration."""

from __future__ import annotations

from functools import cached_property

from stele.formats.protobuf.model import ProtobufSchema

MAX_LOCATIONS = 400_000
"""A schema with more places than this counts as one without comments, to bound the time."""

Path = tuple[int, ...]
"""Field numbers and indexes that lead to a declaration in the FileDescriptorProto."""


class SourceComments:
    """Comments by path in the FileDescriptorProto; none for a schema without source."""

    def __init__(self, schema: ProtobufSchema) -> None:
        locations = schema.source.location
        self._locations = locations if len(locations) <= MAX_LOCATIONS else ()

    @cached_property
    def _comment_by_path(self) -> dict[Path, str]:
        return {
            tuple(location.path): _decode_comment(text)
            for location in self._locations
            if (text := location.leading_comments or location.trailing_comments)
        }

    def comment_at(self, path: Path) -> str:
        """Return the comment before the element, else the one behind it, without stars and outer white space."""
        lines = (line.strip() for line in self._comment_by_path.get(path, "").strip().splitlines())
        return "\n".join(line.removeprefix("*").strip() if line.startswith("*") else line for line in lines)


def _decode_comment(text: str | bytes) -> str:
    """Return a comment as text: the library gives bytes where they are no UTF-8, against its own type hints."""
    return text if isinstance(text, str) else text.decode("utf-8", "replace")
