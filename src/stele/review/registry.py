"""What a registry knows of a subject, read for a review: versions with their references, policy and rulesets.

Any registry that speaks the Confluent API will do; a Stele registry also tells its exact policy and its rulesets.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stele.client import Schema, SchemaReference, SchemaRegistryClient
from stele.client.request import Request, build_path, json_decoder
from stele.core.policy import Policy, find_policy
from stele.core.rulesets import split_ruleset
from stele.errors import InvalidRequest, MalformedSchema, NotFound
from stele.review.check import Baseline, CheckRules
from stele.review.report import FileFinding, FileReport, Outcome
from stele.service.check import Candidate, NamedText
from stele.service.policies import PolicyAnswer

LATEST = -1
"""Version of a reference to whatever is newest."""

_decode_policy = json_decoder(PolicyAnswer)


class SubjectState(msgspec.Struct, frozen=True):
    """A subject as it is in a registry.

    numbers      of its versions, ascending; empty for a subject that is not there
    policy       in force
    own_policy   set at the subject itself, None for nothing
    own_ruleset  likewise
    rulesets     full name of the ruleset that decides, by format; empty where the registry does not tell
    is_exact     whether the registry tells its exact policy, as a Stele registry does
    """

    name: str
    numbers: tuple[int, ...]
    policy: Policy
    own_policy: Policy | None
    own_ruleset: str | None = None
    rulesets: Mapping[str, str] = {}
    is_exact: bool = False

    def rules_for(self, format_name: str) -> CheckRules:
        """Return by what a schema of a format is judged there."""
        full = self.rulesets.get(format_name, "") if self.is_exact else ""
        name, version = split_ruleset(full)
        return CheckRules(self.policy, full, {(format_name, name): version} if version is not None else None)


def read_subject(client: SchemaRegistryClient, subject: str) -> SubjectState:
    """Return what the registry knows of a subject, which need not be there. Raises `ResponseError`."""
    try:
        numbers = tuple(client.versions(subject))
    except NotFound:
        numbers = ()
    try:
        answer = client.send(Request("GET", build_path("api", "policies", subject), _decode_policy, subject=subject))
    except NotFound:  # another make of registry
        return SubjectState(subject, numbers, *_read_level(client, subject))
    own = answer.own.policy
    return SubjectState(
        subject,
        numbers,
        answer.policy.to_policy,
        own.to_policy if own is not None else None,
        answer.own.ruleset,
        answer.rulesets,
        is_exact=True,
    )


def _read_level(client: SchemaRegistryClient, subject: str) -> tuple[Policy, Policy | None]:
    """Return the policy in force and the subject's own, by the words of the Confluent API."""
    try:
        own = client.config(subject).compatibility_level
    except NotFound:
        own = None
    level = own or client.config().compatibility_level or "BACKWARD"
    return find_policy(level), find_policy(own) if own else None


def read_baselines(client: SchemaRegistryClient, state: SubjectState, policy: Policy) -> list[Baseline]:
    """Return the versions that a policy compares with, oldest first, with the texts that they refer to.

    A policy that compares with none still gets the newest: validators are shown it.
    """
    newest_first = [_VersionNumber(number) for number in reversed(state.numbers)]
    wanted = [each.version_number for each, _, _ in policy.list_comparisons(newest_first)] or list(state.numbers[-1:])
    return [_read_baseline(client, state.name, number) for number in sorted(wanted)]


class _VersionNumber(msgspec.Struct, frozen=True):
    version_number: int


def _read_baseline(client: SchemaRegistryClient, subject: str, number: int) -> Baseline:
    version = client.resolve_version(subject, number)
    references = tuple(NamedText(name, text) for name, text in version.references.items())
    return Baseline(number, Candidate(version.text, references), f"{subject} version {number}")


def resolve_references(client: SchemaRegistryClient, references: tuple[SchemaReference, ...]) -> tuple[NamedText, ...]:
    """Return the texts that references lead to, and all that those refer to, dependencies first."""
    schema = client.resolve_schema(Schema("", references=references))
    return tuple(NamedText(name, text) for name, text in schema.references.items())


def parse_reference(name: str, target: str) -> SchemaReference:
    """Return the reference that SUBJECT:VERSION means; SUBJECT alone is its newest version.

    Raises `InvalidRequest`.
    """
    subject, colon, version = target.rpartition(":")
    if not colon or not version.lstrip("-").isdigit():
        subject, version = target, str(LATEST)
    if not subject:
        raise InvalidRequest(f"the reference {name!r}: write SUBJECT or SUBJECT:VERSION, not {target!r}")
    return SchemaReference(name, subject, int(version))


def ask_registry(client: SchemaRegistryClient, subject: str, schema: Schema, report: FileReport) -> FileReport:
    """Let the registry have the last word on a schema that passed: it may know rules that are not installed here."""
    if report.outcome is not Outcome.PASSED:
        return report
    try:
        answer = client.check_compatibility(subject, schema)
    except (NotFound, MalformedSchema):  # what it refers to may not be registered yet
        return report
    if answer.is_compatible:
        return report
    why = "; ".join(["The registry would refuse the schema", *(answer.messages or ())])
    finding = FileFinding("REGISTRY_REFUSES", "", why=why, line=1, column=1)
    return msgspec.structs.replace(report, outcome=Outcome.FAILED, findings=(*report.findings, finding))
