"""Frames and request bodies: untrusted bytes that are read besides schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fuzz.languages import message_shape
from fuzz.parts import Parts
from fuzz.steps import Broken, Steps
from stele.apis.confluent import models, translate
from stele.apis.http.requests import decode_body
from stele.errors import FrameError, SteleError
from stele.wire import avro_single, confluent

FRAMES: Final = (
    Parts(b"\x00\x00\x00\x00\x07\x06abc").join(),
    Parts(b"\x00\x00\x00\x00\x07\x04\x02\x00payload").join(),
    Parts(b"payload", b"\x01" + bytes(range(16)) + b"\x02\x04").join(),
    Parts(b"\xc3\x01" + bytes(range(8)) + b"payload").join(),
)
"""Frames to begin with."""

BODIES: Final = (
    b'{"schema":"\\"int\\"","schemaType":"AVRO","references":[{"name":"a","subject":"s","version":1}],"version":-1}',
    b'{"schema":"{}","metadata":{"tags":{"a.*":["PII"]},"properties":{"k":"v"},"sensitive":["k"]},"ruleSet":{}}',
    b'{"ruleSet":{"domainRules":[{"name":"r","kind":"CONDITION","mode":"WRITE","type":"CEL","expr":"true"}]}}',
    b'{"compatibility":"FULL","normalize":true,"alias":"a","defaultMetadata":{},"mode":"READONLY"}',
    b'{"newVersion":2,"schemaTagsToAdd":[{"schemaEntity":{"entityPath":"a.b","entityType":"sr_field"},"tags":["x"]}]}',
)
"""Bodies to begin with."""


def fuzz_wire(parts: Parts, steps: Steps) -> None:
    """Check that any bytes are unframed or refused, and that framing restores the same bytes."""
    data, header = parts.document, parts.other or None
    readers: dict[str, Callable[[], bool]] = {
        "unframe": lambda: confluent.frame(*confluent.unframe(data)) == data,
        "single object": lambda: avro_single.frame(*avro_single.unframe(data)) == data,
        "payload": lambda: len(confluent.read_frame(data, header).payload()) <= len(data),
        "message": lambda: len(confluent.read_frame(data, header).message()[1]) <= len(data),
        "indexes": lambda: confluent.decode_indexes(data)[1] <= len(data),
    }
    for name, read in readers.items():
        try:
            same = steps.run_step(name, read)
        except FrameError as error:
            steps.record_outcome(name, message_shape(str(error)))
            continue
        steps.accepted += 1
        if not same:
            raise Broken(f"{name} is not undone by framing")


def fuzz_requests(parts: Parts, steps: Steps) -> None:
    """Check that any request body of the Confluent dialect is translated or refused."""
    bodies: tuple[type[Any], ...] = (
        models.RegisterSchemaRequest,
        models.TagSchemaRequest,
        models.ConfigUpdateRequest,
        models.ModeUpdateRequest,
    )
    for wanted in bodies:
        try:
            body: Any = steps.run_step(wanted.__name__, decode_body, parts.document, wanted)
            if isinstance(body, models.RegisterSchemaRequest):
                steps.run_step("references", translate.references_in, body.references, "")
                steps.run_step("rules", translate.rule_set_in, body.rule_set)
        except SteleError as error:
            steps.record_outcome(wanted.__name__, message_shape(str(error)))
        else:
            steps.accepted += 1
