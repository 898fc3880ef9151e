"""Every published pair has a semantic diff with the same verdicts as the check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.conformance.formats.format_cases import uncontested_cases

from stele.errors import MalformedSchema
from stele.formats.registry import get_format
from stele.formats.rulesets import installed_rulesets, split_ruleset
from stele.service.check import Candidate, CheckRequest, NamedText, check_compatibility
from stele.service.diff import DiffRequest, diff_schemas
from stele.testing.format_cases import FormatCase

FORMATS = ("avro", "protobuf", "json", "thrift", "xsd")


class Versions(NamedTuple):
    """Two versions of a schema, and the ruleset to compare them by, None for the default."""

    format: str
    old: Candidate
    new: Candidate
    ruleset: str | None


def version_pairs(case: FormatCase) -> Iterator[Versions]:
    """Yield the pairs of a case; a ruleset that is not installed is replaced by the default."""
    if case.compatible is None or case.new is None:
        return
    known = {split_ruleset(name)[0] for name in installed_rulesets(get_format(case.format))}
    references = tuple(NamedText(name, text) for name, text in case.references.items())
    for old in case.history or (case.old or "",):
        before, after = Candidate(old, references), Candidate(case.new, references)
        yield Versions(case.format, before, after, case.ruleset if case.ruleset in known else None)


def check_verdict(pair: Versions, policy: str) -> bool:
    """Return the verdict of the check under a policy."""
    return check_compatibility(
        CheckRequest(
            format=pair.format,
            schema=pair.new.schema,
            policy=policy,
            ruleset=pair.ruleset,
            references=pair.new.references,
            against=(pair.old,),
        )
    ).compatible


@pytest.mark.parametrize("format_name", FORMATS)
def test_verdicts_are_those_of_the_check(format_name: str) -> None:
    """For all cases, the diff has the check's verdict in both directions, and so have all its changes together."""
    compared = 0
    for case in uncontested_cases(format_name):
        for pair in version_pairs(case):
            try:
                answer = diff_schemas(DiffRequest(pair.format, pair.old, pair.new, pair.ruleset))
            except MalformedSchema:  # some cases are about texts that are no schemas
                with pytest.raises(MalformedSchema):
                    check_verdict(pair, "FULL")
                continue
            compared += 1
            assert answer.backward is check_verdict(pair, "BACKWARD"), case.id
            assert answer.forward is check_verdict(pair, "FORWARD"), case.id
            assert answer.backward is all(change.backward for change in answer.changes), case.id
            assert answer.forward is all(change.forward for change in answer.changes), case.id
            assert bool(answer.changes) or (answer.text == "" and answer.backward and answer.forward), case.id
    assert compared > 40, "the cases are there"


@pytest.mark.parametrize("format_name", FORMATS)
def test_findings_seldom_stand_alone(format_name: str) -> None:
    """At most one in ten findings belongs to no difference of the outlines."""
    total = alone = 0
    for case in uncontested_cases(format_name):
        for pair in version_pairs(case):
            try:
                answer = diff_schemas(DiffRequest(pair.format, pair.old, pair.new, pair.ruleset))
            except MalformedSchema:
                continue
            for change in answer.changes:
                total += len(change.findings)
                alone += sum(1 for reason in change.findings if reason.rule == change.what)
    assert total > 10
    assert alone * 10 <= total, f"{alone} of {total}"
