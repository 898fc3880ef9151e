"""Judges every published case and writes docs/reference/conformance.md and the table in README.md.

With --check it reports whether both agree with the code. Times are printed on the terminal only, because they vary.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from tools import json_suite

from stele.core.ports import TextForm
from stele.errors import MalformedSchema
from stele.formats import rulesets
from stele.formats.jsonschema.containment import search
from stele.formats.registry import get_format
from stele.testing.format_cases import FormatCase, compared_pairs, read_cases
from stele.testing.format_material import FormatMaterial

ROOT: Final = Path(__file__).parent.parent
CASES: Final = ROOT / "tests" / "conformance" / "formats" / "cases"
PAGE: Final = ROOT / "docs" / "reference" / "conformance.md"
README: Final = ROOT / "README.md"
MARKED: Final = re.compile(r"(<!-- conformance -->\n).*?(<!-- /conformance -->)", re.DOTALL)

TITLES: Final = {"avro": "Avro", "json": "JSON Schema", "protobuf": "Protobuf", "thrift": "Thrift", "xsd": "XSD"}


class Suite(NamedTuple):
    """A case file.

    file     its name
    material its format and cases
    ruleset  ruleset that its labels follow; '' without verdicts
    judge    Stele's ruleset that judges it; '' if there is none
    """

    file: str
    material: FormatMaterial
    ruleset: str
    judge: str

    @property
    def format(self) -> str:
        """Name of the format of all its lines."""
        return self.material.format.name


class Score(NamedTuple):
    """Counts of the cases of a suite, and the seconds to judge them.

    lines        all cases
    uncontested  cases whose label is not contested
    right        uncontested cases that are judged as labelled; None without a judge
    contested    cases whose label is contested
    agreed       contested cases that are judged as labelled; None without a judge
    seconds      time of the judgement
    """

    lines: int
    uncontested: int
    right: int | None
    contested: int
    agreed: int | None
    seconds: float


def load_suites() -> Iterator[Suite]:
    """Yield the published files. All cases of a file have one format and one ruleset."""
    for file in sorted(CASES.glob("*.jsonl")):
        cases = list(read_cases([file]))
        fmt = get_format(cases[0].format)
        material = FormatMaterial(fmt, cases)
        ruleset = cases[0].ruleset
        named = (material.ruleset_of(cases[0]) or "") if ruleset else ""
        yield Suite(file.name, material, ruleset, rulesets.newest_ruleset(fmt, named) if named else "")


def judge_case(material: FormatMaterial, case: FormatCase, ruleset: str) -> bool | None:
    """Return the verdict of a ruleset on a case, or None if a document is no valid schema."""
    try:
        pairs = [[material.parse(side, case.reference_texts) for side in pair] for pair in compared_pairs(case)]
    except MalformedSchema:
        return None
    return not any(finding.breaks for reader, writer in pairs for finding in material.check(reader, writer, ruleset))


def is_right(suite: Suite, case: FormatCase) -> bool:
    """Return whether Stele agrees with everything that a case states."""
    if case.compatible is not None:
        return judge_case(suite.material, case, suite.judge) is (case.compatible if case.compiles else None)
    try:
        parsed: Any = suite.material.format.parse(case.schema_text, {}, strict=case.valid is not None)
    except MalformedSchema:
        return case.valid is False
    canonical = suite.material.format.canonical(parsed, TextForm.CANONICAL).decode()
    rabin = suite.material.format.fingerprints(parsed).get("rabin", b"")
    return (
        case.valid is not False
        and case.canonical in (None, canonical)
        and case.crc64_signed in (None, int.from_bytes(rabin, "big", signed=True))
    )


def score_suite(suite: Suite) -> Score:
    """Return the score of a suite under the ruleset that judges it."""
    started = time.perf_counter()
    cases = suite.material.cases
    plain = [case for case in cases if not case.contested]
    contested = [case for case in cases if case.contested]
    is_judged = bool(suite.judge) or not suite.ruleset
    right = sum(is_right(suite, case) for case in plain) if is_judged else None
    agreed = sum(is_right(suite, case) for case in contested) if is_judged else None
    return Score(len(cases), len(plain), right, len(contested), agreed, time.perf_counter() - started)


def compare_rulesets(suite: Suite) -> Iterator[tuple[str, ...]]:
    """Yield a row for each ruleset of the format: how many uncontested verdicts are the same, stricter or laxer."""
    cases = [case for case in suite.material.uncontested_cases if case.compatible is not None and case.compiles]
    for ruleset in suite.material.format.rulesets if cases else ():
        verdicts: Counter[str] = Counter()
        for case in cases:
            verdict = judge_case(suite.material, case, ruleset)
            verdicts["same" if verdict is case.compatible else "laxer" if verdict else "stricter"] += 1
        name = rulesets.newest_ruleset(suite.material.format, ruleset)
        counts = tuple(str(verdicts[key]) for key in ("same", "stricter", "laxer"))
        yield (f"`{suite.file}`", f"`{suite.ruleset}`", f"`{name}`", str(len(cases)), *counts)


def format_table(*rows: tuple[str, ...]) -> str:
    """Return a Markdown table. The first row is its head."""
    head, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body]) + "\n"


def build_page(scored: list[tuple[Suite, Score]]) -> str:
    """Return the reference page."""
    own: list[tuple[str, ...]] = [
        ("file", "format", "its ruleset", "judged by", "lines", "uncontested", "right", "wrong", "contested", "agreed")
    ]
    for suite, result in scored:
        ruleset = f"`{suite.ruleset}`" if suite.ruleset else "canonical" if "canonical" in suite.file else "validity"
        judge = f"`{suite.judge}`" if suite.judge else "–" if suite.ruleset else "parsing"
        wrong = None if result.right is None else result.uncontested - result.right
        counts = (result.lines, result.uncontested, result.right, wrong, result.contested, result.agreed)
        cells = tuple("–" if count is None else str(count) for count in counts)
        own.append((f"`{suite.file}`", suite.format, ruleset, judge, *cells))
    cross: list[tuple[str, ...]] = [("file", "labels follow", "ruleset", "lines", "as labelled", "stricter", "laxer")]
    cross += [row for suite, _ in scored for row in compare_rulesets(suite)]
    return "".join(
        [_INTRODUCTION, format_table(*own), _CROSSED, format_table(*cross), _OFFICIAL, build_official_table()]
    )


_INTRODUCTION: Final = """<!-- Generated by tools/conformance.py: run `make docs` after changing the code. -->

