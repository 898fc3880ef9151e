"""What all deserializers do: find the record's schema, make a decoder of it once, and decode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from uuid import UUID

from stele.client.names import SubjectNaming, qualify, topic_name
from stele.client.serdes.framing import SeenHeaders, header_of
from stele.client.serdes.serializer import KEPT
from stele.client.snapshot import ResolvedSchema, SchemaSource
from stele.errors import InvalidRequest
from stele.wire import confluent
from stele.wire.confluent import Frame, RecordField

Decode = Callable[[Frame], Any]
"""Turns a record of one schema into a value. Raises `DecodeError` and `FrameError`."""


class BaseDeserializer(ABC):
    """Framed bytes to values.

    source      a client, or a snapshot
    reader      the reader's schema: a text, or a `ResolvedSchema` when it refers to others
    use_latest  take the newest version of the record's subject as the reader's schema; naming chooses the subject
    context     context in which ids count, and of subjects that are not qualified

    Can be pickled when its source can, which snapshots and clients can. Raises `InvalidRequest` for both reader and
    use_latest.
    """

    schema_type = ""

    def __init__(
        self,
        source: SchemaSource,
        reader: ResolvedSchema | str | None = None,
        *,
        use_latest: bool = False,
        naming: SubjectNaming = topic_name,
        context: str = "",
    ) -> None:
        if use_latest and reader is not None:
            raise InvalidRequest("a deserializer takes one of reader and use_latest")
        self._source = source
        self._reader = ResolvedSchema(reader, self.schema_type) if isinstance(reader, str) else reader
        self._use_latest = use_latest
        self._naming = naming
        self._context = context
        self._decoder = lru_cache(KEPT)(self._learn)

    def __call__(
        self, data: bytes | None, *, topic: str = "", field: RecordField = "value", headers: SeenHeaders = None
    ) -> Any:
        """The value in a record; None stays None.

        Raises `FrameError` when the record carries no schema, `DecodeError` when the payload is not of its schema,
        `ContentNotFound` when the source does not know the schema, and what the client raises.
        """
        if data is None:
            return None
        frame = confluent.read(data, header_of(headers, field))
        return self._decoder(frame.schema, *(self._latest(topic, field) if self._use_latest else ()))(frame)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_decoder"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._decoder = lru_cache(KEPT)(self._learn)

    @abstractmethod
    def decoder(self, schema: ResolvedSchema, reader: ResolvedSchema | None) -> Decode:
        """Reads records of one schema, as the reader wants them."""

    def _latest(self, topic: str, field: RecordField) -> tuple[str, int]:
        subject = qualify(self._naming(topic, field, ""), self._context)
        return subject, self._source.resolve_version(subject).version

    def _learn(self, schema: int | UUID, subject: str = "", number: int = 0) -> Decode:
        found = self._source.resolve(schema, context=self._context)
        reader = self._source.resolve_version(subject, number) if number else self._reader
        return self.decoder(found, reader)
