"""A second prover: keyword by keyword, through recursive schemas, without leaving the process.

It knows less than the canonical form, but it follows references round any cycle, does not mind thousands of properties,
and tells the search which places need no looking into. It says yes only when every keyword of the reader follows from
keywords of the writer. A pair met inside itself, at least one member or item deeper, is taken to hold: a document that
speaks against it would hold a smaller one that does, and so on for ever, which no document can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from stele.formats.jsonschema.containment import scalars
from stele.formats.jsonschema.containment.view import Parts, View, items, members, mentions, needs
from stele.formats.jsonschema.text import Json, frozen

MAX_STEPS = 60_000
"""Pairs looked at before the answer is no."""

MAX_DEPTH = 50
"""Pairs inside pairs before the answer is no: half of what the interpreter's stack can take."""

Pair: TypeAlias = tuple[int, int]
Rule: TypeAlias = Callable[["Structure", dict[str, Json], Parts], bool]

_CONJUNCTIONS = ("$ref", "allOf", "$defs")


class Structure:
    """Proofs about places of two documents."""

    def __init__(self, reader: View, writer: View) -> None:
        self._views = (reader, writer)
        self._steps = 0
        self._depth = 0
        self._level = 0
        self._open: dict[Pair, int] = {}
        self._holds: set[Pair] = set()
        self._fails: set[Pair] = set()
        self._assumed: set[Pair] = set()

    def proves(self, reader: Json, writer: Json) -> bool:
        """Whether every value of the writer's schema is one of the reader's."""
        while True:
            self._assumed.clear()
            held = self.covers(reader, writer)
            sure = self._assumed.isdisjoint(self._fails)
            if not sure:  # something that is said to hold may rest on an assumption that does not
                self._holds.clear()
            if sure or not held:
                return held

    def covers(self, reader: Json, writer: Json) -> bool:
        """`proves` inside a proof: may rest on assumptions."""
        if reader is True or writer is False or reader == {}:
            return True
        if reader is False or not isinstance(reader, dict):
            return False
        pair = (id(reader), id(writer))
        if pair in self._holds:
            return True
        if pair in self._open:
            self._assumed.add(pair)
            return self._open[pair] < self._level
        self._steps += 1
        if pair in self._fails or self._steps > MAX_STEPS or self._depth > MAX_DEPTH:
            return False
        self._open[pair] = self._level
        self._depth += 1
        held = self._covers(reader, writer if isinstance(writer, dict) else {})
        self._depth -= 1
        del self._open[pair]
        (self._holds if held else self._fails).add(pair)
        return held

    def inside(self, reader: Json, writers: tuple[Json, ...]) -> bool:
        """`covers` one member or item deeper, where several schemas of the writer apply: one of them has to do."""
        self._level += 1
        held = any(self.covers(reader, writer) for writer in writers or (True,))
        self._level -= 1
        return held

    def _covers(self, reader: dict[str, Json], writer: dict[str, Json]) -> bool:
        conjuncts = self._conjuncts(writer)
        if any(part is False for part in conjuncts):
            return True
        parts: Parts = [part for part in conjuncts if isinstance(part, dict)]
        if self._directly(reader, parts):
            return True
        for part in parts:
            for keyword in ("anyOf", "oneOf"):
                branches = part.get(keyword)
                if branches and all(self.covers(reader, branch) for branch in branches):
                    return True
        return False

    def _directly(self, reader: dict[str, Json], writer: Parts) -> bool:
        if "$ref" in reader and not any(self.covers(self._target(reader), part) for part in writer):
            return False
        if not all(any(self.covers(member, part) for part in writer) for member in reader.get("allOf", ())):
            return False
        own = {keyword: value for keyword, value in reader.items() if keyword not in _CONJUNCTIONS}
        return all(rule(self, own, writer) for keyword, rule in _RULES.items() if keyword in own) and all(
            keyword in _RULES or scalars.follows(keyword, own, writer) for keyword in own
        )

    def _conjuncts(self, writer: dict[str, Json]) -> list[Json]:
        """The writer's schema and all that has to hold with it."""
        found: dict[int, Json] = {}
        pending: list[Json] = [writer]
        while pending:
            schema = pending.pop()
            if id(schema) in found:
                continue
            found[id(schema)] = schema
            if isinstance(schema, dict):
                pending.extend(schema.get("allOf", ()))
                if "$ref" in schema:
                    pending.append(self._target(schema))
        return list(found.values())

    def _target(self, schema: dict[str, Json]) -> Json:
        for view in self._views:
            if view.owns(schema):
                return view.target(schema)
        return True

    def same(self, one: Json, other: Json) -> bool:
        """Whether each covers the other."""
        return self.covers(one, other) and self.covers(other, one)


