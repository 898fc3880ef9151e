"""The rulesets `buf:…` against the `buf` program, over generated pairs of modules."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.examples import PROFILE, scale_examples
from tests.unit.formats.protobuf.buf_modules import module_pair
from tests.unit.formats.protobuf.buf_oracle import CATEGORIES, Files, broken_rules, rules_by_category

from stele.core.findings import Finding
from stele.core.ports import TextForm
from stele.errors import MalformedSchema
from stele.formats.protobuf import PROTOBUF, ProtobufSchema, check_modules

EVERY_RULE = (162, 163, 223, 246, 247, 248, 251, 252, 255)
"""Numbers of pairs that together break every rule."""
ALL_PAIRS = range(160, 280)
PAIRS = sorted({*EVERY_RULE, *ALL_PAIRS[::4]}) if PROFILE == "everyday" else list(ALL_PAIRS)
"""Numbers of the pairs to test. The everyday profile has these and every fourth."""

Pair = tuple[list[ProtobufSchema], list[ProtobufSchema]]
Findings = dict[str, list[Finding]]
"""Findings by category."""


def parse_files(files: Files) -> list[ProtobufSchema]:
    """The files of a module, each parsed under its path."""
    sources = {path: text.encode() for path, text in files.items()}
    return [PROTOBUF.parse(text, sources, name=path) for path, text in sources.items()]


@pytest.fixture(scope="module")
def drawn_pairs() -> dict[int, tuple[Files, Files]]:
    """The new and the old files of each pair."""
    return {number: module_pair(number) for number in PAIRS}


@pytest.fixture(scope="module")
def parsed_pairs(drawn_pairs: dict[int, tuple[Files, Files]]) -> dict[int, Pair]:
    """The pairs that compile, which nearly all do."""
    pairs = {}
    for number, (new, old) in drawn_pairs.items():
        try:
            pairs[number] = parse_files(new), parse_files(old)
        except MalformedSchema:
            continue
    assert len(pairs) > 0.95 * len(PAIRS)
    return pairs


@pytest.fixture(scope="module")
def rules_by_pair(
    drawn_pairs: dict[int, tuple[Files, Files]],
    parsed_pairs: dict[int, Pair],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[int, set[str]]:
    """Return the rules that each pair breaks, as reported by the `buf` program."""
    return broken_rules(
        {number: drawn_pairs[number] for number in parsed_pairs}, tmp_path_factory.mktemp("buf") / "pairs"
    )


@pytest.fixture(scope="module")
def module_findings(parsed_pairs: dict[int, Pair]) -> dict[int, Findings]:
    """Return the findings of comparing the modules of each pair."""
    return {
        number: {category: check_modules(f"buf:{category}", new, old) for category in CATEGORIES}
        for number, (new, old) in parsed_pairs.items()
    }


@pytest.fixture(scope="module")
def schema_findings(parsed_pairs: dict[int, Pair]) -> dict[int, Findings]:
    """Return the findings of comparing the main files of each pair."""
    return {
        number: {category: PROTOBUF.check(new[-1], old[-1], f"buf:{category}") for category in CATEGORIES}
        for number, (new, old) in parsed_pairs.items()
    }


def list_rules(findings: Sequence[Finding]) -> set[str]:
    """The rules that are broken."""
    return {finding.rule for finding in findings}


def test_verdicts_are_those_of_buf(module_findings: dict[int, Findings], rules_by_pair: dict[int, set[str]]) -> None:
    """In each category each pair breaks the same rules as in `buf`, and every rule is broken by some pair."""
    categories = rules_by_category()
    for number, findings in module_findings.items():
        for category in CATEGORIES:
            rules = list_rules(findings[category])
            assert rules == rules_by_pair[number] & categories[category], f"pair {number}, {category}"
    assert set().union(*rules_by_pair.values()) == set().union(*categories.values())


def test_the_main_file_stands_for_what_it_imports(
    parsed_pairs: dict[int, Pair], module_findings: dict[int, Findings], schema_findings: dict[int, Findings]
) -> None:
    """Where the main files import all others, comparing the two schemas is comparing the modules."""
    whole = 0
    for number, pair in parsed_pairs.items():
        if all(len(file_names(side)) == len(file_names(side[-1:])) for side in pair):
            whole += 1
            assert schema_findings[number] == module_findings[number]
    assert whole > len(parsed_pairs) / 3


def test_references_belong_to_the_module(
    schema_findings: dict[int, Findings], rules_by_pair: dict[int, set[str]]
) -> None:
    """The main file with the module's other files as references, imported or not, gets the verdicts of buf."""
    categories = rules_by_category()
    for number, findings in schema_findings.items():
        for category in CATEGORIES:
            rules = list_rules(findings[category])
            assert rules == rules_by_pair[number] & categories[category], f"pair {number}, {category}"


def file_names(module: list[ProtobufSchema]) -> set[str]:
    """The files of a module, imports included."""
    return {file.name for schema in module for file in schema.files}


def test_stricter_categories_allow_less(parsed_pairs: dict[int, Pair], module_findings: dict[int, Findings]) -> None:
    """What passes FILE passes PACKAGE, then WIRE_JSON, then WIRE; nothing breaks a module compared with itself."""
    for number, (new, _) in parsed_pairs.items():
        passed = [not module_findings[number][category] for category in ("FILE", "PACKAGE", "WIRE_JSON", "WIRE")]
        assert passed == sorted(passed)
        assert not any(check_modules(f"buf:{category}", new, new) for category in CATEGORIES)


def test_printing_breaks_nothing(parsed_pairs: dict[int, Pair]) -> None:
    """A schema's printed and normalized texts break no rule of any category, in either direction."""
    for new, _ in list(parsed_pairs.values())[: scale_examples(40)]:
        schema = new[-1]
        references = {other.proto.name: other.text for other in new[:-1]}
        for form in (TextForm.PRINTED, TextForm.NORMALIZED):
            again = PROTOBUF.parse(PROTOBUF.canonical(schema, form), references, name=schema.proto.name)
            for category in CATEGORIES:
                assert PROTOBUF.check(again, schema, f"buf:{category}") == []
                assert PROTOBUF.check(schema, again, f"buf:{category}") == []
