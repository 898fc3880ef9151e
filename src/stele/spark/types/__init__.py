"""Types of DataFrames from and to schemas, without a running Spark.

| model | Spark |
|---|---|
| boolean, int8 to int64, float32, float64, string, bytes, date | the same |
| uint8, uint16, uint32; uint64 | the next wider signed integer; decimal(20, 0) |
| integer, number of any size | decimal(38, 0), double |
| decimal | decimal, a string where it is wider than 38 digits or unbounded |
| timestamp, on a wall clock; time | timestamp, timestamp_ntz; time (a string before Spark 4.1) |
| duration, of months and days too | interval day to second, interval |
| uuid, enumeration; fixed | string; binary |
| any, null | variant, void |
| record, array, map | struct, array, map |
| union | a struct with the columns `member0`, `member1` …, of which one is not null |
| a record inside itself | a variant: Spark has no recursive types |
| left out without a default | nullable |

What a Spark type cannot say is kept in the metadata of its column (see `notes`), so `from_spark` gives back what
`to_spark` got. All else is among the losses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stele.errors import CannotConvert
from stele.formats.capabilities import FromModel, ToModel
from stele.formats.conversion.model import Loss, Model
from stele.formats.registry import get_format
from stele.spark.session import require_spark
from stele.spark.types.model import ModelBuilder, StructBuilder

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

ROOT_NAME = "Row"
"""Full name of the record for a DataFrame that is given none."""


def to_spark(model: Model) -> tuple[StructType, list[Loss]]:
    """Return the columns for data of a model, and what they do not say; a root that is no record is the column `value`.

    Raises `TooLarge` past 10 000 columns or 64 levels, `CannotConvert` for a model that is not sound, `NotInstalled`.
    """
    require_spark()
    shaper = StructBuilder(model)
    return shaper.build_root(), shaper.losses


def from_spark(struct: StructType, *, name: str = ROOT_NAME) -> tuple[Model, list[Loss]]:
    """Return the model of rows with these columns, and what it does not say; name is the record's full name.

    Raises `TooLarge` past 10 000 columns or 64 levels, `CannotConvert` for two columns of one name and for types that
    no schema language knows (geometry), `NotInstalled`.
    """
    require_spark()
    reader = ModelBuilder()
    return reader.model(struct, name), reader.losses


def spark_schema(
    format: str,  # noqa: A002 - the word of the whole package for it
    text: str | bytes,
    references: Mapping[str, str | bytes] | None = None,
) -> tuple[StructType, list[Loss]]:
    """Return the columns for data of a schema document, and what they do not say.

    format is the name of an installed format; references map reference names to documents. Raises `UnknownFormat`,
    `MalformedSchema`, `UnresolvedReference`, and what `to_spark` raises.
    """
    source = get_format(format)
    if not isinstance(source, ToModel):
        raise CannotConvert(f"schemas of the format {source.name!r} cannot be converted")
    given = {label: _to_bytes(document) for label, document in (references or {}).items()}
    parsed: Any = source.parse(_to_bytes(text), given, strict=False)
    model, losses = source.to_model(parsed)
    struct, more = to_spark(model)
    return struct, [*losses, *more]


def schema_for(
    struct: StructType,
    format: str = "avro",  # noqa: A002 - the word of the whole package for it
    *,
    name: str = ROOT_NAME,
) -> tuple[str, list[Loss]]:
    """Return the text of a schema for rows with these columns, and what it does not say.

    name is the record's full name.

    Raises `UnknownFormat`, and what `from_spark` and the format's `from_model` raise.
    """
    target = get_format(format)
    if not isinstance(target, FromModel):
        raise CannotConvert(f"nothing can be converted into the format {target.name!r}")
    model, losses = from_spark(struct, name=name)
    text, more = target.from_model(model)
    return text.decode(), [*losses, *more]


def _to_bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
