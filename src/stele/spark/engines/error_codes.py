"""Why a record could not be decoded: one list of codes for every engine, wire, format and pipeline.

Python, numba kernels and the jar's `ErrorCode.java` share these numbers and names. Users see the names: in the column
`code` of the error struct and of dead letters, and, in lower case, as the label `kind` of metrics. So neither a name
nor a number ever changes its meaning. `error_messages` has the English sentence of each.
"""

from __future__ import annotations

from enum import IntEnum

from stele.errors import DataError


class ErrorCode(IntEnum):
    """The first thing found wrong with a record. Numbers fit a byte; 0 means nothing is wrong."""

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

    # which type a record has
    WRONG_MESSAGE = 45
    WRONG_SUBJECT = 46

    # what is done with a record
    RULE_FAILED = 50
    UNROUTED = 60


CODE_NAMES = tuple(ErrorCode(n).name if n in ErrorCode.__members__.values() else "" for n in range(max(ErrorCode) + 1))
"""The name of each code, at its number; '' where there is none."""

FREE_ITEMS = 1024
"""How many zero-byte items one record may hold beyond its own length in bytes: bounds memory and time per record."""


class RecordError(DataError):
    """One record cannot be decoded.

    Args:
        code: What is wrong.
        detail: What the sentence of the code needs beside it, see `error_messages`.
        offset: Byte of the payload at which the bad value begins, -1 where nobody knows.
    """

    def __init__(self, code: ErrorCode, detail: str | None = None, offset: int = -1) -> None:
        super().__init__(code.name if detail is None else f"{code.name}: {detail}")
        self.code = code
        self.detail = detail
        self.offset = offset
