r"""Patterns of schemas: their cost in the engine, a budget for all patterns of one schema, and matching.

Twelve characters such as `^\p{L}{50}a$` have a compiled form of megabytes, and the engine cannot be interrupted while
it compiles. So the size of every pattern is first estimated from its text. If the estimate is not small, a process that
can be killed compiles the pattern and measures its size.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import jsonschema_rs
from cachetools import LRUCache, cached

from stele.errors import MalformedSchema
from stele.formats.jsonschema.drafts import list_subschemas
from stele.formats.jsonschema.engine_process import EngineProcess
from stele.formats.jsonschema.engine_worker import SMALLEST_COST
from stele.formats.jsonschema.json_text import Json, json_pointer, shorten_message
from stele.formats.jsonschema.resolve import Links

BACKTRACK_LIMIT: Final = 200_000
"""Maximum number of backtracking steps of a pattern on one string."""

PATTERN_SIZE_LIMIT: Final = 4 << 20
"""Maximum size in bytes of the compiled form of one pattern."""

PATTERN_LIMITS: Final = jsonschema_rs.FancyRegexOptions(
    backtrack_limit=BACKTRACK_LIMIT, size_limit=PATTERN_SIZE_LIMIT, dfa_size_limit=PATTERN_SIZE_LIMIT
)
"""Limits of user patterns: a larger pattern is rejected with its schema, a slower one counts as not matching."""

PATTERN_BUDGET: Final = 32 << 20
"""Maximum size in bytes of the compiled patterns of a schema and its references; 20 MiB take about 0.15 s."""

SMALL_PATTERNS: Final = 4 << 20
"""Size in bytes up to which the sum of estimates is used without a measurement."""

DEADLINE: Final = 5.0
"""Maximum wall-clock seconds to measure the patterns of one schema; `engine_worker.PROCESSOR_LIMIT` comes first."""

_METER: Final = EngineProcess(DEADLINE)


class PatternSite(NamedTuple):
    """A pattern, and its JSON Pointer after the name of the reference that contains it."""

    pattern: str
    path: str


class OversizedPattern(MalformedSchema):
    """A pattern takes more time or memory than it may, under every draft."""


def measure_patterns(root: Json, references: Mapping[str, Json], links: Links) -> int:
    """Return the approximate size in bytes of the compiled patterns of a schema and its references.

    Raises `OversizedPattern`, which names the pattern, when one of them or all together take too much. Raises
    `Unavailable` when the process that measures them cannot be started.
    """
    sites = {site.pattern: site for site in _list_patterns(root, references, links)}
    estimates = {pattern: estimate_pattern(pattern) for pattern in sites}
    total = sum(estimates.values())
    if total <= SMALL_PATTERNS:
        return int(total)
    total = 0
    for pattern, cost in _measure_costs(list(sites)).items():
        excerpt, path = repr(shorten_message(pattern, 80)), sites[pattern].path
        if cost is None:
            raise OversizedPattern(f"the pattern {excerpt} takes too long to compile", path=path)
        if not cost and estimates[pattern] > PATTERN_SIZE_LIMIT:
            why = f"the pattern {excerpt} is malformed, or takes more than {PATTERN_SIZE_LIMIT >> 20} MiB when compiled"
            raise OversizedPattern(why, path=path, expected="a regular expression that takes less")
        total += cost
        if total > PATTERN_BUDGET:
            why = f"with the pattern {excerpt}, the patterns take more than {PATTERN_BUDGET >> 20} MiB when compiled"
            raise OversizedPattern(why, path=path, expected="fewer or smaller patterns")
    return int(total)


def _measure_costs(patterns: list[str]) -> Mapping[str, int | None]:
    """Return the size in bytes of each pattern, 0 for one that cannot be compiled, None for the one that took too long.

    The patterns after that one are left out.
    """
    question = ("costs", BACKTRACK_LIMIT, PATTERN_SIZE_LIMIT, PATTERN_BUDGET, patterns)
    costs: list[str] = []
    for _ in range(2):  # the process may have died for another reason than a pattern
        costs = _METER.ask(question, len(patterns))
        if len(costs) == len(patterns):
            break
    return dict(zip(patterns, [*map(int, costs), None], strict=False))


def _list_patterns(root: Json, references: Mapping[str, Json], links: Links) -> Iterator[PatternSite]:
    """Yield the patterns of a schema, of its references, and of other targets of references."""
    waiting: list[tuple[Json, str, tuple[str | int, ...]]] = [(target, "", ()) for target in links.targets.values()]
    waiting += [(text, label, ()) for label, text in references.items()]
    waiting.append((root, "", ()))
    seen: set[int] = set()
    while waiting:
        schema, label, path = waiting.pop()
        if not isinstance(schema, dict) or id(schema) in seen:
            continue
        seen.add(id(schema))
        if isinstance(pattern := schema.get("pattern"), str):
            yield PatternSite(pattern, label + json_pointer((*path, "pattern")))
        if isinstance(patterns := schema.get("patternProperties"), dict):
            for pattern in patterns:
                yield PatternSite(pattern, label + json_pointer((*path, "patternProperties", pattern)))
        waiting += [(inner, label, (*path, *step)) for step, inner in list_subschemas(schema)]


# --- estimates ------------------------------------------------------------------------------------------------------

_TOKEN: Final = re.compile(
    r"\\(?:[pP]\{[^}]*\}?|.)|\[(?:\\.|[^\]\\])*\]?|\((?:\?(?:[:=!]|<[=!]?))?|\)|\{(\d{1,9})(?:,(\d{0,9}))?\}|.",
    re.DOTALL,
)
_FLAGS: Final = re.compile(r"\(\?(?![:=!<])")
_PLAIN_CLASS: Final = re.compile(r"\[(?!\^)(?:[\x00-\x5b\x5d-\x7f]|\\[dwtnrfv0\-\]\[^.\\/+*?$|(){}])*\]")
_CHAR: Final = 256
_ASCII_CLASS: Final = 1 << 10
_CLASS: Final = 4 << 10
_LARGE_CLASS: Final = 256 << 10
"""Size in bytes of the compiled form of a long character class, as measured.

