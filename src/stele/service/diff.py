"""The semantic diff of two schemas: a list of changes with verdicts in both directions; behind `POST /api/diff`.

The changes come from the outlines of the two schemas (see `stele.formats.capabilities`), the verdicts from a ruleset of
the format. A format without outlines is compared by its fields. A format without rulesets gets no verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from stele.core.findings import Direction, WhenUndecided
from stele.core.ports import Format, TextForm
from stele.errors import SteleError
from stele.formats import rulesets
from stele.formats.capabilities import TRUNCATED, HasLocator, HasOutline, OutlineNode
from stele.formats.registry import get_format
from stele.service.change_attribution import Locator, attribute_findings, longest_prefix_locator
from stele.service.changes import ChangeKind, DeclarationChange, DeclarationTree, DirectedFinding, TreeComparison
from stele.service.check import Adopted, Candidate, parse_candidate, select_ruleset
from stele.service.limits import Limits
from stele.service.text_diff import unified_diff


class DiffRequest(msgspec.Struct, frozen=True):
    """Two versions of a schema; ruleset and undecided have the meaning they have in a `CheckRequest`."""

    format: str
    old: Candidate
    new: Candidate
    ruleset: str | None = None
    undecided: WhenUndecided | None = None


class DiffAnswer(msgspec.Struct, frozen=True):
    """The changes between two versions, and their effect on compatibility.

    changes   in the order of the new version; findings that belong to no other change come last
    backward  whether the new schema reads data of the old one; None where the format compares nothing
    forward   whether the old schema reads data of the new one; None as above
    ruleset   full name of the rules that decided; '' for none
    text      unified diff of the normalised texts; '' when they are the same
    complete  False when one of the schemas declares more than an outline holds
    """

    changes: tuple[DeclarationChange, ...]
    backward: bool | None
    forward: bool | None
    ruleset: str
    text: str
    complete: bool = True


def diff_schemas(
    request: DiffRequest,
    limits: Limits | None = None,
    *,
    undecided: WhenUndecided = WhenUndecided.REFUSE,
    adopted: Adopted | None = None,
) -> DiffAnswer:
    """Compare two schemas. Raises `UnknownFormat`, `UnknownRuleset`, `MalformedSchema`, `TooLarge`.

    `adopted` has the versions of rulesets that a registry has adopted; None without a registry.
    """
    limits = limits or Limits()
    fmt = get_format(request.format)
    ruleset = select_ruleset(fmt, request.ruleset or "", adopted)
    old = parse_candidate(fmt, request.old, limits, strict=False, role="the old schema")
    new = parse_candidate(fmt, request.new, limits, strict=False, role="the new schema")
    reasons = list(_directed_findings(fmt, old, new, ruleset, request.undecided or undecided))
    outlines = [
        [*make_outline(fmt, parsed), *_reference_declarations(candidate)]
        for parsed, candidate in ((old, request.old), (new, request.new))
    ]
    comparison = TreeComparison(*outlines)
    texts = [fmt.canonical(parsed, TextForm.NORMALIZED) for parsed in (old, new)]
    changes = attribute_findings(
        comparison, _make_locator(fmt, old, comparison.old), _make_locator(fmt, new, comparison.new), reasons
    )
    if not comparison.changes and texts[0] != texts[1]:
        changes.insert(0, _text_change(fmt, old, new, texts))
    broken = {reason.direction for reason in reasons if reason.breaks}
    return DiffAnswer(
        changes=tuple(changes),
        backward=Direction.BACKWARD not in broken if ruleset else None,
        forward=Direction.FORWARD not in broken if ruleset else None,
        ruleset=ruleset,
        text=unified_diff(*texts),
        complete=not any(node.kind == TRUNCATED for nodes in outlines for node in nodes),
    )


def make_outline(fmt: Format[Any], parsed: Any) -> list[OutlineNode]:
    """Return the declarations of a schema: its outline, or its fields for a format without outlines."""
    if isinstance(fmt, HasOutline):
        return fmt.outline(parsed)
    fields = {field.path: field for field in fmt.fields(parsed)}
    return [
        OutlineNode(
            path, "field", _describe_field(type=field.type, default=field.default or "", doc=field.doc), name=path
        )
        for path, field in fields.items()
    ]


def _describe_field(**attributes: str) -> dict[str, str]:
    return {word: text for word, text in attributes.items() if text}


def _reference_declarations(candidate: Candidate) -> Iterator[OutlineNode]:
    """Yield the texts that a schema refers to as declarations, with only their digest."""
    for reference in candidate.references:
        digest = sha256(reference.schema.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        yield OutlineNode(f"reference({reference.name})", "reference", {"text": digest}, name=reference.name)


def _directed_findings(
    fmt: Format[Any], old: Any, new: Any, ruleset: str, undecided: WhenUndecided
) -> Iterator[DirectedFinding]:
    if ruleset:
        for direction, reader, writer in ((Direction.BACKWARD, new, old), (Direction.FORWARD, old, new)):
            for finding in undecided.weigh_findings(rulesets.run_ruleset(fmt, reader, writer, ruleset)):
                yield DirectedFinding.from_finding(finding, direction)


def _make_locator(fmt: Format[Any], parsed: Any, tree: DeclarationTree) -> Locator:
    return fmt.locator(parsed) if isinstance(fmt, HasLocator) else longest_prefix_locator(tree)


def _text_change(fmt: Format[Any], old: Any, new: Any, texts: Sequence[bytes]) -> DeclarationChange:
    """Return a change for texts that differ in something that no outline shows.

    It has no effect if the canonical texts are the same.
    """
    try:
        same = fmt.canonical(old, TextForm.CANONICAL) == fmt.canonical(new, TextForm.CANONICAL)
    except SteleError:
        same = False
    before, after = (f"{len(text)} bytes, SHA-256 {sha256(text).hexdigest()[:12]}…" for text in texts)
    return DeclarationChange(ChangeKind.CHANGED, "/", "text", before, after, annotation=same)