# Conformance

These are the results of this version on the [case files](../../tests/conformance/formats/cases/README.md). Most
files come from the tests of other projects. The ruleset that a file's labels follow judges the file, or the nearest one
of Stele. Without such a ruleset the file is an example and not a measure. A line is contested if there is evidence
against its label; no rule is ever fitted to such a line. You can try [your own format](../how-to/custom-format.md) in
the same way.

"""
_CROSSED: Final = """
## Every ruleset

This table compares every ruleset with the uncontested labels, whatever rules the labels follow. Rulesets differ on
purpose. *Stricter* and *laxer* are relative to the label.

"""
_OFFICIAL: Final = """
## The official JSON Schema test suite

The tests download the suite; it is not part of this repository. Stele parses each schema with the suite's remote
documents as references and fetches nothing. It validates with its codec. The next column shows jsonschema-rs, the
engine below, without Stele. `format` is an annotation in every draft here and is not asserted.

"""


def build_official_table() -> str:
    """Return the results of the official test suite, by draft."""
    rows = [("draft", "part", "tests", "Stele as the suite", "jsonschema-rs as the suite", "wrong where it is right")]
    for draft in json_suite.DRAFTS:
        for part in json_suite.PARTS:
            answers = [one for one in json_suite.judge_suite() if (one.group.draft, one.group.part) == (draft, part)]
            ours = sum(one.ours == one.suite for one in answers)
            bare = sum(one.bare == one.suite for one in answers)
            lost = sum(one.bare == one.suite != one.ours for one in answers)
            rows.append((draft, part, str(len(answers)), str(ours), str(bare), str(lost)))
    return format_table(*rows)


def build_summary(scored: list[tuple[Suite, Score]]) -> str:
    """Return the table for the README, with a row for each format."""
    rows = [("published cases", "uncontested", "right", "by")]
    for name, title in TITLES.items():
        judged_suites = [
            (suite, result) for suite, result in scored if suite.format == name and result.right is not None
        ]
        judges = sorted({f"`{suite.judge}`" if suite.judge else "parsing" for suite, _ in judged_suites})
        lines_ = sum(result.uncontested for _, result in judged_suites)
        rows.append((title, str(lines_), str(sum(result.right or 0 for _, result in judged_suites)), ", ".join(judges)))
    required = [one for one in json_suite.judge_suite() if one.group.part == "required"]
    right = sum(one.ours == one.suite for one in required)
    rows.append(("official JSON Schema suite, 5 drafts", str(len(required)), str(right), "validation"))
    return format_table(*rows)


def main(*, check: bool) -> int:
    """Write page and table, or compare them and return 1 if they differ."""
    search.LONGEST = 60.0  # a published verdict must not depend on the speed of the machine
    scored = [(suite, score_suite(suite)) for suite in load_suites()]
    readme = README.read_text(encoding="utf-8")
    texts = {
        PAGE: build_page(scored),
        README: MARKED.sub(lambda match: match[1] + build_summary(scored) + match[2], readme),
    }
    if check:
        stale = [path.name for path, text in texts.items() if not path.exists() or path.read_text("utf-8") != text]
        if stale:
            sys.stderr.write(f"conformance results are stale: {', '.join(stale)}; run 'make docs'\n")
        return 1 if stale else 0
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    for suite, result in scored:
        sys.stdout.write(f"{result.seconds:7.2f} s  {suite.file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
