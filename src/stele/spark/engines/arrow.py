"""Names for Arrow objects whose type only the data knows, and the way between numpy's memory and Arrow's.

pyarrow's stubs tell arrays and types apart by what they hold. Engines learn that at run time, so here they are `Any`
under a name that says what is meant.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Column: TypeAlias = Any
"""A `pyarrow.Array` of any type."""
ArrowType: TypeAlias = Any
"""A `pyarrow.DataType` of any kind."""
Number = TypeVar("Number", bound=np.generic)


def as_buffer(memory: npt.NDArray[np.generic[Any]]) -> pa.Buffer:
    """Return the memory of an array as an Arrow buffer, not copied."""
    return pa.py_buffer(cast("Any", np.ascontiguousarray(memory)))


def as_numbers(buffer: pa.Buffer | None, kind: type[Number]) -> npt.NDArray[Number]:
    """Return an Arrow buffer as numbers, not copied and not writable; no buffer is no numbers."""
    numbers = np.frombuffer(cast("Any", buffer or b""), kind)
    numbers.flags.writeable = False
    return numbers
