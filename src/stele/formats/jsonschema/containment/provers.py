"""Provers that one schema allows all that another one allows.

The first prover uses the canonical form of jsonschema-rs. Its authors call it experimental, and only its answer YES is
a proof. It runs in a separate process, since it may take minutes.

The second prover compares keyword by keyword, through recursive schemas, inside this process. It proves less, but it
follows references around any cycle, handles thousands of properties, and shows the search which parts need no search.
It returns yes only when every keyword of the reader follows from keywords of the writer.

A pair that occurs inside itself, at least one member or item deeper, is assumed to hold. A document that contradicts it
would contain a smaller one that does, and so on without end, which is impossible. From version 2 of the rules on, the
prover uses `StringProver` for strings and names of members. Where that succeeds, it compares the other types
separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

import jsonschema_rs

from stele.errors import Unavailable
from stele.formats.jsonschema.containment.document import (
    BundledDocument,
    DocumentView,
    Parts,
    has_member_schema,
    item_schemas,
    member_schemas,
    required_with,
)
from stele.formats.jsonschema.containment.strings import (
    ANY_STRING,
    Cases,
    StringProver,
    listed_cases,
    other_names,
    pattern_cases,
)
from stele.formats.jsonschema.drafts import Draft
from stele.formats.jsonschema.engine_process import EngineProcess
from stele.formats.jsonschema.json_text import Json, to_hashable
from stele.formats.jsonschema.patterns import BACKTRACK_LIMIT, PATTERN_SIZE_LIMIT

DEADLINE = 5.0
"""Maximum wall-clock seconds of one proof by the canonical form. A proof that takes longer counts as not proved."""

_NUMBERS = {
    Draft.DRAFT4: jsonschema_rs.Draft4,
    Draft.DRAFT6: jsonschema_rs.Draft6,
    Draft.DRAFT7: jsonschema_rs.Draft7,
    Draft.DRAFT2019: jsonschema_rs.Draft201909,
    Draft.DRAFT2020: jsonschema_rs.Draft202012,
}


class CanonicalProver:
    """Proofs by the canonical form. Safe to share between threads and across a fork; one thread at a time is served."""

    def __init__(self, deadline: float = DEADLINE) -> None:
        self._engine = EngineProcess(deadline)

    def can_prove(self, reader: BundledDocument, writer: BundledDocument, draft: Draft, *, formats: bool) -> bool:
        """Return whether it is proved that the reader allows every document of the writer. Both are of `draft`.

        formats is whether `format` is an assertion. False has no meaning: not proved, too slow, or no process
        available.
        """
        if not (reader.exact and writer.exact):
            return False
        limits = (BACKTRACK_LIMIT, PATTERN_SIZE_LIMIT)
        with suppress(Unavailable):
            return self._engine.ask(("covers", _NUMBERS[draft], formats, *limits, reader.root, writer.root)) == ["yes"]
        return False

    def close(self) -> None:
        """End the process; a later proof starts a new one."""
        self._engine.close()


PROVER = CanonicalProver()
"""The prover by the canonical form that this Python process shares."""


_TYPES = frozenset(["object", "array", "string", "integer", "number", "boolean", "null"])
_ABOUT = {
    "object": ("required", "minProperties", "maxProperties"),
    "array": ("minItems", "maxItems", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_TYPE_OF = {keyword: name for name, keywords in _ABOUT.items() for keyword in keywords}


def keyword_follows(keyword: str, reader: dict[str, Json], writer: Parts) -> bool:
    """Return whether every value of the writer's schemas meets this keyword of the reader's; False in doubt."""
    if keyword == "type":
        return allowed_types(writer) <= _type_set(reader["type"])
    about = _TYPE_OF.get(keyword)
    if about is None:
        return False
    if not is_possible_type(about, writer):
        return True
    value = reader[keyword]
    if keyword.startswith("min") and keyword != "minimum" and value == 0:
        return True
    match keyword:
        case "required":
            return required_names(writer).issuperset(value)
        case "pattern":
            return any(part.get(keyword) == value for part in writer)
        case "format" | "contentEncoding" | "contentMediaType":
            words = ("format",) if keyword == "format" else ("contentEncoding", "contentMediaType")
            return any(all(part.get(word) == reader.get(word) for word in words) for part in writer)
        case "uniqueItems":
            return value is not True or longest_array(writer) <= 1 or any(part.get(keyword) is True for part in writer)
        case "multipleOf":
            return any(_is_divisor(value, part[keyword]) for part in writer if keyword in part)
        case "minimum" | "exclusiveMinimum" | "maximum" | "exclusiveMaximum":
            return _is_bounded(keyword, value, writer)
        case "minProperties":
            return len(required_names(writer)) >= value or any(part.get(keyword, -1) >= value for part in writer)
        case _:
            return any(_is_within(keyword, part[keyword], value) for part in writer if keyword in part)


def _is_within(keyword: str, theirs: Json, mine: Json) -> bool:
    return bool(theirs >= mine if keyword.startswith("min") else theirs <= mine)


def _is_bounded(keyword: str, value: Json, writer: Parts) -> bool:
    """Return whether a bound of the writer implies the reader's.

    An inclusive bound does not imply an equal exclusive one.
    """
    word = "inimum" if keyword.endswith("inimum") else "aximum"
    sign = 1 if word == "inimum" else -1
    for part in writer:
        inclusive, exclusive = part.get("m" + word), part.get("exclusiveM" + word)
        if exclusive is not None and exclusive * sign >= value * sign:
            return True
        beyond = keyword.startswith("exclusive") and inclusive == value
        if inclusive is not None and inclusive * sign >= value * sign and not beyond:
            return True
    return False


def _is_divisor(mine: Json, theirs: Json) -> bool:
    try:
        return Decimal(str(theirs)) % Decimal(str(mine)) == 0
    except InvalidOperation:
        return False


def allowed_types(parts: Parts) -> frozenset[str]:
    """Return the types that a value that fits all parts can have. `number` means numbers with a fraction."""
    allowed = _TYPES
    for part in parts:
        if "type" in part:
            allowed &= _type_set(part["type"])
        values = listed_values(part)
        if values is not None:
            allowed &= frozenset(name for value in values for name in _types_of(value))
    return allowed


def is_possible_type(name: str, parts: Parts) -> bool:
    """Return whether a value that fits all parts may be of a type."""
    allowed = allowed_types(parts)
    return name in allowed or (name == "number" and "integer" in allowed)


def listed_values(part: dict[str, Json]) -> list[Json] | None:
    """Return all values that a schema allows, if it lists them by `const` or `enum`; None otherwise."""
    if "const" in part:
        return [part["const"]]
    values = part.get("enum")
    return values if isinstance(values, list) else None


def required_names(parts: Parts) -> frozenset[str]:
    """Return the names of the required members."""
    return frozenset(name for part in parts for name in part.get("required", ()))


def longest_array(parts: Parts) -> float:
    """Return the greatest number of items that an array can have."""
    return min((float(part["maxItems"]) for part in parts if "maxItems" in part), default=float("inf"))


def _type_set(names: Json) -> frozenset[str]:
    types = frozenset([names] if isinstance(names, str) else names)
    return types | {"integer"} if "number" in types else types


def _types_of(value: Json) -> tuple[str, ...]:
    """Return the types that a listed value can have. Drafts differ on whether 1.0 is an integer."""
    if value is None:
        return ("null",)
    if isinstance(value, bool):
        return ("boolean",)
    if isinstance(value, str):
        return ("string",)
    if isinstance(value, dict | list):
        return ("object",) if isinstance(value, dict) else ("array",)
    return ("integer",) if isinstance(value, int) else ("integer", "number")


MAX_STEPS = 60_000
"""Maximum number of pairs that one proof compares; past it, the answer is no."""

MAX_DEPTH = 50
"""Maximum nesting of pairs; past it, the answer is no. It is half of what Python's stack can hold."""

