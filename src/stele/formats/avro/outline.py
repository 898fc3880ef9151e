"""What a schema declares: its named types with their fields and symbols, for comparing versions.

Named types stand side by side under their full names, wherever they were written; a schema without a named top type
begins with a node `/`. Types of references are not listed: they belong to their own schema.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from stele.formats.avro.javajson import dumps
from stele.formats.avro.model import (
    NO_DEFAULT,
    Array,
    AvroSchema,
    EnumType,
    Fixed,
    Map,
    Named,
    Primitive,
    Props,
    Record,
    RecordField,
    Type,
    Union,
)
from stele.formats.capabilities import OutlineLocation, OutlineNode
from stele.formats.outline_builder import OutlineBuilder

ROOT: Final = "/"
"""Path of a top type without a name; findings call the top type so, too."""

_DECIMAL: Final = frozenset({"logicalType", "precision", "scale"})


def outline(schema: AvroSchema) -> list[OutlineNode]:
    """Types in the order in which they are first met, each followed by its fields or symbols."""
    return _Outliner(schema).run()


def locator(schema: AvroSchema) -> Callable[[str], OutlineLocation | None]:
    """Follows the paths of compatibility findings: through names of types, fields counted by position."""
    return lambda path: _locate(schema, path)


class _Outliner:
    def __init__(self, schema: AvroSchema) -> None:
        self.schema = schema
        self.outline = OutlineBuilder()
        self.types = _named_types(schema)
        times = Counter(_simple(node.name) for node in self.types)
        self.unique = {word for word in times if times[word] == 1}

    def run(self) -> list[OutlineNode]:
        root = self.schema.root
        if not isinstance(root, Named):
            attributes = {"type": type_text(root), **_type_props(root)}
            self.outline.add_node(ROOT, "schema", attributes, aliases=[ROOT], uses=_names(root))
        for node in self.outline.until_full(self.types):
            self._named(node)
        return self.outline.nodes

    def _named(self, node: Named) -> None:
        """Types are the same by their simple names, as readers match them; the top type is always the top type."""
        kind = "error" if isinstance(node, Record) and node.error else node.kind
        attributes = {"doc": node.doc or "", "aliases": ", ".join(sorted(node.aliases))}
        if isinstance(node, Fixed):
            attributes = {"size": str(node.size), "logicalType": str(node.logical or ""), **attributes}
        elif isinstance(node, EnumType):
            attributes = {"default": node.default or "", **attributes}
        attributes |= _props(node.props, hide=isinstance(node, Fixed) and node.logical is not None)
        path = self.outline.add_node(
            node.name,
            kind,
            attributes,
            name=node.name,
            identity=f"type {_simple(node.name)}" if _simple(node.name) in self.unique else "",
            aliases=[*node.aliases, *([ROOT] if node is self.schema.root else [])],
        )
        if isinstance(node, Record):
            for field in self.outline.until_full(node.fields):
                self._field(path, field)
        elif isinstance(node, EnumType):
            for symbol in self.outline.until_full(node.symbols):
                self.outline.add_node(f"{path}.{symbol}", "symbol", {}, parent=path, name=symbol, ordered=True)

    def _field(self, record: str, field: RecordField) -> None:
        attributes = {
            "type": type_text(field.type),
            "default": "" if field.default is NO_DEFAULT else dumps(field.default),
            "order": "" if field.order == "ascending" else field.order,
            "aliases": ", ".join(sorted(field.aliases)),
            "doc": field.doc or "",
            **_props(field.props),
            **_type_props(field.type),
        }
        self.outline.add_node(
            f"{record}.{field.name}",
            "field",
            attributes,
            parent=record,
            name=field.name,
            aliases=field.aliases,
            ordered=True,
            uses=_names(field.type),
        )


def _named_types(schema: AvroSchema) -> list[Named]:
    """Every named type the schema itself defines, in the order of the text."""
    found: dict[str, Named] = {}
    waiting: list[Type] = [schema.root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Named):
            if node.name in found or node.name in schema.referenced:
                continue
            found[node.name] = node
        waiting.extend(reversed(_inside(node)))
    return list(found.values())


def _inside(node: Type) -> list[Type]:
    match node:
        case Record():
            return [field.type for field in node.fields]
        case Union():
            return list(node.branches)
        case Array():
            return [node.items]
        case Map():
            return [node.values]
        case _:
            return []


def _simple(full_name: str) -> str:
    return full_name.rpartition(".")[2]


# --- texts ----------------------------------------------------------------------------------------------------------


def type_text(node: Type) -> str:
    """A type in full, named types by name: `array<null | a.Item>`, `bytes decimal(9,2)`. Parsing bounds the nesting."""
    match node:
        case Record() | EnumType() | Fixed():
            return node.name
        case Array():
            return f"array<{type_text(node.items)}>"
        case Map():
            return f"map<{type_text(node.values)}>"
        case Union():
            return " | ".join(map(type_text, node.branches)) or "empty union"
        case Primitive():
            return f"{node.kind} {node.logical}" if node.logical else node.kind


def _parts(node: Type, place: str) -> Iterator[tuple[str, Type]]:
    """A type and all it is made of up to names, each with the words that lead there."""
    yield place, node
    match node:
        case Array():
            yield from _parts(node.items, f"{place}items ")
        case Map():
            yield from _parts(node.values, f"{place}values ")
        case Union():
            for branch in node.branches:
                yield from _parts(branch, f"{place}{branch.kind} ")
        case _:
            pass


def _names(node: Type) -> list[str]:
    """Full names of the types that a type is made of."""
    return [part.name for _, part in _parts(node, "") if isinstance(part, Named)]


def _type_props(node: Type) -> dict[str, str]:
    """Attributes of unnamed types that the specification does not know, behind where they stand."""
    found: dict[str, str] = {}
    for place, part in _parts(node, "type "):
        if isinstance(part, Primitive | Array | Map):
            found |= {
                f"{place}{word}": text for word, text in _props(part.props, hide=part.logical is not None).items()
            }
    return found


def _props(props: Props, *, hide: bool = False) -> Mapping[str, str]:
    """Further attributes as JSON; hide leaves out those the text of a valid logical type tells."""
    return {word: dumps(value) for word, value in props.items() if not (hide and word in _DECIMAL)}


# --- paths ----------------------------------------------------------------------------------------------------------


def _locate(schema: AvroSchema, path: str) -> OutlineLocation | None:
    node: Type | None = schema.root
    place = OutlineLocation(node.name if isinstance(node, Named) else ROOT)
    steps = iter(path.strip("/").split("/"))
    for step in steps:
        found = next((each for each in _branches(node) if _has(each, step)), None)
        if step == "fields" and isinstance(found, Record):
            index = next(steps, "")
            if not index.isdecimal() or int(index) >= len(found.fields) or found.name in schema.referenced:
                return place
            field = found.fields[int(index)]
            place, node = OutlineLocation(f"{found.name}.{field.name}"), field.type
        elif step == "type":
            place = OutlineLocation(place.path, "type")
        elif isinstance(found, Array | Map):
            node = found.items if isinstance(found, Array) else found.values
        elif isinstance(found, Named) and found.name not in schema.referenced:
            return OutlineLocation(found.name, step)
        elif not step.isdecimal():  # a number counts the writer's branches: the reader stays where it is
            return place
    return place


def _branches(node: Type | None) -> tuple[Type, ...]:
    return node.branches if isinstance(node, Union) else () if node is None else (node,)


def _has(node: Type, step: str) -> bool:
    """Whether a step of a path can lead into a type."""
    match step:
        case "fields":
            return isinstance(node, Record)
        case "items":
            return isinstance(node, Array)
        case "values":
            return isinstance(node, Map)
        case "symbols":
            return isinstance(node, EnumType)
        case "size":
            return isinstance(node, Fixed)
        case "name":
            return isinstance(node, Named)
    return False
