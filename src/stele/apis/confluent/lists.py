"""Contents and order of the lists of the API. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import NamedTuple

import msgspec

from stele.apis.confluent.models import NONE, STRONG, TOPIC, WEAK, ExtendedSchema, SubjectVersionBody
from stele.apis.confluent.names import NoSuchResource, PrefixFilter, context_name, parse_subject_key, qualify_subject
from stele.apis.confluent.operations.associations import AssociationFilter, association_out
from stele.core import queries
from stele.core.model import Binding, Namespace, SchemaEntry, Subject, SubjectKey, Version, VersionState
from stele.core.state import OWN, State
from stele.core.traversal import list_versions_of_entry
from stele.errors import ContentNotFound
from stele.service.access import AccessControl
from stele.service.time_slices import TimeSlices


def _matching_namespaces(state: State, prefix: PrefixFilter) -> list[Namespace]:
    if prefix.namespace is None:
        return list(state.namespaces.values())
    space = state.find_namespace(prefix.namespace)
    return [] if space is None else [space]


async def list_subjects(
    slices: TimeSlices, state: State, prefix: PrefixFilter, *, by_age: bool = False
) -> list[Subject]:
    """Return the subjects that match a prefix, sorted by displayed name; by_age keeps the order of creation."""
    there = (subject for space in _matching_namespaces(state, prefix) for subject in space.subjects.values())
    named_subjects = [
        (qualify_subject(subject.key), subject)
        async for subject in slices.iterate(there)
        if prefix.matches_subject(subject.key)
    ]
    if not by_age:
        named_subjects.sort(key=itemgetter(0))
    return [subject for _, subject in named_subjects]


def has_versions(subject: Subject, *, deleted: bool, deleted_only: bool) -> bool:
    """Return whether a subject has an active version.

    With `deleted`, a subject with only soft-deleted versions counts, too. With `deleted_only`, only such subjects
    count.
    """
    lives = {version.state for version in subject.versions}
    live, retired = VersionState.ACTIVE in lives, VersionState.SOFT_DELETED in lives
    return (retired and not live) if deleted_only else (live or (deleted and retired))


class VersionFilter(NamedTuple):
    """Versions of a subject that a list shows: with soft-deleted ones, only the latest, or only with a type of rule."""

    deleted: bool
    latest_only: bool
    rule_type: str


def list_versions_of_subject(subject: Subject, version_filter: VersionFilter) -> list[Version]:
    """Return the versions of a subject that pass a filter, by number."""
    rows = queries.list_versions(
        subject, queries.ACTIVE_OR_SOFT_DELETED if version_filter.deleted else queries.ACTIVE_ONLY
    )
    rows = rows[-1:] if version_filter.latest_only else rows
    return [row for row in rows if _has_rule(row, version_filter.rule_type)] if version_filter.rule_type else rows


def _has_rule(version: Version, rule_type: str) -> bool:
    rule_set = version.schema.attachments.rule_set
    if rule_set is None:
        return False
    phases = (rule_set.migration_rules, rule_set.domain_rules, rule_set.encoding_rules)
    return any(rule.type == rule_type for rules in phases for rule in rules or ())


def list_version_numbers(rows: list[Version], *, deleted_only: bool, as_negative: bool) -> Iterator[int]:
    """Yield version numbers, ascending; as_negative negates those of soft-deleted versions."""
    for row in rows:
        retired = row.state is VersionState.SOFT_DELETED
        if retired or not deleted_only:
            yield -row.version_number if retired and as_negative else row.version_number


def list_versions_of_schema(schema: SchemaEntry, *, deleted: bool) -> list[Version]:
    """Return the versions that have a schema, by subject and number.

    Raises `ContentNotFound` if no active or soft-deleted version has it.
    """
    lives = queries.ACTIVE_OR_SOFT_DELETED if deleted else queries.ACTIVE_ONLY
    rows = [row for row in list_versions_of_entry(schema) if row.state in queries.ACTIVE_OR_SOFT_DELETED]
    if not rows:
        raise ContentNotFound
    versions = [row for row in rows if row.state in lives]
    return sorted(versions, key=lambda row: (qualify_subject(row.subject.key), row.version_number))


def list_users_of_schema(state: State, schema: SchemaEntry, access: AccessControl) -> list[str]:
    """Return the names of the subjects with an active version that has the schema, in order of creation."""
    is_shown = access.make_filter()
    users = {row.subject.key for row in list_versions_of_entry(schema) if row.state is VersionState.ACTIVE}
    return [
        qualify_subject(key)
        for key in (SubjectKey(schema.namespace, name) for name in state.namespaces[schema.namespace].subjects)
        if key in users and is_shown(key)
    ]


def find_version_with_properties(rows: list[Version], wanted: list[tuple[str, str]]) -> Version:
    """Return the newest version whose metadata has all these properties. Raises `ContentNotFound`."""
    for row in reversed(rows):
        metadata = row.schema.attachments.metadata
        properties = (metadata.properties or {}) if metadata is not None else {}
        if all(properties.get(name) == value for name, value in wanted):
            return row
    raise ContentNotFound


def list_aliases(state: State, is_shown: Callable[[SubjectKey], bool]) -> Mapping[SubjectKey, list[str]]:
    """Return the aliases of each subject, sorted."""
    aliases: dict[SubjectKey, list[str]] = {}
    for space in state.namespaces.values():
        for name, settings in space.settings.items():
            key = SubjectKey(space.name, name)
            if settings.alias and name != OWN and is_shown(key):
                aliases.setdefault(parse_subject_key(settings.alias, space.name), []).append(qualify_subject(key))
    return {key: sorted(names) for key, names in aliases.items()}


class SubjectAssociationFilter(NamedTuple):
    """Associations that the subject of a version must have. With `none`, subjects without associations pass, too."""

    bindings: AssociationFilter
    none: bool

    def select_bindings(self, there: list[Binding]) -> list[Binding] | None:
        """Return those bindings of a subject that match, or None if the subject does not pass."""
        matching = [row for row in there if self.bindings.matches_binding(row)]
        return matching or ([] if self.none and not there else None)


def parse_association_filter(
    resource_type: str, types: list[str] | None, lifecycles: list[str] | None
) -> SubjectAssociationFilter | None:
    """Return the filter of a request, or None if it has no parameter about associations. Raises `NoSuchResource`."""
    if not (resource_type or types or lifecycles):
        return None
    named = {word.upper() for word in lifecycles or ()}
    if not named <= {STRONG, WEAK, NONE}:
        raise NoSuchResource
    some = tuple(sorted(named - {NONE})) or ((NONE,) if NONE in named else ())
    return SubjectAssociationFilter(AssociationFilter(resource_type or TOPIC, tuple(types or ()), some), NONE in named)


def list_bindings_by_subject(state: State) -> Mapping[SubjectKey, list[Binding]]:
    """Return the bindings of all subjects that have any, by subject."""
    there: dict[SubjectKey, list[Binding]] = {}
    for _, binding in sorted(state.bindings.items()):
        there.setdefault(binding.subject, []).append(binding)
    return there


def extend_schema(schema: SubjectVersionBody, aliases: list[str], bindings: list[Binding]) -> ExtendedSchema:
    """Return a version with the aliases and the associations of its subject."""
    *members, _ = msgspec.structs.astuple(schema)  # Its aliases come last.
    values = (*members, aliases, [association_out(binding) for binding in bindings])
    return ExtendedSchema(*values)


def list_contexts(state: State, prefix: str, access: AccessControl) -> Iterator[str]:
    """Yield the names of contexts with a prefix, the default context first.

    Contexts in which the caller has no rights are left out.
    """
    names = map(context_name, access.select_namespaces(queries.visible_namespaces(state)))
    return (name for name in names if name.startswith(prefix))
