"""Builders of histories for tests of pictures, of any length and with any names."""

from __future__ import annotations

import random
from collections.abc import Sequence

from stele.core.findings import Verdict
from stele.protocol.history import (
    FieldLifeline,
    FieldLifelines,
    FieldSpan,
    HistoryVersion,
    NamespaceAtlas,
    Neighbourhood,
    SubjectHistory,
    SubjectNode,
    SubjectReference,
    VersionLink,
)

DAY = 86_400_000


def make_history(
    verdicts: Sequence[tuple[Verdict | None, Verdict | None]],
    deleted: frozenset[int] = frozenset(),
    subject: str = "orders",
    newest_reads: Sequence[Verdict | None] = (),
) -> SubjectHistory:
    """Return a history with one version for each pair of verdicts. The first pair is not used.

    Verdicts are pairs (backward, forward) against the version before. `newest_reads` holds for each version whether the
    newest version reads its data.
    """
    versions: list[HistoryVersion] = []
    active = 0
    for number, (backward, forward) in enumerate(verdicts, 1):
        before = active or number - 1
        link = VersionLink(before, backward, forward, backward is Verdict.INCOMPATIBLE, 1) if before else None
        versions.append(
            HistoryVersion(
                number,
                100 + number,
                f"{number:064x}",
                "avro",
                number * DAY,
                "ann",
                deleted=number in deleted,
                link=link,
                newest_reads=newest_reads[number - 1] if newest_reads else None,
            )
        )
        if number not in deleted:
            active = number
    return SubjectHistory("", subject, "BACKWARD", tuple(versions), newest=active)


def make_lifelines(versions: int, fields: int, seed: int = 1) -> FieldLifelines:
    """Return lifelines of fields that are added, changed and removed at random, the same for the same seed."""
    chance = random.Random(seed)
    lines = []
    for number in range(fields):
        first = chance.randint(1, versions)
        last = chance.randint(first, versions)
        cuts = sorted({first, *(chance.randint(first, last) for _ in range(chance.randint(0, 2)))})
        ends = [*(cut - 1 for cut in cuts[1:]), last]
        spans = tuple(FieldSpan(cut, end, f"type{cut}") for cut, end in zip(cuts, ends, strict=True))
        lines.append(FieldLifeline(f"field{number}", spans))
    return FieldLifelines("", "orders", tuple(range(1, versions + 1)), tuple(lines))


def make_node(name: str, distance: int = 0, latest: int = 3) -> SubjectNode:
    """Return a subject with its newest version."""
    return SubjectNode("", name, latest, latest, latest, "avro", distance)


def make_neighbourhood(used: int, users: int, *, stale: bool = False) -> Neighbourhood:
    """Return a subject that references `used` other subjects and is referenced by `users` others."""
    center = make_node("center")
    left = [make_node(f"used{number:03}", -1) for number in range(used)]
    right = [make_node(f"user{number:03}", 1) for number in range(users)]
    references = [SubjectReference(center.name, 3, node.name, 3) for node in left]
    references += [SubjectReference(node.name, 3, center.name, 2 if stale else 3, stale=stale) for node in right]
    return Neighbourhood(center, (center, *left, *right), tuple(references))


def make_atlas(names: Sequence[str], pairs: Sequence[tuple[int, int]]) -> NamespaceAtlas:
    """Return an atlas of subjects. Each pair holds the positions of a referencing and a referenced subject."""
    nodes = tuple(make_node(name) for name in names)
    references = tuple(SubjectReference(nodes[user].name, 3, nodes[used].name, 3) for user, used in pairs)
    return NamespaceAtlas("", nodes, references)
