"""Messages in which Karapace differs: findings about request bodies, and messages about refused schemas. Pure.

Bodies are checked as Karapace's web framework checks them: each finding has a type, a location, a message and the value
found there. The messages of its Python libraries are not copied.

Source: docs/protocols/karapace.md#answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from stele.apis.http.requests import WrongShape
from stele.core.findings import Finding
from stele.core.json_depth import MAX_JSON_DEPTH, is_nested_deeper
from stele.errors import MalformedSchema

_SCHEMA_MEMBERS: Final = ("schema", "schemaType", "references", "metadata", "ruleSet")
_SCHEMA_TYPES: Final = {"AVRO": "AVRO", "JSON": "JSONSCHEMA", "PROTOBUF": "PROTOBUF"}
"""Karapace's names of the schema types in messages."""
_EXPECTED_TYPES: Final = "'AVRO', 'JSON' or 'PROTOBUF'"
_LONGEST: Final = 300
"""Most characters of the list of incompatibilities in a refusal."""


class BodyFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One defect of a request body.

    type   kind of finding
    loc    location: `body`, then names of members and positions
    msg    message
    input  value at the location
    ctx    values in the message
    """

    type: str
    loc: tuple[str | int, ...]
    msg: str
    input: Any
    ctx: dict[str, str] | None = None


class RefusedBody(WrongShape):
    """The body is not what the endpoint accepts. The message lists all defects."""

    def __init__(self, findings: Sequence[BodyFinding]) -> None:
        super().__init__("; ".join(f"{'.'.join(map(str, each.loc))}: {each.msg}" for each in findings))
        self.findings = tuple(findings)


# --- bodies ---------------------------------------------------------------------------------------------------------


def require_schema_body(body: bytes) -> None:
    """Raise unless a body is a request about a schema. Unknown members are refused, too.

    Raises `RefusedBody`, and `MalformedSchema` for an empty schema.
    """
    if _require(body, _check_schema_request)["schema"] == "":
        raise MalformedSchema("Empty schema")


def require_config_body(body: bytes) -> None:
    """Raise `RefusedBody` unless a body names a compatibility level."""
    _require(body, lambda value: _check_member(value, ("body",), "compatibility", str))


def _require(body: bytes, check: Callable[[dict[str, Any]], Iterator[BodyFinding]]) -> dict[str, Any]:
    """Return the members of a body in which a check finds no defect. Raises `RefusedBody`."""
    if not body.strip():
        raise RefusedBody([BodyFinding("missing", ("body",), "Field required", None)])
    if is_nested_deeper(body):
        raise _refuse_json(f"nested deeper than {MAX_JSON_DEPTH} levels")
    try:
        value = msgspec.json.decode(body.decode("utf-8"))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _refuse_json(str(error)) from None
    if not isinstance(value, dict):
        raise RefusedBody([_no_object(("body",), value)])
    if findings := list(check(value)):
        raise RefusedBody(findings)
    return value


def _refuse_json(why: str) -> RefusedBody:
    return RefusedBody([BodyFinding("json_invalid", ("body", 0), "JSON decode error", {}, {"error": why})])


def _no_object(place: tuple[str | int, ...], value: Any) -> BodyFinding:
    sentence = "Input should be a valid dictionary or object to extract fields from"
    return BodyFinding("model_attributes_type", place, sentence, value)


def _check_schema_request(value: dict[str, Any]) -> Iterator[BodyFinding]:
    yield from _check_member(value, ("body",), "schema", str)
    schema_type = value.get("schemaType", "AVRO")
    if not isinstance(schema_type, str) or schema_type not in _SCHEMA_TYPES:
        sentence = f"Input should be {_EXPECTED_TYPES}"
        yield BodyFinding("enum", ("body", "schemaType"), sentence, schema_type, {"expected": _EXPECTED_TYPES})
    references = value.get("references")
    if isinstance(references, list):
        for index, reference in enumerate(references):
            yield from _check_reference(reference, ("body", "references", index))
    elif references is not None:
        yield BodyFinding("list_type", ("body", "references"), "Input should be a valid list", references)
    for name, member in value.items():
        if name not in _SCHEMA_MEMBERS:
            yield BodyFinding("extra_forbidden", ("body", name), "Extra inputs are not permitted", member)


def _check_reference(reference: Any, place: tuple[str | int, ...]) -> Iterator[BodyFinding]:
    if not isinstance(reference, dict):
        yield _no_object(place, reference)
        return
    yield from _check_member(reference, place, "name", str)
    yield from _check_member(reference, place, "subject", str)
    yield from _check_member(reference, place, "version", int)


def _check_member(
    value: Mapping[str, Any], place: tuple[str | int, ...], name: str, kind: type[str | int]
) -> Iterator[BodyFinding]:
    """Yield the defects of a required member."""
    if name not in value:
        yield BodyFinding("missing", (*place, name), "Field required", value)
        return
    member = value[name]
    if kind is str and not isinstance(member, str):
        yield BodyFinding("string_type", (*place, name), "Input should be a valid string", member)
    elif kind is int and not _is_integer(member):
        yield BodyFinding("int_type", (*place, name), "Input should be a valid integer", member)


def _is_integer(value: Any) -> bool:
    """Return whether a value is an integer or a text that spells one."""
    if isinstance(value, str):
        return value.strip().removeprefix("-").isdecimal()
    return isinstance(value, int) and not isinstance(value, bool)


# --- sentences ------------------------------------------------------------------------------------------------------


def explain_findings(findings: Sequence[Finding]) -> list[str]:
    """Return the messages of a check: one for each finding, without duplicates."""
    return list(dict.fromkeys(map(_explain_finding, findings)))


def _explain_finding(finding: Finding) -> str:
    reader, writer = finding.reader, finding.writer
    match finding.rule:
        case "TYPE_MISMATCH":
            return f"reader type: {reader.lower()} not compatible with writer type: {writer.lower()}"
        case "MISSING_UNION_BRANCH":
            return f"reader union lacking writer type: {writer.upper()}"
        case "NAME_MISMATCH":
            return f"expected: {writer}"
        case "FIXED_SIZE_MISMATCH":
            return f"expected: {writer}, found: {reader}"
        case "READER_FIELD_MISSING_DEFAULT_VALUE":
            return reader
        case "MISSING_ENUM_SYMBOLS":
            return writer
        case "FORMAT_CHANGED":
            return f"Comparing different schema types: {writer.upper()} with {reader.upper()}"
        case _:
            return finding.why


def explain_refusal(level: str, messages: Sequence[str]) -> str:
    """Return the message of a refused registration."""
    return f"Incompatible schema, compatibility_mode={level}. Incompatibilities: {', '.join(messages)[:_LONGEST]}"


def explain_refused_text(error: MalformedSchema, text: str, references: Sequence[str], schema_type: str) -> str:
    """Return the message about a text that is not a schema.

    It names the undefined type if that is the cause. Otherwise it repeats the text of a Protobuf schema, or gives the
    error for a schema of another type.
    """
    detail = str(error)
    if error.undefined is not None:
        detail = f'type "{error.undefined}" is not defined'
    elif schema_type == "PROTOBUF":
        reference_text = f"[{', '.join(references)}]" if references else "None"
        detail = f"Invalid schema {text} with refs {reference_text} of type SchemaType.{_SCHEMA_TYPES[schema_type]}"
    return f"Invalid {schema_type} schema. Error: {detail}"
