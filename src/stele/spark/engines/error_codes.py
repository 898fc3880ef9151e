"""Error codes of records that cannot be decoded, and the English sentence of each code.

Every engine, wire, format and pipeline uses this one list. Python, numba kernels and the jar's `ErrorCode.java` share
numbers and names. Users see the names: in the column `code` of the error struct and of dead letters and, in lower case,
as the label `kind` of metrics. So neither a name nor a number ever changes its meaning. Sentences are made only here,
and no code depends on their text.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, Protocol

from stele.errors import DataError

if TYPE_CHECKING:
    from stele.spark.engines.arrow import Column


class ErrorCode(IntEnum):
    """The first error found in a record. Numbers fit in a byte; 0 means no error."""

    NONE = 0

    # the frame, and the schema it names
    NOT_FRAMED = 1
    UNKNOWN_SCHEMA_ID = 2
    UNUSABLE_SCHEMA = 3
    CODEC_FAILED = 4

    # Avro data
    TRUNCATED = 10
    BAD_VARINT = 11
    INT_RANGE = 12
    BAD_LENGTH = 13
    BAD_BOOLEAN = 14
    BAD_UTF8 = 15
    BAD_SYMBOL = 16
    UNREADABLE_SYMBOL = 17
    BAD_BRANCH = 18
    UNREADABLE_BRANCH = 19
    BAD_BLOCK = 20
    TOO_MANY_ITEMS = 21
    EMPTY_DECIMAL = 22
    DECIMAL_RANGE = 23
    OUT_OF_RANGE = 24
    TRAILING = 25
    TOO_DEEP = 26
    ENDLESS = 27

    # data of the other formats
    INVALID_DATA = 40
    UNFIT_VALUE = 41

    # the type of a record
    WRONG_MESSAGE = 45
    WRONG_SUBJECT = 46

    # processing of a record
    RULE_FAILED = 50
    UNWRITABLE_VALUE = 51
    NULL_VALUE = 52
    UNROUTED = 60


CODE_NAMES = tuple(ErrorCode(n).name if n in ErrorCode.__members__.values() else "" for n in range(max(ErrorCode) + 1))
"""The name of each code, at its number; '' where there is none."""

FREE_ITEMS = 1024
"""Number of zero-byte items that one record can hold beyond its length in bytes.

It limits memory and time per record.
"""


class RecordError(DataError):
    """Raised when one record cannot be decoded.

    Args:
        code: The error.
        detail: The value that the sentence of the code needs, see `describe_error`.
        offset: Byte of the payload at which the bad value begins, -1 if unknown.
    """

    def __init__(self, code: ErrorCode, detail: str | None = None, offset: int = -1) -> None:
        super().__init__(code.name if detail is None else f"{code.name}: {detail}")
        self.code = code
        self.detail = detail
        self.offset = offset


MESSAGES: Final = {
    ErrorCode.NOT_FRAMED: "no frame: the first byte must be 0, followed by a schema id of four bytes",
    ErrorCode.UNKNOWN_SCHEMA_ID: "unknown {label} {id}",
    ErrorCode.UNUSABLE_SCHEMA: "{label} {id} cannot be read: {detail}",
    ErrorCode.CODEC_FAILED: "{detail}",
    ErrorCode.TRUNCATED: "the record ends inside a value",
    ErrorCode.BAD_VARINT: "a variable-length integer is longer than ten bytes or 64 bits",
    ErrorCode.INT_RANGE: "an int does not fit 32 bits",
    ErrorCode.BAD_LENGTH: "a length is negative or reaches beyond the record",
    ErrorCode.BAD_BOOLEAN: "a boolean is neither 0 nor 1",
    ErrorCode.BAD_UTF8: "a string is not UTF-8",
    ErrorCode.BAD_SYMBOL: "an enum index is outside the writer's symbols",
    ErrorCode.UNREADABLE_SYMBOL: "the reader's enum has neither the symbol nor a default",
    ErrorCode.BAD_BRANCH: "a union index is outside the writer's branches",
    ErrorCode.UNREADABLE_BRANCH: "the reader cannot read this branch of the writer's union",
    ErrorCode.BAD_BLOCK: "a block of an array or map cannot hold as many items as it says",
    ErrorCode.TOO_MANY_ITEMS: "too many items that take no bytes",
    ErrorCode.EMPTY_DECIMAL: "a decimal has no bytes",
    ErrorCode.DECIMAL_RANGE: "a decimal has more digits than its precision",
    ErrorCode.OUT_OF_RANGE: "a time is out of range for its type or for the unit of its column",
    ErrorCode.TRAILING: "bytes are left over after the value",
    ErrorCode.TOO_DEEP: "a recursive type is nested deeper than the levels of columns: set `recursion` to more",
    ErrorCode.ENDLESS: "a type inside itself that is only read past goes more than 100 levels deep",
    ErrorCode.INVALID_DATA: "{detail}",
    ErrorCode.UNFIT_VALUE: "{detail}",
    ErrorCode.WRONG_MESSAGE: "the record is a {detail}",
    ErrorCode.WRONG_SUBJECT: "{label} {id} belongs to none of {detail}",
    ErrorCode.RULE_FAILED: "{detail}",
    ErrorCode.UNWRITABLE_VALUE: "{detail}",
    ErrorCode.NULL_VALUE: "its value is null, so the new record would be a tombstone",
    ErrorCode.UNROUTED: "no route takes records of the topic {detail}",
}
"""The sentence of each code. `{label}` is the wire's word for an id, `{id}` the record's id, `{detail}` its detail.

If a sentence has no placeholders, a detail replaces all of it, as the detail of a wire is more precise than the
sentence of `NOT_FRAMED`.
"""


def describe_error(code: ErrorCode, label: str, schema_id: object, detail: str | None) -> str:
    """Return the sentence that describes the error of a record.

    Args:
        code: The error; not `NONE`.
        label: The wire's word for an id, such as `schema id`.
        schema_id: The id in the record's frame, None without one.
        detail: See `MESSAGES`.
    """
    message = MESSAGES[code]
    if detail is not None and "{" not in message:
        return detail
    return message.format(label=label, id=schema_id, detail=detail)


def names_schema_id(code: ErrorCode) -> bool:
    """Return whether the sentence of a code contains the record's id."""
    return "{id}" in MESSAGES[code]


class Batch(Protocol):
    """The input of error sentences: `Decoded`, or frames that a wire has taken apart."""

    @property
    def schema_ids(self) -> Column:
        """The ids in the frames."""
        ...

    @property
    def codes(self) -> Column:
        """The code of each record."""
        ...

    @property
    def details(self) -> Column:
        """The details that belong to the codes."""
        ...

    @property
    def id_label(self) -> str:
        """The wire's word for an id."""
        ...


def describe_errors(batch: Batch) -> Column:
    """Return the sentences for a batch, a string column that is null for good and for null records."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sentences: list[str | None] = [None] * len(batch.codes)
    bad: Column = pc.indices_nonzero(batch.codes)
    parts = (array.take(bad).to_pylist() for array in (batch.codes, batch.schema_ids, batch.details))
    keys = zip(*parts, strict=True)
    known: dict[object, str] = {}
    for row, key in zip(bad.to_pylist(), keys, strict=True):
        if key not in known:
            code, schema_id, detail = key
            known[key] = describe_error(ErrorCode(code), batch.id_label, schema_id, detail)
        sentences[row] = known[key]
    return pa.array(sentences, pa.string())
