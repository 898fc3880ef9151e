"""Evaluates questions in this process. Time and memory have no bounds here that hold; see `sandbox` for those."""

from __future__ import annotations

from importlib.util import find_spec

from stele.errors import NotInstalled
from stele.expressions.questions import Answer, CelQuestion, JsonataQuestion, Question

_LIBRARIES = {"celpy": "cel-python", "jsonata": "jsonata-python"}


def require_library(module: str) -> None:
    """Raise `NotInstalled` if the library of a language is missing. Nothing is imported, as that takes a while."""
    if find_spec(module) is None:
        raise NotInstalled(_LIBRARIES[module], "rules")


def load_language(question: Question) -> None:
    """Import what evaluates a question, and build its grammar."""
    evaluate_question(CelQuestion("true", {}) if isinstance(question, CelQuestion) else JsonataQuestion("1", None))


def evaluate_question(question: Question) -> Answer:
    """Return the answer to a question. Raises what the expression and its library raise."""
    if isinstance(question, CelQuestion):
        from stele.expressions import cel

        return cel.evaluate_cel(question)
    from stele.expressions import jsonata

    return Answer(True, jsonata.evaluate_jsonata(question))
