"""Leaves statements out of a `.proto` text, for texts that Confluent's registry stores and protoc refuses.

That registry's parser looks at little but the shape of a text. `is_read_without_compiler` says whether it reads one;
`drop_statement` takes away what the compiler does not bear.

Source: docs/protocols/protobuf.md#what-confluent-takes.
"""

from __future__ import annotations

from collections.abc import Iterator

from stele.formats.protobuf.source_tree import (
    ExtendNode,
    FieldNode,
    FileNode,
    MessageNode,
    Span,
    list_tokens,
    parse_source,
)


def is_read_without_compiler(text: str) -> bool:
    """Return whether the parser of Confluent's registry reads a text. It reads no editions."""
    tokens, file = list_tokens(text), parse_source(text)
    if file.edition or file.syntax not in {"", "proto2", "proto3"} or (file.syntax and tokens[0].text != "syntax"):
        return False
    if not all(token.text.isascii() for token in tokens if token.kind == "word"):
        return False
    for names in ([item.name for item in file.types], [item.name for item in file.services]):
        if len(set(names)) < len(names):
            return False
    return all(_has_fitting_label(member, file.syntax, in_oneof) for member, in_oneof in _list_members(file))


def drop_statement(text: str, line: int, column: int) -> str | None:
    """Return a text without the innermost statement at a place, both from 1; None where there is none.

    Later lines stay where they are.
    """
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    span = _find_statement(text, start + column - 1)
    if span is None:
        return None
    return text[: span.start] + "\n" * text.count("\n", span.start, span.end) + text[span.end :]


def _find_statement(text: str, at: int) -> Span | None:
    """Return the innermost statement, with its block if it has one, that stands around an index."""
    outer: list[int] = []
    start: int | None = None
    values = brackets = 0
    before = ""
    for token in list_tokens(text):
        mark = token.text if token.kind == "mark" else ""
        if start is None and mark not in {"}", ";"}:
            start = token.start
        brackets += (mark == "[") - (mark == "]")
        if mark == "{" and (values or brackets or before in {"=", ":"}):
            values += 1  # of an option: no statements are in there
        elif mark == "}" and values:
            values -= 1
        elif mark == "{":
            outer.append(token.start if start is None else start)
            start = None
        elif mark in {";", "}"} and not values:
            if mark == "}":
                start = outer.pop() if outer else None
            if start is not None and start <= at < token.end:
                return Span(start, token.end)
            start = None
        before = token.text
    return None


def _list_members(file: FileNode) -> Iterator[tuple[FieldNode, bool]]:
    """Yield all fields at any depth, and whether they stand in a oneof."""
    waiting: list[MessageNode | ExtendNode] = [item for item in file.types if isinstance(item, MessageNode)]
    waiting += file.extends
    while waiting:
        item = waiting.pop()
        members = [(member, False) for member in item.fields]
        if isinstance(item, MessageNode):
            members += [(member, True) for oneof in item.oneofs for member in oneof.fields]
            waiting += [inner for inner in item.types if isinstance(inner, MessageNode)]
            waiting += item.extends
        waiting += [member.body for member, _ in members if member.body is not None]
        yield from members


def _has_fitting_label(member: FieldNode, syntax: str, in_oneof: bool) -> bool:
    if in_oneof or member.key:
        return not member.label
    return member.label != "required" if syntax == "proto3" else bool(member.label)
