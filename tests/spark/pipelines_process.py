"""Spark's declarative pipelines in a process of their own, one session for many runs.

It does the same as `spark-pipelines --remote ADDRESS run`, for requests in lines of JSON on standard input. Its
arguments are the address of a Spark Connect server and the database for the tables. The session does not have the
engine `jvm`.

    {"run": "spark-pipeline.yml", "full_refresh": []}   answers {"error": ""}, or the error
    {"sql": "SELECT …"}                                 answers {"rows": […]}
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Answer requests until standard input ends. Spark's output goes to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr
    os.environ["SPARK_REMOTE"], database = sys.argv[1:]
    from pyspark.errors import PySparkException
    from pyspark.pipelines import cli
    from pyspark.sql import SparkSession

    from stele.errors import SteleError
    from stele.spark.engines.jvm import CATALOG

    session: Any = SparkSession.builder.getOrCreate()
    session.conf.set(f"spark.sql.catalog.{CATALOG}", "none")
    session.sql(f"USE {database}")
    stop, type(session).stop = type(session).stop, lambda self: None  # a run would stop the session

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if "sql" in request:
            return {"rows": [row.asDict(recursive=True) for row in session.sql(request["sql"]).collect()]}
        try:
            cli.run(Path(request["run"]), request["full_refresh"], False, [], False)
        except (PySparkException, SteleError) as error:
            return {"error": f"{type(error).__name__}: {error}".partition("\n\tat ")[0]}
        return {"error": ""}

    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line)), default=str), file=answers, flush=True)
    stop(session)


if __name__ == "__main__":
    main()
