"""Limits on how many schemas a validator applies to one and the same value.

Branches that share definitions multiply: thirty levels of `anyOf: [a, a]` check a single number a billion times. No
validator can be interrupted, so such a schema is refused before one is built.
"""

from __future__ import annotations

from collections.abc import Iterator

from stele.errors import MalformedSchema
from stele.formats.jsonschema.json_text import Json
from stele.formats.jsonschema.resolve import Links

MAX_LOOKS = 20_000
"""Times a schema may be applied to one value, counted over all branches."""

_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLES = ("not", "if", "then", "else")
_NAMED = ("dependentSchemas", "dependencies")


def refuse_branch_explosion(root: Json, links: Links) -> None:
    """Raise `MalformedSchema` when some chain of branches comes to more than `MAX_LOOKS`; linear in the schema."""
    looks: dict[int, int] = {}
    for start in (root, *links.targets.values()):
        stack: list[tuple[Json, Iterator[Json]]] = [(start, _same_value_schemas(start, links))]
        while stack:
            schema, branches = stack[-1]
            branch = next(branches, None)
            if branch is None:
                stack.pop()
                total = 1 + sum(looks.get(id(inner), 1) for inner in _same_value_schemas(schema, links))
                if total > MAX_LOOKS:
                    raise MalformedSchema(
                        f"its branches would apply more than {MAX_LOOKS} schemas to one value", path="#"
                    )
                looks[id(schema)] = total
            elif isinstance(branch, dict) and id(branch) not in looks:
                looks[id(branch)] = 1
                stack.append((branch, _same_value_schemas(branch, links)))


def has_reference_loops(links: Links) -> bool:
    """Return whether some schema applies itself to the very value it is applied to.

    What such a schema means is left open by every draft, and validators decide it by where they come in.
    """
    done: set[int] = set()
    for start in links.targets.values():
        path: set[int] = set()
        stack: list[tuple[Json, Iterator[Json]]] = [(start, _same_value_schemas(start, links))]
        while stack:
            schema, branches = stack[-1]
            path.add(id(schema))
            branch = next(branches, None)
            if branch is None:
                stack.pop()
                path.discard(id(schema))
                done.add(id(schema))
            elif isinstance(branch, dict) and id(branch) in path:
                return True
            elif isinstance(branch, dict) and id(branch) not in done:
                stack.append((branch, _same_value_schemas(branch, links)))
    return False


def _same_value_schemas(schema: Json, links: Links) -> Iterator[Json]:
    """Yield the schemas that this one applies to the same value."""
    if not isinstance(schema, dict):
        return
    if id(schema) in links.targets:
        yield links.targets[id(schema)]
    for keyword in _LISTS:
        members = schema.get(keyword)
        if isinstance(members, list):
            yield from members
    for keyword in _SINGLES:
        if keyword in schema:
            yield schema[keyword]
    for keyword in _NAMED:
        named = schema.get(keyword)
        if isinstance(named, dict):
            yield from named.values()
