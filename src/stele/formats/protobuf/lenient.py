"""Makes texts compile that Confluent's registry accepts and protoc refuses. The stored texts do not change.

That registry ignores missing imports, keeps undeclared options, finds types in all references and built-in files
whether they are imported or not, and accepts maps that are written as repeated entries. `link_sources` leaves out, adds
and rewrites just that. A type that is not declared anywhere becomes `bytes`, which has the encoding of a message. An
rpc or an `extend` block with such a type is left out. So is a field or an enum value whose name or number the compiler
refuses; of two with the same one, the second is left out.

That registry's parser checks little but the syntax of a text. `is_read_without_compiler` returns whether it accepts a
text. `drop_statement` leaves out, statement by statement, what the compiler then still refuses (`parse.parse`).

Source: docs/protocols/protobuf.md#what-confluent-takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Final, NamedTuple

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from stele.formats.protobuf.compiler import builtin_sources
from stele.formats.protobuf.confluent_text import build_tree, print_tree
from stele.formats.protobuf.model import Ranges
from stele.formats.protobuf.source_tree import (
    MAX_ENUM_NUMBER,
    MAX_NUMBER,
    NOWHERE,
    EnumNode,
    EnumValueNode,
    ExtendNode,
    FieldNode,
    FileNode,
    MessageNode,
    OptionNode,
    SourceError,
    Span,
    TypeUse,
    Value,
    list_tokens,
    parse_source,
)

_SCALARS: Final = frozenset(
    {
        *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64"),
        *("sfixed32", "sfixed64", "bool", "string", "bytes", "group"),
    }
)
_OPTION_NAMES: Final = {
    kind: frozenset(getattr(descriptor_pb2, f"{kind}Options").DESCRIPTOR.fields_by_name)
    for kind in ("File", "Message", "Field", "Oneof", "ExtensionRange", "Enum", "EnumValue", "Service", "Method")
}


_FIELD_NUMBERS: Final = Ranges([(1, 18_999), (20_000, MAX_NUMBER)])
"""Allowed field numbers. The gap is reserved for the library."""
_ALL_NUMBERS: Final = Ranges([(-MAX_ENUM_NUMBER - 1, MAX_ENUM_NUMBER)])


class LenientSources(NamedTuple):
    """Texts that compile, by import path.

    unresolved are the undeclared types, as written; rejected are the full names of fields and enum values that were
    left out for their name or number; is_partial is True if the main file's own text lost or gained something.
    """

    texts: dict[str, bytes]
    unresolved: tuple[str, ...]
    rejected: tuple[str, ...]
    is_partial: bool


class KeptOptions(Enum):
    """Which options stay."""

    DECLARED = "declared"
    BUILT_IN = "built-in"
    """Options of descriptor.proto only: values of custom options may be wrong."""
    NONE = "none"
    """Only options that change the meaning of names and numbers. Defaults and JSON names are dropped, too."""


_MEANINGFUL: Final = frozenset({"allow_alias"})


class _Declarations(NamedTuple):
    """Declarations of a file, by full names without a leading dot, and the files that it imports publicly."""

    types: frozenset[str]
    extensions: frozenset[str]
    public_imports: tuple[str, ...]


def link_sources(
    main: str,
    texts: Mapping[str, bytes],
    known: Sequence[FileDescriptorProto],
    kept_options: KeptOptions = KeptOptions.DECLARED,
) -> LenientSources | None:
    """Return texts that compile for the file called main and all its dependencies; None when that is impossible.

    Args:
        main: Import path of the file.
        texts: Source texts by import path.
        known: Files that came as descriptors; they become texts too.
        kept_options: Which options stay.
    """
    sources = dict(texts)
    for file in reversed(known):
        sources[file.name] = print_tree(build_tree(file)).encode("utf-8", "surrogateescape")
    trees: dict[str, FileNode] = {}
    decoded = {
        path: text.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape") for path, text in sources.items()
    }
    for path, text in decoded.items():
        try:
            trees[path] = parse_source(text)
        except SourceError:
            if path == main:
                return None
    linker = _Linker({**_builtin_declarations(), **{path: _declarations_in(tree) for path, tree in trees.items()}})
    unresolved: list[str] = []
    rejected: list[str] = []
    is_partial = False
    waiting, done = [main], set[str]()
    while waiting:
        path = waiting.pop()
        if path in done or path not in trees:
            continue
        done.add(path)
        edits = linker.edit_file(path, trees[path], decoded[path], kept_options)
        sources[path] = edits.apply().encode("utf-8", "surrogateescape")
        unresolved += edits.unresolved
        rejected += edits.rejected
        is_partial |= path == main and edits.is_lossy
        waiting += edits.imports
    return LenientSources(sources, tuple(dict.fromkeys(unresolved)), tuple(rejected), is_partial)


def resolve_names(tree: FileNode, files: Iterable[FileDescriptorProto]) -> None:
    """Replace type names of a tree by full names with a leading dot, where the files declare them."""
    linker = _Linker({file.name: _declarations_in(build_tree(file)) for file in files})
    for use, scope in _list_type_uses(tree):
        full_name = linker.find_type(use.name, scope)
        if full_name:
            use.name = f".{full_name}"


@cache
def _builtin_declarations() -> Mapping[str, _Declarations]:
    return {path: _declarations_in(parse_source(text.decode())) for path, text in builtin_sources().items()}


def _declarations_in(file: FileNode) -> _Declarations:
    types: set[str] = set()
    extensions: set[str] = set()
    for scope, item in _walk_scopes(file):
        if isinstance(item, ExtendNode):
            extensions.update(_join(scope, member.name) for member in item.fields)
        else:
            types.add(_join(scope, item.name))
    public = tuple(item.path for item in file.imports if item.kind == "public")
    return _Declarations(frozenset(types), frozenset(extensions), public)


def _join(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def _walk_scopes(file: FileNode) -> Iterator[tuple[str, MessageNode | EnumNode | ExtendNode]]:
    """Yield messages (including group bodies), enums and `extend` blocks, each with its enclosing scope."""
    waiting: list[tuple[str, MessageNode | EnumNode | ExtendNode]]
    waiting = [(file.package, item) for item in (*file.types, *file.extends)]
    while waiting:
        scope, item = waiting.pop()
        yield scope, item
        if isinstance(item, MessageNode):
            inner = _join(scope, item.name)
            waiting += [(inner, each) for each in (*item.types, *item.extends)]
            waiting += [(inner, member.body) for member in _members_of(item) if member.body is not None]
        elif isinstance(item, ExtendNode):
            waiting += [(scope, member.body) for member in item.fields if member.body is not None]


def _members_of(message: MessageNode) -> list[FieldNode]:
    return [*message.fields, *(member for oneof in message.oneofs for member in oneof.fields)]


def _list_type_uses(file: FileNode) -> Iterator[tuple[TypeUse, str]]:
    """Yield every type name, with the scope in which it is looked up."""
    for scope, item in _walk_scopes(file):
        if isinstance(item, MessageNode):
            yield from ((member.type, _join(scope, item.name)) for member in _members_of(item))
        elif isinstance(item, ExtendNode):
            yield item.extendee, scope
            yield from ((member.type, scope) for member in item.fields)
    for service in file.services:
        for method in service.methods:
            yield method.request, _join(file.package, service.name)
            yield method.response, _join(file.package, service.name)


def _list_rejected(file: FileNode) -> Iterator[tuple[str, Span]]:
    """Yield the full names and positions of fields and enum values whose name or number the compiler refuses."""
    value_names: dict[str, set[str]] = {}
    for scope, item in _walk_scopes(file):
        if isinstance(item, ExtendNode):
            continue
        reserved = [value for statement in item.reserved for value in statement.values]
        numbers = Ranges(value for value in reserved if not isinstance(value, str))
        names = {value for value in reserved if isinstance(value, str)}
        members: Sequence[FieldNode | EnumValueNode]
        if isinstance(item, MessageNode):
            # Members of oneofs first: printing changes the order, and a oneof must keep one.
            members = [*(member for oneof in item.oneofs for member in oneof.fields), *item.fields]
            home, shares_numbers, allowed = _join(scope, item.name), False, _FIELD_NUMBERS
        else:
            members, home, allowed = item.values, scope, _ALL_NUMBERS
            names |= value_names.setdefault(scope, set())  # values are names of the scope that their enum stands in
            shares_numbers = any(option.name == "allow_alias" for option in item.options)
        used = set[int]()
        for member in members:
            number = member.number
            repeats = number in used and not shares_numbers
            if member.name in names or repeats or number in numbers or number not in allowed:
                yield _join(home, member.name), member.span
            else:
                names.add(member.name)
                used.add(number)
        if isinstance(item, EnumNode):
            value_names[scope] |= names


class _Edits:
    """Changes of one text: replacements of spans, imports to add, and the files it needs afterwards."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.replaced: dict[Span, str] = {}
        self.is_lossy = False
        self.imports: list[str] = []
        self.added: list[str] = []
        self.unresolved: list[str] = []
        self.rejected: list[str] = []

    def drop_options(self, dropped: Sequence[OptionNode], kept_options: Sequence[OptionNode], brackets: Span) -> None:
        """Leave out some options. `kept_options` are the others in the same brackets."""
        self.is_lossy |= bool(dropped)
        if brackets == NOWHERE:
            self.replaced |= {option.span: "" for option in dropped}
        elif dropped:
            texts = [self._text[option.span.start : option.span.end] for option in kept_options]
            self.replaced[brackets] = f"[{', '.join(texts)}]" if texts else ""

    def drop_rejected(self, file: FileNode) -> None:
        """Leave out the fields and enum values whose name or number the compiler refuses."""
        for full_name, span in _list_rejected(file):
            self.replaced[span] = ""
            self.rejected.append(full_name)
            self.is_lossy = True

    def apply(self) -> str:
        """Return the changed text. Line numbers are kept; spans inside a changed span are ignored."""
        text = self._text
        parts: list[str] = []
        at = 0
        for span, new in sorted(self.replaced.items(), key=lambda pair: (pair[0].start, -pair[0].end)):
            if span.start >= at:
                lines = text.count("\n", span.start, span.end) - new.count("\n")
                parts += [text[at : span.start], new, "\n" * lines]
                at = span.end
        return "".join([*parts, text[at:], *(f'\nimport "{path}";' for path in self.added)])


