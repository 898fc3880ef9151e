"""The proving process: run by `subprocess_prover.py`, reads one JSON line per question, answers with one line.

It imports nothing of Stele, so that it starts quickly. A question is
`[draft, formats, backtrack limit, pattern size limit, reader, writer]`; the answer is `yes` when the reader is proved
to allow all the writer allows, else `no`, `unknown` or the name of an error.
"""

from __future__ import annotations

import contextlib
import json
import sys
from decimal import Decimal
from typing import Any, BinaryIO

MEMORY_LIMIT = 2 << 30
"""Address space of the process, in bytes: a schema that needs more ends the process, not the machine."""


def answer_question(question: bytes) -> str:
    """Return the answer to one question."""
    import jsonschema_rs  # here, because the path it is found on comes as an argument

    draft, formats, steps, size, reader, writer = json.loads(question, parse_float=Decimal, parse_int=_parse_integer)
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


def _parse_integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= 19 else Decimal(text)


def main(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the questions end."""
    for question in questions:
        answers.write(answer_question(question).encode() + b"\n")
        answers.flush()


def _limit_memory() -> None:
    try:
        import resource  # POSIX only
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):  # a lower limit may be in force already
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


if __name__ == "__main__":
    sys.path[:0] = sys.argv[1:]
    _limit_memory()
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        main(sys.stdin.buffer, sys.stdout.buffer)
