"""The features of a declaration: its own, else those around it, else the defaults of the file's edition.

Source: docs/protocols/protobuf.md#editions-and-features.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from google.protobuf.descriptor_pb2 import Edition, FeatureSet
from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import Message

CPP_VIEW, CPP_CORD, CPP_STRING = 1, 2, 3
"""Values of `pb.CppFeatures.StringType`."""
JAVA_DEFAULT, JAVA_VERIFY = 1, 2
"""Values of `pb.JavaFeatures.Utf8Validation`."""


class Features(NamedTuple):
    """The features that some rule looks at, as numbers of their enums."""

    field_presence: int
    enum_type: int
    utf8_validation: int
    message_encoding: int
    json_format: int
    cpp_string_type: int
    java_utf8_validation: int


_PROTO2 = Features(
    FeatureSet.EXPLICIT,
    FeatureSet.CLOSED,
    FeatureSet.NONE,
    FeatureSet.LENGTH_PREFIXED,
    FeatureSet.LEGACY_BEST_EFFORT,
    CPP_STRING,
    JAVA_DEFAULT,
)
_PROTO3 = _PROTO2._replace(
    field_presence=FeatureSet.IMPLICIT,
    enum_type=FeatureSet.OPEN,
    utf8_validation=FeatureSet.VERIFY,
    json_format=FeatureSet.ALLOW,
)
_EDITION_2023 = _PROTO3._replace(field_presence=FeatureSet.EXPLICIT)
_EDITION_2024 = _EDITION_2023._replace(cpp_string_type=CPP_VIEW)

# Numbers of the fields of FeatureSet, of the languages' extensions of it, and of the one feature needed from those.
_OWN = {1: "field_presence", 2: "enum_type", 4: "utf8_validation", 5: "message_encoding", 6: "json_format"}
_LANGUAGES = {1000: (2, "cpp_string_type"), 1001: (2, "java_utf8_validation")}


def default_features(file: FileDescriptorProto) -> Features:
    """Return the features of a file that sets none."""
    if file.syntax == "editions":
        return _EDITION_2024 if file.edition >= Edition.EDITION_2024 else _EDITION_2023
    return _PROTO3 if file.syntax == "proto3" else _PROTO2


def override_features(around: Features, features: Message) -> Features:
    """Return the features of a declaration that sets some; features is its FeatureSet.

    It is read field by field: whether the languages' extensions are known depends on what else the process has loaded.
    """
    changes: dict[str, int] = {}
    for number, value in _read_fields(features.SerializeToString()):
        if number in _OWN:
            changes[_OWN[number]] = value
        elif number in _LANGUAGES:
            wanted, name = _LANGUAGES[number]
            for inner, choice in _read_fields(value):
                if inner == wanted:
                    changes[name] = choice
    return around._replace(**changes)


def _read_fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield numbers and values of the fields of a serialized message."""
    fields = UnknownFieldSet(Empty.FromString(data))
    for index in range(len(fields)):
        yield fields[index].field_number, fields[index].data