def _any_of(proof: Structure, reader: dict[str, Json], writer: Parts) -> bool:
    return any(proof.covers(branch, part) for branch in reader["anyOf"] for part in writer)


def _one_of(proof: Structure, reader: dict[str, Json], writer: Parts) -> bool:
    """Exactly one is exactly one of the same list, in any order of equals: here, in the order written."""
    mine = reader["oneOf"]
    if len(mine) == 1:
        return any(proof.covers(mine[0], part) for part in writer)
    lists = (part["oneOf"] for part in writer if len(part.get("oneOf", ())) == len(mine))
    return any(all(proof.same(a, b) for a, b in zip(mine, theirs, strict=True)) for theirs in lists)


def _not(proof: Structure, reader: dict[str, Json], writer: Parts) -> bool:
    return any("not" in part and proof.covers(part["not"], reader["not"]) for part in writer)


def _if(proof: Structure, reader: dict[str, Json], writer: Parts) -> bool:
    return ("then" not in reader and "else" not in reader) or any(
        "if" in part
        and proof.same(reader["if"], part["if"])
        and all(proof.covers(reader.get(word, True), part.get(word, True)) for word in ("then", "else"))
        for part in writer
    )


def _then(_proof: Structure, _reader: dict[str, Json], _writer: Parts) -> bool:
    return True  # part of `if`


def _needs(proof: Structure, reader: dict[str, Json], writer: Parts) -> bool:
    """`dependentRequired`, `dependentSchemas` and both in `dependencies`."""
    required = scalars.required(writer)
    theirs = [need for part in writer for need in needs(part)]
    for name, wanted in needs(reader):
        given = {other for each, others in theirs if each == name for other in others}
        if not required.union(given).issuperset(wanted) and False not in members(writer, name):
            return False
    for keyword in ("dependentSchemas", "dependencies"):
        for name, schema in reader.get(keyword, {}).items():
            if isinstance(schema, list) or False in members(writer, name):
                continue
            also = [part[word][name] for part in writer for word in _DEPENDENT if name in part.get(word, {})]
            also = [each for each in also if not isinstance(each, list)]
            if not any(proof.covers(schema, each) for each in (*writer, *also)):
                return False
    return True


_DEPENDENT = ("dependentSchemas", "dependencies")


def _properties(proof: Structure, reader: dict[str, Json], writer: Parts) -> bool:
    if not scalars.possible("object", writer):
        return True
    return all(proof.inside(schema, members(writer, name)) for name, schema in reader["properties"].items())


def _patterns(proof: Structure, reader: dict[str, Json], writer: Parts) -> bool:
    if not scalars.possible("object", writer):
        return True
    for pattern, schema in reader["patternProperties"].items():
        equal = [part["patternProperties"][pattern] for part in writer if pattern in part.get("patternProperties", {})]
        if not (equal and proof.inside(schema, tuple(equal))) and not _all_members(proof, schema, writer, _none):
            return False
    return True


