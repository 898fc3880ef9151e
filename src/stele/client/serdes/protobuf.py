"""Protobuf records in the Confluent wire format.

The text of a schema made from a generated class is its file descriptor in base64, as in the vendor's Python client.
Imports become references, except those that every registry has built in (`google/protobuf/…`, `google/type/…`,
`confluent/…`).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Unpack, cast

import msgspec
from google.protobuf import json_format
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import DecodeError as ProtobufDecodeError
from google.protobuf.message import EncodeError as ProtobufEncodeError
from google.protobuf.message import Message

from stele.client import endpoints
from stele.client.names import Naming, qualify_subject, topic_name
from stele.client.serdes.deserializer import BaseDeserializer, Decode, Stages
from stele.client.serdes.rules.engine import Rules
from stele.client.serdes.rules.model import Walk
from stele.client.serdes.rules.protobuf_fields import protobuf_walk
from stele.client.serdes.schemas import ParsedSchema, parse_schema, require_type
from stele.client.serdes.serializer import Encode, Encoded, Serializer, SerializerSettings
from stele.client.serdes.steps import CACHE_SIZE, AnyClient, Source, Steps
from stele.client.snapshot import ResolvedSchema
from stele.client.types import Schema
from stele.errors import DecodeError, EncodeError, InvalidRequest
from stele.formats.protobuf import indexes_of, message_by_indexes, message_class
from stele.protocol.confluent import SchemaReference
from stele.wire.confluent import Frame

_BUILT_IN = ("google/protobuf/", "google/type/", "confluent/")


class ProtobufSerializer(Serializer):
    """Serializes Protobuf messages; see `Serializer`.

    schema             a generated message class, or a schema as for other formats
    message            full name of the message that dicts are written as; '' is the first one of the schema
    reference_subject  returns the subject of an import from its path; for generated classes only

    Values are messages of any class with the right full name, or dicts in the JSON mapping of Protobuf.
    """

    schema_type = "PROTOBUF"

    def __init__(
        self,
        client: AnyClient,
        schema: type[Message] | Schema | str | None = None,
        *,
        message: str = "",
        reference_subject: Callable[[str], str] = str,
        **settings: Unpack[SerializerSettings],
    ) -> None:
        generated = schema if isinstance(schema, type) else None
        super().__init__(client, schema if not isinstance(schema, type) else _encode_file(_file_of(schema)), **settings)
        self._generated = generated
        self._message = message or ("" if generated is None else generated.DESCRIPTOR.full_name)
        self._reference_subject = reference_subject

    def record_of(self, value: Any) -> str | None:
        """Return the full name of the message."""
        if isinstance(value, Message):
            return str(value.DESCRIPTOR.full_name)
        return self._message or None

    def own_schema(self) -> Steps[Schema]:
        """Return the given schema. The imports of a generated class are registered, or looked up, first."""
        schema = yield from super().own_schema()
        if self._generated is None:
            return schema
        imports = yield from self._register_imports(_file_of(self._generated))
        return msgspec.structs.replace(schema, references=imports)

    def own_encoder(self) -> Steps[Encode]:
        """Return the encoder for the given schema. A generated class needs no request to the registry."""
        generated = self._generated
        if generated is None:
            return (yield from super().own_encoder())
        return _message_encoder(lambda name: _message_indexes(_file_of(generated), name), lambda: generated)

    def make_encoder(self, schema: ParsedSchema) -> Encode:
        """Return the encoder for a schema; see `Serializer.make_encoder`."""
        return _message_encoder(
            lambda name: indexes_of(schema.parsed, name), lambda: message_class(schema.parsed, self._message)
        )

    def to_rule_value(self, schema: ParsedSchema, value: Any) -> Any:
        """Return the value as a message, which is what rules see."""
        if isinstance(value, Message):
            return value
        return _from_dict(value, self._generated or message_class(schema.parsed, self._message))

    def make_walker(self, schema: ParsedSchema) -> Callable[[Any], Walk]:
        """Return the function that finds the field walk of a message.

        That function raises `EncodeError` for a message that the schema does not have.
        """
        walks = _message_walks(schema)

        def walk(value: Message) -> Walk:
            message_walk = walks(value)
            if message_walk is None:
                raise EncodeError(f"the schema has no message {value.DESCRIPTOR.full_name!r}")
            return message_walk

        return walk

    def _register_imports(self, file: FileDescriptor) -> Steps[tuple[SchemaReference, ...]]:
        references = []
        for imported in file.dependencies:
            if imported.name.startswith(_BUILT_IN):
                continue
            subject = qualify_subject(self._reference_subject(imported.name), self._context)
            schema = Schema(_encode_file(imported), self.schema_type, (yield from self._register_imports(imported)))
            if self._auto_register:
                yield endpoints.register(subject, schema, normalize=self._normalize)
            known = yield endpoints.lookup(subject, schema, normalize=self._normalize)
            references.append(SchemaReference(imported.name, subject, known.version))
        return tuple(references)


class ProtobufDeserializer(BaseDeserializer):
    """Deserializes Protobuf records to messages; see `BaseDeserializer`.

    message  a generated class that every record is read as. Without it, each record is read as the message its writer
             used, in a class made from the reader's schema if that has a message of the name, else from the writer's
    """

    schema_type = "PROTOBUF"

    def __init__(
        self,
        source: Source,
        reader: ResolvedSchema | str | None = None,
        *,
        message: type[Message] | None = None,
        use_latest: bool = False,
        use_metadata: Mapping[str, str] | None = None,
        naming: Naming = topic_name,
        context: str = "",
        rules: Rules | None = None,
    ) -> None:
        super().__init__(
            source,
            reader,
            use_latest=use_latest,
            use_metadata=use_metadata,
            naming=naming,
            context=context,
            rules=rules,
        )
        self._class = message

    def make_decoder(self, schema: ResolvedSchema, reader: ResolvedSchema | None) -> Decode:
        """Return the decoder for a schema. Raises `FormatMismatch` for a record of another format."""
        require_type(schema, self.schema_type)
        find = self._class_finder(schema, reader)

        def decode(frame: Frame) -> Message:
            indexes, payload = frame.message()
            message = find(indexes)()
            try:
                message.ParseFromString(bytes(payload))
            except ProtobufDecodeError as error:
                raise DecodeError(f"no {message.DESCRIPTOR.full_name}: {error}") from error
            return message

        return decode

    def make_stages(self, schema: ResolvedSchema, reader: ResolvedSchema | None, *, migrating: bool) -> Stages:
        """Return the decoding steps. Migrations see messages as dicts in their JSON mapping, with all fields."""
        require_type(schema, self.schema_type)
        written, wanted = parse_schema(schema), parse_schema(reader or schema)
        find = self._class_finder(schema, reader)
        read = (
            ProtobufDeserializer(self.source).make_decoder(schema, None)
            if migrating
            else self.make_decoder(schema, reader)
        )

        def type_name(frame: Frame) -> str:
            try:
                return message_by_indexes(written.parsed, frame.message()[0])
            except InvalidRequest as error:
                raise DecodeError(str(error)) from error

        def land(frame: Frame, value: Any) -> Message:
            if not migrating:
                return cast("Message", value)
            try:
                return json_format.ParseDict(value, find(frame.message()[0])())
            except (json_format.ParseError, AttributeError, TypeError) as error:
                raise DecodeError(f"the result of the migrations does not fit the reader's schema: {error}") from error

        return Stages(
            type_name=type_name,
            read=(lambda frame: _message_to_dict(read(frame))) if migrating else read,
            land=land,
            walk=_message_walks(wanted),
            finish=lambda value: value,
            indexed=True,
        )

    def _class_finder(
        self, schema: ResolvedSchema, reader: ResolvedSchema | None
    ) -> Callable[[tuple[int, ...]], type[Message]]:
        """Return the function from message indexes to the class to read with.

        It raises `DecodeError` for indexes that the schema does not have.
        """
        chosen = self._class
        if chosen is not None:
            return lambda _: chosen
        written = parse_schema(schema)
        wanted = None if reader is None else parse_schema(reader)

        @lru_cache(CACHE_SIZE)
        def find(indexes: tuple[int, ...]) -> type[Message]:
            try:
                name = message_by_indexes(written.parsed, indexes)
            except InvalidRequest as error:
                raise DecodeError(str(error)) from error
            try:
                return message_class((wanted or written).parsed, name)
            except InvalidRequest:  # the reader has no such message
                return message_class(written.parsed, name)

        return find


def _message_encoder(indexes_by_name: Callable[[str], Sequence[int]], blank: Callable[[], type[Message]]) -> Encode:
    """Return the encoder for messages of a schema. `blank` returns the class that dicts are written as."""
    indexes = lru_cache(CACHE_SIZE)(indexes_by_name)

    def encode(value: Any) -> Encoded:
        try:
            message = value if isinstance(value, Message) else _from_dict(value, blank())
            return Encoded(message.SerializeToString(), indexes(message.DESCRIPTOR.full_name))
        except (ProtobufEncodeError, InvalidRequest) as error:
            raise EncodeError(f"the message cannot be written: {error}") from error

    return encode


def _message_walks(schema: ParsedSchema) -> Callable[[Message], Walk | None]:
    """Return the function from a message to the walk over its fields; None for a message the schema does not have."""

    @lru_cache(CACHE_SIZE)
    def walk(full_name: str) -> Walk | None:
        try:
            return protobuf_walk(schema.parsed, full_name)
        except InvalidRequest:
            return None

    return lambda value: walk(value.DESCRIPTOR.full_name)


def _message_to_dict(message: Message) -> dict[str, Any]:
    return json_format.MessageToDict(message, always_print_fields_with_no_presence=True)


def _from_dict(value: Any, kind: type[Message]) -> Message:
    if not isinstance(value, dict):
        raise EncodeError(f"{type(value).__name__} is neither a message nor a dict")
    try:
        return json_format.ParseDict(value, kind())
    except json_format.ParseError as error:
        raise EncodeError(f"the dict does not fit the message: {error}") from error


def _message_indexes(file: FileDescriptor, full_name: str) -> list[int]:
    """Return the indexes of a message in a generated file. Raises `InvalidRequest` when the file does not have it."""
    package = f"{file.package}." if file.package else ""
    siblings = list(file.message_types_by_name.values())
    indexes = []
    for name in full_name.removeprefix(package).split("."):
        index = next((number for number, sibling in enumerate(siblings) if sibling.name == name), None)
        if index is None:
            raise InvalidRequest(f"{full_name!r} is not a message of {file.name!r}")
        indexes.append(index)
        siblings = list(siblings[index].nested_types)
    return indexes


def _file_of(kind: type[Message]) -> FileDescriptor:
    return cast("FileDescriptor", kind.DESCRIPTOR.file)


def _encode_file(file: FileDescriptor) -> str:
    return b64encode(file.serialized_pb).decode()
