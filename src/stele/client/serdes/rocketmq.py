"""Values to RocketMQ's framed bytes and back; producers and consumers over any transport of bytes.

    topics = RocketmqSubjects(SchemaRegistryClient("http://127.0.0.1:8081"))
    producer = Producer(RocketmqSerializer(topics, '{"type": "record", …}'), send, topic="orders")
    producer.send({"id": 1})
    consumer = Consumer(RocketmqDeserializer(topics), topic="orders")
    record = consumer.read(message.body)
    record.message() if record.is_deserialized else record.undeserialized_message()

Avro and JSON are the formats with a wire format of their own (`stele.wire.rocketmq`). Source:
docs/protocols/rocketmq.md#clients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

from stele.client.errors import ResponseError
from stele.client.rocketmq import RocketmqSubjects, number_of
from stele.core.ports import Codec
from stele.errors import Conflict, DataError, FormatMismatch, FrameError, NotFound
from stele.formats.registry import get_format
from stele.wire import rocketmq

T = TypeVar("T")

_KEPT = 1000
_EXISTS = 40401  # the registry's error code


class _Kind(NamedTuple):
    format: str
    frame: Callable[[int, bytes], bytes]
    unframe: Callable[[bytes], tuple[int, memoryview]]


_KINDS = {
    "AVRO": _Kind("avro", rocketmq.frame_avro, rocketmq.unframe_avro),
    "JSON": _Kind("json", rocketmq.frame_json, rocketmq.unframe_json),
}


def _frame_kind(schema_type: str) -> _Kind:
    if schema_type not in _KINDS:
        raise FormatMismatch(f"{schema_type} has no RocketMQ wire format; only {' and '.join(_KINDS)} have")
    return _KINDS[schema_type]


def _codec_for(schema_type: str, writer: str, reader: str | None = None) -> Codec:
    fmt = get_format(_frame_kind(schema_type).format)
    parsed = [fmt.parse(text.encode(), {}, strict=False) for text in (writer, reader) if text is not None]
    return fmt.codec(*parsed)


class RocketmqSerializer:
    """Serializes values of one schema to framed bytes. None stays None.

    schema_type    AVRO or JSON
    auto_register  register the schema, or update the one of that name, if the subject does not have it; otherwise a
                   missing schema raises `NotFound`
    schema_name    name for a schema that is registered; by default the subject's name
    compatibility  compatibility of a schema that is new
    """

    def __init__(
        self,
        subjects: RocketmqSubjects,
        idl: str,
        *,
        schema_type: str = "AVRO",
        auto_register: bool = True,
        schema_name: str = "",
        compatibility: str = "BACKWARD",
    ) -> None:
        self._subjects = subjects
        self._idl = idl
        self._type = schema_type
        self._kind = _frame_kind(schema_type)
        self._codec = _codec_for(schema_type, idl)
        self._auto_register = auto_register
        self._schema_name = schema_name
        self._compatibility = compatibility
        self._record_id = lru_cache(_KEPT)(self._find_record_id)

    def __call__(self, value: Any, subject: str) -> bytes | None:
        """Return the framed bytes of a value. Raises `EncodeError`, and the errors of the registry."""
        if value is None:
            return None
        return self._kind.frame(self._record_id(subject), self._codec.encode(value))

    def _find_record_id(self, subject: str) -> int:
        try:
            return self._subjects.find(subject, self._idl).record_id
        except NotFound:
            if not self._auto_register:
                raise
        name = self._schema_name or subject
        try:
            return self._subjects.register(
                subject, name, self._idl, schema_type=self._type, compatibility=self._compatibility
            ).record_id
        except ResponseError as error:
            if number_of(error) != _EXISTS:
                raise
        try:
            return self._subjects.update(subject, name, self._idl).record_id
        except Conflict:  # Another client registered the same schema, or it is incompatible.
            try:
                return self._subjects.find(subject, self._idl).record_id
            except NotFound:
                pass
            raise


class RocketmqDeserializer:
    """Deserializes framed bytes to values, each with its writer's schema. None stays None.

    reader   the schema that values are resolved to (Avro), or must fit (JSON); by default the writer's
    """

    def __init__(self, subjects: RocketmqSubjects, reader: str | None = None, *, schema_type: str = "AVRO") -> None:
        self._subjects = subjects
        self._reader = reader
        self._type = schema_type
        self._kind = _frame_kind(schema_type)
        self._decoder = lru_cache(_KEPT)(self._find_decoder)

    def __call__(self, data: bytes | None, subject: str) -> Any:
        """Return the value. Raises `FrameError`, `DecodeError`, and `NotFound` for an unknown record id."""
        if data is None:
            return None
        number, payload = self._kind.unframe(data)
        return self._decoder(subject, number).decode(bytes(payload))

    def _find_decoder(self, subject: str, number: int) -> Codec:
        record = self._subjects.by_record_id(subject, number)
        if record.type != self._type:
            raise FormatMismatch(f"record {number} is of type {record.type}, not {self._type}")
        return _codec_for(self._type, record.idl, self._reader)


@dataclass(frozen=True, slots=True)
class ConsumedRecord(Generic[T]):
    """A consumed record: a value, or the bytes that could not be deserialized.

    payload  the bytes as received
    value    the value, None for a tombstone and after a failure
    error    the error that prevented deserialization
    """

    payload: bytes | None
    value: T | None = None
    error: Exception | None = None

    @property
    def is_deserialized(self) -> bool:
        """Whether deserialization succeeded."""
        return self.error is None

    def message(self) -> T | None:
        """Return the value. Raises the error of the deserialization if it failed."""
        if self.error is not None:
            raise self.error
        return self.value

    def undeserialized_message(self) -> bytes | None:
        """Return the bytes as received, whether or not they could be deserialized."""
        return self.payload


@dataclass(frozen=True, slots=True)
class Producer(Generic[T]):
    """Serializes values and passes them to a transport, a function that takes a topic and bytes."""

    serializer: RocketmqSerializer
    transport: Callable[[str, bytes | None], object]
    topic: str

    def send(self, value: T | None) -> None:
        """Send a value. Serialization errors and errors of the registry are raised, and then nothing is sent."""
        self.transport(self.topic, self.serializer(value, self.topic))


@dataclass(frozen=True, slots=True)
class Consumer(Generic[T]):
    """Deserializes the records that a transport delivers."""

    deserializer: RocketmqDeserializer
    topic: str

    def read(self, payload: bytes | None) -> ConsumedRecord[T]:
        """Return a record. Undecodable bytes are returned with an `error`; an unreachable registry raises."""
        try:
            return ConsumedRecord(payload, self.deserializer(payload, self.topic))
        except (DataError, FrameError, NotFound, FormatMismatch) as error:
            return ConsumedRecord(payload, error=error)