def _additional(proof: Structure, reader: dict[str, Json], writer: Parts) -> bool:
    if not scalars.possible("object", writer):
        return True
    patterns = reader.get("patternProperties", {})

    def named(name: str, *, pattern: bool) -> bool:
        """Whether the reader says something else of a name, or of all names of a pattern."""
        return name in patterns if pattern else mentions(reader, name)

    return _all_members(proof, reader["additionalProperties"], writer, named)


def _none(_name: str, *, pattern: bool) -> bool:
    return False


def _all_members(proof: Structure, schema: Json, writer: Parts, named: Callable[..., bool]) -> bool:
    """Whether a schema covers every member the writer's objects may have, but for those named otherwise."""
    names = {name for part in writer for name in part.get("properties", {})}
    if not all(named(name, pattern=False) or proof.inside(schema, members(writer, name)) for name in names):
        return False
    patterns = [pair for part in writer for pair in part.get("patternProperties", {}).items()]
    if not all(named(pattern, pattern=True) or proof.inside(schema, (inner,)) for pattern, inner in patterns):
        return False
    return proof.inside(schema, tuple(part.get("additionalProperties", True) for part in writer))


def _prefix(proof: Structure, reader: dict[str, Json], writer: Parts) -> bool:
    if not scalars.possible("array", writer):
        return True
    most = scalars.longest(writer)
    return all(
        index >= most or proof.inside(schema, items(writer, index))
        for index, schema in enumerate(reader["prefixItems"])
    )


def _items(proof: Structure, reader: dict[str, Json], writer: Parts) -> bool:
    if not scalars.possible("array", writer):
        return True
    most = scalars.longest(writer)
    start = len(reader.get("prefixItems", ()))
    end = max((len(part.get("prefixItems", ())) for part in writer), default=0)
    return all(
        index >= most or proof.inside(reader["items"], items(writer, index))
        for index in range(start, max(start, end) + 1)
    )


def _contains(proof: Structure, reader: dict[str, Json], writer: Parts) -> bool:
    least = reader.get("minContains", 1)
    if "contains" not in reader or not scalars.possible("array", writer):
        return True
    if "maxContains" in reader:
        return False
    return least == 0 or any(
        "contains" in part
        and least <= part.get("minContains", 1)
        and proof.inside(reader["contains"], (part["contains"],))
        for part in writer
    )


def _names(proof: Structure, reader: dict[str, Json], writer: Parts) -> bool:
    return not scalars.possible("object", writer) or any(
        "propertyNames" in part and proof.inside(reader["propertyNames"], (part["propertyNames"],)) for part in writer
    )


def _enum(_proof: Structure, reader: dict[str, Json], writer: Parts) -> bool:
    return _among(reader["enum"], writer)


def _const(_proof: Structure, reader: dict[str, Json], writer: Parts) -> bool:
    return _among([reader["const"]], writer)


def _among(allowed: list[Json], writer: Parts) -> bool:
    known = set(map(frozen, allowed))
    return any(values is not None and known.issuperset(map(frozen, values)) for values in map(scalars.listed, writer))


def _listing(*keywords: str, rule: Rule) -> Iterator[tuple[str, Rule]]:
    return ((keyword, rule) for keyword in keywords)


_RULES: dict[str, Rule] = dict(
    (
        *_listing("anyOf", rule=_any_of),
        *_listing("oneOf", rule=_one_of),
        *_listing("not", rule=_not),
        *_listing("if", rule=_if),
        *_listing("then", "else", rule=_then),
        *_listing("dependentRequired", "dependentSchemas", "dependencies", rule=_needs),
        *_listing("properties", rule=_properties),
        *_listing("patternProperties", rule=_patterns),
        *_listing("additionalProperties", rule=_additional),
        *_listing("prefixItems", rule=_prefix),
        *_listing("items", rule=_items),
        *_listing("contains", "minContains", "maxContains", rule=_contains),
        *_listing("propertyNames", rule=_names),
        *_listing("enum", rule=_enum),
        *_listing("const", rule=_const),
    )
)
