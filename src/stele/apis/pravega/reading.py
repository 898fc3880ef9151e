"""`canRead`: may a reader with this schema start on the data of a group?"""

from __future__ import annotations

from stele.core.decide.compatibility import list_candidates
from stele.core.model import NO_ATTACHMENTS, SchemaDocument, Subject
from stele.core.policy import BACKWARD, NO_VERSIONS, Policy, PolicyKind
from stele.service.registry import Registry


async def can_read(registry: Registry, subject: Subject, document: SchemaDocument, policy: Policy) -> bool:
    """Whether a document reads what the backward part of a policy reaches, and the latest where it has a forward part.

    A group without schemas is read by everything, unless its policy has a forward part or denies all: then nothing is
    written that could be read. What cannot be compared reads only what is the same.
    """
    if policy.kind is PolicyKind.ALLOW_ANY:
        return True
    asked = []
    latest = next(list_candidates(registry.state, subject.key, document.kind, NO_ATTACHMENTS), None)
    if policy.kind is PolicyKind.DIRECTIONAL and policy.backward != NO_VERSIONS:
        asked.append(Policy(backward=policy.backward))
    if policy.kind is PolicyKind.DENY_ALL or policy.forward != NO_VERSIONS:
        if latest is None:
            return False
        asked.append(BACKWARD)
    if not await registry.parser.can_compare(document.format):
        return latest is None or latest.content.sha == document.sha
    for wanted in asked:
        findings, _ = await registry.find_incompatibilities(subject.key, document, NO_ATTACHMENTS, policy=wanted)
        if findings:
            return False
    return True
