"""Converts versions of the Confluent API to replicas and back.

That API has no uids and no URIs. A uid is computed from the attributes of a version that never change. So every reader
computes the same uid, and a subject that was deleted and created again gets another one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, unquote

import msgspec

from stele.client.names import qualify_subject, split_subject
from stele.core.metadata import DataRuleSet
from stele.migrate.model import DumpVersion, normalize_version
from stele.protocol.confluent import RuleSet, SchemaReference
from stele.protocol.replication import ReplicaReference, ReplicaState, ReplicaVersion, SubjectName

SCHEMA_TYPES: Final = frozenset({"AVRO", "PROTOBUF", "JSON"})
_PATH: Final = "/subjects/"


def qualify_place(place: SubjectName) -> str:
    """Return the name of a subject in the Confluent API."""
    return qualify_subject(f".{place.namespace}", place.subject) if place.namespace else place.subject


def parse_place(subject: str) -> SubjectName:
    """Return the subject for a name of the Confluent API."""
    context, bare = split_subject(subject)
    return SubjectName(context, bare)


def digest_version(row: DumpVersion) -> str:
    """Return a digest of id and content, which changes when a number gets another schema."""
    return hashlib.sha256(f"{row.id}\n{row.content_digest()}".encode()).hexdigest()[:32]


def make_uid(authority: str, row: DumpVersion) -> str:
    """Return the uid for a version of a registry that has no uids."""
    named = "\n".join((authority.rstrip("/"), row.subject, str(row.version), digest_version(row)))
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def next_life(uid: str) -> str:
    """Return the uid of a version that returned after its deletion, from the uid it had before."""
    return hashlib.sha256(uid.encode()).hexdigest()[:32]


def give_next_lives(rows: Iterable[ReplicaVersion], buried: Mapping[str, ReplicaState]) -> list[ReplicaVersion]:
    """Return the rows, with the uid of the next life for those that the target has buried."""
    return [
        msgspec.structs.replace(row, uid=next_life(row.uid))
        if row.uid in buried and not buried[row.uid].is_listed
        else row
        for row in rows
    ]


def make_uri(authority: str, row: DumpVersion) -> str:
    """Return the URI of a version: the address at its registry."""
    return f"{authority.rstrip('/')}{_PATH}{quote(row.subject, safe='')}/versions/{row.version}"


def parse_uri(authority: str, uri: str) -> tuple[str, int] | None:
    """Return the subject and the number in a URI, None for a URI of another registry."""
    start = f"{authority.rstrip('/')}{_PATH}"
    subject, slash, number = uri.removeprefix(start).rpartition("/versions/")
    if not uri.startswith(start) or not slash or not number.isdigit():
        return None
    return unquote(subject), int(number)


def to_replica(authority: str, row: DumpVersion) -> ReplicaVersion:
    """Convert a version to a replica."""
    namespace, subject = parse_place(row.subject)
    pairs = zip(row.references, row.referenced_keys(), strict=True)
    return ReplicaVersion(
        uid=make_uid(authority, row),
        state=ReplicaState.DELETED if row.deleted else ReplicaState.ACTIVE,
        namespace=namespace,
        subject=subject,
        version=row.version,
        schema_id=row.id,
        uri=make_uri(authority, row),
        authority=authority,
        format=row.schema_type.lower(),
        sha256=hashlib.sha256(row.schema.encode()).hexdigest(),
        text=row.schema,
        references=tuple(ReplicaReference(one.name, *parse_place(key[0]), key[1]) for one, key in pairs),
        metadata=row.metadata,
        rule_set=None if row.rule_set is None else msgspec.convert(msgspec.to_builtins(row.rule_set), DataRuleSet),
        at=row.ts or 0,
    )


def to_dump_version(row: ReplicaVersion) -> DumpVersion:
    """Convert a replica to a version of the Confluent API."""
    rules = None if row.rule_set is None else msgspec.convert(msgspec.to_builtins(row.rule_set), RuleSet)
    return normalize_version(
        qualify_place(row.place),
        row.version,
        row.schema_id,
        row.get_text().decode("utf-8", "replace"),
        schema_type=row.format.upper(),
        references=[SchemaReference(one.name, qualify_place(one.place), one.version) for one in row.references],
        metadata=row.metadata,
        rule_set=rules,
        deleted=row.state is ReplicaState.DELETED,
        ts=row.at or None,
    )