Pair: TypeAlias = tuple[int, int]
Rule: TypeAlias = Callable[["StructuralProver", dict[str, Json], Parts], bool]

_CONJUNCTIONS = ("$ref", "allOf", "$defs")


class MemberNames:
    """Names that members of the writer's objects can have. Without a prover of strings nothing is known about them."""

    def __init__(self, strings: StringProver | None, writer: Parts, cases: Cases) -> None:
        self._strings = strings
        self._cases = cases if strings is None else strings.list_names(writer, cases)

    def is_disjoint(self, cases: Cases) -> bool:
        """Return whether it is proved that no name fits the cases."""
        return self._strings is not None and self._strings.is_disjoint(self._cases, cases)

    def is_within(self, schema: Json) -> bool:
        """Return whether it is proved that all names fit a schema."""
        return self._strings is not None and self._strings.is_within(self._cases, schema)


class StructuralProver:
    """Proves that schemas of one document allow all that schemas of another allow."""

    def __init__(self, reader: DocumentView, writer: DocumentView, *, languages: bool = True) -> None:
        """Take the documents. languages is whether patterns are compared as languages, or as texts only."""
        self._views = (reader, writer)
        self.strings = StringProver(self._find_target) if languages else None
        self._without_strings: dict[int, dict[str, Json]] = {}
        self._steps = 0
        self._depth = 0
        self._level = 0
        self._open: dict[Pair, int] = {}
        self._holds: set[Pair] = set()
        self._fails: set[Pair] = set()
        self._assumed: set[Pair] = set()

    def can_prove(self, reader: Json, writer: Json) -> bool:
        """Return whether it is proved that the reader's schema allows every value of the writer's."""
        while True:
            self._assumed.clear()
            is_proved = self.is_covered(reader, writer)
            sure = self._assumed.isdisjoint(self._fails)
            if not sure:  # a pair in _holds may rest on an assumption that failed
                self._holds.clear()
            if sure or not is_proved:
                return is_proved

    def is_covered(self, reader: Json, writer: Json) -> bool:
        """Return the result of `can_prove` inside a proof, where it can rest on assumptions."""
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
        is_proved = self._covers_objects(reader, writer if isinstance(writer, dict) else {})
        is_proved = is_proved or self._covers_by_languages(reader, writer)
        self._depth -= 1
        del self._open[pair]
        (self._holds if is_proved else self._fails).add(pair)
        return is_proved

    def covers_inside(self, reader: Json, writers: tuple[Json, ...]) -> bool:
        """Return whether reader covers one of the writer's schemas, one member or item deeper."""
        self._level += 1
        is_proved = any(self.is_covered(reader, writer) for writer in writers or (True,))
        self._level -= 1
        return is_proved

    def _covers_objects(self, reader: dict[str, Json], writer: dict[str, Json]) -> bool:
        conjuncts = self._list_conjuncts(writer)
        if any(part is False for part in conjuncts):
            return True
        parts: Parts = [part for part in conjuncts if isinstance(part, dict)]
        if self.strings is not None and not allowed_types(parts):
            return True
        if self._covers_directly(reader, parts):
            return True
        for part in parts:
            for keyword in ("anyOf", "oneOf"):
                branches = part.get(keyword)
                if branches and all(self.is_covered(reader, branch) for branch in branches):
                    return True
        return False

    def _covers_by_languages(self, reader: dict[str, Json], writer: Json) -> bool:
        """Return whether the reader covers the strings of the writer, and the values of all other types."""
        strings = self.strings
        if strings is None or not strings.allows_strings(writer) or not strings.is_covered(reader, writer):
            return False
        rest = self._without_strings.get(id(writer))
        if rest is None:
            rest = self._without_strings[id(writer)] = {"type": sorted(_TYPES - {"string"}), "allOf": [writer]}
        return self.is_covered(reader, rest)

    def _covers_directly(self, reader: dict[str, Json], writer: Parts) -> bool:
        if "$ref" in reader and not any(self.is_covered(self._find_target(reader), part) for part in writer):
            return False
        if not all(any(self.is_covered(member, part) for part in writer) for member in reader.get("allOf", ())):
            return False
        own = {keyword: value for keyword, value in reader.items() if keyword not in _CONJUNCTIONS}
        return all(rule(self, own, writer) for keyword, rule in _RULES.items() if keyword in own) and all(
            keyword in _RULES or keyword_follows(keyword, own, writer) for keyword in own
        )

    def _list_conjuncts(self, writer: dict[str, Json]) -> list[Json]:
        """Return the writer's schema and all schemas that apply together with it."""
        conjuncts: dict[int, Json] = {}
        pending: list[Json] = [writer]
        while pending:
            schema = pending.pop()
            if id(schema) in conjuncts:
                continue
            conjuncts[id(schema)] = schema
            if isinstance(schema, dict):
                pending.extend(schema.get("allOf", ()))
                if "$ref" in schema:
                    pending.append(self._find_target(schema))
        return list(conjuncts.values())

    def _find_target(self, schema: dict[str, Json]) -> Json:
        for view in self._views:
            if view.has_reference(schema):
                return view.reference_target(schema)
        return True

    def member_names(self, writer: Parts, cases: Cases = ANY_STRING) -> MemberNames:
        """Return those names in the cases that members of the writer's objects can have."""
        return MemberNames(self.strings, writer, cases)

    def is_same(self, one: Json, other: Json) -> bool:
        """Return whether each covers the other."""
        return self.is_covered(one, other) and self.is_covered(other, one)


