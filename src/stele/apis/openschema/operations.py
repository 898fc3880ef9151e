"""Operations on subjects and schemas, for one caller; checks that registered versions agree with a policy."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from stele.apis.openschema import models as api
from stele.apis.openschema import translate
from stele.apis.openschema.options import OpenSchemaOptions
from stele.apis.openschema.translate import DIALECT, SubmittedSchema, parse_schema_id
from stele.core import queries
from stele.core.access import Operation
from stele.core.commands import Command, Outcome
from stele.core.decide.decision import check_name
from stele.core.model import (
    DEFAULT_NAMESPACE,
    ComparisonScope,
    Namespace,
    SchemaDocument,
    SchemaKind,
    Subject,
    SubjectKey,
    Version,
    VersionState,
)
from stele.core.policy import LATEST_VERSION, NO_VERSIONS, Policy, PolicyKind, VersionRange
from stele.core.state import State
from stele.core.traversal import list_versions_of_entry
from stele.errors import (
    ContentNotFound,
    Incompatible,
    InvalidName,
    InvalidRequest,
    SubjectNotFound,
    TooLarge,
    VersionNotFound,
)
from stele.service.registry import Registry
from stele.service.schemas import PreparedSchema
from stele.service.visibility import is_subject_shown


class AppState(msgspec.Struct, frozen=True):
    """What all requests of an application share."""

    registry: Registry
    options: OpenSchemaOptions


class Operations:
    """Serves one request of one caller.

    `namespace` is None if the request names no tenant and no namespace.
    """

    def __init__(self, app_state: AppState, namespace: str | None) -> None:
        self.registry = app_state.registry
        self.options = app_state.options
        self.namespace = namespace

    async def execute(self, command: Command) -> Outcome:
        """Carry out a command in the caller's name."""
        return await self.registry.execute(command, via=DIALECT)

    # --- finding ----------------------------------------------------------------------------------------------------

    def resolve_key(self, state: State, name: str) -> SubjectKey:
        """Return the key of the subject with a name.

        It is in the requested namespace. If the request names none, it is in the default namespace, else in the only
        other namespace that has it.

        Raises `InvalidName`, and `InvalidRequest` if several namespaces have one.
        """
        if not name.strip():
            raise InvalidName(name, "is not a name")
        namespace = DEFAULT_NAMESPACE if self.namespace is None else self.namespace
        key = SubjectKey(namespace, name)
        if self.namespace is not None or self._find_visible(state, key) is not None:
            return key
        namespaces = [
            place.name
            for place in self.list_namespaces(state)
            if self._find_visible(state, SubjectKey(place.name, name))
            and self.registry.access.can_read(SubjectKey(place.name, name))
        ]
        if len(namespaces) > 1:
            raise InvalidRequest(f"there are {len(namespaces)} subjects '{name}': give the tenant and the namespace")
        return SubjectKey(namespaces[0], name) if namespaces else key

    def _find_visible(self, state: State, key: SubjectKey) -> Subject | None:
        subject = state.find_subject(key)
        return subject if subject is not None and is_subject_shown(subject, DIALECT) else None

    def list_namespaces(self, state: State) -> list[Namespace]:
        """Return the namespaces a request is about."""
        if self.namespace is None:
            return queries.visible_namespaces(state)
        place = state.find_namespace(self.namespace)
        return [] if place is None else [place]

    async def get_subject(self, name: str) -> tuple[State, Subject]:
        """Return the present state and a subject in it. Raises `SubjectNotFound`."""
        state = await self.registry.fresh_state()
        return state, self.subject_in(state, name)

    def subject_in(self, state: State, name: str) -> Subject:
        """Return a subject of a state. Raises `SubjectNotFound`."""
        subject = self._find_visible(state, self.resolve_key(state, name))
        if subject is None:
            raise SubjectNotFound(name)
        return subject

    async def get_version(self, name: str, number: int | None) -> tuple[State, Version]:
        """Return an active version and the state it is in; None is the latest.

        Raises `SubjectNotFound`, `VersionNotFound`.
        """

        def find_version(state: State) -> tuple[State, Version]:
            return state, get_live_version(state, self.subject_in(state, name), number)

        return await self.registry.read_or_catch_up(find_version)

    async def get_version_by_id(self, text: str) -> tuple[State, Version]:
        """Return the version with a schema id that the caller may read: the first active one, else the first one.

        Raises `ContentNotFound`.
        """
        namespace, schema_id = parse_schema_id(text, self.namespace)

        def find_version(state: State) -> tuple[State, Version]:
            entry = queries.get_schema_entry(state, namespace, schema_id)
            can_read = self.registry.access.make_filter(Operation.READ)
            readable_versions = (row for row in list_versions_of_entry(entry) if can_read(row.subject.key))
            rows = sorted(readable_versions, key=lambda row: row.seq)
            live = [row for row in rows if row.state is VersionState.ACTIVE]
            if not rows:
                raise ContentNotFound(text)
            return state, (live or rows)[0]

        return await self.registry.read_or_catch_up(find_version)

    # --- schemas in -------------------------------------------------------------------------------------------------

    async def prepare_schema(self, state: State, submitted: SubmittedSchema, newest: Version | None) -> PreparedSchema:
        """Parse a schema; it inherits the references of the newest version where it needs them.

        Raises what parsing raises.
        """
        prepared = await self.registry.parser.prepare_inheriting_references(
            state, submitted.format, submitted.text, newest
        )
        document = msgspec.structs.replace(prepared.document, custom_format=submitted.custom_format)
        return prepared._replace(document=document)

    def parse_schema(self, schema_input: api.SchemaInput, newest: Version | None) -> SubmittedSchema:
        """Return the schema in a request. Raises `TooLarge` for long texts beside the schema, `InvalidName`."""
        self.check_sizes(schema_input.name, schema_input.comment, schema_input.validator, schema_input.serialization)
        kind: SchemaKind | None = None if newest is None else newest.kind
        submitted = translate.parse_schema(schema_input, kind)
        check_name(submitted.custom_format)
        return submitted

    def check_sizes(self, *texts: str | None) -> None:
        """Raise `TooLarge` if the texts beside a schema are longer than a schema may be."""
        self.registry.limits.check_text("".join(text or "" for text in texts).encode())


