"""Evaluates questions in this process, without strict limits of time and memory; see `sandbox` for those."""

from __future__ import annotations

from importlib.util import find_spec

from stele.errors import NotInstalled
from stele.expressions.questions import Answer, CelQuestion, JsonataQuestion, Question

_LIBRARIES = {"celpy": "cel-python", "jsonata": "jsonata-python"}


def require_library(module: str) -> None:
    """Raise `NotInstalled` if the library of a language is missing. It is not imported, because that is slow."""
    if find_spec(module) is None:
        raise NotInstalled(_LIBRARIES[module], "rules")


def load_language(question: Question) -> None:
    """Import the library for a question, and build its grammar."""
    evaluate_question(CelQuestion("true", {}) if isinstance(question, CelQuestion) else JsonataQuestion("1", None))


def evaluate_question(question: Question) -> Answer:
    """Return the answer to a question. Raises the errors of the expression and of its library."""
    if isinstance(question, CelQuestion):
        from stele.expressions import cel

        return cel.evaluate_cel(question)
    from stele.expressions import jsonata

    return Answer(True, jsonata.evaluate_jsonata(question))
