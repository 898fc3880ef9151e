"""What a breaking-change rule reports, and which categories it belongs to.

The categories are those that `buf config ls-breaking-rules` of version 1.75 lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto

T = TypeVar("T")


class Violation(NamedTuple):
    """A finding without its rule, which the caller adds; see `stele.core.findings.Finding` for the members."""

    path: str
    reader: str
    writer: str
    why: str
    fix: str


Rules = Mapping[str, Callable[[T, T], Iterator[Violation]]]
"""Maps rule ids to functions, which compare a declaration of the reader's schema with that of the writer's."""


class _Reserving(Protocol):
    """A message or enum with its reserved numbers and names."""

    @property
    def full_name(self) -> str: ...

    @property
    def proto(self) -> DescriptorProto | EnumDescriptorProto: ...


def find_released_reservations(
    kind: str, member: str, new: _Reserving, old: _Reserving, numbers: str
) -> Iterator[Violation]:
    """Yield the numbers and names that the writer's declaration reserves and the reader's does not.

    Args:
        kind: `message` or `enum`.
        member: What had a number there: `field` or `value`.
        new: The reader's declaration.
        old: The writer's declaration.
        numbers: The numbers that are no longer reserved, as text; '' for none.
    """
    names = set(new.proto.reserved_name)
    released = [(numbers, "number", "data")] if numbers else []
    released += [(f'"{name}"', "name", "JSON") for name in old.proto.reserved_name if name not in names]
    for text, what, data in released:
        yield Violation(
            new.full_name,
            f"{kind} {new.proto.name}",
            f"reserved {text}",
            f"A {what} that had been retired can be used again, and would misread {data} written with its former"
            f" {member}.",
            f"Add `reserved {text};` to the {kind}.",
        )


CATEGORIES = ("WIRE", "WIRE_JSON", "PACKAGE", "FILE", "CSR")
"""Categories, the laxest first.

They protect encoded data, data also as JSON, generated code per package, and generated code per file. CSR is the
category for Confluent's registry.
"""

_TABLE = {
    "FILE": """
        EXTENSION_NO_DELETE SERVICE_NO_DELETE
        """,
    "CSR FILE": """
        ENUM_NO_DELETE FILE_NO_DELETE MESSAGE_NO_DELETE
        """,
    "FILE PACKAGE": """
        ENUM_SAME_TYPE FIELD_SAME_CARDINALITY FIELD_SAME_CPP_STRING_TYPE FIELD_SAME_JAVA_UTF8_VALIDATION
        FIELD_SAME_JSTYPE FIELD_SAME_UTF8_VALIDATION FILE_SAME_CC_ENABLE_ARENAS FILE_SAME_CC_GENERIC_SERVICES
        FILE_SAME_CSHARP_NAMESPACE FILE_SAME_GO_PACKAGE FILE_SAME_JAVA_GENERIC_SERVICES FILE_SAME_JAVA_MULTIPLE_FILES
        FILE_SAME_JAVA_OUTER_CLASSNAME FILE_SAME_JAVA_PACKAGE FILE_SAME_OBJC_CLASS_PREFIX FILE_SAME_OPTIMIZE_FOR
        FILE_SAME_PHP_CLASS_PREFIX FILE_SAME_PHP_METADATA_NAMESPACE FILE_SAME_PHP_NAMESPACE
        FILE_SAME_PY_GENERIC_SERVICES FILE_SAME_RUBY_PACKAGE FILE_SAME_SWIFT_PREFIX RPC_NO_DELETE
        """,
    "CSR FILE PACKAGE": """
        ENUM_VALUE_NO_DELETE EXTENSION_MESSAGE_NO_DELETE FIELD_NO_DELETE FIELD_SAME_TYPE FILE_SAME_SYNTAX
        MESSAGE_NO_REMOVE_STANDARD_DESCRIPTOR_ACCESSOR ONEOF_NO_DELETE
        """,
    "CSR FILE PACKAGE WIRE_JSON": """
        ENUM_SAME_JSON_FORMAT ENUM_VALUE_SAME_NAME FIELD_SAME_JSON_NAME FIELD_SAME_NAME MESSAGE_SAME_JSON_FORMAT
        """,
    "CSR FILE PACKAGE WIRE_JSON WIRE": """
        FIELD_SAME_DEFAULT FIELD_SAME_ONEOF FILE_SAME_PACKAGE MESSAGE_SAME_REQUIRED_FIELDS RESERVED_ENUM_NO_DELETE
        RESERVED_MESSAGE_NO_DELETE RPC_SAME_CLIENT_STREAMING RPC_SAME_IDEMPOTENCY_LEVEL RPC_SAME_REQUEST_TYPE
        RPC_SAME_RESPONSE_TYPE RPC_SAME_SERVER_STREAMING
        """,
    "PACKAGE": """
        PACKAGE_ENUM_NO_DELETE PACKAGE_EXTENSION_NO_DELETE PACKAGE_MESSAGE_NO_DELETE PACKAGE_NO_DELETE
        PACKAGE_SERVICE_NO_DELETE
        """,
    "CSR WIRE_JSON": """
        ENUM_VALUE_NO_DELETE_UNLESS_NAME_RESERVED FIELD_NO_DELETE_UNLESS_NAME_RESERVED
        FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY FIELD_WIRE_JSON_COMPATIBLE_TYPE
        """,
    "CSR WIRE_JSON WIRE": """
        ENUM_VALUE_NO_DELETE_UNLESS_NUMBER_RESERVED FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED
        """,
    "WIRE": """
        FIELD_WIRE_COMPATIBLE_CARDINALITY FIELD_WIRE_COMPATIBLE_TYPE
        """,
}

CATEGORIES_OF = {rule: frozenset(head.split()) for head, rules in _TABLE.items() for rule in rules.split()}
"""The categories of each rule, by rule id."""
