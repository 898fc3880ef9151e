"""Syntax highlighting of schema texts on the server, as HTML without scripts."""

from __future__ import annotations

import re
from typing import Final

from markupsafe import Markup, escape

LONGEST: Final = 200_000
"""Maximum length of a highlighted text, in characters; a longer one is shown without colours."""

_JSON: Final = re.compile(
    r'(?P<k>"(?:[^"\\\n]|\\.)*"(?=\s*:))|(?P<s>"(?:[^"\\\n]|\\.)*")|(?P<w>\b(?:true|false|null)\b)|(?P<n>-?\b\d[\d.eE+-]*)'
)
_CODE: Final = re.compile(
    r"(?P<c>//[^\n]*|/\*.*?\*/|#[^\n]*)"
    r"|(?P<s>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<w>\b(?:syntax|edition|package|import|public|option|message|enum|service|rpc|returns|oneof|map|reserved|extensions"
    r"|extend|optional|required|repeated|stream|group|to|max|struct|union|exception|namespace|include|typedef|const|list"
    r"|set|void|throws|oneway|extends|true|false)\b)"
    r"|(?P<k>\b(?:double|float|int32|int64|uint32|uint64|sint32|sint64|fixed32|fixed64|sfixed32|sfixed64|bool|string|bytes"
    r"|byte|i8|i16|i32|i64|binary|uuid)\b)"
    r"|(?P<n>\b\d[\w.]*)",
    re.DOTALL,
)
_XML: Final = re.compile(
    r"(?P<c><!--.*?-->)|(?P<k></?[\w:.-]+|/?>)|(?P<w>\b[\w:.-]+(?==[\"']))|(?P<s>\"[^\"<]*\"|'[^'<]*')", re.DOTALL
)
_PATTERNS: Final = {"avro": _JSON, "json": _JSON, "protobuf": _CODE, "thrift": _CODE, "xsd": _XML}


def highlight_text(text: str, format_name: str) -> Markup:
    """Return a schema text as HTML with `span` elements. A text of an unknown format is only escaped.

    Args:
        text: The text.
        format_name: Name of its format.
    """
    pattern = _PATTERNS.get(format_name)
    if pattern is None or len(text) > LONGEST:
        return escape(text)
    parts: list[str] = []
    end = 0
    for match in pattern.finditer(text):
        parts.append(str(escape(text[end : match.start()])))
        parts.append(f'<span class="{match.lastgroup}">{escape(match[0])}</span>')
        end = match.end()
    parts.append(str(escape(text[end:])))
    return Markup("".join(parts))  # noqa: S704 - every part was escaped


def highlight_diff(text: str) -> Markup:
    """Return a unified diff as HTML in which added and removed lines are marked."""
    kinds = {"+": "add", "-": "del", "@": "at"}
    lines = (
        f'<span class="{kinds[line[0]]}">{escape(line)}\n</span>' if line[:1] in kinds else f"{escape(line)}\n"
        for line in text.split("\n")
    )
    return Markup("".join(lines))  # noqa: S704 - every line was escaped
