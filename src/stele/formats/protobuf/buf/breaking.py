"""The rulesets `buf:FILE`, `buf:PACKAGE`, `buf:WIRE_JSON`, `buf:WIRE` and `buf:CSR`: what `buf breaking` reports.

The rules are those of buf 1.75, by its rule ids. buf compares an input with an older version. Here the reader's schema
is the input and the writer's schema the older version. A check of the other direction swaps the two. So an added field,
harmless to a new reader of old data, is a deleted field for an old reader of new data.

The compared unit is a module: the schema's file with all its references, imported or not, and their imports. Built-in
files (`google/protobuf/*`, `google/type/*`, `confluent/*`) are left out, as with `--exclude-imports`. Files are matched
by import path. The two schemas themselves count as the same file, unless both were parsed with a name and the names
differ, which is a renamed file. Where buf reports a change several times in one place (each missing range of
reserved numbers, each name of a renamed enum value), there is one finding.

Source: docs/protocols/protobuf.md#rules-of-buf.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from stele.core.findings import Finding
from stele.errors import MalformedSchema, UnknownRuleset
from stele.formats.protobuf.buf import declarations, fields
from stele.formats.protobuf.buf.module import Module
from stele.formats.protobuf.buf.rules import CATEGORIES, CATEGORIES_OF, Rules
from stele.formats.protobuf.compiler import builtin_sources
from stele.formats.protobuf.parse import DEFAULT_NAME, parse

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    from stele.formats.protobuf.model import ProtobufSchema

T = TypeVar("T")

_MAIN = ""
"""Path of the schema's own file when both schemas count as the same file. No import can have this path."""


def check_modules(ruleset: str, reader: Sequence[ProtobufSchema], writer: Sequence[ProtobufSchema]) -> list[Finding]:
    """Return how the reader's module breaks data and users of the writer's module, by a ruleset of this package.

    A module need not be imported by one file: it is given as all its files. They must have been parsed with their paths
    as names, and are matched by path. Raises `UnknownRuleset`.
    """
    prefix, _, category = ruleset.rpartition(":")
    if prefix != "buf" or category not in CATEGORIES:
        known = ", ".join(f"buf:{name}" for name in CATEGORIES)
        raise UnknownRuleset(f"{ruleset!r} does not compare modules, only {known} do")
    return _compare_modules(category, _build_module(reader, None), _build_module(writer, None))


def check_category(category: str, reader: ProtobufSchema, writer: ProtobufSchema) -> list[Finding]:
    """Return how the reader's schema, with its imports, breaks the writer's, by the rules of a category."""
    names = reader.proto.name, writer.proto.name
    renamed = DEFAULT_NAME not in names and names[0] != names[1]
    main = None if renamed else _MAIN
    return _compare_modules(category, _build_module([reader], main), _build_module([writer], main))


def _build_module(schemas: Sequence[ProtobufSchema], main: str | None) -> Module:
    """Return the files of the schemas. `main` replaces the path of the own file of the (only) schema."""
    builtin = builtin_sources()
    compared: dict[str, FileDescriptorProto] = {}
    others: dict[str, FileDescriptorProto] = {}
    for schema in schemas:
        for file in schema.files[:-1]:
            (others if file.name in builtin else compared).setdefault(file.name, file)
    if len(schemas) == 1:
        for file in _list_unused_references(schemas[0]):
            (others if file.name in builtin else compared).setdefault(file.name, file)
    for schema in schemas:
        compared[schema.proto.name if main is None else main] = schema.proto
    return Module(compared, others.values())


def _list_unused_references(schema: ProtobufSchema) -> Iterator[FileDescriptorProto]:
    """Yield the references that the schema does not import, with their own imports.

    References that do not compile are left out.
    """
    used = {file.name for file in schema.files}
    for path in schema.references:
        if path not in used:
            with suppress(MalformedSchema):
                yield from parse(schema.references[path], schema.references, name=path).files


def _compare_modules(category: str, new: Module, old: Module) -> list[Finding]:
    def run_rules(rules: Rules[T], pairs: Iterable[tuple[T, T]]) -> Iterator[Finding]:
        wanted = [(rule, find) for rule, find in rules.items() if category in CATEGORIES_OF[rule]]
        for pair in pairs:
            for rule, find in wanted:
                for note in find(*pair):
                    yield Finding(rule, *note)

    shared = list(_pair_by_key(new.messages, old.messages))
    inner = chain.from_iterable(_pair_by_key(now.fields, was.fields) for now, was in shared)
    outer = _pair_by_key(new.extensions, old.extensions)
    changed = ((now, was) for now, was in chain(inner, outer) if not now.is_same_as(was))
    return [
        *run_rules(declarations.MODULE_RULES, [(new, old)]),
        *run_rules(declarations.FILE_RULES, _pair_by_key(new.files, old.files)),
        *run_rules(declarations.MESSAGE_RULES, shared),
        *run_rules(fields.RULES, changed),
        *run_rules(declarations.ENUM_RULES, _pair_by_key(new.enums, old.enums)),
        *run_rules(declarations.SERVICE_RULES, _pair_by_key(new.services, old.services)),
    ]


_K = TypeVar("_K")


def _pair_by_key(new: Mapping[_K, T], old: Mapping[_K, T]) -> Iterator[tuple[T, T]]:
    """Yield pairs of values with the same key on both sides, in the writer's order."""
    for key, was in old.items():
        now = new.get(key)
        if now is not None:
            yield now, was
