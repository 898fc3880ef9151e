"""How users see bad records: the error struct of `from_registry`, and the error that fails a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stele.errors import DecodeError
from stele.spark.engines.error_codes import CODE_NAMES, ErrorCode, describe_error, describe_errors, names_schema_id

if TYPE_CHECKING:
    from stele.spark.engines.arrow import ArrowType, Column
    from stele.spark.engines.base import Decoded


def error_type(id_type: ArrowType = None) -> ArrowType:
    """Return the type of the error struct: (schema_id, offset, code, reason).

    Args:
        id_type: Type of the wire's ids, a 32-bit integer unless said otherwise.
    """
    import pyarrow as pa

    kinds = [("schema_id", id_type or pa.int32()), ("offset", pa.int32()), ("code", pa.string())]
    return pa.struct([*kinds, ("reason", pa.string())])


def error_structs(decoded: Decoded) -> Column:
    """Return the error struct of each record, null for good ones; `offset` is null where nobody knows it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bad = decoded.is_bad()
    offsets = pc.if_else(pc.less(decoded.offsets, pa.scalar(0, pa.int32())), None, decoded.offsets)
    names = pa.array(CODE_NAMES, pa.string()).take(decoded.codes.cast(pa.int32()))
    parts = [decoded.schema_ids, offsets, names, describe_errors(decoded)]
    return pa.StructArray.from_arrays(parts, fields=list(error_type(decoded.schema_ids.type)), mask=pc.invert(bad))


def raise_first_error(decoded: Decoded) -> None:
    """Raise `DecodeError` for the first bad record of a batch, if there is one."""
    bad = decoded.bad_rows()
    if not len(bad):
        return
    row = bad[0].as_py()
    code, offset = ErrorCode(decoded.codes[row].as_py()), decoded.offsets[row].as_py()
    schema_id, detail = decoded.schema_ids[row].as_py(), decoded.details[row].as_py()
    reason = describe_error(code, decoded.id_label, schema_id, detail)
    raise decode_error(code, reason, schema_id, None if offset < 0 else offset)


def decode_error(code: ErrorCode, reason: str, schema_id: object, offset: int | None) -> DecodeError:
    """Return the exception for a bad record, which names its id and offset unless the reason does."""
    if schema_id is None or names_schema_id(code):
        return DecodeError(reason)
    return DecodeError(f"{reason} (schema id {schema_id})", offset=offset)
