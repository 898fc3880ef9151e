"""Encodes, decodes and validates single data of one message type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import FieldDescriptor as F
from google.protobuf.message import DecodeError as ParserError
from google.protobuf.message import Message

from stele.errors import DecodeError, EncodeError
from stele.formats.protobuf.python_values import EXAMPLE_VALUES, MAX_DEPTH, MessageFiller, message_to_python
from stele.formats.protobuf.type_names import (
    DURATION,
    FIELD_MASK,
    JSON_VALUES,
    TIMESTAMP,
    WRAPPERS,
    descriptor_of,
    enum_of,
    is_map,
    map_parts,
)

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

    from stele.formats.protobuf.model import ProtobufSchema

_EXAMPLE_DEPTH = 4
"""An example goes this deep; only required messages go deeper."""
_TEXTS = {TIMESTAMP: "2026-01-31T12:00:00Z", DURATION: "1.5s", FIELD_MASK: "path"}


class ProtobufCodec:
    """Encodes data of one message, decodes it with the same or another schema.

    Data are plain Python values as `python_values` describes them, or messages of the type's name.
    full_name selects the message; '' is the first one of writer's file. The reader's message is the one of the same
    name, or the first of its file when it has none. Raises `InvalidRequest` when there is no such message.
    """

    def __init__(self, writer: ProtobufSchema, reader: ProtobufSchema | None = None, full_name: str = "") -> None:
        self._class = writer.message_class(full_name)
        self._reader = self._class
        if reader is not None:
            name = self._class.DESCRIPTOR.full_name
            self._reader = reader.message_class(name if name in reader.message_positions else "")

    def encode(self, datum: Any) -> bytes:
        """Return bytes of one datum; equal data of one schema give equal bytes. Raises `EncodeError`."""
        message, problems = self._fill_message(datum)
        if problems:
            raise EncodeError("; ".join(problems))
        return message.SerializeToString(deterministic=True)

    def decode(self, data: bytes) -> Any:
        """Return one datum as a dict; fields the reader does not know are left out.

        Raises `DecodeError`, also for missing required fields. A Protobuf message has no end of its own, so left-over
        bytes cannot be told from further fields.
        """
        return message_to_python(self.decode_message(data))

    def decode_message(self, data: bytes) -> Message:
        """Return one datum as a message of the reader's class, unknown fields included. Raises `DecodeError`."""
        message = self._reader()
        try:
            message.ParseFromString(bytes(data))
        except ParserError as error:
            raise DecodeError(f"no message {message.DESCRIPTOR.full_name}: {error}") from error
        if not message.IsInitialized():
            raise DecodeError(f"required fields are missing: {', '.join(_missing_required_fields(message))}")
        return message

    def validate(self, datum: Any) -> list[str]:
        """Return why the datum does not fit, one sentence each with its path; empty when it fits."""
        return self._fill_message(datum)[1]

    def example(self) -> Any:
        """Return a small datum that fits: every field set, one member per oneof, one element per list and map."""
        return _ExampleBuilder().build_message(descriptor_of(self._class()), ())

    def _fill_message(self, datum: Any) -> tuple[Message, list[str]]:
        message, writer = self._class(), MessageFiller()
        writer.fill_message(message, datum)
        missing = (
            []
            if writer.problems
            else [f"{path}: required field is not set" for path in _missing_required_fields(message)]
        )
        return message, writer.problems + missing


def _missing_required_fields(message: Message) -> list[str]:
    errors: list[str] = message.FindInitializationErrors()  # type: ignore[attr-defined]  # missing in the stubs
    return errors


class _ExampleBuilder:
    """Makes one datum; a budget of fields keeps messages that use each other in many ways from growing."""

    def __init__(self) -> None:
        self._left = 1000

    def build_message(self, descriptor: Descriptor, above: tuple[str, ...]) -> Any:
        """Return a datum for a message inside those of above."""
        made: dict[str, Any] = {}
        for field in descriptor.fields:
            oneof = field.containing_oneof
            if oneof is not None and oneof.fields[0].number != field.number:
                continue
            self._left -= 1
            if self._can_set(field, (*above, descriptor.full_name)):
                made[field.name] = self._build_field(field, (*above, descriptor.full_name))
        return made

    def _can_set(self, field: FieldDescriptor, above: tuple[str, ...]) -> bool:
        """Return whether to set a field: a message only while the example is small and not inside itself."""
        value = map_parts(field)[1] if is_map(field) else field
        if value.message_type is None or field.is_required:
            return len(above) < MAX_DEPTH
        return value.message_type.full_name not in above and len(above) < _EXAMPLE_DEPTH and self._left > 0

    def _build_field(self, field: FieldDescriptor, above: tuple[str, ...]) -> Any:
        if is_map(field):
            key, value = map_parts(field)
            return {self._build_value(key, above): self._build_value(value, above)}
        return [self._build_value(field, above)] if field.is_repeated else self._build_value(field, above)

    def _build_value(self, field: FieldDescriptor, above: tuple[str, ...]) -> Any:
        if field.message_type is None:
            return _example_scalar(field.type, field)
        name = field.message_type.full_name
        if name in WRAPPERS:
            return _example_scalar(WRAPPERS[name], field)
        if name in JSON_VALUES:
            return ["text"] if name.endswith("ListValue") else {"key": "text"}
        if name in EXAMPLE_VALUES and set(EXAMPLE_VALUES[name]) <= set(field.message_type.fields_by_name):
            return dict(EXAMPLE_VALUES[name])
        return _TEXTS[name] if name in _TEXTS else self.build_message(field.message_type, above)


def _example_scalar(kind: int, field: FieldDescriptor) -> Any:
    if kind == F.TYPE_ENUM:
        return enum_of(field).values[0].name
    if kind == F.TYPE_STRING:
        return "text"
    if kind == F.TYPE_BYTES:
        return b"bytes"
    if kind == F.TYPE_BOOL:
        return True
    return 1.5 if kind in {F.TYPE_FLOAT, F.TYPE_DOUBLE} else 1
