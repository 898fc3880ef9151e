"""Lists the types that a document uses and defines, without its references, and splits a document by its types.

Each named type becomes a document of its own that the others refer to. Types that refer to each other in a cycle stay
together, in the document of the type that is defined first. A type of the null namespace inside another namespace
cannot be referred to there, so it also stays. Documents keep their meaning and the order of their parts. Names and
defaults are unchanged, but an inherited namespace is written out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from stele.formats.avro.model import PRIMITIVES, namespace_of
from stele.formats.avro.parse import NAMED_KINDS, qualify_name
from stele.formats.capabilities import SplitDocument
from stele.formats.json_reader import decode_json


def list_imports(text: bytes) -> list[str]:
    """Return the full names of the types that the document uses without an earlier definition."""
    defined: set[str] = set()
    missing: dict[str, None] = {}
    for name, space in _walk_names(decode_json(text), ""):
        if space is None:
            defined.add(name)
            continue
        full = qualify_name(name, space)
        if full not in defined and name not in defined:
            missing[full] = None
    return list(missing)


def list_exports(text: bytes) -> list[str]:
    """Return the full names of the types that the document defines."""
    return [name for name, space in _walk_names(decode_json(text), "") if space is None]


def _walk_names(node: Any, space: str) -> Iterator[tuple[str, str | None]]:
    """Yield (full name, None) for each definition and (name as written, namespace in force) for each use."""
    if isinstance(node, str):
        if node not in PRIMITIVES:
            yield node, space
    elif isinstance(node, list):
        for branch in node:
            yield from _walk_names(branch, space)
    elif isinstance(node, dict):
        word = node.get("type")
        if isinstance(word, str) and word in NAMED_KINDS:
            name, own = node.get("name"), node.get("namespace")
            full = qualify_name(name if isinstance(name, str) else "", own if isinstance(own, str) else space)
            yield full, None
            fields = node.get("fields")
            for field in fields if isinstance(fields, list) else ():
                yield from _walk_names(field.get("type") if isinstance(field, dict) else None, namespace_of(full))
        elif word in {"array", "map"}:
            yield from _walk_names(node.get("items" if word == "array" else "values"), space)
        else:
            yield from _walk_names(word, space)


def split_types(text: bytes) -> SplitDocument:
    """Return the document with names in place of the types it defines inside, and the documents of these."""
    value = decode_json(text)
    splitter = _Splitter()
    root = splitter.split_root(value)
    if not splitter.documents:
        return SplitDocument(text.decode("utf-8"), {})
    documents = {name: _print_document(document) for name, document in splitter.documents.items()}
    return SplitDocument(_print_document(root), documents)


def _print_document(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


class _Definition:
    """A type whose definition is being read: its full name, all names its document defines, and those it uses."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.defined = {name}
        self.used: set[str] = set()


class _Splitter:
    def __init__(self) -> None:
        self.documents: dict[str, Any] = {}
        """Values of the documents that were taken out, by full name, dependencies first."""
        self._homes: dict[str, str] = {}
        """Full name of the type whose document defines a type, by the full name of that type."""
        self._open: list[_Definition] = []

    def split_root(self, node: Any) -> Any:
        """Return a whole document without the types inside it."""
        if isinstance(node, dict) and _is_definition(node):
            return self._split_definition(node, "")[0]
        return self._split(node, "")

    def _split(self, node: Any, space: str) -> Any:
        if isinstance(node, str):
            self._note_use(node, space)
            return node
        if isinstance(node, list):
            return [self._split(branch, space) for branch in node]
        if not isinstance(node, dict):
            return node
        if _is_definition(node):
            return self._take_out(node, space)
        word = node.get("type")
        key = {"array": "items", "map": "values"}.get(word if isinstance(word, str) else "", "type")
        return {**node, key: self._split(node[key], space)} if key in node else node

    def _note_use(self, name: str, space: str) -> None:
        if name not in PRIMITIVES and self._open:
            full = qualify_name(name, space)
            self._open[-1].used.add(full if full in self._homes else name)

    def _take_out(self, node: dict[str, Any], space: str) -> Any:
        """Return the name of a type that got a document of its own, or the definition of a type that must stay."""
        new, done = self._split_definition(node, space)
        around = {each.name for each in self._open}
        is_bound = any(self._homes.get(name) in around for name in done.used)
        is_nameless = bool(space) and not namespace_of(done.name)
        if (is_bound or is_nameless or done.name in self.documents) and self._open:
            parent = self._open[-1]
            parent.used |= done.used
            parent.defined |= done.defined
            self._homes |= dict.fromkeys(done.defined, parent.name)
            return new
        self.documents[done.name] = _with_namespace(new, namespace_of(done.name))
        return done.name

    def _split_definition(self, node: dict[str, Any], space: str) -> tuple[dict[str, Any], _Definition]:
        own = node.get("namespace")
        full = qualify_name(node["name"], own if isinstance(own, str) else space)
        self._homes[full] = full
        self._open.append(_Definition(full))
        fields = node.get("fields")
        if isinstance(fields, list):
            inner = namespace_of(full)
            node = {**node, "fields": [self._split_field(field, inner) for field in fields]}
        return node, self._open.pop()

    def _split_field(self, field: Any, space: str) -> Any:
        if isinstance(field, dict) and "type" in field:
            return {**field, "type": self._split(field["type"], space)}
        return field


def _is_definition(node: dict[str, Any]) -> bool:
    word, name = node.get("type"), node.get("name")
    return isinstance(word, str) and word in NAMED_KINDS and isinstance(name, str) and bool(name)


def _with_namespace(node: dict[str, Any], space: str) -> dict[str, Any]:
    """Return a definition that has its inherited namespace as an attribute, right after its name."""
    if not space or "." in node["name"] or isinstance(node.get("namespace"), str):
        return node
    members = {key: value for key, value in node.items() if key != "namespace"}
    return {
        key: value
        for name, member in members.items()
        for key, value in ([(name, member), ("namespace", space)] if name == "name" else [(name, member)])
    }
