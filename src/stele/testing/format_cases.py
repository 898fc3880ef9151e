"""Case lines with known facts about the schemas of a format, and the functions that read them.

A case line is a JSON object. Every line has `format` and `id` (a stable name). The other members depend on the
statement of the line. A line may make several statements about its `schema`.

| members | statement |
|---|---|
| `old`, `new`, `compatible`, `ruleset`, `direction` | the ruleset allows (or refuses) the change from old to new |
| `schema`, `valid` | the text is (or is not) a schema of the format |
| `schema`, `canonical` | the exact CANONICAL form |
| `schema`, `fingerprints` | digests of that form by kind, in hex |
| `schema`, `equal` | texts that differ from the schema in style only: same NORMALIZED form, same fingerprints |
| `schema`, `accepts`, `refuses` | payloads in hex that are (or are not) data of the schema |

`direction` names the reader: with `backward` new reads what old wrote, with `forward` old reads new, with `full` both.
`history` and `transitive` compare with several old versions, oldest first. `references` are the texts the schemas refer
to, by name. `contested` marks a label that another source contradicts: the line is read, but never used for a test.
`compiles` false: a text of the pair is known not to be a schema. `draft` (JSON Schema) is the draft of the line,
`crc64_signed` (Avro) the Rabin fingerprint as a signed number. `suite` and `note` are comments; further members are
kept in `more`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec

from stele.errors import InvalidRequest

__all__ = ["DRAFTS", "FormatCase", "SchemaPair", "compared_pairs", "read_cases"]

DRAFTS: Final = {
    "draft-04": "http://json-schema.org/draft-04/schema#",
    "draft-06": "http://json-schema.org/draft-06/schema#",
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "draft-2019": "https://json-schema.org/draft/2019-09/schema",
    "draft-2020": "https://json-schema.org/draft/2020-12/schema",
}
"""The `$schema` of each draft a line may name."""


class FormatCase(msgspec.Struct, frozen=True, kw_only=True):
    """One case line; the module describes its members. None and '' stand for members the line does not have."""

    id: str
    format: str
    suite: str = ""
    note: str = ""
    ruleset: str = ""
    direction: Literal["backward", "forward", "full"] = "backward"
    compatible: bool | None = None
    old: str | None = None
    new: str | None = None
    history: tuple[str, ...] = ()
    transitive: bool = False
    references: dict[str, str] = {}
    schema: str | None = None
    valid: bool | None = None
    draft: str = ""
    canonical: str | None = None
    crc64_signed: int | None = None
    fingerprints: dict[str, str] = {}
    equal: tuple[str, ...] = ()
    accepts: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    contested: bool | str = False
    compiles: bool = True
    more: dict[str, Any] = {}

    @property
    def schema_text(self) -> bytes:
        """The document of a line with `schema`. An object without `$schema` gets that of the line's draft."""
        schema = self.schema or ""
        if self.draft:
            document = json.loads(schema)
            if isinstance(document, dict) and "$schema" not in document:
                schema = json.dumps({"$schema": DRAFTS[self.draft], **document})
        return schema.encode()

    @property
    def reference_texts(self) -> dict[str, bytes]:
        """The references in the form that `Format.parse` takes."""
        return {name: text.encode() for name, text in self.references.items()}


class SchemaPair(NamedTuple):
    """Two documents to compare."""

    reader: bytes
    writer: bytes


_MEMBERS = frozenset(field.encode_name for field in msgspec.structs.fields(FormatCase)) - {"more"}


def read_cases(places: Iterable[Path]) -> Iterator[FormatCase]:
    """Yield the cases of files and of the `*.jsonl` files in folders, in order of their names.

    Raises `InvalidRequest` with file and line for a line that is no case, `OSError` for a file that does not exist.
    """
    for place in places:
        for file in sorted(place.glob("*.jsonl")) if place.is_dir() else [place]:
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                if line.strip():
                    yield _read_case(line, f"{file.name}, line {number}")


def compared_pairs(case: FormatCase) -> Iterator[SchemaPair]:
    """Yield the pairs that a line with `compatible` compares. The change is allowed when all pairs are compatible."""
    if case.new is None or case.old is None:
        return
    for old in case.history if case.transitive else (case.old,):
        if case.direction != "forward":
            yield SchemaPair(case.new.encode(), old.encode())
        if case.direction != "backward":
            yield SchemaPair(old.encode(), case.new.encode())


def _read_case(line: str, place: str) -> FormatCase:
    try:
        members: Mapping[str, Any] = json.loads(line)
        known = {name: value for name, value in members.items() if name in _MEMBERS}
        more = {name: value for name, value in members.items() if name not in _MEMBERS}
        case = msgspec.convert({**known, "more": more}, FormatCase)
    except (ValueError, AttributeError, msgspec.ValidationError) as error:
        raise InvalidRequest(f"{place}: no case: {error}") from None
    if case.compatible is not None and (case.old is None or case.new is None):
        raise InvalidRequest(f"{place}: a line with `compatible` needs `old` and `new`")
    if case.compatible is None and case.schema is None:
        raise InvalidRequest(f"{place}: a line needs `schema`, or `old`, `new` and `compatible`")
    return case
