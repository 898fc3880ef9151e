"""Decodes the bytes of one record: finds the possible wires, the schema that they name, and the record or the error.

Only the bytes are known, so every wire is tried. A schema that the caller may not read is treated as missing. Behind
the decode page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from stele.core import queries
from stele.core.model import SubjectKey, Version
from stele.core.state import State
from stele.core.traversal import list_versions_of_entry
from stele.errors import DataError, DecodeError, FrameError, Invalid, InvalidRequest, NotFound, NotInstalled, TooLarge
from stele.formats.protobuf import message_by_indexes
from stele.formats.protobuf.codec import ProtobufCodec
from stele.service.convert import convert_datum_to_json
from stele.service.registry import Registry
from stele.wire import avro_single, confluent, pravega, rocketmq

MOST_BYTES: Final = 1024 * 1024
"""Maximum length of one record, in bytes."""
_LONGEST_RECORD: Final = 200_000
"""Maximum length of a shown record, in characters."""


class DecodeRequest(msgspec.Struct, frozen=True):
    """Bytes, and what is known about them.

    namespace  namespace in which ids of the Confluent wire are looked up
    subject    subject whose encoding ids, or whose newest schema for bytes without a frame, are tried; None: not known
    """

    data: bytes
    namespace: str = ""
    subject: SubjectKey | None = None


class WireReading(msgspec.Struct, frozen=True):
    """The bytes read as records of one wire.

    wire       name of the wire
    id_label   what its id is called; '' for none
    id         the id as text
    namespace, subject, version  a version that the id means; version 0: none is known
    others     number of further versions with this id
    format     format of the schema
    message    message type of a Protobuf schema that the frame names
    prefix     number of bytes before the payload
    record     the record as JSON; '' where there is none
    is_cut     whether the record is longer than what is shown
    problem    why there is no record; '' where there is one
    offset     byte of the payload at which decoding failed; None: not known
    """

    wire: str
    id_label: str
    id: str
    namespace: str = ""
    subject: str = ""
    version: int = 0
    others: int = 0
    format: str = ""
    message: str = ""
    prefix: int = 0
    record: str = ""
    is_cut: bool = False
    problem: str = ""
    offset: int | None = None

    @property
    def is_decoded(self) -> bool:
        """Whether there is a record."""
        return not self.problem


class _Frame(NamedTuple):
    """A frame of one wire: the id, the payload, and the function that looks up the id.

    has_indexes is whether message indexes of Protobuf precede the payload. hint says what would help where no schema is
    known.
    """

    wire: str
    id_label: str
    id: str
    payload: bytes
    prefix: int
    find: Callable[[State], tuple[Sequence[Version], str]]
    has_indexes: bool = False
    hint: str = ""


async def decode_record(registry: Registry, request: DecodeRequest) -> list[WireReading]:
    """Return one reading of the bytes for each possible wire. Those that could be decoded come first.

    Raises `TooLarge`, `InvalidRequest` for empty bytes, `Overloaded`.
    """
    if len(request.data) > MOST_BYTES:
        raise TooLarge(f"a record of {len(request.data)} bytes is longer than {MOST_BYTES}, which is the limit")
    if not request.data:
        raise InvalidRequest("there are no bytes to decode")
    state = await registry.fresh_state()
    readings = [await _read_frame(registry, state, frame) for frame in _list_frames(request)]
    return sorted(readings, key=lambda reading: (not reading.is_decoded, not reading.version))


def _list_frames(request: DecodeRequest) -> list[_Frame]:
    """Return the frames that the bytes may have."""
    data, key = request.data, request.subject
    frames: list[_Frame] = []
    if data[:1] == b"\x00":
        _add_confluent(frames, request)
    if data[:1] == b"\x01":
        _add_pravega(frames, data, key)
    if data[:2] == avro_single.MARKER:
        _add_single_object(frames, data)
    _add_rocketmq(frames, data)
    if key is not None:
        frames.append(_Frame("no frame", "", "", data, 0, lambda state: _find_newest(state, key)))
    return frames


def _add_confluent(frames: list[_Frame], request: DecodeRequest) -> None:
    try:
        number, rest = confluent.unframe(request.data)
    except FrameError:
        return

    def find(state: State) -> tuple[Sequence[Version], str]:
        entry = queries.get_schema_entry(state, request.namespace, number)
        return list_versions_of_entry(entry), ""

    frames.append(_Frame("Confluent", "schema id", str(number), bytes(rest), 5, find, has_indexes=True))


def _add_pravega(frames: list[_Frame], data: bytes, key: SubjectKey | None) -> None:
    try:
        number, rest = pravega.unframe(data)
    except FrameError:
        return

    def find(state: State) -> tuple[Sequence[Version], str]:
        if key is None:
            raise NotFound("no group")
        version, codec = queries.get_encoding(state, key, number)
        return [version], codec

    hint = "" if key is not None else ": it means something in its group alone, so name the subject, too"
    frames.append(_Frame("Pravega", "encoding id", str(number), bytes(rest), 5, find, hint=hint))


def _add_single_object(frames: list[_Frame], data: bytes) -> None:
    try:
        fingerprint, rest = avro_single.unframe(data)
    except FrameError:
        return

    def find(state: State) -> tuple[Sequence[Version], str]:
        content = queries.find_content_by_digest(state, "rabin", fingerprint)
        entry = content.newest_entry if content is not None else None
        if entry is None:
            raise NotFound("no such fingerprint")
        return list_versions_of_entry(entry), ""

    frames.append(_Frame("Avro single object", "fingerprint", fingerprint.hex(), bytes(rest), 10, find))


def _add_rocketmq(frames: list[_Frame], data: bytes) -> None:
    for name, unframe, prefix in (("Avro", rocketmq.unframe_avro, 9), ("JSON", rocketmq.unframe_json, 8)):
        try:
            number, rest = unframe(data)
        except FrameError:
            continue
        if name == "JSON" and bytes(rest).lstrip()[:1] not in {b"{", b"["}:
            continue  # It has no magic byte: nearly everything could be one.

        def find(state: State, number: int = number) -> tuple[Sequence[Version], str]:
            return [queries.get_version_by_record_id(state, number)], ""

        frames.append(_Frame(f"RocketMQ, {name}", "record id", str(number), bytes(rest), prefix, find))


def _find_newest(state: State, key: SubjectKey) -> tuple[Sequence[Version], str]:
    return [queries.get_version(state, key, None, queries.ACTIVE_OR_SOFT_DELETED)], ""


async def _read_frame(registry: Registry, state: State, frame: _Frame) -> WireReading:
    reading = WireReading(frame.wire, frame.id_label, frame.id, prefix=frame.prefix)
    try:
        candidates, codec = frame.find(state)
    except NotFound:
        candidates, codec = (), ""
    versions = [version for version in candidates if registry.access.can_read(version.subject.key)]
    if not versions:
        return msgspec.structs.replace(
            reading, problem=f"No schema is known for this {frame.id_label or 'subject'}{frame.hint}."
        )
    version = versions[0]
    reading = msgspec.structs.replace(
        reading,
        namespace=version.subject.key.namespace,
        subject=version.subject.key.name,
        version=version.version_number,
        others=len(versions) - 1,
        format=version.kind.custom_format or version.kind.format,
    )
    try:
        fmt, parsed = await registry.parser.parse_registered(
            state, version.kind.format, version.content.sha, version.schema.attachments.references
        )
        return await registry.run_stateless(_decode_payload, reading, frame, codec, fmt, parsed)
    except DecodeError as error:
        return msgspec.structs.replace(reading, problem=error.why, offset=error.offset)
    except (DataError, Invalid, NotInstalled) as error:
        return msgspec.structs.replace(reading, problem=str(error))


def _decode_payload(reading: WireReading, frame: _Frame, codec: str, fmt: Any, parsed: Any) -> WireReading:
    """Return a reading with its record. Raises `SteleError`."""
    payload, message = frame.payload, ""
    if codec:
        payload = pravega.decompress(codec, payload, max_bytes=MOST_BYTES)
    if fmt.name == "protobuf":
        if frame.has_indexes:
            indexes, end = confluent.decode_indexes(payload)
            message, payload = message_by_indexes(parsed, indexes), payload[end:]
        datum = ProtobufCodec(parsed, full_name=message).decode(payload)
        document: Any = _show_plain(datum)
    else:
        datum = fmt.codec(parsed).decode(payload)
        document = convert_datum_to_json(fmt, parsed, datum)
    text = json.dumps(document, indent=2, ensure_ascii=False, default=str)
    return msgspec.structs.replace(
        reading, message=message, record=text[:_LONGEST_RECORD], is_cut=len(text) > _LONGEST_RECORD
    )


def _show_plain(datum: Any) -> Any:
    """Return a Protobuf datum as JSON values: bytes as base64."""
    return msgspec.to_builtins(datum, enc_hook=str)