def _any_of_follows(proof: StructuralProver, reader: dict[str, Json], writer: Parts) -> bool:
    return any(proof.is_covered(branch, part) for branch in reader["anyOf"] for part in writer)


def _one_of_follows(proof: StructuralProver, reader: dict[str, Json], writer: Parts) -> bool:
    """Return whether the writer has a `oneOf` of the same branches, in the same order."""
    mine = reader["oneOf"]
    if len(mine) == 1:
        return any(proof.is_covered(mine[0], part) for part in writer)
    lists = (part["oneOf"] for part in writer if len(part.get("oneOf", ())) == len(mine))
    return any(all(proof.is_same(a, b) for a, b in zip(mine, theirs, strict=True)) for theirs in lists)


def _not_follows(proof: StructuralProver, reader: dict[str, Json], writer: Parts) -> bool:
    return any("not" in part and proof.is_covered(part["not"], reader["not"]) for part in writer)


def _if_follows(proof: StructuralProver, reader: dict[str, Json], writer: Parts) -> bool:
    return ("then" not in reader and "else" not in reader) or any(
        "if" in part
        and proof.is_same(reader["if"], part["if"])
        and all(proof.is_covered(reader.get(word, True), part.get(word, True)) for word in ("then", "else"))
        for part in writer
    )


