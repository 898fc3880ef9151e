"""CPU seconds of encoding columns as framed Avro records in Spark: both engines, against Spark's own functions.

    python -m bench.spark_encode [records, default 1000000]

The columns of `spark_decode.py`, read from Parquet and written to Spark's `noop` sink, so the first line is the floor.
`to_avro` (from a jar that Spark fetches from Maven Central) writes no frames. CPU time as there.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench.spark_decode import PACKAGES, RECORDS, SUBJECT, measure_case, print_rows, snapshot, write_data
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import to_avro

from stele.spark import local_session, to_registry


def main() -> None:
    """Measure, print, keep."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    spark = local_session("stele bench", **PACKAGES)
    with tempfile.TemporaryDirectory() as folder:
        write_data(spark, Path(folder), records)
        wide = spark.read.parquet(f"{folder}/wide")
        known = snapshot()
        newest = known.schemas[-1].text

        def encode_column(engine: str) -> DataFrame:
            return to_registry(wide, subject=SUBJECT, registry=known, engine=engine)

        best = measure_case(
            {
                "read the columns only": lambda: wide,
                "to_registry, jvm": lambda: encode_column("jvm"),
                "to_registry, vm": lambda: encode_column("vm"),
                "to_avro": lambda: wide.select(to_avro(f.struct("*"), newest)),
                "to_json": lambda: wide.select(f.to_json(f.struct("*"))),
            }
        )
    spark.stop()
    print_rows("spark_encode", records, best, "to_registry, jvm", {"to_avro": 1.5})


if __name__ == "__main__":
    main()