def get_live_version(state: State, subject: Subject, number: int | None) -> Version:
    """Return an active version of a subject; None is the latest. Raises `VersionNotFound`."""
    if not subject.versions:
        raise VersionNotFound(translate.LATEST if number is None else number)
    return queries.get_version(state, subject.key, number)


def now_after(before: int) -> int:
    """Return the present time in milliseconds since 1970. It is later than `before` even if the clock is behind."""
    return max(time.time_ns() // 1_000_000, before + 1)


async def require_consistent(
    registry: Registry, state: State, subject: Subject, policy: Policy, *, max_pairs: int
) -> None:
    """Raise unless every active version is compatible with those before it under a policy.

    Args:
        registry: Compares the versions.
        state: State they are in.
        subject: Subject they are of.
        policy: Policy to check.
        max_pairs: Pairs of versions to compare, at most.

    Raises:
        Incompatible: Two versions do not agree.
        TooLarge: There are more pairs than max_pairs.
    """
    if policy.kind is not PolicyKind.DIRECTIONAL:
        return
    pairs = [
        (rows[position], other)
        for rows in _comparable_versions(subject)
        for position in range(1, len(rows))
        for other, _, _ in policy.list_comparisons(reversed(rows[:position]))
    ]
    if len(pairs) > max_pairs:
        raise TooLarge(f"{len(pairs)} pairs of versions would have to be compared; the limit is {max_pairs}")
    await _require_compatible(registry, state, pairs, policy)


async def require_consistent_without(registry: Registry, state: State, version: Version) -> None:
    """Raise `Incompatible` unless the neighbours of a version are compatible with each other.

    This applies only to a policy that compares with the latest version. Other policies compared these neighbours when
    the later one was registered.
    """
    subject = version.subject
    policy = queries.policy_for(state, subject.key)
    near = Policy(backward=_only_latest(policy.backward), forward=_only_latest(policy.forward))
    rows = next(rows for rows in _comparable_versions(subject) if any(row is version for row in rows))
    position = next(number for number, row in enumerate(rows) if row is version)
    if policy.kind is PolicyKind.DIRECTIONAL and near != Policy() and 0 < position < len(rows) - 1:
        await _require_compatible(registry, state, [(rows[position + 1], rows[position - 1])], near)


def _comparable_versions(subject: Subject) -> list[list[Version]]:
    """Return the active versions, ascending; one list per kind if the subject compares within kinds only."""
    kinds: dict[SchemaKind | None, list[Version]] = {}
    for row in queries.list_versions(subject):
        kinds.setdefault(row.kind if subject.comparison_scope is ComparisonScope.SCHEMA_KIND else None, []).append(row)
    return list(kinds.values())


def _only_latest(versions: VersionRange) -> VersionRange:
    return versions if versions == LATEST_VERSION else NO_VERSIONS


async def _require_compatible(
    registry: Registry, state: State, pairs: Sequence[tuple[Version, Version]], policy: Policy
) -> None:
    plain = replace(policy, validators=())
    for version, other in pairs:
        kind, content = version.kind, version.content
        document = SchemaDocument(
            state.get_text(content), content.sha, kind.format, kind.type, custom_format=kind.custom_format
        )
        key = version.subject.key
        findings, against = await registry.find_incompatibilities(
            key, document, version.schema.attachments, policy=plain, version_number=other.version_number
        )
        if findings:
            raise Incompatible(key.name, findings, against=against)
