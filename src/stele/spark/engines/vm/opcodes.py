"""The instruction set of the decoding machine: six integers each, an opcode and five operands.

Plain module constants, because numba folds those into the compiled code.

    opcode        a            b             c           d         e
    END           -            -             -           -          the record must end here
    STOP          -            -             -           -          end of the null row: nothing is checked
    INT           column       cast          multiply    divide    limit   also LONG
    FLOAT         column       cast          -           -
    DOUBLE        column       -             -           -          also BOOLEAN
    TEXT          column       size          utf8        -         size -1: a length in front, REST: all that is left
    DECIMAL       column       size          precision   -
    SYMBOL        column       first jump    symbols     -          jumps hold the reader's index or -1
    UNION         -            first jump    branches    -          jumps hold addresses
    ENTER         column       end address   register    floor      reads the first block header
    AGAIN         column       body address  register    floor      next item, or next block header
    VALID         column       -             -           -
    NULL          column       -             -           -
    JUMP          address      -             -           -
    CONSTANT      start        end           -           -          reads go to the constants until RESUME
    RESUME        -            -             -           -
    FAIL          reason       -             -           -          a branch the reader cannot read
    DIGITS        column       size          precision   scale      a wide decimal as text
    CALL          address      -             -           -          a routine, which begins with KEEP
    KEEP          -            first         registers   -          a routine's registers, for the call around this one
    RETURN        -            first         registers   -
"""

from __future__ import annotations

END = 0
STOP = 1
INT = 2
LONG = 3
FLOAT = 4
DOUBLE = 5
BOOLEAN = 6
TEXT = 7
DECIMAL = 8
SYMBOL = 9
UNION = 10
ENTER = 11
AGAIN = 12
VALID = 13
NULL = 14
JUMP = 15
CONSTANT = 16
RESUME = 17
FAIL = 18
DIGITS = 20
CALL = 21
KEEP = 22
RETURN = 23

WIDTH = 6
"""Integers per instruction."""
REST = -2
"""`steps.REST`."""
NO_COLUMN = -1
"""Operand of an instruction that reads past a value."""
