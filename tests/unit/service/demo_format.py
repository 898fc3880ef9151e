"""A plug-in format whose rulesets get new versions: a schema is a list of words; newer rules are stricter."""

from __future__ import annotations

from stele.core.findings import Finding, Severity
from stele.core.ports import Field
from stele.formats.opaque import OpaqueFormat, OpaqueSchema
from stele.formats.rulesets import Ruleset, Rulesets


def check_words(reader: OpaqueSchema, writer: OpaqueSchema) -> list[Finding]:
    """Return a finding for each writer's word that the reader lacks; a word with a question mark is undecided."""
    ours, theirs = reader.text.split(), writer.text.split()
    lost = [Finding("LOST", word.decode()) for word in theirs if word not in ours]
    return lost or [Finding("OPEN", word.decode(), level=Severity.UNKNOWN) for word in ours if b"?" in word]


def require_same_text(reader: OpaqueSchema, writer: OpaqueSchema) -> list[Finding]:
    """Return these findings, and one for each reader's word that the writer lacks."""
    new = [word for word in reader.text.split() if word not in writer.text.split()]
    return [*check_words(reader, writer), *(Finding("NEW", word.decode()) for word in new)]


RULES = {
    "words@1": Ruleset("words@1", check_words, "No word is lost."),
    "words@2": Ruleset("words@2", require_same_text, "No word is lost, and none is new."),
    "other@1": Ruleset("other@1", require_same_text, "As words@2."),
}


class DemoFormat(OpaqueFormat):
    """The demo format with some of the rulesets installed."""

    name = "demo"

    def __init__(self, *names: str) -> None:
        self._rulesets = Rulesets("demo", *(RULES[name] for name in names))
        self.rulesets = self._rulesets.names
        self.ruleset_summaries = self._rulesets.summaries

    def check(self, reader, writer, ruleset=""):  # type: ignore[no-untyped-def]  # as the port has it
        """Compare by the ruleset."""
        return self._rulesets.check(reader, writer, ruleset)


class BareFormat(OpaqueFormat):
    """A plug-in without ruleset versions: it lists bare names and accepts nothing else."""

    name = "demo"
    rulesets = ("words",)

    def check(self, reader, writer, ruleset=""):  # type: ignore[no-untyped-def]  # as the port has it
        """Compare by the only ruleset."""
        assert ruleset in {"", "words"}
        return check_words(reader, writer)


OLD = DemoFormat("words@1", "other@1")
NEW = DemoFormat("words@1", "words@2", "other@1")
LATE = DemoFormat("words@2", "other@1")
BARE = BareFormat()


class FieldsFormat(DemoFormat):
    """A release that lists its words as fields, and has no outline."""

    def fields(self, parsed: OpaqueSchema) -> list[Field]:
        """Return one field for every word."""
        return [Field(word.decode(), "word") for word in parsed.text.split()]


FIELDS = FieldsFormat("words@1")