class _Linker:
    """Resolves names in all files, and computes the necessary changes of a file."""

    def __init__(self, files: Mapping[str, _Declarations]) -> None:
        self._files = files
        self._home_of_type = {name: path for path, file in files.items() for name in file.types}
        self._home_of_extension = {name: path for path, file in files.items() for name in file.extensions}

    def find_type(self, name: str, scope: str) -> str:
        """Return the full name of a type as seen from a scope, '' for one that no file declares."""
        return _find_name(name, scope, self._home_of_type)

    def edit_file(self, path: str, file: FileNode, text: str, kept_options: KeptOptions) -> _Edits:
        """Return the changes that make a file compile."""
        edits = _Edits(text)
        visible = self._visible_files(path, file)
        for item in file.imports:
            if item.path in self._files:
                edits.imports.append(item.path)
            else:
                edits.replaced[item.span] = ""
                edits.is_lossy = True
        own = self._files[path]

        def add_import(home: str) -> None:
            if home != path and home not in visible:
                visible.add(home)
                edits.imports.append(home)
                edits.added.append(home)
                edits.is_lossy = True

        for scope, message in list(_walk_scopes(file)):
            if isinstance(message, MessageNode):
                self._rewrite_map_entries(_join(scope, message.name), message, edits)
        unknown = set[int]()
        for use, scope in _list_type_uses(file):
            if use.name in _SCALARS:
                continue
            full_name = self.find_type(use.name, scope)
            if not full_name:
                unknown.add(id(use))
                edits.unresolved.append(use.name)
                edits.is_lossy = True
            elif full_name not in own.types:
                add_import(self._home_of_type[full_name])
        self._replace_unresolved(file, unknown, edits)
        edits.drop_rejected(file)
        for kind, scope, brackets, options, special in _list_options(file):
            if kept_options is KeptOptions.NONE:
                unwanted = [option for option in (*options, *special) if option.name not in _MEANINGFUL]
                edits.drop_options(unwanted, (), brackets)
                continue
            dropped: list[OptionNode] = []
            for option in options:
                homes = self._homes_of_option(kind, scope, option, own, kept_options)
                if homes is None:
                    dropped.append(option)
                else:
                    for home in homes:
                        add_import(home)
            dropped_ids = {id(option) for option in dropped}
            kept = [option for option in (*options, *special) if id(option) not in dropped_ids]
            edits.drop_options(dropped, kept, brackets)
        return edits

    def _visible_files(self, path: str, file: FileNode) -> set[str]:
        visible: set[str] = {path}
        waiting = [item.path for item in file.imports]
        while waiting:
            other = waiting.pop()
            if other in self._files and other not in visible:
                visible.add(other)
                waiting += self._files[other].public_imports
        return visible

    def _homes_of_option(
        self, kind: str, scope: str, option: OptionNode, own: _Declarations, options_kept: KeptOptions
    ) -> list[str] | None:
        """Return the files that an option needs; None for one that is undeclared or not kept."""
        if not option.is_custom:
            return [] if option.name.split(".")[0] in _OPTION_NAMES[kind] else None
        if options_kept is not KeptOptions.DECLARED:
            return None
        homes = []
        for name in [option.name, *_extension_names(option.value)]:
            full_name = _find_name(name, scope, self._home_of_extension)
            if not full_name:
                return None
            if full_name not in own.extensions:
                homes.append(self._home_of_extension[full_name])
        return homes

    def _rewrite_map_entries(self, scope: str, message: MessageNode, edits: _Edits) -> None:
        """Rewrite `repeated FieldEntry field` with its entry message `FieldEntry` as a map."""
        entries = {item.name: item for item in message.types if isinstance(item, MessageNode) and item.is_map_entry}
        for item in message.fields:
            name = item.type.name.rpartition(".")[2]
            entry = entries.get(name)
            if entry is None or len(entry.fields) < 2 or item.label != "repeated":
                continue
            key, value = sorted(entry.fields, key=lambda part: part.number)[:2]
            edits.replaced[Span(item.span.start, item.type.span.end)] = f"map<{key.type.name}, {value.type.name}>"
            edits.replaced[entry.span] = ""
            home = f"{scope}.{name}"
            full_name = self.find_type(value.type.name, home)
            if full_name and not value.type.name.startswith("."):
                edits.replaced[Span(item.span.start, item.type.span.end)] = f"map<{key.type.name}, .{full_name}>"

    @staticmethod
    def _replace_unresolved(file: FileNode, unknown: set[int], edits: _Edits) -> None:
        for _, item in _walk_scopes(file):
            if isinstance(item, ExtendNode) and id(item.extendee) in unknown:
                edits.replaced[item.span] = ""
            fields = (
                _members_of(item)
                if isinstance(item, MessageNode)
                else item.fields
                if isinstance(item, ExtendNode)
                else []
            )
            for member in fields:
                if id(member.type) in unknown:
                    edits.replaced[member.type.span] = "bytes"
                    if member.brackets != NOWHERE:
                        edits.replaced[member.brackets] = ""
        for service in file.services:
            for method in service.methods:
                if id(method.request) in unknown or id(method.response) in unknown:
                    edits.replaced[method.span] = ""


