"""A registry without a log, for tests of the core: execute a command, look at the state."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from stele.core import commands as cmd
from stele.core.compatibility_requests import CompatibilityRequest, VerdictsRequired
from stele.core.decide import decide
from stele.core.events import Event, EventMetadata, LogRecord
from stele.core.findings import Finding
from stele.core.fold import apply_record
from stele.core.model import Reference, SchemaDocument, SubjectKey
from stele.core.state import State

S = SubjectKey("", "s")
T = SubjectKey("", "t")


def doc(text: str, format_name: str = "avro", type_name: str = "", **digests: bytes) -> SchemaDocument:
    """Return a document of that text."""
    raw = text.encode()
    return SchemaDocument(raw, hashlib.sha256(raw).digest(), format_name, type_name, digests)


def to(key: SubjectKey, ordinal: int = 1, name: str = "r") -> Reference:
    """Return a reference."""
    return Reference(name, key.namespace, key.name, ordinal)


class Box:
    """Holds a state and the result of the last command. `refuses` has the (reader, writer) texts that do not fit."""

    def __init__(self, refuses: Callable[[bytes, bytes], bool] = lambda reader, writer: False) -> None:
        self.state = State()
        self.events: tuple[Event, ...] = ()
        self.asked: list[tuple[str, str, str]] = []
        self._refuses = refuses

    def do(self, command: cmd.Command, actor: str = "") -> cmd.Outcome:
        """Decide and fold a command, and return its outcome. Raises what deciding raises."""
        seq = self.state.seq + 1
        stamp = EventMetadata(seq.to_bytes(16, "big"), 1000 + seq, actor)
        verdicts: dict[CompatibilityRequest, tuple[Finding, ...]] = {}
        while True:
            try:
                decision = decide(self.state, command, stamp, verdicts)
                break
            except VerdictsRequired as undecided:
                for question in undecided.questions:
                    verdicts[question] = self._answer(question, command)
        self.events = decision.events
        if decision.events:
            apply_record(self.state, seq, LogRecord(stamp, decision.events))
        return decision.outcome

    def register(self, key: SubjectKey, text: str, *references: Reference, **more: object) -> cmd.Registration:
        """Register a text; `more` are members of `RegisterSchema`."""
        outcome = self.do(cmd.RegisterSchema(key, doc(text), references, **more))  # type: ignore[arg-type]  # test shorthand
        assert isinstance(outcome, cmd.Registration)
        return outcome

    def retire(self, key: SubjectKey, ordinal: int | None = None) -> None:
        """Soft-delete one version, or all."""
        self._delete(key, ordinal, cmd.DeleteMode.SOFT)

    def purge(self, key: SubjectKey, ordinal: int | None = None) -> None:
        """Delete permanently, in both steps."""
        self.retire(key, ordinal)
        self._delete(key, ordinal, cmd.DeleteMode.HARD)

    def close(self, key: SubjectKey) -> None:
        """End the incarnation."""
        self._delete(key, None, cmd.DeleteMode.END_INCARNATION)

    def ordinals(self, key: SubjectKey) -> list[int]:
        """Return all version numbers of the subject, in any state."""
        subject = self.state.find_subject(key)
        return [] if subject is None else [row.version_number for row in subject.versions]

    def _delete(self, key: SubjectKey, ordinal: int | None, removal: cmd.DeleteMode) -> None:
        self.do(cmd.DeleteSubject(key, removal) if ordinal is None else cmd.DeleteVersion(key, ordinal, removal))

    def _answer(self, question: CompatibilityRequest, command: cmd.Command) -> tuple[Finding, ...]:
        texts = {sha: self.state.get_text(content) for sha, content in self.state.contents.items()}
        for part in command.commands if isinstance(command, cmd.Transaction) else (command,):
            if isinstance(part, cmd.RegisterSchema) and part.document is not None:
                texts[part.document.sha] = part.document.text
        reader, writer = texts[question.reader.sha], texts[question.writer.sha]
        self.asked.append((reader.decode(), writer.decode(), question.ruleset))
        return (Finding("NO", "x"),) if self._refuses(reader, writer) else ()
