"""Answers the questions of `decide`: can this schema read that one's data? Verdicts never change, so they are kept."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from stele.core.findings import Finding
from stele.core.ports import Format
from stele.core.questions import CHECKER, Question, Verdicts
from stele.core.state import State
from stele.errors import UnknownRuleset
from stele.formats import catalogue
from stele.service.schemas import Schemas, Texts, texts_of

_REMEMBERED = 50_000


class Judge:
    """Asks the formats, off the event loop, and remembers."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._known: OrderedDict[Question, tuple[Finding, ...]] = OrderedDict()

    @property
    def known(self) -> Verdicts:
        """Verdicts found so far; may forget old ones."""
        return self._known

    async def answer(
        self, state: State, questions: tuple[Question, ...], extra: Mapping[bytes, bytes]
    ) -> dict[Question, tuple[Finding, ...]]:
        """Verdicts for the questions, in order, up to the first that refuses: nobody asks for the rest then."""
        work = [(q, texts_of(state, q.reader, extra), texts_of(state, q.writer, extra)) for q in questions]
        found = await asyncio.to_thread(self._answer, work)
        self._known.update(found)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found

    def _answer(self, work: list[tuple[Question, Texts, Texts]]) -> dict[Question, tuple[Finding, ...]]:
        found: dict[Question, tuple[Finding, ...]] = {}
        for question, reader_texts, writer_texts in work:
            if question.ruleset.startswith(CHECKER):
                # A policy asks for more than is installed: refusing is the only safe answer.
                raise UnknownRuleset(f"no validator '{question.ruleset.removeprefix(CHECKER)}' is installed")
            fmt = catalogue.get(question.format)
            reader = self._schemas.parsed(fmt, question.reader, reader_texts)
            writer = self._schemas.parsed(fmt, question.writer, writer_texts)
            findings = tuple(fmt.check(reader, writer, applicable(fmt, question.ruleset)))
            found[question] = findings
            if any(finding.breaks for finding in findings):
                break
        return found


def applicable(fmt: Format[Any], ruleset: str) -> str:
    """A preferred ruleset where the format has it, else its default ('')."""
    return ruleset if ruleset in fmt.rulesets else ""
