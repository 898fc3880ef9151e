"""The declarations of a schema: its outline, its fields, and their positions in the text.

An outline is the list of named types with their fields and symbols, for comparing versions. Fields are for search and
pages, positions for findings.

Named types are listed side by side under their full names, wherever they are defined. A schema whose top type has no
name begins with a node `/`. Types of references are not listed, because they belong to their own schemas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from stele.core.findings import SourcePosition
from stele.core.ports import Field
from stele.formats.avro.canonical import to_java_json
from stele.formats.avro.model import (
    NO_DEFAULT,
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroNamedType,
    AvroPrimitive,
    AvroRecord,
    AvroSchema,
    AvroType,
    AvroUnion,
    Props,
    describe_type,
    namespace_of,
)
from stele.formats.avro.parse import NAMED_KINDS, qualify_name
from stele.formats.capabilities import OutlineLocation, OutlineNode
from stele.formats.json_reader import decode_json, locate_values
from stele.formats.outline_builder import OutlineBuilder

ROOT: Final = "/"
"""Path of a top type without a name. Findings use the same path for the top type."""

_DECIMAL: Final = frozenset({"logicalType", "precision", "scale"})


def build_outline(schema: AvroSchema) -> list[OutlineNode]:
    """Return types in the order in which they are first met, each followed by its fields or symbols."""
    return _Outliner(schema).build_outline()


def make_locator(schema: AvroSchema) -> Callable[[str], OutlineLocation | None]:
    """Return a function that follows the paths of compatibility findings to declarations.

    These paths lead through names of types, and count fields by position.
    """
    return lambda path: _locate_path(schema, path)


class _Outliner:
    def __init__(self, schema: AvroSchema) -> None:
        self.schema = schema
        self.outline = OutlineBuilder()
        self.types = _named_types(schema)
        times = Counter(_simple_name(node.name) for node in self.types)
        self.unique = {word for word in times if times[word] == 1}

    def build_outline(self) -> list[OutlineNode]:
        root = self.schema.root
        if not isinstance(root, AvroNamedType):
            attributes = {"type": format_type(root), **_format_type_props(root)}
            self.outline.add_node(ROOT, "schema", attributes, aliases=[ROOT], uses=_type_names(root))
        for node in self.outline.until_full(self.types):
            self._add_named_type(node)
        return self.outline.nodes

    def _add_named_type(self, node: AvroNamedType) -> None:
        """Add a named type.

        Its identity is its simple name, as for readers. The top type of one version corresponds to that of the other.
        """
        kind = "error" if isinstance(node, AvroRecord) and node.error else node.kind
        attributes = {"doc": node.doc or "", "aliases": ", ".join(sorted(node.aliases))}
        if isinstance(node, AvroFixed):
            attributes = {"size": str(node.size), "logicalType": str(node.logical or ""), **attributes}
        elif isinstance(node, AvroEnum):
            attributes = {"default": node.default or "", **attributes}
        attributes |= _format_props(node.props, hide=isinstance(node, AvroFixed) and node.logical is not None)
        path = self.outline.add_node(
            node.name,
            kind,
            attributes,
            name=node.name,
            identity=f"type {_simple_name(node.name)}" if _simple_name(node.name) in self.unique else "",
            aliases=[*node.aliases, *([ROOT] if node is self.schema.root else [])],
        )
        if isinstance(node, AvroRecord):
            for field in self.outline.until_full(node.fields):
                self._add_field(path, field)
        elif isinstance(node, AvroEnum):
            for symbol in self.outline.until_full(node.symbols):
                self.outline.add_node(f"{path}.{symbol}", "symbol", {}, parent=path, name=symbol, ordered=True)

    def _add_field(self, record: str, field: AvroField) -> None:
        attributes = {
            "type": format_type(field.type),
            "default": "" if field.default is NO_DEFAULT else to_java_json(field.default),
            "order": "" if field.order == "ascending" else field.order,
            "aliases": ", ".join(sorted(field.aliases)),
            "doc": field.doc or "",
            **_format_props(field.props),
            **_format_type_props(field.type),
        }
        self.outline.add_node(
            f"{record}.{field.name}",
            "field",
            attributes,
            parent=record,
            name=field.name,
            aliases=field.aliases,
            ordered=True,
            uses=_type_names(field.type),
        )


def _named_types(schema: AvroSchema) -> list[AvroNamedType]:
    """Return every named type the schema itself defines, in the order of the text."""
    named_types: dict[str, AvroNamedType] = {}
    waiting: list[AvroType] = [schema.root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, AvroNamedType):
            if node.name in named_types or node.name in schema.referenced:
                continue
            named_types[node.name] = node
        waiting.extend(reversed(_inner_types(node)))
    return list(named_types.values())


def _inner_types(node: AvroType) -> list[AvroType]:
    match node:
        case AvroRecord():
            return [field.type for field in node.fields]
        case AvroUnion():
            return list(node.branches)
        case AvroArray():
            return [node.items]
        case AvroMap():
            return [node.values]
        case _:
            return []


def _simple_name(full_name: str) -> str:
    return full_name.rpartition(".")[2]


# --- texts ----------------------------------------------------------------------------------------------------------


def format_type(node: AvroType) -> str:
    """Return a type in full, named types by name: `array<null | a.Item>`, `bytes decimal(9,2)`.

    Parsing bounds the nesting.
    """
    match node:
        case AvroRecord() | AvroEnum() | AvroFixed():
            return node.name
        case AvroArray():
            return f"array<{format_type(node.items)}>"
        case AvroMap():
            return f"map<{format_type(node.values)}>"
        case AvroUnion():
            return " | ".join(map(format_type, node.branches)) or "empty union"
        case AvroPrimitive():
            return f"{node.kind} {node.logical}" if node.logical else node.kind


def _walk_type(node: AvroType, place: str) -> Iterator[tuple[str, AvroType]]:
    """Yield a type and all its parts up to named types, each with the words of the path to it."""
    yield place, node
    match node:
        case AvroArray():
            yield from _walk_type(node.items, f"{place}items ")
        case AvroMap():
            yield from _walk_type(node.values, f"{place}values ")
        case AvroUnion():
            for branch in node.branches:
                yield from _walk_type(branch, f"{place}{branch.kind} ")
        case _:
            pass


def _type_names(node: AvroType) -> list[str]:
    """Return the full names of the named types in a type."""
    return [part.name for _, part in _walk_type(node, "") if isinstance(part, AvroNamedType)]


def _format_type_props(node: AvroType) -> dict[str, str]:
    """Return the attributes of unnamed types that the specification does not define, each with its path as a prefix."""
    attributes: dict[str, str] = {}
    for place, part in _walk_type(node, "type "):
        if isinstance(part, AvroPrimitive | AvroArray | AvroMap):
            attributes |= {
                f"{place}{word}": text
                for word, text in _format_props(part.props, hide=part.logical is not None).items()
            }
    return attributes


def _format_props(props: Props, *, hide: bool = False) -> Mapping[str, str]:
    """Return further attributes as JSON. hide leaves out those that the text of a valid logical type already shows."""
    return {word: to_java_json(value) for word, value in props.items() if not (hide and word in _DECIMAL)}


# --- paths ----------------------------------------------------------------------------------------------------------


def _locate_path(schema: AvroSchema, path: str) -> OutlineLocation | None:
    node: AvroType | None = schema.root
    place = OutlineLocation(node.name if isinstance(node, AvroNamedType) else ROOT)
    steps = iter(path.strip("/").split("/"))
    for step in steps:
        branch = next((each for each in _branches_of(node) if _can_enter(each, step)), None)
        if step == "fields" and isinstance(branch, AvroRecord):
            index = next(steps, "")
            if not index.isdecimal() or int(index) >= len(branch.fields) or branch.name in schema.referenced:
                return place
            field = branch.fields[int(index)]
            place, node = OutlineLocation(f"{branch.name}.{field.name}"), field.type
        elif step == "type":
            place = OutlineLocation(place.path, "type")
        elif isinstance(branch, AvroArray | AvroMap):
            node = branch.items if isinstance(branch, AvroArray) else branch.values
        elif isinstance(branch, AvroNamedType) and branch.name not in schema.referenced:
            return OutlineLocation(branch.name, step)
        elif not step.isdecimal():  # a number counts the writer's branches: the reader stays where it is
            return place
    return place


def _branches_of(node: AvroType | None) -> tuple[AvroType, ...]:
    return node.branches if isinstance(node, AvroUnion) else () if node is None else (node,)


def _can_enter(node: AvroType, step: str) -> bool:
    """Return whether a step of a path can lead into a type."""
    match step:
        case "fields":
            return isinstance(node, AvroRecord)
        case "items":
            return isinstance(node, AvroArray)
        case "values":
            return isinstance(node, AvroMap)
        case "symbols":
            return isinstance(node, AvroEnum)
        case "size":
            return isinstance(node, AvroFixed)
        case "name":
            return isinstance(node, AvroNamedType)
    return False


# --- fields for search and pages --------------------------------------------------------------------------------------
# All fields of a schema by dotted path, for search, pages and lint.

MAX_FIELDS: Final = 10_000
"""Maximum length of the list. A type that is used twice at each of n levels has 2**n fields."""

MAX_DEPTH: Final = 100
"""Maximum nesting of records that are listed."""


def list_fields(schema: AvroSchema) -> list[Field]:
    """Return fields depth first. In a path, `[]` enters an array, `{}` a map.

    A record inside itself is listed, but its fields are not listed again.
    """
    lister = _FieldLister()
    lister.list_type(schema.root, "")
    return lister.found


class _FieldLister:
    def __init__(self) -> None:
        self.found: list[Field] = []
        self.open: list[AvroRecord] = []

    def list_type(self, node: AvroType, path: str) -> None:
        """Add the fields below a type that is at path."""
        while isinstance(node, (AvroArray, AvroMap)):
            path += "[]" if isinstance(node, AvroArray) else "{}"
            node = node.items if isinstance(node, AvroArray) else node.values
        if isinstance(node, AvroUnion):
            for branch in node.branches:
                self.list_type(branch, path)
        elif isinstance(node, AvroRecord) and len(self.open) < MAX_DEPTH and node not in self.open:
            self.open.append(node)
            self._list_record(node, f"{path}." if path else "")
            self.open.pop()

    def _list_record(self, record: AvroRecord, prefix: str) -> None:
        for field in record.fields:
            if len(self.found) >= MAX_FIELDS:
                return
            default = None if field.default is NO_DEFAULT else to_java_json(field.default)
            optional = isinstance(field.type, AvroUnion) and any(
                isinstance(branch, AvroPrimitive) and branch.kind == "null" for branch in field.type.branches
            )
            word = describe_type(field.type)
            self.found.append(Field(prefix + field.name, word, default, field.doc or "", optional))
            self.list_type(field.type, prefix + field.name)


_INNER = ("type", "items", "values")
"""Members of an object that hold a type."""


def locate_declarations(text: bytes) -> dict[str, SourcePosition]:
    """Return positions by JSON Pointer (`/fields/0`, for findings) and by name (`shop.Order.note`, for outlines)."""
    by_pointer = locate_values(text)
    top = by_pointer.pop("")
    by_name = {name: by_pointer.get(pointer, top) for name, pointer in _walk_names(decode_json(text), "", "")}
    return {"/": top, **by_name, **by_pointer}


def _walk_names(node: Any, pointer: str, space: str) -> Iterator[tuple[str, str]]:
    """Yield (name, JSON Pointer) of each declaration in a valid type. space is the enclosing namespace."""
    if isinstance(node, list):
        for index, branch in enumerate(node):
            yield from _walk_names(branch, f"{pointer}/{index}", space)
        return
    if not isinstance(node, dict):
        return
    if node.get("type") in NAMED_KINDS:
        own = node.get("namespace")
        name = qualify_name(node["name"], own if isinstance(own, str) else space)
        space = namespace_of(name)
        yield name, pointer
        for index, symbol in enumerate(node.get("symbols", ())):
            yield f"{name}.{symbol}", f"{pointer}/symbols/{index}"
        for index, field in enumerate(node.get("fields", ())):
            yield f"{name}.{field['name']}", f"{pointer}/fields/{index}"
            yield from _walk_names(field["type"], f"{pointer}/fields/{index}/type", space)
        return
    for key in _INNER:
        yield from _walk_names(node.get(key), f"{pointer}/{key}", space)
