"""Rules of the type JSONATA: a value of one version made into one of another by an expression."""

from __future__ import annotations

from functools import lru_cache
from threading import Lock
from typing import Any, Final

from stele.client.serdes.rules.model import RuleContext, RuleExecutor, Tools
from stele.errors import NotInstalled, TooLarge

try:
    import jsonata as library  # type: ignore[import-untyped]  # ships no types
except ImportError:
    raise NotInstalled("jsonata-python", "rules") from None

MAX_EXPRESSION: Final = 100_000
"""Characters of an expression."""
MAX_MILLISECONDS: Final = 10_000
"""How long one value may take: the language has loops that never end."""
_KEPT: Final = 256


class JsonataExecutor(RuleExecutor):
    """Type JSONATA; Protobuf messages come and go as dicts in their JSON mapping."""

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._expression = lru_cache(_KEPT)(Expression)

    def run(self, context: RuleContext, value: Any) -> Any:
        """See `RuleExecutor`."""
        return self._expression(context.rule.expr or "").evaluate(value)


class Expression:
    """A compiled expression; the library's own keep what they are at, so one thread at a time uses it."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_EXPRESSION:
            raise TooLarge(f"an expression of {len(text)} characters is longer than {MAX_EXPRESSION}")
        self._compiled = library.Jsonata(text)
        self._compiled.validate_input = False  # it knows no bytes and dates, which may pass through
        self._lock = Lock()

    def evaluate(self, value: Any) -> Any:
        """The result as plain Python values. Raises what the library raises."""
        with self._lock:
            self._compiled.environment.set_runtime_bounds(MAX_MILLISECONDS, None)  # the clock starts here
            return _to_plain(self._compiled.evaluate(value))


def _to_plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _to_plain(item) for key, item in value.items()}
        case list():
            return [_to_plain(item) for item in value]
    return value
