"""Converts schemas, infers them from samples, and returns examples and fields of them, without a registry.

Behind `POST /api/convert`, `/api/infer`, `/api/example`, `/api/fields` and the commands of the same names.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from stele.core.ports import Field, Format
from stele.errors import CannotConvert, InvalidName, InvalidRequest, TooLarge
from stele.formats.capabilities import ToModel
from stele.formats.conversion import json_values
from stele.formats.conversion.convert import Conversion, write_model
from stele.formats.conversion.convert import convert_schema as convert_parsed
from stele.formats.conversion.infer import InferOptions, Samples
from stele.formats.conversion.model import Loss
from stele.formats.registry import get_format
from stele.service.check import Candidate, NamedText, parse_candidate
from stele.service.limits import Limits

MAX_SAMPLES: Final = 100_000
"""Maximum number of samples in one request. A command has no such limit."""

MAX_SYMBOLS: Final = 1_000
"""Maximum number of symbols of an inferred enumeration."""

_MAX_NAME: Final = 500


class SchemaRequest(msgspec.Struct, frozen=True):
    """A schema to look at. name is its own file name, for imports between files."""

    format: str
    schema: str
    references: tuple[NamedText, ...] = ()
    name: str = ""


class ConvertRequest(msgspec.Struct, frozen=True):
    """A schema and the format to convert it to. name is its own file name, for imports between files."""

    format: str
    schema: str
    to: str
    references: tuple[NamedText, ...] = ()
    name: str = ""


class InferRequest(msgspec.Struct, frozen=True):
    """Samples, as JSON values, and the format of the schema to infer from them.

    name          name of the top type
    notations     whether a field whose strings are all dates, timestamps or UUIDs gets that type
    enumerations  maximum number of symbols of an enumeration made of strings that repeat; 0 makes none
    """

    to: str
    samples: tuple[Any, ...]
    name: str = "Record"
    notations: bool = True
    enumerations: int = 0


class ConvertAnswer(msgspec.Struct, frozen=True):
    """A schema in `format`, and the losses of the conversion.

    keeps_data is whether every datum the source allows can be written unchanged under the schema: no loss has data
    true.
    """

    format: str
    schema: str
    losses: tuple[Loss, ...]
    keeps_data: bool


class ExampleAnswer(msgspec.Struct, frozen=True):
    """A small datum that fits: as JSON (bytes in base64, times as text), and encoded with the schema, in base64."""

    example: Any
    encoded: str


class FieldsAnswer(msgspec.Struct, frozen=True):
    """The name of the top type, '' where it has none, and all fields, depth first."""

    type_name: str
    fields: tuple[Field, ...]


def convert_schema(request: ConvertRequest, limits: Limits | None = None) -> ConvertAnswer:
    """Convert a schema. Raises `UnknownFormat`, `MalformedSchema`, `CannotConvert`, `TooLarge`.

    The schema is parsed leniently, so that texts from older registries can be converted.
    """
    source, target = get_format(request.format), get_format(request.to)
    candidate = Candidate(request.schema, request.references, request.name)
    parsed = parse_candidate(source, candidate, limits or Limits(), strict=False)
    return _conversion_answer(target, convert_parsed(source, parsed, target))


def infer_schema(request: InferRequest) -> ConvertAnswer:
    """Infer a schema. Raises `UnknownFormat`, `InvalidRequest`, `InvalidName`, `CannotConvert`, `TooLarge`."""
    if len(request.samples) > MAX_SAMPLES:
        raise TooLarge(f"there are {len(request.samples)} samples; the limit for one request is {MAX_SAMPLES}")
    return infer_from_samples(
        request.samples,
        to=request.to,
        name=request.name,
        notations=request.notations,
        enumerations=request.enumerations,
    )


def infer_from_samples(
    samples: Iterable[Any], *, to: str, name: str = "Record", notations: bool = True, enumerations: int = 0
) -> ConvertAnswer:
    """Infer a schema from a stream of samples. Raises as `infer_schema`.

    The memory depends on the variety of the samples, not on their number.
    """
    target = get_format(to)
    if not name or len(name) > _MAX_NAME:
        raise InvalidName(name[:_MAX_NAME], "is empty or too long for the name of a type")
    if not 0 <= enumerations <= MAX_SYMBOLS:
        raise InvalidRequest(f"enumerations is {enumerations}; it must be from 0 to {MAX_SYMBOLS}")
    accumulator = Samples(InferOptions(notations=notations, enumerations=enumerations))
    for sample in samples:
        accumulator.add_sample(sample)
    return _conversion_answer(target, write_model(accumulator.build_model(name), target))


def make_example(request: SchemaRequest, limits: Limits | None = None) -> ExampleAnswer:
    """Make an example. Raises `UnknownFormat`, `MalformedSchema`, `Invalid` or `DataError` when there is none."""
    fmt = get_format(request.format)
    parsed = _parse_request(fmt, request, limits)
    codec = fmt.codec(parsed)
    datum = codec.example()
    return ExampleAnswer(convert_datum_to_json(fmt, parsed, datum), base64.b64encode(codec.encode(datum)).decode())


def list_fields(request: SchemaRequest, limits: Limits | None = None) -> FieldsAnswer:
    """List the fields. Raises `UnknownFormat`, `MalformedSchema`, `TooLarge`."""
    fmt = get_format(request.format)
    parsed = _parse_request(fmt, request, limits)
    return FieldsAnswer(parsed.type_name, tuple(fmt.fields(parsed)))


def _parse_request(fmt: Format[Any], request: SchemaRequest, limits: Limits | None) -> Any:
    candidate = Candidate(request.schema, request.references, request.name)
    return parse_candidate(fmt, candidate, limits or Limits(), strict=True)


def convert_datum_to_json(fmt: Format[Any], parsed: Any, datum: Any) -> Any:
    """Return the datum as JSON, by its schema if the schema can be converted to a model."""
    if isinstance(fmt, ToModel):
        try:
            return json_values.to_json_value(fmt.to_model(parsed)[0], datum)
        except (CannotConvert, TooLarge):
            pass
    return json_values.to_untyped_json(datum)


def _conversion_answer(target: Format[Any], conversion: Conversion) -> ConvertAnswer:
    text = conversion.text.decode("utf-8")
    return ConvertAnswer(target.name, text, tuple(conversion.losses), conversion.keeps_data)
