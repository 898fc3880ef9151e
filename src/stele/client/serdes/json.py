"""JSON records in the Confluent wire format: compact UTF-8, members in the order of the value."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Unpack

import orjson

from stele.client.names import Naming, topic_name
from stele.client.serdes.deserializer import BaseDeserializer, Decode, Stages
from stele.client.serdes.rules.engine import Rules
from stele.client.serdes.rules.json_fields import json_walk
from stele.client.serdes.rules.model import Walk
from stele.client.serdes.schemas import ParsedSchema, parse_schema, require_type
from stele.client.serdes.serializer import Encode, Encoded, Serializer, SerializerSettings
from stele.client.serdes.steps import AnyClient, Source
from stele.client.snapshot import ResolvedSchema
from stele.client.types import Schema
from stele.core.json_depth import MAX_JSON_DEPTH, is_nested_deeper
from stele.errors import DecodeError, EncodeError
from stele.wire.confluent import Frame


class JsonSerializer(Serializer):
    """Serializes JSON values to text; see `Serializer`.

    validate  refuse values that do not fit the schema after its rules; without it, every value that JSON allows is
              written
    """

    schema_type = "JSON"

    def __init__(
        self,
        client: AnyClient,
        schema: Schema | str | None = None,
        *,
        validate: bool = True,
        **settings: Unpack[SerializerSettings],
    ) -> None:
        super().__init__(client, schema, **settings)
        self._validate = validate

    def make_encoder(self, schema: ParsedSchema) -> Encode:
        """Return the encoder for a schema; see `Serializer.make_encoder`."""
        codec = schema.format.codec(schema.parsed)

        def encode(value: Any) -> Encoded:
            faults = codec.validate(value) if self._validate else []
            if faults:
                raise EncodeError("; ".join(faults))
            return Encoded(_dump_json(value))

        return encode

    def make_walker(self, schema: ParsedSchema) -> Callable[[Any], Walk]:
        """Return the function that finds the field walk of a value; see `Serializer.make_walker`."""
        walk = json_walk(schema.parsed)
        return lambda _: walk


class JsonDeserializer(BaseDeserializer):
    """Deserializes text to JSON values; see `BaseDeserializer`.

    validate  refuse values that do not fit the reader's schema, or without a reader the writer's
    """

    schema_type = "JSON"

    def __init__(
        self,
        source: Source,
        reader: ResolvedSchema | str | None = None,
        *,
        validate: bool = True,
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
        self._validate = validate

    def make_decoder(self, schema: ResolvedSchema, reader: ResolvedSchema | None) -> Decode:
        """Return the decoder for a schema. Raises `FormatMismatch` for a record of another format."""
        require_type(schema, self.schema_type)
        if not self._validate:
            return _decode_json
        writer = parse_schema(schema)
        codec = writer.format.codec(writer.parsed, None if reader is None else parse_schema(reader).parsed)

        def decode(frame: Frame) -> Any:
            return codec.decode(bytes(frame.payload()))

        return decode

    def make_stages(self, schema: ResolvedSchema, reader: ResolvedSchema | None, *, migrating: bool) -> Stages:
        """Return the decoding steps. Raises `FormatMismatch` for a record of another format."""
        require_type(schema, self.schema_type)
        del migrating  # reading needs no schema
        type_name = str(parse_schema(schema).parsed.type_name)
        wanted = parse_schema(reader or schema)
        codec = wanted.format.codec(wanted.parsed)
        walk = json_walk(wanted.parsed)

        def finish(value: Any) -> Any:
            faults = codec.validate(value) if self._validate else []
            if faults:
                raise DecodeError("; ".join(faults))
            return value

        return Stages(
            type_name=lambda _: type_name,
            read=_decode_json,
            land=lambda _, value: value,
            walk=lambda _: walk,
            finish=finish,
        )


def _dump_json(value: Any) -> bytes:
    """Return compact JSON with the spelling of orjson, which the vendor's Python client uses."""
    try:
        data = orjson.dumps(value)
        if b"null" not in data or not _has_non_finite(value):
            return data
        raise EncodeError("the value is not a JSON value: JSON has neither NaN nor infinity")  # orjson writes null
    except orjson.JSONEncodeError as error:
        try:  # integers beyond 64 bits
            data = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError):  # RecursionError: nested far beyond the limit
            raise EncodeError(f"the value is not a JSON value: {error}") from None
        if is_nested_deeper(data):
            raise EncodeError(f"the value is nested deeper than {MAX_JSON_DEPTH} levels") from None
        return data


def _has_non_finite(value: Any) -> bool:
    """Return whether a value contains NaN or an infinity. Its depth is bounded, because orjson has written it."""
    if isinstance(value, float):
        return not isfinite(value)
    if isinstance(value, dict):
        return any(map(_has_non_finite, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_non_finite, value))


def _decode_json(frame: Frame) -> Any:
    data = bytes(frame.payload())
    if is_nested_deeper(data):
        raise DecodeError(f"the value is nested deeper than {MAX_JSON_DEPTH} levels")
    try:
        return json.loads(data.decode())
    except ValueError as error:
        raise DecodeError(f"not JSON: {error}") from error
