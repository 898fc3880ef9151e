"""The Spark session and the registry a pipeline works with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from stele.errors import Invalid
from stele.spark.pipeline.config import PipelineConfig
from stele.spark.registry.clients import RegistryLike, as_picklable
from stele.spark.session import local_session, require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def find_session(config: PipelineConfig, spark: SparkSession | None) -> SparkSession | None:
    """The session given, or the active one; None where one is to be made. Raises `NotInstalled`, `Invalid`."""
    require_spark()
    from pyspark.sql import SparkSession

    found = spark or SparkSession.getActiveSession()
    if found is not None and not hasattr(found, "_jvm"):
        raise Invalid("batches of a pipeline run in the driver's own process, which a Spark Connect session has not")
    return found


@contextmanager
def open_session(config: PipelineConfig, given: SparkSession | None) -> Iterator[SparkSession]:
    """The session given, or one of the configuration's that ends here. Raises `NotInstalled`, `JavaMissing`."""
    if given is not None:
        yield given
        return
    conf = dict(config.spark.conf)
    if config.spark.packages:
        conf["spark.jars.packages"] = ",".join(config.spark.packages)
    session = local_session("stele pipeline", config.spark.cores, **conf)
    try:
        yield session
    finally:
        from py4j.protocol import Py4JError

        # its JVM may be gone: a SIGTERM for the whole process group ends that, too
        with suppress(Py4JError, ConnectionError):
            session.stop()


def resolve_registry(config: PipelineConfig, given: RegistryLike | None) -> RegistryLike:
    """The registry given, or the configuration's, as it travels to tasks."""
    return as_picklable(config.source.open_registry() if given is None else given)
