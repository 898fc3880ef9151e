"""The engine process: run by `engine_process.py`, reads one JSON line per question, answers with lines of text.

It imports nothing of Stele but `worker_limits`, so that it starts quickly. There are two questions:

    ["covers", draft, formats, backtrack limit, pattern size limit, reader, writer]
        one line: `yes` when the reader is proved to allow all the writer allows, else `no`, `unknown` or an error
    ["costs", backtrack limit, pattern size limit, budget, [pattern, …]]
        one line for each pattern: the size limit in bytes that its compiled form needs, a power of two; 0 for one that
        cannot be compiled, and for those after the budget is spent
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, BinaryIO

MEMORY_LIMIT = 2 << 30
"""Maximum address space of the process, in bytes. A schema that needs more ends only this process."""

PROCESSOR_LIMIT = 1.0
"""Seconds of processor time for the patterns of one schema; the system ends a process that takes more."""

SMALLEST_COST = 4 << 10
"""Least size in bytes that is counted for a pattern."""


def answer_question(question: bytes) -> Iterator[str]:
    """Yield the lines of the answer to one question."""
    kind, *arguments = json.loads(question, parse_float=Decimal, parse_int=_parse_integer)
    if kind == "covers":
        yield _compare_schemas(*arguments)
        return
    from stele.worker_limits import limit_time  # here, because the path it is found on comes as an argument

    limit_time(PROCESSOR_LIMIT)
    yield from _measure_patterns(*arguments)
    limit_time(0)


def _compare_schemas(draft: int, formats: bool, steps: int, size: int, reader: Any, writer: Any) -> str:
    import jsonschema_rs  # here, because the path it is found on comes as an argument

    options: dict[str, Any] = {
        "draft": draft,
        "validate_formats": formats,
        "pattern_options": jsonschema_rs.FancyRegexOptions(steps, size, size),
        "offline": True,
    }
    try:
        canonical = jsonschema_rs.canonicalize(reader, **options)
        return str(canonical.covers(jsonschema_rs.canonicalize(writer, **options)).value)
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        return type(error).__name__


def _measure_patterns(steps: int, size: int, budget: int, patterns: Sequence[str]) -> Iterator[str]:
    left = budget
    for pattern in patterns:
        cost = _measure_pattern(pattern, steps, size) if left >= 0 else 0
        left -= cost
        yield str(cost)


def _measure_pattern(pattern: str, steps: int, size: int) -> int:
    """Return the least power of two, in bytes, under which the engine compiles the pattern; 0 if size is too small."""
    import jsonschema_rs

    limit = SMALLEST_COST
    while limit <= size:
        with contextlib.suppress(ValueError, jsonschema_rs.ValidationError):
            options = jsonschema_rs.FancyRegexOptions(steps, limit, limit)
            jsonschema_rs.Draft7Validator({"pattern": pattern}, pattern_options=options)
            return limit
        limit *= 2
    return 0


def _parse_integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= 19 else Decimal(text)


def main(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer questions until the input ends."""
    for question in questions:
        for line in answer_question(question):
            answers.write(line.encode() + b"\n")
            answers.flush()


if __name__ == "__main__":
    sys.path[:0] = sys.argv[1:]
    from stele.worker_limits import limit_memory

    limit_memory(MEMORY_LIMIT)
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        main(sys.stdin.buffer, sys.stdout.buffer)
