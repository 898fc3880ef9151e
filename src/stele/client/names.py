"""Subjects and contexts: how a name becomes qualified, and how record and topic become a subject.

A context is written without its dot here (`team`, not `.team`). The qualified name of a subject is `:.team:subject`;
`:.team:` alone stands for the context itself wherever the API takes a subject (config, mode, look-up by id).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from stele.errors import InvalidName
from stele.wire.confluent import RecordField


class QualifiedName(NamedTuple):
    """A subject and the context it lives in, '' for the default one."""

    context: str
    subject: str

    def __str__(self) -> str:
        return f":.{self.context}:{self.subject}" if self.context else self.subject


def qualify_subject(subject: str, context: str) -> str:
    """The subject's full name; a subject which is qualified already keeps its own context.

    Raises `InvalidName` for a context name with a colon.
    """
    if ":" in context:
        raise InvalidName(context, "is not a context name: it has a colon")
    if not context or subject.startswith(":."):
        return subject
    return str(QualifiedName(context.removeprefix("."), subject))


def split_subject(subject: str) -> QualifiedName:
    """Context and bare subject of a name, qualified or not."""
    if subject.startswith(":."):
        context, colon, bare = subject[2:].partition(":")
        if colon:
            return QualifiedName(context, bare)
    return QualifiedName("", subject)


class SubjectNaming(Protocol):
    """Chooses the subject of a record. record is the full name of its type, '' when the schema gives none."""

    def __call__(self, topic: str, field: RecordField, record: str) -> str:
        """The subject's name. Raises `InvalidName` when a part is missing."""
        ...


def topic_name(topic: str, field: RecordField, record: str) -> str:
    """`orders-value`: one schema per topic and field, what every client does by default."""
    del record  # named for the protocol; a topic's subject does not depend on it
    return f"{_require_part(topic, 'topic')}-{field}"


def record_name(topic: str, field: RecordField, record: str) -> str:
    """`shop.Order`: one schema per type, whatever topic it travels on."""
    del topic, field
    return _require_part(record, "record type")


def topic_record_name(topic: str, field: RecordField, record: str) -> str:
    """`orders-shop.Order`: several types on one topic, each with versions of its own."""
    del field
    return f"{_require_part(topic, 'topic')}-{_require_part(record, 'record type')}"


@dataclass(frozen=True, slots=True)
class AssociatedName:
    """The subject the registry has associated a topic with: serializers and deserializers ask it.

    cluster   namespace of the topic, its Kafka cluster's id; `-` looks in all
    fallback  names the subject of a topic that has none, and where no registry can be asked; None: that is an error
    """

    cluster: str = "-"
    fallback: SubjectNaming | None = topic_name

    def fallback_subject(self, topic: str, field: RecordField, record: str) -> str:
        """The subject of a topic without association. Raises `InvalidName`."""
        if self.fallback is None:
            raise InvalidName(topic, "is a topic without an associated subject")
        return self.fallback(topic, field, record)


Naming = SubjectNaming | AssociatedName
"""Ways to find the subject of a record."""


def _require_part(part: str, what: str) -> str:
    if not part:
        raise InvalidName(part, f"names no subject: the naming strategy needs a {what}")
    return part
