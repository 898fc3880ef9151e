"""Groups, schemas and versions from the state of the core: ids, formats, and the data of this dialect.

A group is a namespace, a schema is a subject, a version is an active version. Attributes that only this dialect has are
stored in the `dialect_data` of the namespace and the subject. A version may have no version of the core: its document
is stored elsewhere, or it has none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec
from cachetools import LRUCache

from stele.apis.xregistry.attributes import NO_COMPATIBILITY, is_id, print_time
from stele.apis.xregistry.models import Attributes, GroupEntity, RegistryEntity, ResourceEntity, VersionEntity
from stele.core import queries
from stele.core.model import (
    DEFAULT_NAMESPACE,
    OPAQUE_FORMAT,
    Mode,
    Namespace,
    SchemaFormat,
    SettingsLevel,
    Subject,
    SubjectKey,
    Version,
    VersionState,
)
from stele.core.policy import ALLOW_ANY, BACKWARD, Policy, PolicyKind
from stele.core.policy_json import PolicyJson
from stele.core.state import State
from stele.protocol.cncf import group_id_of, namespace_of

DIALECT: Final = "xregistry"
"""Name of the dialect in the journal, key of its data, and collection of the registry's attributes."""
REGISTRY_ITEM: Final = ("registry",)
"""Key of the registry's own attributes in the collection."""
REGISTRY_ID: Final = "stele"
"""Id of the registry."""

# --- ids

_ESCAPED = re.compile(r"~([0-9A-F]{2})")
_PLAIN = re.compile(r"[A-Za-z0-9._:@-]\Z")
_LEADING: Final = "_~~"
"""Prefix of the id of a name whose first character cannot begin an id."""


def encode_name(name: str) -> str:
    """Return the id of a namespace or subject: its name, if that is a valid id.

    Other dialects allow more names. Bytes that an id cannot contain are written as `~2F`.
    """
    if is_id(name) and _unescape(name) is None:
        return name
    text = "".join(char if _PLAIN.match(char) else "".join(f"~{byte:02X}" for byte in char.encode()) for char in name)
    return text if text[:1].isalnum() or text.startswith("_") else _LEADING + text


def decode_name(identifier: str) -> str:
    """Return the name of an id: the inverse of `encode_name`."""
    name = _unescape(identifier)
    return name if name is not None else identifier


def _unescape(identifier: str) -> str | None:
    """Return the name of an id with escapes, or None if it has none."""
    text = identifier.removeprefix(_LEADING)
    if "~" not in text:
        return text if text != identifier else None
    try:
        parts = _ESCAPED.split(text)
        data = b"".join(bytes.fromhex(part) if i % 2 else part.encode() for i, part in enumerate(parts))
        return data.decode() if "~" not in "".join(parts[::2]) else None
    except UnicodeDecodeError:
        return None


def group_id(namespace: str) -> str:
    """Return the id of the group of a namespace."""
    return encode_name(group_id_of(namespace))


def group_namespace(identifier: str) -> str:
    """Return the namespace of a group."""
    return namespace_of(decode_name(identifier))


# --- formats

_FORMATS: Final = (
    ("avro", "avro*"),
    ("json", "jsonschema/draft-04"),
    ("json", "jsonschema/draft-06"),
    ("json", "jsonschema/draft-07"),
    ("json", "jsonschema/draft/2019-09"),
    ("json", "jsonschema/draft/2020-12"),
    ("protobuf", "protobuf/2*"),
    ("protobuf", "protobuf/3*"),
    ("thrift", "thrift*"),
    ("xsd", "xsd/1.*"),
    ("xsd", "xmlschema/1.*"),
)
_JSON_FORMATS: Final = frozenset({"avro", "json"})
"""Formats whose documents are JSON."""
_DRAFT = re.compile(rb'"\$schema"\s*:\s*"https?://json-schema\.org/(draft-0[467]|draft/20[12][0-9]-[0-9]{2})/')
_PROTO3 = re.compile(rb'^\s*syntax\s*=\s*["\']proto3["\']', re.MULTILINE)
_PRINTED: LRUCache[tuple[bytes, str], str] = LRUCache(100_000)


def resolve_format(name: str, installed: Collection[str]) -> SchemaFormat:
    """Return the format that a value of `format` names; an opaque one if its documents cannot be validated."""
    word = name.casefold()
    for format_name, pattern in _FORMATS:
        if format_name in installed and fnmatchcase(word, pattern):
            return SchemaFormat(format_name)
    return SchemaFormat(OPAQUE_FORMAT, name)


