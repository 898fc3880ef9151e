"""What is done with an input, and what must hold while it is done."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fuzz import words
from fuzz.corpus import seeds
from fuzz.mutate import Edit, edit_bytes, edit_json, edit_tokens, edit_xml
from fuzz.parts import Parts, split
from fuzz.steps import Broken, Steps
from stele.core.ports import Form
from stele.errors import FrameError, Invalid, InvalidRequest, MalformedSchema, SteleError, TooLarge
from stele.formats import catalogue

_NUMBERS_AND_NAMES: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\d+|\S{25,}")


class Target(NamedTuple):
    """One thing to fuzz.

    run      does everything with an input, step by step; what it leaves in the steps tells inputs apart
    edit     one change to a part of an input
    seeds    the inputs to begin with
    """

    run: Callable[[Parts, Steps], None]
    edit: Edit
    seeds: Sequence[bytes]


# --- schema languages -----------------------------------------------------------------------------------------------


class _Language:
    """Everything a format can be asked, with two schemas, a reference and data from one input."""

    def __init__(self, format_name: str) -> None:
        self.format = catalogue.get(format_name)

    def __call__(self, parts: Parts, steps: Steps) -> None:
        references = {"ref": parts.reference} if parts.reference else {}
        schema = self._parsed("document", parts.document, references, steps)
        other = self._parsed("other", parts.other, references, steps) if parts.other else None
        if schema is None:
            return
        self._printed(schema, references, steps)
        self._viewed(schema, steps)
        self._checked(schema, schema, steps)
        if other is not None:
            self._checked(schema, other, steps)
            self._checked(other, schema, steps)
        self._used(schema, other, parts.data, steps)

    def _parsed(self, what: str, text: bytes, references: Mapping[str, bytes], steps: Steps) -> Any:
        """The schema, or None when it is refused both strictly and leniently; a refusal says what is wrong, shortly."""
        for strict in (True, False):
            try:
                found = steps.take(
                    f"parse {what}", lambda strict=strict: self.format.parse(text, references, strict=strict)
                )
            except (MalformedSchema, TooLarge) as error:
                steps.note(type(error).__name__, _shape(str(error)))
                if len(str(error)) > 2_000:
                    raise Broken("the message of a refusal is longer than 2000 characters") from error
                continue
            steps.accepted += what == "document"
            return found
        return None

    def _printed(self, schema: Any, references: Mapping[str, bytes], steps: Steps) -> None:
        """Every form prints, and what is printed is the same schema: printing that again changes nothing."""
        for form in Form:
            try:
                text = steps.take(f"print {form.name}", lambda form=form: self.format.canonical(schema, form))
            except Invalid as error:
                steps.note(form.name, _shape(str(error)))
                continue
            if form is Form.CANONICAL and self.format.name in {"avro", "thrift"}:
                continue  # leaves out what only writers need, a default that another one mentions for example
            try:
                again = steps.take("parse printed", lambda text=text: self.format.parse(text, references, strict=False))
                twice = self.format.canonical(again, form)
            except TooLarge:
                continue
            except Invalid as error:
                raise Broken(f"the {form.name} text does not parse: {error}") from error
            if twice != text:
                raise Broken(f"the {form.name} text prints differently")

    def _viewed(self, schema: Any, steps: Steps) -> None:
        for name in ("fingerprints", "fields", "arrow_schema", "lint", "outline", "to_model"):
            ask = getattr(self.format, name, None)
            if ask is None:
                continue
            try:
                steps.take(name, lambda ask=ask: ask(schema))
            except Invalid as error:
                steps.note(name, _shape(str(error)))

    def _checked(self, reader: Any, writer: Any, steps: Steps) -> None:
        for ruleset in self.format.rulesets:
            found = steps.take(f"check {ruleset}", lambda ruleset=ruleset: self.format.check(reader, writer, ruleset))
            steps.note(ruleset, *sorted({f"{finding.rule} {finding.level.name}" for finding in found}))

    def _used(self, schema: Any, other: Any, data: bytes, steps: Steps) -> None:
        """An example fits its own schema and survives the way to bytes and back; other bytes are read or refused."""
        for reader in (None, other) if other is not None else (None,):
            try:
                codec = steps.take("codec", lambda reader=reader: self.format.codec(schema, reader))
            except SteleError as error:
                steps.note("codec", _shape(str(error)))
                continue
            self._decoded(codec, data, steps)
            try:
                example = steps.take("example", codec.example)
            except SteleError as error:
                steps.note("example", _shape(str(error)))
                continue
            faults = steps.take("validate", lambda codec=codec, example=example: codec.validate(example))
            if faults:
                raise Broken(f"the example does not fit its schema: {faults[0]}")
            encoded = steps.take("encode", lambda codec=codec, example=example: codec.encode(example))
            if reader is None:
                steps.take("decode example", lambda codec=codec, encoded=encoded: codec.decode(encoded))
            else:
                self._decoded(codec, encoded, steps)

    def _decoded(self, codec: Any, data: bytes, steps: Steps) -> None:
        try:
            steps.take("decode", lambda: codec.decode(data))
        except SteleError as error:
            steps.note("decode", type(error).__name__)


def _shape(message: str) -> str:
    """A message without the names and numbers in it: messages of one shape come from one place."""
    return _NUMBERS_AND_NAMES.sub("_", message)[:120]


# --- frames and requests --------------------------------------------------------------------------------------------


def _wire(parts: Parts, steps: Steps) -> None:
    """Any bytes are unframed or refused; what is unframed can be framed to the same bytes again."""
    from stele.wire import avro_single, confluent

    data, header = parts.document, parts.other or None
    for name, read in (
        ("unframe", lambda: confluent.frame(*confluent.unframe(data)) == data),
        ("single object", lambda: avro_single.frame(*avro_single.unframe(data)) == data),
        ("payload", lambda: len(confluent.read(data, header).payload()) <= len(data)),
        ("message", lambda: len(confluent.read(data, header).message()[1]) <= len(data)),
        ("indexes", lambda: confluent.decode_indexes(data)[1] <= len(data)),
    ):
        try:
            same = steps.take(name, read)
        except FrameError as error:
            steps.note(name, _shape(str(error)))
            continue
        steps.accepted += 1
        if not same:
            raise Broken(f"{name} is not undone by framing")


def _requests(parts: Parts, steps: Steps) -> None:
    """Any body of a request of the Confluent dialect is read and translated, or refused."""
    from stele.apis.confluent import entities, translate
    from stele.apis.web import decode_body

    for shape in (
        entities.RegisterSchemaRequest,
        entities.TagSchemaRequest,
        entities.ConfigUpdateRequest,
        entities.ModeUpdateRequest,
    ):
        try:
            body: Any = steps.take(shape.__name__, lambda shape=shape: decode_body(parts.document, shape))
            if isinstance(body, entities.RegisterSchemaRequest):
                steps.take("references", lambda body=body: translate.references_in(body.references, ""))
                steps.take("rules", lambda body=body: translate.rule_set_in(body.rule_set))
        except InvalidRequest as error:
            steps.note(shape.__name__, _shape(str(error)))
        except SteleError as error:
            steps.note(type(error).__name__, _shape(str(error)))
        else:
            steps.accepted += 1


_FRAMES: Final = (
    Parts(b"\x00\x00\x00\x00\x07\x06abc"),
    Parts(b"\x00\x00\x00\x00\x07\x04\x02\x00payload"),
    Parts(b"payload", b"\x01" + bytes(range(16)) + b"\x02\x04"),
    Parts(b"\xc3\x01" + bytes(range(8)) + b"payload"),
)
_BODIES: Final = (
    b'{"schema":"\\"int\\"","schemaType":"AVRO","references":[{"name":"a","subject":"s","version":1}],"id":1,"version":-1}',
    b'{"schema":"{}","metadata":{"tags":{"a.*":["PII"]},"properties":{"k":"v"},"sensitive":["k"]},"ruleSet":{"domainRules":'
    b'[{"name":"r","kind":"CONDITION","mode":"WRITE","type":"CEL","tags":["t"],"params":{"a":"b"},"expr":"true"}]}}',
    b'{"compatibility":"FULL","normalize":true,"alias":"a","defaultMetadata":{},"overrideRuleSet":null,"mode":"READONLY"}',
    b'{"newVersion":2,"schemaTagsToAdd":[{"schemaEntity":{"entityPath":"a.b","entityType":"sr_field"},"tags":["x"]}]}',
)


def target(name: str) -> Target:
    """A target by name. Raises KeyError."""
    edit, format_name = _EDITS[name]
    if format_name:
        return Target(_Language(format_name), edit, seeds(format_name))
    if name == "wire":
        return Target(_wire, edit, [parts.joined() for parts in _FRAMES])
    return Target(_requests, edit, _BODIES)


_EDITS: Final[Mapping[str, tuple[Edit, str]]] = {
    "avro": (edit_json(words.AVRO), "avro"),
    "protobuf": (edit_tokens(words.PROTOBUF), "protobuf"),
    "jsonschema": (edit_json(words.JSON_SCHEMA), "json"),
    "thrift": (edit_tokens(words.THRIFT), "thrift"),
    "xsd": (edit_xml(words.XSD), "xsd"),
    "wire": (edit_bytes, ""),
    "requests": (edit_json(words.REQUESTS), ""),
}
TARGETS: Final = tuple(_EDITS)
"""Names of all targets."""


def run(chosen: Target, data: bytes) -> Steps:
    """Do everything with one input. Raises what the code under test must not raise, and `Broken`."""
    steps = Steps()
    chosen.run(split(data), steps)
    return steps
