"""What a migration says of itself."""

from __future__ import annotations

import msgspec

from stele.formats.conversion.model import Loss
from stele.spark.data_audit.report import AuditReport, Bars, Fact, Section, pluralize


class ReencodedId(msgspec.Struct, frozen=True):
    """The records of one old id ('' without one)."""

    id: str
    records: int
    dead: int


class Verification(msgspec.Struct, frozen=True):
    """What reading the new records again showed.

    records  that are there; there_before were before
    read     of the new ones, that their schema reads; null ones count as read
    values   whether the values are those the old records have; None where that was not asked
    """

    records: int
    read: int
    there_before: int = 0
    values: bool | None = None


class Migration(msgspec.Struct, frozen=True):
    """The whole answer.

    version, id  what was written with
    languages    from and to, the same word twice within one
    records      all but null ones, which stay null; dead are those that were not written
    losses       what the new schema does not say of the old data, and how fields go by name
    written      whether records were written, or only counted
    """

    subject: str
    to_subject: str
    version: int
    id: int
    wires: tuple[str, str]
    languages: tuple[str, str]
    records: int
    tombstones: int
    dead: int
    bytes: int
    new_bytes: int
    ids: tuple[ReencodedId, ...]
    reasons: dict[str, int]
    losses: tuple[Loss, ...] = ()
    written: bool = False
    verified: Verification | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every record was written, and read again where that was asked."""
        return not self.dead and self.is_sound

    @property
    def is_sound(self) -> bool:
        """Whether what was written is there and can be read, as far as that was looked at."""
        found, alive = self.verified, self.records - self.dead + self.tombstones
        if found is None:
            return True
        new = found.records - found.there_before
        return new == alive and found.read == found.records and found.values is not False

    def report(self) -> AuditReport:
        """The answer for people."""
        return _make_report(self)


def _make_report(found: Migration) -> AuditReport:
    alive = found.records - found.dead
    done = "written" if found.written else "would be written"
    verdict = f"{pluralize(alive, 'record')} {done} as {found.to_subject} v{found.version}"
    if found.dead:
        verdict += f", {pluralize(found.dead, 'dead letter')}"
    if not found.is_sound:
        verdict += "; what was written is not what it should be"
    elif found.verified is not None:
        verdict += "; read again"
    seen = found.verified
    facts = [
        Fact("records", found.records),
        Fact("dead", found.dead),
        Fact("tombstones", found.tombstones),
        Fact("bytes", found.bytes),
        Fact("new bytes", found.new_bytes),
        Fact("wire", " to ".join(dict.fromkeys(found.wires))),
        Fact("language", " to ".join(dict.fromkeys(found.languages))),
    ]
    if seen is not None:
        facts += [Fact("there", seen.records), Fact("readable", seen.read)]
    if seen is not None and seen.values is not None:
        facts.append(Fact("values", "the same" if seen.values else "different"))
    return AuditReport(
        title=f"Migration of {found.subject}",
        verdict=verdict,
        good=found.is_complete,
        facts=tuple(facts),
        sections=(
            Section(
                "Old ids",
                ("id", "records", "dead"),
                tuple((it.id, it.records, it.dead) for it in found.ids),
                bars=Bars("records by old id", {it.id: it.records for it in found.ids}),
            ),
            Section("Dead letters", ("reason", "records"), tuple(found.reasons.items())),
            Section(
                "What is lost",
                ("field", "what", "why", "data"),
                tuple((it.path or "/", it.what, it.why, "lost" if it.data else "kept") for it in found.losses),
            ),
        ),
    )