def print_format(state: State, version: Version) -> str:
    """Return the value of `format` of a version that another dialect registered."""
    kind = version.kind
    if kind.format == OPAQUE_FORMAT:
        return kind.custom_format or kind.type or "Custom"
    key = (version.content.sha, kind.format)
    known = _PRINTED.get(key)
    if known is None:
        known = _PRINTED[key] = _format_of_text(kind.format, state.get_text(version.content))
    return known


def _format_of_text(format_name: str, text: bytes) -> str:
    match format_name:
        case "avro":
            return "Avro/1.12"
        case "json":
            draft = _DRAFT.search(text)
            return f"JsonSchema/{draft[1].decode() if draft is not None else 'draft-07'}"
        case "protobuf":
            return "Protobuf/3" if _PROTO3.search(text) else "Protobuf/2"
        case "xsd":
            return "XSD/1.1" if b'minVersion="1.1"' in text else "XSD/1.0"
        case _:
            return format_name.capitalize()


# --- policies


def inherited_policy(state: State, key: SubjectKey) -> Policy:
    """Return the policy of a schema without one of its own, or the policy that a new schema would have."""
    subject = state.find_subject(key)
    if subject is not None and subject.default_policy is not None:
        return subject.default_policy
    above = queries.settings_for(state, SettingsLevel(key.namespace)).policy
    return above or (BACKWARD if subject is not None else ALLOW_ANY)


def policy_attributes(state: State, schema: ResourceEntity) -> Attributes:
    """Return `compatibility` of a meta entity, and the policy in full if no word expresses it."""
    if schema.policy == ALLOW_ANY:
        own = state.settings_at(SettingsLevel(*schema.key))
        is_own = own is not None and own.policy is not None
        return (
            {"compatibility": NO_COMPATIBILITY} if is_own and inherited_policy(state, schema.key) != ALLOW_ANY else {}
        )
    exact = PolicyJson.when_unnamed(schema.policy)
    attributes: Attributes = {"compatibility": compatibility_name(schema.policy)}
    if exact is not None:
        attributes["stelecompatibility"] = msgspec.to_builtins(exact)
    return attributes


def compatibility_name(policy: Policy) -> str:
    """Return the word for a policy, or that for the nearest stricter one."""
    return NO_COMPATIBILITY if policy == ALLOW_ANY else policy.nearest_name.lower()


def compares_versions(policy: Policy) -> bool:
    """Return whether a policy restricts new versions."""
    return policy.kind is not PolicyKind.ALLOW_ANY


# --- what is kept beside the core's


