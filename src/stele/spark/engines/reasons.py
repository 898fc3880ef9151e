"""Why a record could not be decoded: one list for all engines, so that their answers can be compared."""

from __future__ import annotations

from enum import IntEnum


class Reason(IntEnum):
    """The first thing found wrong with a record. Numbers fit a byte; 0 means nothing is wrong."""

    NONE = 0
    NOT_FRAMED = 1
    UNKNOWN_ID = 2
    UNUSABLE_ID = 3
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


TEXTS = {
    Reason.NOT_FRAMED: "no frame: the first byte must be 0, followed by a schema id of four bytes",
    Reason.TRUNCATED: "the record ends inside a value",
    Reason.BAD_VARINT: "a variable-length integer is longer than ten bytes or 64 bits",
    Reason.INT_RANGE: "an int does not fit 32 bits",
    Reason.BAD_LENGTH: "a length is negative or reaches beyond the record",
    Reason.BAD_BOOLEAN: "a boolean is neither 0 nor 1",
    Reason.BAD_UTF8: "a string is not UTF-8",
    Reason.BAD_SYMBOL: "an enum index is outside the writer's symbols",
    Reason.UNREADABLE_SYMBOL: "the reader's enum has neither the symbol nor a default",
    Reason.BAD_BRANCH: "a union index is outside the writer's branches",
    Reason.UNREADABLE_BRANCH: "the reader cannot read this branch of the writer's union",
    Reason.BAD_BLOCK: "a block of an array or map cannot hold as many items as it says",
    Reason.TOO_MANY_ITEMS: "too many items that take no bytes",
    Reason.EMPTY_DECIMAL: "a decimal has no bytes",
    Reason.DECIMAL_RANGE: "a decimal has more digits than its precision",
    Reason.OUT_OF_RANGE: "a time is out of range for its type or for the unit of its column",
    Reason.TRAILING: "bytes are left over after the value",
    Reason.TOO_DEEP: "a type inside itself goes deeper than the levels of columns: ask for more by `recursion`",
    Reason.ENDLESS: "a type inside itself that is only read past goes more than 100 levels deep",
}
"""A sentence for each reason that does not depend on the id."""

FREE_ITEMS = 1024
"""How many zero-byte items one record may hold beyond its own length in bytes: bounds memory and time per record."""
