"""What C++ and Java make of a text field: each has an old option and a feature that takes its place in editions."""

from __future__ import annotations

from google.protobuf.descriptor_pb2 import Edition, FeatureSet, FieldOptions

from stele.formats.protobuf.buf.features import CPP_CORD, CPP_VIEW, JAVA_VERIFY
from stele.formats.protobuf.buf.module import FieldDeclaration


def cpp_string_type(field: FieldDeclaration) -> str:
    """STRING, STRING_PIECE, CORD or VIEW; `ctype` goes first as long as the edition has it."""
    options = field.proto.options
    if field.file.proto.edition < Edition.EDITION_2024 and options.HasField("ctype"):
        return FieldOptions.CType.Name(options.ctype)
    return {CPP_VIEW: "VIEW", CPP_CORD: "CORD"}.get(field.features.cpp_string_type, "STRING")


def java_utf8_validation(field: FieldDeclaration) -> str:
    """VERIFY or NONE: what the file's option or the feature for Java demands, else what every language does."""
    file = field.file.proto
    if file.syntax != "editions" or file.options.HasField("java_string_check_utf8"):
        verify = file.options.java_string_check_utf8
    else:
        verify = field.features.java_utf8_validation == JAVA_VERIFY
    return "VERIFY" if verify or field.features.utf8_validation == FeatureSet.VERIFY else "NONE"
