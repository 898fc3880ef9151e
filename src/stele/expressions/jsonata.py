"""JSONata expressions on plain values."""

from __future__ import annotations

from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import jsonata as library  # type: ignore[import-untyped]  # ships no types
import re2  # type: ignore[import-untyped]  # ships no types
from jsonata.regex_engine import default_regex_engine  # type: ignore[import-untyped]  # ships no types

from stele.errors import TooLarge
from stele.expressions.questions import JsonataQuestion

if TYPE_CHECKING:
    from jsonata.regex_engine import RegexFlags

MAX_EXPRESSION: Final = 100_000
"""Most characters of an expression."""
MAX_MILLISECONDS: Final = 10_000
"""Time limit for loops of one evaluation, because some never end. It does not stop single functions."""
_KEPT: Final = 256


def evaluate_jsonata(question: JsonataQuestion) -> Any:
    """Return the result as plain Python values. Raises `TooLarge`, and errors of the library."""
    return _compile_expression(question.expression).evaluate(question.value)


class Expression:
    """A compiled expression. The library's object has state, so one thread at a time uses it."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_EXPRESSION:
            raise TooLarge(f"an expression of {len(text)} characters is longer than {MAX_EXPRESSION}")
        self._compiled = library.Jsonata(text, _compile_pattern)
        self._compiled.validate_input = False  # it would refuse bytes and dates, which may pass through
        self._lock = Lock()

    def evaluate(self, value: Any) -> Any:
        """Return the result as plain Python values. Raises errors of the library."""
        with self._lock:
            self._compiled.environment.set_runtime_bounds(MAX_MILLISECONDS, None)  # the clock starts here
            return _to_plain(self._compiled.evaluate(value))


_compile_expression = lru_cache(_KEPT)(Expression)


def _compile_pattern(pattern: str, flags: RegexFlags) -> Any:
    """Compile a regex for RE2, which takes linear time. Look-arounds and back references use Python's engine."""
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not flags.case_insensitive
    prefix = "(?m)" if flags.multiline else ""
    try:
        return re2.compile(prefix + pattern, options)
    except re2.error:
        return default_regex_engine(pattern, flags)


def _to_plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _to_plain(item) for key, item in value.items()}
        case list():
            return [_to_plain(item) for item in value]
    return value
