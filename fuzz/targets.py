"""Targets of fuzzing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from fuzz import words
from fuzz.bodies import BODIES, FRAMES, fuzz_requests, fuzz_wire
from fuzz.corpus import seeds
from fuzz.languages import Language
from fuzz.mutate import Edit, edit_bytes, edit_json, edit_tokens, edit_xml
from fuzz.parts import Parts
from fuzz.steps import Steps


class Target(NamedTuple):
    """A target of fuzzing.

    run      runs all steps with an input; the notes that it adds to the steps distinguish inputs
    edit     makes one change to a part of an input
    seeds    inputs to start from
    """

    run: Callable[[Parts, Steps], None]
    edit: Edit
    seeds: Sequence[bytes]


_LANGUAGES: Final[Mapping[str, tuple[str, Edit]]] = {
    "avro": ("avro", edit_json(words.AVRO)),
    "protobuf": ("protobuf", edit_tokens(words.PROTOBUF)),
    "jsonschema": ("json", edit_json(words.JSON_SCHEMA)),
    "thrift": ("thrift", edit_tokens(words.THRIFT)),
    "xsd": ("xsd", edit_xml(words.XSD)),
}
_OTHERS: Final[Mapping[str, Target]] = {
    "wire": Target(fuzz_wire, edit_bytes, FRAMES),
    "requests": Target(fuzz_requests, edit_json(words.REQUESTS), BODIES),
}
TARGETS: Final = (*_LANGUAGES, *_OTHERS)
"""Names of all targets."""


def get_target(name: str) -> Target:
    """Return a target by name. Raises KeyError."""
    if name in _OTHERS:
        return _OTHERS[name]
    format_name, edit = _LANGUAGES[name]
    return Target(Language(format_name), edit, seeds(format_name))