def _then_follows(_proof: StructuralProver, _reader: dict[str, Json], _writer: Parts) -> bool:
    return True  # part of `if`


def _dependencies_follow(proof: StructuralProver, reader: dict[str, Json], writer: Parts) -> bool:
    """Return whether `dependentRequired`, `dependentSchemas` and `dependencies` of the reader follow."""
    required = required_names(writer)
    theirs = [need for part in writer for need in required_with(part)]
    for name, wanted in required_with(reader):
        implied_names = {other for each, others in theirs if each == name for other in others}
        if not required.union(implied_names).issuperset(wanted) and False not in member_schemas(writer, name):
            return False
    for keyword in ("dependentSchemas", "dependencies"):
        for name, schema in reader.get(keyword, {}).items():
            if isinstance(schema, list) or False in member_schemas(writer, name):
                continue
            also = [part[word][name] for part in writer for word in _DEPENDENT if name in part.get(word, {})]
            also = [each for each in also if not isinstance(each, list)]
            if not any(proof.is_covered(schema, each) for each in (*writer, *also)):
                return False
    return True


_DEPENDENT = ("dependentSchemas", "dependencies")


def _properties_follow(proof: StructuralProver, reader: dict[str, Json], writer: Parts) -> bool:
    if not is_possible_type("object", writer):
        return True
    names = proof.member_names(writer)
    return all(
        proof.covers_inside(schema, member_schemas(writer, name)) or names.is_disjoint(listed_cases([name]))
        for name, schema in reader["properties"].items()
    )


def _patterns_follow(proof: StructuralProver, reader: dict[str, Json], writer: Parts) -> bool:
    if not is_possible_type("object", writer):
        return True
    for pattern, schema in reader["patternProperties"].items():
        equal = [part["patternProperties"][pattern] for part in writer if pattern in part.get("patternProperties", {})]
        if not (equal and proof.covers_inside(schema, tuple(equal))) and not _covers_members(
            proof, schema, writer, proof.member_names(writer, pattern_cases(pattern)), {}
        ):
            return False
    return True


def _additional_follows(proof: StructuralProver, reader: dict[str, Json], writer: Parts) -> bool:
    if not is_possible_type("object", writer):
        return True
    names = proof.member_names(writer, other_names(reader))
    return _covers_members(proof, reader["additionalProperties"], writer, names, reader)


