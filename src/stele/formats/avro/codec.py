"""Encoding, decoding and validating single data: payload only, no frame, no schema id."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from stele.errors import DecodeError, EncodeError, MalformedSchema
from stele.formats.avro import decode as _decode
from stele.formats.avro import encode as _encode
from stele.formats.avro.example import make_example
from stele.formats.avro.model import AvroSchema


class AvroCodec:
    """A codec for data of writer, resolved to reader on decoding when given. Safe to share between threads.

    Python types are those of `stele.formats.avro.scalars`; records are dicts. See `decode` and `encode` for what is
    refused; nothing that is accepted changes its value on the way.
    """

    def __init__(self, writer: AvroSchema, reader: AvroSchema | None = None) -> None:
        self.writer = writer
        self.reader = reader or writer

    def encode(self, datum: Any) -> bytes:
        """Return one datum of the writer's schema as bytes. Raises `EncodeError` with the path of what does not fit."""
        out = bytearray()
        write = self._get_writer
        try:
            write(out, datum)
        except _encode.DatumMismatch as misfit:
            raise EncodeError(misfit.to_sentence()) from None
        except RecursionError:
            raise EncodeError("the datum is nested too deeply") from None
        return bytes(out)

    def decode(self, data: bytes) -> Any:
        """Return one datum. Raises `DecodeError` with the offset, also for bytes that are left over."""
        read, counts_empties = self._get_reader
        data = _decode.CountedBytes(data) if counts_empties else bytes(data)
        try:
            value, end = read(data, 0)
        except _decode.MalformedData as broken:
            raise broken.to_decode_error() from None
        except IndexError:
            raise DecodeError("the data end in the middle of a value", offset=len(data)) from None
        except RecursionError:
            raise DecodeError("the data are nested too deeply") from None
        if end != len(data):
            raise DecodeError(f"{len(data) - end} bytes are left over after the datum", offset=end)
        return value

    def validate(self, datum: Any) -> list[str]:
        """Return why the datum does not fit the writer's schema, a sentence with its path each (100 at most)."""
        found: list[str] = []
        try:
            for sentence in _encode.find_problems(self.writer.root, datum):
                found.append(sentence)
                if len(found) == _encode.MAX_PROBLEMS:
                    break
        except RecursionError:
            found.append("the datum is nested too deeply")
        return found

    def example(self) -> Any:
        """Return a small datum that fits the writer's schema. Raises `Invalid` when there is no finite one."""
        return make_example(self.writer.root)

    @cached_property
    def _get_writer(self) -> _encode.Write:
        try:
            return _encode.WriterBuilder().build_writer(self.writer.root)
        except RecursionError:
            raise MalformedSchema("the types of the schema are nested too deeply for a codec") from None

    @cached_property
    def _get_reader(self) -> tuple[_decode.Read, bool]:
        builder = _decode.ReaderBuilder()
        try:
            return builder.build_reader(self.writer.root, self.reader.root), builder.counts_empties
        except RecursionError:
            raise MalformedSchema("the types of the schema are nested too deeply for a codec") from None
