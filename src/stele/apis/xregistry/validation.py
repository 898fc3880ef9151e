"""Validation of the versions of a schema: rules about attributes, then documents, formats and compatibility.

The rules about attributes need no schema language. They concern ancestors, formats and the constraints of the group.

Source: docs/protocols/xregistry.md#validation
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from stele.apis.xregistry.attributes import merge_constraints
from stele.apis.xregistry.errors import RegistryError
from stele.apis.xregistry.models import GroupEntity, ResourceEntity, VersionEntity
from stele.apis.xregistry.pending import PendingEntities
from stele.apis.xregistry.translate import compares_versions, compatibility_name, resolve_format
from stele.core import queries
from stele.core.compatibility_requests import CompatibilityRequest, SchemaSource
from stele.core.model import MAX_INT32, OPAQUE_FORMAT, ComparisonScope, SchemaFormat, SchemaKind, SettingsLevel
from stele.core.policy import Policy
from stele.core.state import State
from stele.errors import MalformedSchema, UnresolvedReference
from stele.service.registry import Registry
from stele.service.schemas import PreparedSchema


def list_ancestors(schema: ResourceEntity, version: VersionEntity) -> list[VersionEntity]:
    """Return the ancestors of a version, closest first. Raises `RegistryError` for a circle."""
    ancestors: list[VersionEntity] = []
    seen = {version.id}
    while version.ancestorid != version.id:
        version = schema.versions[version.ancestorid]
        if version.id in seen:
            circle = ", ".join(sorted(seen))
            raise RegistryError("ancestor_circular_reference", schema.xid, list=circle)
        seen.add(version.id)
        ancestors.append(version)
    return ancestors


def check_group_constraints(group: GroupEntity, schema: ResourceEntity) -> None:
    """Raise `RegistryError` for a version whose attributes the group does not allow."""
    for name, rule in merge_constraints(group.attributes.get("constraints", {})):
        wanted = group.attributes.get(rule.get("equals") or "")
        choices = [_fold(value) for value in rule.get("enum") or ()]
        for version in schema.versions.values():
            value = version.attributes.get(name)
            if choices and value is not None and _fold(value) not in choices:
                raise RegistryError("constraint_failure", schema.xid, path=f"schemas.{name}", kind="enum")
            if wanted is not None and _fold(value) != _fold(wanted):
                raise RegistryError("constraint_failure", schema.xid, path=f"schemas.{name}", kind="equals")


def check_matching_versions(schema: ResourceEntity) -> None:
    """Raise `RegistryError` if a request gives versions different formats. Formats set by other dialects may differ."""
    has_new_format = any(version.format != version.format_before for version in schema.versions.values())
    if has_new_format and len({version.format.casefold() for version in schema.versions.values()}) > 1:
        raise RegistryError("mismatched_version_attribute", schema.xid, name="format")


def _fold(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value


Prepared = Mapping[tuple[str, str], PreparedSchema]
"""Documents to register, by the XID of their schema and the id of their version."""


class _Compared(msgspec.Struct, frozen=True):
    """A version as policies compare it."""

    version: VersionEntity
    version_number: int
    kind: SchemaKind
    source: SchemaSource

    @property
    def format(self) -> str:
        """Format of the document."""
        return self.kind.format


async def validate_update(registry: Registry, pending: PendingEntities, comparable: Mapping[str, bool]) -> Prepared:
    """Check all rules for pending entities, and return the documents to register.

    Raises:
        RegistryError: `format_violation`, `constraint_failure`, `mismatched_version_attribute`,
            `compatibility_violation`.
        TooLarge: A document exceeds a limit.
    """
    prepared: dict[tuple[str, str], PreparedSchema] = {}
    for schema in pending.written_schemas():
        check_matching_versions(schema)
        group = pending.find_group(schema.group_id)
        if group is not None:
            check_group_constraints(group, schema)
        for version in schema.versions.values():
            if version.is_written:
                document = await _prepare_document(
                    registry, pending.loader.state, schema, version, pending.loader.installed
                )
                if document is not None:
                    prepared[schema.xid, version.id] = document
    for schema in pending.written_schemas():
        if compares_versions(schema.policy):
            await _check_compatibility(registry, pending, schema, prepared, comparable)
    return prepared


async def _prepare_document(
    registry: Registry, state: State, schema: ResourceEntity, version: VersionEntity, installed: Any
) -> PreparedSchema | None:
    """Return the document that a version gets, or None if it keeps its document or has none."""
    row = version.registered
    schema_format = resolve_format(version.format, installed)
    text = version.new_document
    if text is None:
        if row is None or _is_same_format(row.kind.schema_format, schema_format):
            return None
        text = state.get_text(row.content)
    if not text:
        return None
    xid = f"{schema.xid}/versions/{version.id}"
    try:
        prepared = await registry.parser.prepare_inheriting_references(
            state, schema_format.format, text, queries.latest_version(schema.subject)
        )
    except (MalformedSchema, UnresolvedReference) as error:
        raise RegistryError("format_violation", xid, format=version.format, detail=str(error)) from None
    is_same = row is not None and row.content.sha == prepared.document.sha
    if is_same and row is not None and _is_same_format(row.kind.schema_format, schema_format):
        version.new_document = None
        return None
    version.new_document = text
    document = replace(prepared.document, custom_format=schema_format.custom_format)
    return prepared._replace(document=document)


def _is_same_format(one: SchemaFormat, other: SchemaFormat) -> bool:
    return one.format == other.format and one.custom_format.casefold() == other.custom_format.casefold()


async def _check_compatibility(
    registry: Registry,
    pending: PendingEntities,
    schema: ResourceEntity,
    prepared: Prepared,
    comparable: Mapping[str, bool],
) -> None:
    """Check the versions of a schema under its policy, each against its ancestors.

    Raises `RegistryError` (`compatibility_violation`).
    """
    state = pending.loader.state
    compared_versions = {
        version.id: compared
        for version in schema.versions.values()
        if (compared := _see_version(state, schema, version, prepared, comparable)) is not None
    }
    questions: dict[CompatibilityRequest, str] = {}
    for version in schema.versions.values():
        if version.id not in compared_versions:
            continue
        ancestors = list_ancestors(schema, version)
        new_pairs = _find_new_pairs(schema, version, ancestors)
        chain = [compared_versions[each.id] for each in ancestors if each.id in compared_versions]
        for question, ancestor in _ask(state, schema, schema.policy, compared_versions[version.id], chain):
            if ancestor in new_pairs:
                questions.setdefault(question, version.id)
        version.is_compared |= schema.sets_policy or version.new_document is not None
    extra: dict[bytes, bytes] = {}
    for document in prepared.values():
        extra |= document.document.texts
    verdicts = dict(registry.compatibility.verdicts)
    missing = tuple(question for question in questions if question not in verdicts)
    if missing:
        verdicts |= await registry.compatibility.answer_requests(state, missing, extra)
    refused = [
        (version_id, finding)
        for question, version_id in questions.items()
        for finding in verdicts.get(question, ())
        if finding.breaks
    ]
    if refused:
        names = ", ".join(dict.fromkeys(version_id for version_id, _ in refused))
        reasons = "; ".join(f"{finding.path or '/'}: {finding.why}" for _, finding in refused[:20])
        raise RegistryError(
            "compatibility_violation",
            schema.xid,
            compat=compatibility_name(schema.policy),
            detail=f"Versions in violation: {names}. {reasons}",
        )


def _find_new_pairs(schema: ResourceEntity, version: VersionEntity, ancestors: list[VersionEntity]) -> set[str]:
    """Return the ids of the ancestors that a version must be compared with. Pairs compared before are left out."""
    new_ancestors: set[str] = set()
    has_new_link, below = False, version
    for ancestor in ancestors:
        has_new_link |= below.ancestorid != below.ancestor_before
        has_new_document = version.new_document is not None or ancestor.new_document is not None
        if schema.sets_policy or has_new_document or has_new_link:
            new_ancestors.add(ancestor.id)
        below = ancestor
    return new_ancestors


def _see_version(
    state: State, schema: ResourceEntity, version: VersionEntity, prepared: Prepared, comparable: Mapping[str, bool]
) -> _Compared | None:
    """Return a version as policies compare it, or None if its document cannot be compared."""
    document = prepared.get((schema.xid, version.id))
    if document is not None:
        kind, source, number = document.document.kind, document.source, MAX_INT32
    elif version.registered is not None and version.new_document != b"":
        row = version.registered
        references = queries.resolve_references(state, row.schema.attachments.references)
        kind, source, number = row.kind, SchemaSource(row.content.sha, references), row.version_number
    else:
        return None
    if kind.format == OPAQUE_FORMAT or not comparable.get(kind.format, False):
        return None
    return _Compared(version, number, kind, source)


def _ask(
    state: State, schema: ResourceEntity, policy: Policy, own: _Compared, chain: list[_Compared]
) -> Iterator[tuple[CompatibilityRequest, str]]:
    """Yield the comparisons that a policy requires for one version, each with the id of the ancestor."""
    ruleset = queries.settings_for(state, SettingsLevel(*schema.key)).ruleset or ""
    adopted = queries.adopted_rulesets(state, own.format)
    scope = schema.subject.comparison_scope if schema.subject is not None else ComparisonScope.SUBJECT
    if scope is ComparisonScope.SCHEMA_KIND:
        chain = [ancestor for ancestor in chain if ancestor.kind == own.kind]
    for ancestor, backward, forward in policy.list_comparisons(chain):
        if ancestor.format != own.format:
            continue
        if backward:
            yield CompatibilityRequest(own.format, ruleset, own.source, ancestor.source, adopted), ancestor.version.id
        if forward:
            yield CompatibilityRequest(own.format, ruleset, ancestor.source, own.source, adopted), ancestor.version.id
