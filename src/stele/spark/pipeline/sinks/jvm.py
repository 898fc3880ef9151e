"""The session's JVM, for what PySpark has no call for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stele.errors import Invalid

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def get_jvm(spark: SparkSession) -> Any:
    """Its packages. Raises `Invalid` for a session of Spark Connect, which has none here."""
    found = getattr(spark, "_jvm", None)
    if found is None:
        raise Invalid(
            "tables of this kind are written from the driver's own process, which a Spark Connect session lacks"
        )
    return found


def get_java_session(spark: SparkSession) -> Any:
    """The session as the JVM knows it."""
    return spark._jsparkSession  # noqa: SLF001 - PySpark has no other way


def require_class(spark: SparkSession, name: str, advice: str) -> None:
    """Raise `Invalid` with the advice when the JVM lacks a class."""
    if not get_jvm(spark).org.apache.spark.util.Utils.classIsLoadable(name):
        raise Invalid(advice)
