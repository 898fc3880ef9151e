"""Subjects and contexts: qualified names, and the subject of a record or topic.

A context is written without its dot here (`team`, not `.team`). The qualified name of a subject is `:.team:subject`;
`:.team:` alone stands for the context itself wherever the API takes a subject (config, mode, look-up by id).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from stele.errors import InvalidName
from stele.wire.confluent import RecordField


class QualifiedName(NamedTuple):
    """A subject and its context, '' for the default context."""

    context: str
    subject: str

    def __str__(self) -> str:
        return f":.{self.context}:{self.subject}" if self.context else self.subject


def qualify_subject(subject: str, context: str) -> str:
    """Return the qualified name of a subject. A subject that is already qualified keeps its own context.

    Raises `InvalidName` for a context name with a colon.
    """
    if ":" in context:
        raise InvalidName(context, "is not a context name: it must not contain a colon")
    if not context or subject.startswith(":."):
        return subject
    return str(QualifiedName(context.removeprefix("."), subject))


def split_subject(subject: str) -> QualifiedName:
    """Return the context and the bare subject of a name, qualified or not."""
    if subject.startswith(":."):
        context, colon, bare = subject[2:].partition(":")
        if colon:
            return QualifiedName(context, bare)
    return QualifiedName("", subject)


class SubjectNaming(Protocol):
    """Chooses the subject of a record. `record` is the full name of its type, '' when the schema has none."""

    def __call__(self, topic: str, field: RecordField, record: str) -> str:
        """Return the subject's name. Raises `InvalidName` when a required part is missing."""
        ...


def topic_name(topic: str, field: RecordField, record: str) -> str:
    """Return `<topic>-<field>`, such as `orders-value`: one schema per topic and field. This is the usual default."""
    del record  # named for the protocol; a topic's subject does not depend on it
    return f"{_require_part(topic, 'topic')}-{field}"


def record_name(topic: str, field: RecordField, record: str) -> str:
    """Return the name of the record type, such as `shop.Order`: one schema per type, independent of the topic."""
    del topic, field
    return _require_part(record, "record type")


def topic_record_name(topic: str, field: RecordField, record: str) -> str:
    """Return topic and record type, such as `orders-shop.Order`: several types in a topic, each with own versions."""
    del field
    return f"{_require_part(topic, 'topic')}-{_require_part(record, 'record type')}"


@dataclass(frozen=True, slots=True)
class AssociatedName:
    """Naming by the associations of topics in the registry: serializers and deserializers look them up.

    cluster   namespace of the topic, its Kafka cluster's id; `-` searches all
    fallback  names the subject of a topic without association, and where there is no registry; None: that is an error
    """

    cluster: str = "-"
    fallback: SubjectNaming | None = topic_name

    def fallback_subject(self, topic: str, field: RecordField, record: str) -> str:
        """Return the subject of a topic without association. Raises `InvalidName`."""
        if self.fallback is None:
            raise InvalidName(topic, "is a topic without an associated subject")
        return self.fallback(topic, field, record)


Naming = SubjectNaming | AssociatedName
"""Ways to find the subject of a record."""


def _require_part(part: str, what: str) -> str:
    if not part:
        raise InvalidName(part, f"does not lead to a subject: the naming strategy needs a {what}")
    return part
