"""Compares one file with a subject of a registry: by the subject's policy and rulesets, with its references."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stele.client import Schema, SchemaReference, SchemaRegistryClient
from stele.core.findings import WhenUndecided
from stele.core.policy import Policy
from stele.errors import MalformedSchema
from stele.formats.capabilities import HasImports
from stele.formats.registry import get_format
from stele.review import registry
from stele.review.check import check_file
from stele.review.report import FileReport
from stele.review.workspace import ReviewTarget
from stele.service.check import NamedText


class SubjectCheck(msgspec.Struct, frozen=True):
    """A check of files against a subject.

    references  explicit references: texts, or versions of the registry
    policy      policy in place of the subject's
    ruleset     ruleset in place of the subject's
    """

    client: SchemaRegistryClient
    subject: str
    references: Sequence[NamedText | SchemaReference] = ()
    policy: Policy | None = None
    ruleset: str | None = None
    undecided: WhenUndecided = WhenUndecided.REFUSE

    def check(self, target: ReviewTarget) -> FileReport:
        """Compare a file with the subject. Raises what the client raises, and what `check_file` raises.

        A reference of the file is resolved by the explicit references, then by the newest version of the subject, then
        by the files around it.
        """
        file = target.file
        state = registry.read_subject(self.client, self.subject)
        imports = _list_imports(target)
        remote = self._registered_references(imports, state)
        texts = [each for each in self.references if isinstance(each, NamedText)]
        schema = target.workspace.candidate(target.path, (*registry.resolve_references(self.client, remote), *texts))
        policy = self.policy or state.policy
        rules = msgspec.structs.replace(state.rules_for(file.format), policy=policy, undecided=self.undecided)
        if self.ruleset is not None:
            rules = msgspec.structs.replace(rules, ruleset=self.ruleset)
        baselines = registry.read_baselines(self.client, state, policy)
        report = check_file(target.label, file.format, schema, baselines, rules)
        is_registered = imports <= {each.name for each in remote}
        if self.policy is not None or self.ruleset is not None or not is_registered:
            return report  # the registry would check with other rules or references
        return registry.ask_registry(self.client, self.subject, Schema(file.text, file.format.upper(), remote), report)

    def _registered_references(
        self, imports: frozenset[str], state: registry.SubjectState
    ) -> tuple[SchemaReference, ...]:
        """Return the references of the file that are versions in the registry."""
        references = {each.name: each for each in self.references if isinstance(each, SchemaReference)}
        named = {each.name for each in self.references}
        if state.numbers:
            newest = self.client.version(self.subject, state.numbers[-1])
            references |= {
                each.name: each for each in newest.references if each.name in imports and each.name not in named
            }
        return tuple(references.values())


def _list_imports(target: ReviewTarget) -> frozenset[str]:
    fmt = get_format(target.file.format)
    if not isinstance(fmt, HasImports):
        return frozenset()
    try:
        return frozenset(fmt.list_imports(target.file.text.encode("utf-8", "surrogatepass")))
    except MalformedSchema:
        return frozenset()  # the check reports it