This also holds for properties of Unicode. The constants above are the sizes of a character, of a class of ASCII
characters, and of a class of other characters.
"""

_BACKTRACKING: Final = re.compile(r"\(\?<?[=!]|\\[1-9k]")
r"""Lookaround and backreferences. With them, the engine reads `\w`, `\d` and `\s` as classes of Unicode."""
_ESCAPES: Final = {"p": _LARGE_CLASS, "P": _LARGE_CLASS, **dict.fromkeys("sSWDuxc", _CLASS)}
"""Size in bytes of escapes by their letter; others have the size of a character."""
_UNICODE_ESCAPES: Final = {**_ESCAPES, **dict.fromkeys("wW", _LARGE_CLASS), **dict.fromkeys("dDsS", 4 * _CLASS)}
"""The same for patterns with lookaround or backreferences."""


def estimate_pattern(pattern: str) -> float:
    """Return an upper bound of the size in bytes of a pattern's compiled form, from its text alone.

    A repeated part counts as often as it can occur. The result is infinity for syntax that is not understood here.
    """
    if _FLAGS.search(pattern):
        return float("inf")
    sums: list[float] = [SMALLEST_COST]
    last: float = 0
    escapes = _UNICODE_ESCAPES if _BACKTRACKING.search(pattern) else _ESCAPES
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if text.startswith("("):
            sums.append(_CHAR)
        elif text == ")":
            if len(sums) == 1:
                return float("inf")
            last = sums.pop()
            sums[-1] += last
        elif token[1] is not None:
            more = last * (max(int(token[1]), int(token[2] or 0), 1) - 1)
            sums[-1] += more
            last += more
        elif text not in "*+?":
            last = _estimate_character(text, escapes)
            sums[-1] += last
    return sum(sums)


def _estimate_character(text: str, escapes: Mapping[str, int]) -> int:
    """Return the bytes of one character, class or escape; escapes are the sizes of escapes by letter."""
    if text.startswith("[") and len(text) > 1:
        largest = max((escapes.get(letter, 0) for letter in re.findall(r"\\(.)", text)), default=0)
        if largest <= _CLASS and _PLAIN_CLASS.fullmatch(text):
            return _ASCII_CLASS
        return max(largest, _LARGE_CLASS if len(text) > 64 else _CLASS)
    if text.startswith("\\"):
        return escapes.get(text[1:2], _CHAR)
    return _CLASS if text == "." or not text.isascii() else _CHAR


# --- matching -------------------------------------------------------------------------------------------------------

_CACHE_BYTES: Final = 16 << 20


class _CompiledPattern(NamedTuple):
    """A pattern as a validator, None for one that is malformed or too large, with its size in bytes."""

    validator: jsonschema_rs.Validator | None
    size: int


@cached(LRUCache(_CACHE_BYTES, getsizeof=lambda compiled: compiled.size), lock=threading.Lock())
def _compile_pattern(pattern: str) -> _CompiledPattern:
    size = min(int(min(estimate_pattern(pattern), PATTERN_SIZE_LIMIT)) + len(pattern), _CACHE_BYTES)
    try:
        schema = {"type": "string", "pattern": pattern}
        return _CompiledPattern(jsonschema_rs.Draft7Validator(schema, pattern_options=PATTERN_LIMITS), size)
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
        return _CompiledPattern(None, size)


def pattern_matches(pattern: str, name: str) -> bool:
    """Return whether an ECMA-262 pattern is found in a name; False for patterns that are wrong, too big or too slow."""
    validator = _compile_pattern(pattern).validator
    try:
        return validator is not None and validator.is_valid(name)
    except (ValueError, jsonschema_rs.ValidationError):
        return False
