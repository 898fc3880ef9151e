"""One Java machine for many short Spark programs, one after the other.

A Spark program that starts its own Java machine pays seven seconds of CPU for it and runs cold code. PySpark connects
to a machine that runs already when `PYSPARK_GATEWAY_PORT` and `PYSPARK_GATEWAY_SECRET` are set. A program that ends
without `spark.stop()` leaves its Spark context behind; `lend` stops it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class JavaMachine:
    """A running Java machine of PySpark, without a Spark context.

    Args:
        engine: Whether it has the jar of the engine `jvm`, as that of `stele.spark.local_session` has.
    """

    def __init__(self, *, engine: bool = True) -> None:
        from pyspark import SparkConf
        from pyspark.java_gateway import launch_gateway

        from stele.spark.engines.jvm import settings as engine_settings
        from stele.spark.session import LOGGING

        # The machine itself starts workers for its Spark Connect server.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        logging = f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"
        fixed = {"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": logging}
        if engine:
            fixed |= engine_settings()
        self._gateway: Any = launch_gateway(SparkConf(loadDefaults=False).setAll(list(fixed.items())))

    @contextmanager
    def lend(self, folder: Path) -> Iterator[dict[str, str]]:
        """Let programs use the machine, one at a time; yield the environment variables that make them do so.

        Args:
            folder: The working directory of the programs. Spark resolves relative paths there and keeps tables there.
        """
        java = self._gateway.jvm
        java.java.lang.System.setProperty("user.dir", str(folder))
        java.java.lang.System.setProperty("spark.sql.warehouse.dir", str(folder / "spark-warehouse"))
        java.org.apache.hadoop.fs.FileSystem.closeAll()  # they cache the directory that was set before
        parameters = self._gateway.gateway_parameters
        try:
            yield {"PYSPARK_GATEWAY_PORT": str(parameters.port), "PYSPARK_GATEWAY_SECRET": parameters.auth_token}
        finally:
            self.stop_context()

    def stop_context(self) -> None:
        """Stop the Spark context that a program left behind, if there is one."""
        companion = getattr(getattr(self._gateway.jvm.org.apache.spark, "SparkContext$"), "MODULE$")  # a Scala object
        active = companion.getActive()
        if active.isDefined():
            active.get().stop()

    def close(self) -> None:
        """End the machine."""
        self._gateway.shutdown()
        self._gateway.proc.stdin.close()  # the machine ends when this is closed
        self._gateway.proc.wait(240)