def _find_name(name: str, scope: str, names: Mapping[str, object]) -> str:
    """Return the full name that a name refers to in a scope: the innermost match, or ''."""
    if name.startswith("."):
        return name[1:] if name[1:] in names else ""
    while True:
        full_name = _join(scope, name)
        if full_name in names:
            return full_name
        if not scope:
            return ""
        scope = scope.rpartition(".")[0]


def _extension_names(value: Value) -> Iterator[str]:
    """Yield the extensions that a value sets, at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name.startswith("[") and "/" not in name:
                yield name[1:-1]
            yield from _extension_names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _extension_names(inner)


_Options = tuple[str, str, Span, Sequence[OptionNode], Sequence[OptionNode]]
"""Options of one declaration: its kind, scope, brackets if any, the options, and other content of the brackets."""


def _list_options(file: FileNode) -> Iterator[_Options]:
    yield "File", file.package, NOWHERE, file.options, ()
    for scope, item in _walk_scopes(file):
        if isinstance(item, EnumNode):
            yield "Enum", scope, NOWHERE, item.options, ()
            yield from (("EnumValue", scope, value.brackets, value.options, ()) for value in item.values)
        elif isinstance(item, ExtendNode):
            yield from (("Field", scope, member.brackets, member.options, member.special) for member in item.fields)
        else:
            inner = _join(scope, item.name)
            yield "Message", inner, NOWHERE, item.options, ()
            yield from (
                ("Field", inner, member.brackets, member.options, member.special) for member in _members_of(item)
            )
            yield from (("Oneof", inner, NOWHERE, oneof.options, ()) for oneof in item.oneofs)
            yield from (("ExtensionRange", inner, span.brackets, span.options, ()) for span in item.extensions)
    for service in file.services:
        yield "Service", file.package, NOWHERE, service.options, ()
        yield from (("Method", file.package, NOWHERE, method.options, ()) for method in service.methods)


def is_read_without_compiler(text: str) -> bool:
    """Return whether the parser of Confluent's registry accepts a text. It accepts no editions."""
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
    """Return a text without the innermost statement at a position; None where there is none.

    Line and column count from 1. The line numbers of later statements are kept.
    """
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    span = _find_statement(text, start + column - 1)
    if span is None:
        return None
    return text[: span.start] + "\n" * text.count("\n", span.start, span.end) + text[span.end :]


def _find_statement(text: str, at: int) -> Span | None:
    """Return the innermost statement around an index, with its block if it has one."""
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
            values += 1  # value of an option: it contains no statements
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
    """Yield all fields at any depth, and whether each is in a oneof."""
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
