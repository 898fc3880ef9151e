"""Type aliases for Arrow objects whose type is known only at run time, and conversion between numpy and Arrow memory.

pyarrow's stubs have a type parameter for what arrays and types hold. Engines learn that at run time. So here they are
`Any`, under a name that states the meaning.
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
    """Return an Arrow buffer as numbers, without a copy and not writable; None becomes an empty array."""
    numbers = np.frombuffer(cast("Any", buffer or b""), kind)
    numbers.flags.writeable = False
    return numbers
