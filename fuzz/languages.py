"""Calls all methods of a format and checks what must hold for the results."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from fuzz.parts import Parts
from fuzz.steps import Broken, Steps
from stele.core.ports import TextForm
from stele.errors import Invalid, MalformedSchema, SteleError, TooLarge
from stele.formats.registry import get_format

LONGEST_MESSAGE: Final = 2_000
"""Largest length of an error message in characters, so that it fits a screen."""

_NUMBERS_AND_NAMES: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\d+|\S{25,}")
_VIEWS: Final = ("fingerprints", "fields", "arrow_schema", "lint", "outline", "to_model")
_KEEPS_READERS_PART_ONLY: Final = frozenset({"avro", "thrift"})
"""Formats whose CANONICAL text may not parse: it can omit what its remaining parts need."""


class Language:
    """Calls a format with the two schemas, the reference and the data of one input."""

    def __init__(self, format_name: str) -> None:
        self.format = get_format(format_name)

    def __call__(self, parts: Parts, steps: Steps) -> None:
        """Run all checks on one input. Raises `Broken`, and exceptions that the format should not raise."""
        references = {"ref": parts.reference} if parts.reference else {}
        schema = self._parse("document", parts.document, references, steps)
        other = self._parse("other", parts.other, references, steps) if parts.other else None
        if schema is None:
            return
        self._check_printing(schema, references, steps)
        self._check_views(schema, steps)
        self._check_rulesets(schema, schema, steps)
        if other is not None:
            self._check_rulesets(schema, other, steps)
            self._check_rulesets(other, schema, steps)
        for reader in (None, other) if other is not None else (None,):
            self._check_codec(schema, reader, parts.data, steps)

    def _parse(self, what: str, text: bytes, references: Mapping[str, bytes], steps: Steps) -> Any:
        """Return the schema, or None if it is refused both strictly and leniently."""
        for strict in (True, False):
            try:
                found = steps.run_step(f"parse {what}", self.format.parse, text, references, strict=strict)
            except (MalformedSchema, TooLarge) as error:
                steps.record_outcome(type(error).__name__, message_shape(str(error)))
                if len(str(error)) > LONGEST_MESSAGE:
                    raise Broken(f"the message of a refusal is longer than {LONGEST_MESSAGE} characters") from error
                continue
            steps.accepted += what == "document"
            return found
        return None

    def _check_printing(self, schema: Any, references: Mapping[str, bytes], steps: Steps) -> None:
        """Check that every form prints, and that parsing and printing it again gives the same text."""
        for form in TextForm:
            try:
                text = steps.run_step(f"print {form.name}", self.format.canonical, schema, form)
            except Invalid as error:
                steps.record_outcome(form.name, message_shape(str(error)))
                continue
            if form is TextForm.CANONICAL and self.format.name in _KEEPS_READERS_PART_ONLY:
                continue
            try:
                again = steps.run_step("parse printed", self.format.parse, text, references, strict=False)
            except TooLarge:
                continue
            except Invalid as error:
                raise Broken(f"the {form.name} text does not parse: {error}") from error
            if self.format.canonical(again, form) != text:
                raise Broken(f"the {form.name} text prints differently")

    def _check_views(self, schema: Any, steps: Steps) -> None:
        for name in _VIEWS:
            ask = getattr(self.format, name, None)
            if ask is None:
                continue
            try:
                steps.run_step(name, ask, schema)
            except Invalid as error:
                steps.record_outcome(name, message_shape(str(error)))

    def _check_rulesets(self, reader: Any, writer: Any, steps: Steps) -> None:
        """Check that no pair of schemas makes a check raise. What it cannot decide is a finding."""
        for ruleset in self.format.rulesets:
            found = steps.run_step(f"check {ruleset}", self.format.check, reader, writer, ruleset)
            steps.record_outcome(ruleset, *sorted({f"{finding.rule} {finding.level.name}" for finding in found}))

    def _check_codec(self, writer: Any, reader: Any, data: bytes, steps: Steps) -> None:
        """Check that an example fits its own schema and can be encoded and decoded. Other bytes are read or refused."""
        try:
            codec = steps.run_step("codec", self.format.codec, writer, reader)
            decode_data(codec, data, steps)
            example = steps.run_step("example", codec.example)
        except SteleError as error:
            steps.record_outcome("codec", message_shape(str(error)))
            return
        faults = steps.run_step("validate", codec.validate, example)
        if faults:
            raise Broken(f"the example does not fit its schema: {faults[0]}")
        encoded = steps.run_step("encode", codec.encode, example)
        if reader is None:
            steps.run_step("decode example", codec.decode, encoded)
        else:
            decode_data(codec, encoded, steps)


def decode_data(codec: Any, data: bytes, steps: Steps) -> None:
    """Decode bytes, which may be invalid."""
    try:
        steps.run_step("decode", codec.decode, data)
    except SteleError as error:
        steps.record_outcome("decode", type(error).__name__)


def message_shape(message: str) -> str:
    """Return a message without names and numbers. Messages of one shape come from one place in the code."""
    return _NUMBERS_AND_NAMES.sub("_", message)[:120]
