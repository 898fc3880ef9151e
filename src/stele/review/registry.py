"""The state of a subject in a registry, read for a review: versions with their references, policy and rulesets.

Any registry with the Confluent API can be read; a Stele registry also returns its exact policy and its rulesets.
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
"""Version of a reference to the newest version."""

_decode_policy = json_decoder(PolicyAnswer)


class SubjectState(msgspec.Struct, frozen=True):
    """State of a subject in a registry.

    numbers      version numbers, ascending; empty if the subject does not exist
    policy       policy in force
    own_policy   policy set at the subject itself, or None
    own_ruleset  ruleset set at the subject itself, or None
    rulesets     full name of the ruleset that decides, by format; empty if the registry does not return it
    is_exact     whether the registry returns its exact policy, as a Stele registry does
    """

    name: str
    numbers: tuple[int, ...]
    policy: Policy
    own_policy: Policy | None
    own_ruleset: str | None = None
    rulesets: Mapping[str, str] = {}
    is_exact: bool = False

    def rules_for(self, format_name: str) -> CheckRules:
        """Return the rules by which the registry judges a schema of a format."""
        full = self.rulesets.get(format_name, "") if self.is_exact else ""
        name, version = split_ruleset(full)
        return CheckRules(self.policy, full, {(format_name, name): version} if version is not None else None)


def read_subject(client: SchemaRegistryClient, subject: str) -> SubjectState:
    """Return the state of a subject, which need not exist. Raises `ResponseError`."""
    try:
        numbers = tuple(client.versions(subject))
    except NotFound:
        numbers = ()
    try:
        answer = client.send(Request("GET", build_path("api", "policies", subject), _decode_policy, subject=subject))
    except NotFound:  # not a Stele registry
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
    """Return the policy in force and the subject's own policy, from the compatibility levels of the Confluent API."""
    try:
        own = client.config(subject).compatibility_level
    except NotFound:
        own = None
    level = own or client.config().compatibility_level or "BACKWARD"
    return find_policy(level), find_policy(own) if own else None


def read_baselines(client: SchemaRegistryClient, state: SubjectState, policy: Policy) -> list[Baseline]:
    """Return the versions that a policy compares with, oldest first, with the texts that they refer to.

    A policy that compares with no version still gets the newest one, because validators use it.
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
    """Return the texts of references, and of all their own references, dependencies first."""
    schema = client.resolve_schema(Schema("", references=references))
    return tuple(NamedText(name, text) for name, text in schema.references.items())


def parse_reference(name: str, target: str) -> SchemaReference:
    """Return the reference to SUBJECT:VERSION; SUBJECT alone means its newest version.

    Raises `InvalidRequest`.
    """
    subject, colon, version = target.rpartition(":")
    if not colon or not version.lstrip("-").isdigit():
        subject, version = target, str(LATEST)
    if not subject:
        raise InvalidRequest(f"the reference {name!r}: write SUBJECT or SUBJECT:VERSION, not {target!r}")
    return SchemaReference(name, subject, int(version))


def ask_registry(client: SchemaRegistryClient, subject: str, schema: Schema, report: FileReport) -> FileReport:
    """Return the report of a schema that passed, after the registry checked it, too.

    The registry may have rules that are not installed here. A refusal turns the report into a failure.
    """
    if report.outcome is not Outcome.PASSED:
        return report
    try:
        answer = client.check_compatibility(subject, schema)
    except (NotFound, MalformedSchema):  # its references may not be registered yet
        return report
    if answer.is_compatible:
        return report
    why = "; ".join(["The registry would refuse the schema", *(answer.messages or ())])
    finding = FileFinding("REGISTRY_REFUSES", "", why=why, line=1, column=1)
    return msgspec.structs.replace(report, outcome=Outcome.FAILED, findings=(*report.findings, finding))
