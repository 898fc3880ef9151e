"""Spark's declarative pipelines in a process of their own, one JVM for many runs.

It does what `spark-pipelines run` does, asked by lines of JSON on standard input.

    {"run": "spark-pipeline.yml", "full_refresh": []}   answers {"error": ""}, or what went wrong
    {"sql": "SELECT …"}                                 answers {"rows": […]}
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Answer until standard input ends; what Spark prints goes to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    from pyspark.errors import PySparkException
    from pyspark.pipelines import cli
    from pyspark.sql import SparkSession

    from stele.errors import SteleError

    builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").config("spark.sql.warehouse.dir", sys.argv[1])
    session: Any = spark.getOrCreate()
    stop, type(session).stop = type(session).stop, lambda self: None  # a run would end the JVM

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        if "sql" in asked:
            return {"rows": [row.asDict(recursive=True) for row in session.sql(asked["sql"]).collect()]}
        try:
            cli.run(Path(asked["run"]), asked["full_refresh"], False, [], False)
        except (PySparkException, SteleError) as error:
            return {"error": f"{type(error).__name__}: {error}".partition("\n\tat ")[0]}
        return {"error": ""}

    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line)), default=str), file=answers, flush=True)
    stop(session)


if __name__ == "__main__":
    main()
