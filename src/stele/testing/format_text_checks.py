"""Tests of a format's schema documents: names, parsing, stable texts, fingerprints, verdicts."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from stele.core.findings import Finding, Severity
from stele.core.ports import Field, TextForm
from stele.errors import MalformedSchema, UnknownRuleset, UnresolvedReference
from stele.formats.rulesets import newest_ruleset
from stele.testing.format_cases import FormatCase, compared_pairs
from stele.testing.format_material import FormatMaterial, fail_with

__all__ = ["TextChecks", "VerdictChecks", "describe_schema"]

_NAME = re.compile(r"[a-z][a-z0-9_.-]*\Z")
_MEDIA_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+\Z")
_RULESET = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_.-]*(@[1-9][0-9]*)?\Z")
_RULE = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_SIZES = {"rabin": 8, "md5": 16, "sha256": 32}
_DIGESTS = {"md5": hashlib.md5, "sha256": hashlib.sha256}


class TextChecks:
    """Tests of parsing and printing documents."""

    material: ClassVar[FormatMaterial]

    def test_names(self) -> None:
        """The names of format, media types and rulesets are valid in URLs, headers and settings."""
        schemas = self.material.format
        fail_with(
            [
                *([] if _NAME.match(schemas.name) else [f"name {schemas.name!r}"]),
                *(f"media type {media!r}" for media in schemas.media_types if not _MEDIA_TYPE.match(media)),
                *(f"ruleset {ruleset!r}" for ruleset in schemas.rulesets if not _RULESET.match(ruleset)),
                *(["no media type"] if not schemas.media_types else []),
                *_find_repeated("media type", schemas.media_types),
                *_find_repeated("ruleset", schemas.rulesets),
            ]
        )

    def test_there_is_material(self) -> None:
        """There are case lines, and strict parsing accepts at least one of their schemas."""
        fail_with([] if self.material.cases else ["no case line of this format"])
        fail_with([] if self.material.parsed_samples else ["no schema that parses"])

    def test_schemas_parse(self) -> None:
        """Every document that a line calls a schema is accepted; strict parsing accepts those of lines with `valid`."""
        fail_with(
            fault
            for sample in self.material.samples
            for fault in _find_refusal(self.material, sample.id, sample.text, sample.references, strict=False)
        )
        fail_with(
            fault
            for case in self.material.uncontested_cases
            if case.valid
            for fault in _find_refusal(self.material, case.id, case.schema_text, case.reference_texts, strict=True)
        )

    def test_malformed_documents_are_refused_with_a_place(self) -> None:
        """A document that a line calls invalid raises `MalformedSchema` with a place (line or path) and a reason."""
        fail_with(
            fault
            for case in self.material.uncontested_cases
            if case.valid is False
            for fault in _find_acceptance(self.material.format, case)
        )

    def test_parsing_is_deterministic(self) -> None:
        """The same bytes give the same schema: texts, fingerprints, name and fields."""
        schemas = self.material.format
        fail_with(
            f"{sample.id}: differs when parsed again"
            for sample, parsed in self.material.parsed_samples
            if describe_schema(schemas, parsed)
            != describe_schema(schemas, schemas.parse(sample.text, sample.references))
        )

    def test_printing_is_a_fixed_point(self) -> None:
        """Each stable text is a schema that prints as itself, and has the same later forms as the original."""
        fail_with(
            f"{sample.id}: the {form.value} text prints as another {other_form.value} text"
            for sample, parsed in self.material.parsed_samples
            for form, other_form in _find_reprint_faults(self.material, parsed, sample.references)
        )

    def test_style_makes_no_difference(self) -> None:
        """Texts that a line calls equal have the same NORMALIZED form and the same fingerprints."""
        schemas = self.material.format
        for case in self.material.uncontested_cases:
            if case.equal:
                first, *others = (
                    schemas.parse(text, case.reference_texts)
                    for text in (case.schema_text, *(text.encode() for text in case.equal))
                )
                fail_with(
                    f"{case.id}: text {number} differs from the schema"
                    for number, other in enumerate(others, 1)
                    if schemas.canonical(other, TextForm.NORMALIZED) != schemas.canonical(first, TextForm.NORMALIZED)
                    or schemas.fingerprints(other) != schemas.fingerprints(first)
                )

    def test_fingerprints_are_those_of_the_canonical_form(self) -> None:
        """Fingerprints have the right size; md5 and sha256 are the digests of the CANONICAL text."""
        for sample, parsed in self.material.parsed_samples:
            digests = dict(self.material.format.fingerprints(parsed))
            text = self.material.format.canonical(parsed, TextForm.CANONICAL)
            fail_with([] if digests else [f"{sample.id}: no fingerprint"])
            fail_with(
                f"{sample.id}: {kind} is not a digest of the CANONICAL form"
                for kind, digest in digests.items()
                if len(digest) != _SIZES.get(kind, len(digest))
                or (kind in _DIGESTS and digest != _DIGESTS[kind](text).digest())
            )

    def test_canonical_forms_and_fingerprints_of_the_lines(self) -> None:
        """CANONICAL forms and fingerprints are, byte for byte, those in the case lines: they never change."""
        fail_with(
            fault for case in self.material.uncontested_cases for fault in _find_canonical_faults(self.material, case)
        )

    def test_references_are_needed_and_used(self) -> None:
        """A schema with references can be parsed with them; without them it raises `UnresolvedReference`."""
        for sample, _ in self.material.parsed_samples:
            if sample.references:
                try:
                    self.material.format.parse(sample.text, {})
                except UnresolvedReference:
                    continue
                fail_with([f"{sample.id}: parses without its references"])

    def test_unknown_styles_render_nothing(self) -> None:
        """`render` returns None for an unknown style."""
        fail_with(
            f"{sample.id}: renders"
            for sample, parsed in self.material.parsed_samples[:3]
            if self.material.format.render(parsed, "no-such-style") is not None
        )

    def test_fields_are_well_formed(self) -> None:
        """Fields have a path and a type, their defaults are JSON, and all documentation is text."""
        fail_with(
            f"{sample.id}: {field!r}"
            for sample, parsed in self.material.parsed_samples
            for field in self.material.format.fields(parsed)
            if not (isinstance(field, Field) and field.path and field.type and isinstance(field.doc, str))
            or (field.default is not None and not _is_json(field.default))
        )


class VerdictChecks:
    """Tests of comparing two schemas."""

    material: ClassVar[FormatMaterial]

    def test_verdicts_of_the_lines(self) -> None:
        """Every uncontested line gets its verdict from the ruleset it names, or from the one that replaces it."""
        fail_with(
            f"{case.id}: its ruleset {case.ruleset!r} is not installed"
            for case in self._compared_cases()
            if not self._is_known(case)
        )
        fail_with(
            f"{case.id} ({case.note}): should be {'compatible' if case.compatible else 'incompatible'}"
            for case in self._compared_cases()
            if (ruleset := self.material.ruleset_of(case)) is not None
            and bool([finding for finding in self._findings_of(case, ruleset) if finding.breaks]) is case.compatible
        )

    def test_findings_explain_themselves(self) -> None:
        """Every finding of every ruleset has a rule in upper case, a path, a severity, a reason and a fix."""
        fail_with(
            f"{case.id}, {ruleset}: {finding!r}"
            for case in self._compared_cases()
            for ruleset in self.material.format.rulesets
            for finding in self._findings_of(case, ruleset)
            if not _is_complete(finding)
        )

    def test_printing_changes_no_verdict(self) -> None:
        """Two schemas get the same verdict as their PRINTED and their NORMALIZED texts."""
        schemas = self.material.format
        for case in self._compared_cases():
            ruleset = self.material.ruleset_of(case) or ""
            for pair in compared_pairs(case):
                sides = [self.material.parse(side, case.reference_texts) for side in pair]
                verdict = self._has_breaking_findings(sides, ruleset)
                for form in (TextForm.PRINTED, TextForm.NORMALIZED):
                    texts = [schemas.canonical(side, form) for side in sides]
                    printed = [self.material.parse(text, case.reference_texts) for text in texts]
                    fail_with(
                        []
                        if self._has_breaking_findings(printed, ruleset) is verdict
                        else [f"{case.id}: {form.value} differs"]
                    )

    def test_a_schema_reads_its_own_data(self) -> None:
        """Under every ruleset, a schema is compatible with itself and with its own PRINTED text."""
        schemas = self.material.format
        for ruleset in schemas.rulesets:
            for sample, parsed in self.material.parsed_samples:
                again = schemas.parse(schemas.canonical(parsed, TextForm.PRINTED), sample.references)
                for sides in ([parsed, parsed], [parsed, again], [again, parsed]):
                    fail_with(
                        [f"{sample.id}: breaks itself under {ruleset}"]
                        if self._has_breaking_findings(sides, ruleset)
                        else []
                    )

    def test_the_first_ruleset_is_the_default(self) -> None:
        """The default is the newest version of the first ruleset. Unknown names raise `UnknownRuleset`."""
        schemas = self.material.format
        _, parsed = self.material.parsed_samples[0]
        for name in ["no-such-ruleset", *([] if schemas.rulesets else [""])]:
            try:
                schemas.check(parsed, parsed, name)
            except UnknownRuleset:
                continue
            fail_with([f"check answers for the ruleset {name!r}"])
        if schemas.rulesets:
            for case in self._compared_cases():
                same = self._findings_of(case, "") == self._findings_of(case, newest_ruleset(schemas))
                fail_with([] if same else [f"{case.id}: the default differs from {newest_ruleset(schemas)}"])

    def _compared_cases(self) -> list[FormatCase]:
        cases = [case for case in self.material.uncontested_cases if case.compatible is not None and case.compiles]
        return cases if self.material.format.rulesets else []

    def _findings_of(self, case: FormatCase, ruleset: str) -> list[Finding]:
        references = case.reference_texts
        sides = [[self.material.parse(side, references) for side in pair] for pair in compared_pairs(case)]
        return [finding for reader, writer in sides for finding in self.material.check(reader, writer, ruleset)]

    def _is_known(self, case: FormatCase) -> bool:
        return case.ruleset in self.material.judged_by or self.material.ruleset_of(case) is not None

    def _has_breaking_findings(self, sides: list[Any], ruleset: str) -> bool:
        reader, writer = sides
        return any(finding.breaks for finding in self.material.check(reader, writer, ruleset))


def describe_schema(schemas: Any, parsed: Any) -> dict[str, Any]:
    """Return everything a format reports about one schema, in a form that can be compared."""
    return {
        "type_name": parsed.type_name,
        "fields": schemas.fields(parsed),
        "fingerprints": dict(schemas.fingerprints(parsed)),
        **{form.value: schemas.canonical(parsed, form) for form in TextForm},
    }


def _find_repeated(what: str, names: Any) -> list[str]:
    return [f"{what} {name!r} twice" for name in sorted({name for name in names if list(names).count(name) > 1})]


def _find_refusal(material: FormatMaterial, name: str, text: bytes, references: Any, *, strict: bool) -> Iterator[str]:
    try:
        material.format.parse(text, references, strict=strict)
    except MalformedSchema as error:
        yield f"{name}: refused{' strictly' if strict else ''}: {error}"


def _find_acceptance(schemas: Any, case: FormatCase) -> Iterator[str]:
    try:
        schemas.parse(case.schema_text, case.reference_texts)
    except MalformedSchema as error:
        if error.line is None and not error.path:
            yield f"{case.id}: refused without a place: {error}"
        if len(error.why) < 5:
            yield f"{case.id}: refused without a reason: {error}"
    else:
        yield f"{case.id} ({case.note}): accepted"


def _find_reprint_faults(material: FormatMaterial, parsed: Any, references: Any) -> Iterator[tuple[TextForm, TextForm]]:
    """Yield pairs of forms where the text in the first form, parsed again, prints differently in the second form."""
    schemas, forms = material.format, list(TextForm)
    for number, form in enumerate(forms):
        text = schemas.canonical(parsed, form)
        try:
            again = material.parse(text, references)
        except MalformedSchema:
            again = material.parse(text, {})  # a text may include its references
        for other_form in forms[number:]:
            if schemas.canonical(again, other_form) != schemas.canonical(parsed, other_form):
                yield form, other_form


def _find_canonical_faults(material: FormatMaterial, case: FormatCase) -> Iterator[str]:
    if case.canonical is None and case.crc64_signed is None and not case.fingerprints:
        return
    parsed = material.parse(case.schema_text, case.reference_texts)
    if case.canonical is not None:
        text = material.format.canonical(parsed, TextForm.CANONICAL).decode()
        if text != case.canonical:
            yield f"{case.id}: canonical form {text}"
    expected = {kind: bytes.fromhex(digest) for kind, digest in case.fingerprints.items()}
    if case.crc64_signed is not None:
        expected["rabin"] = case.crc64_signed.to_bytes(8, "big", signed=True)
    digests = material.format.fingerprints(parsed)
    for kind, digest in expected.items():
        if digests.get(kind) != digest:
            yield f"{case.id}: fingerprint {kind}"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _is_complete(finding: Finding) -> bool:
    return (
        isinstance(finding, Finding)
        and bool(_RULE.match(finding.rule))
        and isinstance(finding.path, str)
        and isinstance(finding.level, Severity)
        and len(finding.why) > 10
        and len(finding.fix) > 5
    )