def own_data(dialect_data: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the data of this dialect for a namespace or subject."""
    return (dialect_data or {}).get(DIALECT) or {}


def with_own_data(dialect_data: Mapping[str, Any] | None, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of all dialects, with those of this dialect replaced."""
    return {**(dialect_data or {}), DIALECT: dict(own)}


def format_millis(milliseconds: int) -> str:
    """Return a time (milliseconds since 1970) as a timestamp."""
    return print_time(datetime.fromtimestamp(milliseconds / 1000, UTC))


def count_version_changes(subject: Subject | None) -> int:
    """Return how many times versions of a subject were added or deleted.

    It never decreases if version numbers are not reused.
    """
    if subject is None:
        return 0
    return 2 * subject.highest_version_number - len(queries.list_versions(subject))


def count_schema_changes(namespace: Namespace | None) -> int:
    """Return how many times subjects of a namespace were added or deleted."""
    if namespace is None:
        return 0
    present = sum(2 * subject.incarnation - 1 for subject in namespace.subjects.values())
    absent = sum(count for name, count in namespace.incarnations.items() if name not in namespace.subjects)
    return present + 2 * absent


class EntityLoader:
    """Loads entities from one state.

    Args:
        state: The state.
        installed: Names of the installed formats.
    """

    def __init__(self, state: State, installed: Collection[str]) -> None:
        self.state = state
        self.installed = installed

    # --- registry and groups

    def load_registry(self) -> RegistryEntity:
        """Return the registry itself."""
        collection = self.state.collections.get(DIALECT)
        document = None if collection is None else collection.items.get(REGISTRY_ITEM)
        record = msgspec.json.decode(document) if document is not None else {}
        times = [namespace.at for namespace in self.state.namespaces.values()]
        grown = max(0, len(times) - record.get("seen", 0))
        modified = record.get("modifiedat", "")
        return RegistryEntity(
            epoch=record.get("epoch", 1) + grown,
            createdat=record.get("createdat") or (format_millis(min(filter(None, times))) if any(times) else ""),
            modifiedat=modified if modified and not grown else max(modified, format_millis(max(times, default=0))),
            attributes=record.get("attributes", {}),
        )

    def has_group(self, namespace: Namespace) -> bool:
        """Return whether a namespace is a group: it was created explicitly or had content, and was not deleted."""
        if namespace.hidden:
            return False
        if namespace.name == DEFAULT_NAMESPACE:  # It always exists, so it is shown only if it has content.
            is_deleted = own_data(namespace.dialect_data).get("deleted", False)
            return bool(namespace.subjects) or (namespace.explicit and not is_deleted)
        return bool(namespace.explicit or namespace.highest_schema_id or namespace.subjects)

    def find_group(self, identifier: str) -> GroupEntity | None:
        """Return a group, or None if it does not exist."""
        namespace = self.state.find_namespace(group_namespace(identifier))
        return self.load_group(namespace) if namespace is not None and self.has_group(namespace) else None

    def load_group(self, namespace: Namespace) -> GroupEntity:
        """Return the group of a namespace."""
        record = own_data(namespace.dialect_data)
        attributes: Attributes = dict(record.get("attributes", {}))
        if namespace.description:
            attributes["description"] = namespace.description
        if namespace.labels:
            attributes["labels"] = dict(namespace.labels)
        if namespace.format and "format" not in attributes:
            attributes["format"] = namespace.format.capitalize()
        changes = count_schema_changes(namespace)
        grown = max(0, changes - record.get("seen", 0)) + max(0, namespace.epoch - record.get("described", 0))
        modified = record.get("modifiedat", "")
        if not modified or grown:
            newest = max((subject.at for subject in namespace.subjects.values()), default=0)
            modified = max(modified, format_millis(max(namespace.at, namespace.changed, newest)))
        return GroupEntity(
            namespace=namespace.name,
            id=group_id(namespace.name),
            epoch=record.get("epoch", 1) + grown,
            createdat=record.get("createdat") or format_millis(namespace.at),
            modifiedat=modified,
            attributes=attributes,
            place=namespace,
        )

    def list_schemas(self, namespace: Namespace) -> Iterable[Subject]:
        """Yield the subjects of a namespace that this dialect shows as schemas."""
        return (subject for subject in namespace.subjects.values() if is_schema(subject))

    # --- schemas

    def find_schema(self, group: str, identifier: str) -> ResourceEntity | None:
        """Return a schema, or None if it does not exist."""
        subject = self.state.find_subject(SubjectKey(group_namespace(group), decode_name(identifier)))
        return self.load_schema(subject) if subject is not None and is_schema(subject) else None

    def load_schema(self, subject: Subject) -> ResourceEntity:
        """Return the schema of a subject, with its versions."""
        record = own_data(subject.dialect_data)
        policy = queries.policy_for(self.state, subject.key)
        grown = max(0, count_version_changes(subject) - record.get("seen", 0))
        modified = record.get("modifiedat", "")
        if not modified or grown:
            newest = max((row.at for row in subject.versions), default=0)
            modified = max(modified, format_millis(max(subject.at, subject.changed_at, newest)))
        attributes: Attributes = dict(record.get("attributes", {}))
        if subject.labels:
            attributes["labels"] = dict(subject.labels)
        mode = queries.mode_for(self.state, SettingsLevel(*subject.key))
        schema = ResourceEntity(
            key=subject.key,
            group_id=group_id(subject.key.namespace),
            id=encode_name(subject.key.name),
            policy=policy,
            epoch=record.get("epoch", 1 if record else 0) + grown,
            createdat=record.get("createdat") or format_millis(subject.at),
            modifiedat=modified,
            attributes=attributes,
            is_sticky=bool(record.get("sticky", subject.default_version is not None)),
            xref=record.get("xref", ""),
            subject=subject,
            highest_generated=record.get("highest", 0),
            is_read_only=mode in {Mode.READONLY, Mode.READONLY_OVERRIDE, Mode.FORWARD},
        )
        self._load_versions(schema, subject, record)
        _choose_default(schema, record.get("default", ""))
        return schema

    def _load_versions(self, schema: ResourceEntity, subject: Subject, record: Mapping[str, Any]) -> None:
        known: dict[str, Any] = record.get("versions", {})
        named = {entry["number"]: identifier for identifier, entry in known.items() if "number" in entry}
        compared = record.get("compared")
        is_compared = compared is not None and compared == msgspec.to_builtins(PolicyJson.from_policy(schema.policy))
        for identifier, entry in known.items():
            if "number" not in entry:
                schema.versions[identifier] = _read_version(identifier, entry, None)
        shared = self._find_shared_format(subject, known)
        before = ""
        for row in subject.versions:
            if row.state is not VersionState.ACTIVE:
                before = ""
                continue
            identifier = named.get(row.version_number, "")
            if identifier:
                version = _read_version(identifier, known[identifier], row)
                version.is_compared = is_compared
            else:
                version = self._adopt_version(row, before, {*known, *schema.versions}, shared)
            version.is_compared |= row.policy == schema.policy
            schema.versions[version.id] = version
            before = version.id
        for version in schema.versions.values():
            if version.ancestorid not in schema.versions:
                version.ancestorid = version.id
            version.ancestor_before, version.format_before = version.ancestorid, version.format

    def _find_shared_format(self, subject: Subject, known: Mapping[str, Any]) -> tuple[SchemaFormat, str] | None:
        """Return the format of the versions of a schema with its value of `format`; None if there is no common one.

        It is the group's, that of a version which this dialect wrote, or that of the newest version.
        """
        namespace = self.state.find_namespace(subject.key.namespace)
        group = {} if namespace is None else own_data(namespace.dialect_data).get("attributes", {})
        names = [group.get("format"), *(entry["attributes"].get("format") for entry in known.values())]
        name = next(filter(None, names), None)
        if name is not None:
            return resolve_format(name, self.installed), name
        newest = queries.latest_version(subject)
        if newest is None:
            return None
        named_by_group = namespace is not None and namespace.format == newest.kind.format
        name = namespace.format.capitalize() if named_by_group and namespace else print_format(self.state, newest)
        return newest.kind.schema_format, name

    def _adopt_version(
        self, row: Version, before: str, taken: Collection[str], shared: tuple[SchemaFormat, str] | None
    ) -> VersionEntity:
        """Return the entity of a version that another dialect registered."""
        identifier = str(row.version_number)
        while identifier in taken:
            identifier += "~"
        own = row.attributes
        is_shared = shared is not None and shared[0] == row.kind.schema_format
        attributes: Attributes = {"format": shared[1] if shared and is_shared else print_format(self.state, row)}
        attributes["contenttype"] = "application/json" if row.kind.format in _JSON_FORMATS else "text/plain"
        if own is not None:
            own_attributes = {
                "description": own.description,
                "labels": dict(own.labels or {}),
                "contenttype": own.media_type,
            }
            attributes |= {name: value for name, value in own_attributes.items() if value}
        at = format_millis(row.at)
        return VersionEntity(identifier, 1, at, at, before or identifier, attributes, registered=row)


def is_schema(subject: Subject) -> bool:
    """Return whether this dialect shows a subject as a schema.

    It has an active version, or this dialect created it with a cross reference or a version without a document.
    """
    if queries.latest_version(subject) is not None:
        return True
    record = own_data(subject.dialect_data)
    return bool(record.get("xref")) or any("number" not in entry for entry in record.get("versions", {}).values())


def _read_version(identifier: str, entry: Mapping[str, Any], row: Version | None) -> VersionEntity:
    return VersionEntity(
        identifier,
        entry["epoch"],
        entry["createdat"],
        entry["modifiedat"],
        entry["ancestorid"],
        dict(entry["attributes"]),
        registered=row,
    )


def find_newest(versions: Mapping[str, VersionEntity]) -> str:
    """Return the id of the newest version: of those without descendants, the one created last."""
    ancestors = {version.ancestorid for version in versions.values() if version.ancestorid != version.id}
    leaves = [version for version in versions.values() if version.id not in ancestors] or list(versions.values())
    return max(leaves, key=lambda version: (version.createdat[:-1], version.id.casefold(), version.id)).id


def _choose_default(schema: ResourceEntity, chosen: str) -> None:
    if schema.is_sticky and not chosen and schema.subject is not None:
        number = schema.subject.default_version
        rows = (version for version in schema.versions.values() if version.registered is not None)
        chosen = next((row.id for row in rows if row.registered and row.registered.version_number == number), "")
    if schema.is_sticky and chosen in schema.versions:
        schema.default_id = chosen
        return
    schema.is_sticky = False
    schema.default_id = find_newest(schema.versions) if schema.versions else ""