def _covers_members(
    proof: StructuralProver, schema: Json, writer: Parts, names: MemberNames, siblings: dict[str, Json]
) -> bool:
    """Return whether a schema covers every member of the writer's objects with one of the names.

    siblings is a schema that mentions none of these names.
    """
    for name in {name: None for part in writer for name in part.get("properties", {})}:
        if not (
            has_member_schema(siblings, name)
            or proof.covers_inside(schema, member_schemas(writer, name))
            or names.is_disjoint(listed_cases([name]))
        ):
            return False
    patterns = [pair for part in writer for pair in part.get("patternProperties", {}).items()]
    if any(
        names.is_disjoint(pattern_cases(each, wanted=False)) and proof.covers_inside(schema, (own,))
        for each, own in patterns
    ):
        return True
    for pattern, inner in patterns:
        if not (
            pattern in siblings.get("patternProperties", ())
            or proof.covers_inside(schema, (inner,))
            or names.is_disjoint(pattern_cases(pattern))
        ):
            return False
    rest = tuple(part.get("additionalProperties", True) for part in writer)
    return proof.covers_inside(schema, rest) or any(names.is_disjoint(other_names(part)) for part in writer)


def _prefix_follows(proof: StructuralProver, reader: dict[str, Json], writer: Parts) -> bool:
    if not is_possible_type("array", writer):
        return True
    most = longest_array(writer)
    return all(
        index >= most or proof.covers_inside(schema, item_schemas(writer, index))
        for index, schema in enumerate(reader["prefixItems"])
    )


def _items_follow(proof: StructuralProver, reader: dict[str, Json], writer: Parts) -> bool:
    if not is_possible_type("array", writer):
        return True
    most = longest_array(writer)
    start = len(reader.get("prefixItems", ()))
    end = max((len(part.get("prefixItems", ())) for part in writer), default=0)
    return all(
        index >= most or proof.covers_inside(reader["items"], item_schemas(writer, index))
        for index in range(start, max(start, end) + 1)
    )


def _contains_follows(proof: StructuralProver, reader: dict[str, Json], writer: Parts) -> bool:
    least = reader.get("minContains", 1)
    if "contains" not in reader or not is_possible_type("array", writer):
        return True
    if "maxContains" in reader:
        return False
    return least == 0 or any(
        "contains" in part
        and least <= part.get("minContains", 1)
        and proof.covers_inside(reader["contains"], (part["contains"],))
        for part in writer
    )


def _property_names_follow(proof: StructuralProver, reader: dict[str, Json], writer: Parts) -> bool:
    wanted = reader["propertyNames"]
    return (
        not is_possible_type("object", writer)
        or any("propertyNames" in part and proof.covers_inside(wanted, (part["propertyNames"],)) for part in writer)
        or proof.member_names(writer).is_within(wanted)
    )


def _enum_follows(_proof: StructuralProver, reader: dict[str, Json], writer: Parts) -> bool:
    return _is_among(reader["enum"], writer)


def _const_follows(_proof: StructuralProver, reader: dict[str, Json], writer: Parts) -> bool:
    return _is_among([reader["const"]], writer)


def _is_among(allowed: list[Json], writer: Parts) -> bool:
    known = set(map(to_hashable, allowed))
    return any(
        values is not None and known.issuperset(map(to_hashable, values)) for values in map(listed_values, writer)
    )


def _rules_for(*keywords: str, rule: Rule) -> Iterator[tuple[str, Rule]]:
    return ((keyword, rule) for keyword in keywords)


_RULES: dict[str, Rule] = dict(
    (
        *_rules_for("anyOf", rule=_any_of_follows),
        *_rules_for("oneOf", rule=_one_of_follows),
        *_rules_for("not", rule=_not_follows),
        *_rules_for("if", rule=_if_follows),
        *_rules_for("then", "else", rule=_then_follows),
        *_rules_for("dependentRequired", "dependentSchemas", "dependencies", rule=_dependencies_follow),
        *_rules_for("properties", rule=_properties_follow),
        *_rules_for("patternProperties", rule=_patterns_follow),
        *_rules_for("additionalProperties", rule=_additional_follows),
        *_rules_for("prefixItems", rule=_prefix_follows),
        *_rules_for("items", rule=_items_follow),
        *_rules_for("contains", "minContains", "maxContains", rule=_contains_follows),
        *_rules_for("propertyNames", rule=_property_names_follow),
        *_rules_for("enum", rule=_enum_follows),
        *_rules_for("const", rule=_const_follows),
    )
)
