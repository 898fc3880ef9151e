"""Random Avro schemas, related ones, and data that fit them."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
SPACES = ("", "a", "a.b", "c")
WORDS = ("x", "y", "z", "w")
LOGICAL = (
    {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    {"type": "int", "color": "blue", "weights": [1, 2.5, {"deep": None}]},
)
DOCS = st.sampled_from(["", "a doc", 'with "quotes" and \\ and é \u0007 \U0001f600'])


class _Names:
    """Names defined so far in the schema that is being drawn, and the definitions that are still open."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        self.open: set[str] = set()


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> Any:
    """A valid schema as a JSON value: every kind of type, namespaces, aliases, recursion, logical types, properties."""
    return draw(_avro_types(_Names(), "", depth))


@st.composite
def _avro_types(draw: st.DrawFn, names: _Names, space: str, depth: int, *, union: bool = True) -> Any:
    kinds = ["primitive", "primitive", "logical"]
    if names.kinds:
        kinds.append("reference")
    if depth > 0:
        kinds += ["record", "record", "enum", "fixed", "array", "map", *(["union"] if union else [])]
    match draw(st.sampled_from(kinds)):
        case "primitive":
            return draw(st.sampled_from(PRIMITIVES))
        case "logical":
            return copy.deepcopy(draw(st.sampled_from(LOGICAL)))
        case "reference":
            return _spell_reference(draw(st.sampled_from(sorted(names.kinds))), space)
        case "array":
            return {"type": "array", "items": draw(_avro_types(names, space, depth - 1))}
        case "map":
            return {"type": "map", "values": draw(_avro_types(names, space, depth - 1))}
        case "union":
            return draw(_avro_unions(names, space, depth - 1))
        case kind:
            return draw(_named_types(kind, names, space, depth))


def _spell_reference(full: str, space: str) -> str:
    own, _, simple = full.rpartition(".")
    return simple if own == space else full


@st.composite
def _avro_unions(draw: st.DrawFn, names: _Names, space: str, depth: int) -> list[Any]:
    branches: list[Any] = []
    labels: set[str] = set()
    for _ in range(draw(st.integers(1, 4))):
        branch = draw(_avro_types(names, space, depth, union=False))
        label = _branch_label(branch, space, names)
        if label not in labels:
            labels.add(label)
            branches.append(branch)
    return branches


def _branch_label(branch: Any, space: str, names: _Names) -> str:
    if isinstance(branch, str):
        if branch in PRIMITIVES or "." in branch:
            return branch
        return f"{space}.{branch}" if space and f"{space}.{branch}" in names.kinds else branch
    if "name" in branch:
        own = branch.get("namespace", space)
        return f"{own}.{branch['name']}" if own else str(branch["name"])
    return str(branch["type"])


@st.composite
def _named_types(draw: st.DrawFn, kind: str, names: _Names, space: str, depth: int) -> Any:
    own = draw(st.sampled_from(SPACES)) if draw(st.booleans()) else space
    simple = f"{kind[0].upper()}{draw(st.integers(0, 3))}"
    full = f"{own}.{simple}" if own else simple
    # A simple name is defined in one namespace only: else Java's look-up of names without a namespace, which tries the
    # enclosing one first, could find another type than the one drawn.
    if any(known.rpartition(".")[2] == simple for known in names.kinds):
        return draw(st.sampled_from(PRIMITIVES))
    out: dict[str, Any] = {"type": kind, "name": simple}
    if own != space:
        out["namespace"] = own
    names.kinds[full] = kind
    if draw(st.booleans()):
        out["doc"] = draw(DOCS)
    if own and draw(st.integers(0, 3)) == 0:
        out["aliases"] = draw(st.lists(st.sampled_from(["R9", "a.E9", "z.z.F9"]), min_size=1, unique=True))
    if draw(st.integers(0, 4)) == 0:
        out["extra"] = draw(st.sampled_from([1, "two", [3.5], {"b": 1, "a": None}]))
    match kind:
        case "enum":
            out["symbols"] = draw(st.lists(st.sampled_from("ABCDE"), min_size=1, unique=True))
            if draw(st.booleans()):
                out["default"] = out["symbols"][0]
        case "fixed":
            out["size"] = draw(st.integers(0, 4))
        case _:
            words = draw(st.lists(st.sampled_from(WORDS), max_size=4, unique=True))
            out["fields"] = [draw(_record_fields(word, names, own, depth - 1)) for word in words]
    return out


