"""The material for the tests of a format: its case lines, and the schemas found in them, parsed once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from stele.core.findings import Finding
from stele.core.ports import Format, Parsed
from stele.core.rulesets import split_ruleset
from stele.errors import MalformedSchema
from stele.formats import rulesets
from stele.testing.format_cases import FormatCase, compared_pairs, read_cases

__all__ = ["FormatMaterial", "FormatSample", "ParsedSample", "fail_with", "run_bounded"]

T = TypeVar("T")


class FormatSample(NamedTuple):
    """A schema of the format: the id of its case line, its document and its references."""

    id: str
    text: bytes
    references: Mapping[str, bytes]


class ParsedSample(NamedTuple):
    """A sample and its parsed form."""

    sample: FormatSample
    parsed: Parsed


@dataclass(frozen=True)
class FormatMaterial:
    """A format and the known facts about its schemas.

    format         the object the entry point names
    cases          case lines; those of other formats are left out
    judged_by      by a ruleset that the format does not have: the ruleset of the format that is used for its lines; ''
                   for none: those lines are examples only
    data_rulesets  rulesets whose verdict `compatible` promises that a reader's codec decodes what a writer's codec
                   wrote; None: the first one
    broken         lines for which that promise is known not to hold for the example of the writer's schema, each with
                   the reason
    at_most        number of samples without references that are used in all tests (evenly spread); tests of verdicts
                   use every line
    seconds        time limit of one call with hostile input
    """

    format: Format[Any]
    cases: Sequence[FormatCase]
    judged_by: Mapping[str, str] = field(default_factory=dict)
    data_rulesets: Sequence[str] | None = None
    broken: Mapping[str, str] = field(default_factory=dict)
    at_most: int = 40
    seconds: float = 60.0

    @classmethod
    def read_files(cls, format: Format[Any], places: Iterable[Path], **options: Any) -> Self:  # noqa: A002 - the port's word
        """Return the material in case files, or folders of them; options are the other members."""
        return cls(format, [case for case in read_cases(places) if case.format == format.name], **options)

    @cached_property
    def uncontested_cases(self) -> list[FormatCase]:
        """The case lines that are not contested."""
        return [case for case in self.cases if not case.contested]

    @cached_property
    def samples(self) -> list[FormatSample]:
        """Every different document that a case line calls a schema."""
        samples: dict[tuple[bytes, tuple[str, ...]], FormatSample] = {}
        for case in self.uncontested_cases:
            texts = [side for pair in compared_pairs(case) for side in pair] if case.compiles else []
            if case.schema is not None and case.valid is not False:
                texts += [case.schema_text, *(text.encode() for text in case.equal)]
            for text in texts:
                samples.setdefault((text, tuple(case.references)), FormatSample(case.id, text, case.reference_texts))
        return list(samples.values())

    @cached_property
    def parsed_samples(self) -> list[ParsedSample]:
        """All samples with references and up to `at_most` of the others, parsed.

        Samples that strict parsing refuses are left out.
        """
        trials = []
        for sample in self.samples:
            try:
                trials.append(ParsedSample(sample, self.format.parse(sample.text, sample.references)))
            except MalformedSchema:
                continue
        # Few schemas refer to others, and those that do are never left out.
        rare = [trial for trial in trials if trial.sample.references]
        rest = [trial for trial in trials if not trial.sample.references]
        return rare + rest[:: max(1, -(-len(rest) // self.at_most))]

    def ruleset_of(self, case: FormatCase) -> str | None:
        """Return the ruleset for a line; None when the line is an example only, or its ruleset is unknown."""
        if case.ruleset in ("", *self.format.rulesets, *(split_ruleset(name)[0] for name in self.format.rulesets)):
            return case.ruleset
        return self.judged_by.get(case.ruleset) or None

    def check(self, reader: Parsed, writer: Parsed, ruleset: str) -> list[Finding]:
        """Return the findings of a ruleset by its full or bare name ('': the default), as a registry would."""
        if not ruleset:
            return self.format.check(reader, writer)
        return rulesets.run_ruleset(self.format, reader, writer, rulesets.newest_ruleset(self.format, ruleset))

    def parse(self, text: bytes, references: Mapping[str, bytes]) -> Parsed:
        """Return the document, parsed with strict=False as for texts of an older registry. Results are cached."""
        key = (text, tuple(references.items()))
        if key not in self._parsed_by_text:
            self._parsed_by_text[key] = self.format.parse(text, references, strict=False)
        return self._parsed_by_text[key]

    @cached_property
    def _parsed_by_text(self) -> dict[tuple[bytes, tuple[tuple[str, bytes], ...]], Parsed]:
        return {}


def fail_with(faults: Iterable[str]) -> None:
    """Fail the test when there are faults. Raises `AssertionError` with the first ones."""
    messages = list(faults)
    if messages:
        more = [f"… and {len(messages) - 20} more"] if len(messages) > 20 else []
        raise AssertionError("\n".join([f"{len(messages)} found wrong:", *messages[:20], *more]))


def run_bounded(seconds: float, call: Callable[[], T]) -> T:
    """Run a call in its own thread, and return or raise its result.

    Raises `AssertionError` when it takes longer than `seconds`.
    """
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)  # a thread that hangs must not keep the process alive
    thread.start()
    thread.join(seconds)
    if not answer.done():
        raise AssertionError(f"no answer within {seconds:g} s")
    return answer.result()