@st.composite
def _record_fields(draw: st.DrawFn, word: str, names: _Names, space: str, depth: int) -> dict[str, Any]:
    out: dict[str, Any] = {"name": word, "type": draw(_avro_types(names, space, depth))}
    if draw(st.booleans()):
        simple = _simple_default(out["type"])
        if simple is not None:
            out["default"] = simple[0]
    if draw(st.integers(0, 3)) == 0:
        out["doc"] = draw(DOCS)
    if draw(st.integers(0, 4)) == 0:
        out["order"] = draw(st.sampled_from(["ascending", "descending", "ignore"]))
    if draw(st.integers(0, 4)) == 0:
        out["aliases"] = [draw(st.sampled_from([other for other in WORDS if other != word]))]
    return out


def _simple_default(node: Any) -> tuple[Any] | None:
    """Return a default for the type in a one-element tuple, None when there is no simple one."""
    if isinstance(node, list):
        return _simple_default(node[0]) if node else None
    kind = node if isinstance(node, str) else node["type"]
    if isinstance(node, dict) and "logicalType" in node and kind in ("string", "bytes"):
        return None
    plain = {
        "null": None,
        "boolean": True,
        "int": 1,
        "long": -5,
        "float": 2.5,
        "double": 1e10,
        "bytes": "\xff\x00",
        "string": "é",
    }
    plain |= {"array": [], "map": {}}
    if kind == "enum":
        return (node["symbols"][-1],)
    return (plain[kind],) if kind in plain else None


@st.composite
def related_schemas(draw: st.DrawFn) -> tuple[Any, Any]:
    """Two schemas that differ by a few edits, of the kind authors make."""
    old = draw(schemas())
    new = copy.deepcopy(old)
    for _ in range(draw(st.integers(0, 3))):
        places = list(_list_objects(new))
        if places:
            _edit_schema(draw, draw(st.sampled_from(places)))
    return old, new


def _list_objects(node: Any) -> Any:
    """Every object of a schema."""
    if isinstance(node, list):
        for item in node:
            yield from _list_objects(item)
    elif isinstance(node, dict):
        yield node
        for key in ("items", "values", "type"):
            yield from _list_objects(node.get(key))
        for field in node.get("fields", []):
            yield from _list_objects(field["type"])


def _edit_schema(draw: st.DrawFn, node: dict[str, Any]) -> None:
    kind = node["type"]
    if "fields" in node:
        _edit_record(draw, node)
    elif kind == "enum" and "symbols" in node:
        node["symbols"] = draw(st.lists(st.sampled_from("ABCDE"), min_size=1, unique=True))
        node.pop("default", None)
    elif kind == "fixed" and "size" in node:
        node["size"] = draw(st.integers(0, 4))
    elif "items" in node or "values" in node:
        key = "items" if "items" in node else "values"
        if isinstance(node[key], str) and node[key] in PRIMITIVES:
            node[key] = draw(st.sampled_from(PRIMITIVES))
    elif isinstance(kind, str) and kind in PRIMITIVES:
        node.clear()
        node["type"] = draw(st.sampled_from(PRIMITIVES))


def _edit_record(draw: st.DrawFn, node: dict[str, Any]) -> None:
    fields = node["fields"]
    taken = {field["name"] for field in fields}
    match draw(st.sampled_from(["add", "add with default", "change", "widen", "rename"])):
        case "add" if free := sorted(set(WORDS) - taken):
            fields.append({"name": draw(st.sampled_from(free)), "type": draw(st.sampled_from(PRIMITIVES))})
        case "add with default" if free := sorted(set(WORDS) - taken):
            fields.append({"name": free[0], "type": ["null", "int"], "default": None})
        case "change" if fields and isinstance(fields[0]["type"], str) and fields[0]["type"] in PRIMITIVES:
            fields[0].pop("default", None)
            fields[0]["type"] = draw(st.sampled_from(PRIMITIVES))
        case "widen" if fields and isinstance(fields[0]["type"], str) and fields[0]["type"] != "null":
            fields[0].pop("default", None)
            fields[0]["type"] = ["null", fields[0]["type"]]
        case "rename":
            node["name"] = f"{node['name']}x" if draw(st.booleans()) else node["name"]
