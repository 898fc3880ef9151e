"""The engine inside Spark's JVM: the location of its jar, and how to add it to a session.

Programs are compiled in Python (`programs`), and run by Stele's small jar on Spark's function catalog.

A session has the engine when the jar is among its jars and its catalog `stele` is Stele's class. `local_session` sets
up both. For other sessions there are two settings (`settings`), or `add_engine` for a session that is already running.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from stele.errors import SteleError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


JAR: Final = Path(__file__).with_name("stele-spark.jar")
"""Path of the jar, which `build` writes and the wheel contains."""
CATALOG: Final = "stele"
"""Name of the catalog with the engine's functions."""
CATALOG_CLASS: Final = "io.stele.spark.SteleCatalog"
PROTOCOL: Final = "protocol_3"
"""Name of a function that shows which version of programs the jar understands."""
_SETTING = f"spark.sql.catalog.{CATALOG}"
_KNOWN: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


class JarMissing(SteleError):
    """Raised when the engine `jvm` was requested and the session does not have it."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the engine jvm is not in this session: {why}")


def settings(jars: str = "") -> dict[str, str]:
    """Return the settings that a session needs before it starts; `jars` are its other jars, separated by commas.

    The result is empty if the jar is not built.
    """
    if not JAR.exists():
        return {}
    return {"spark.jars": ",".join(filter(None, [jars, str(JAR)])), _SETTING: CATALOG_CLASS}


def is_loaded(session: SparkSession) -> bool:
    """Return whether the session has the jar in a version that fits. A positive result is cached for the session."""
    if not _KNOWN.get(session):
        _KNOWN[session] = session.conf.get(_SETTING, None) == CATALOG_CLASS and _has_protocol(session)
    return _KNOWN[session]


def require_engine(session: SparkSession) -> None:
    """Raise `JarMissing`, with the command that helps, if the session does not have the engine."""
    if is_loaded(session):
        return
    if not JAR.exists():
        raise JarMissing("the jar is not built; with a JDK 17 or newer run: python -m stele.spark.engines.jvm.build")
    raise JarMissing("start it with stele.spark.local_session(), or call stele.spark.add_engine(session)")


def add_engine(session: SparkSession) -> None:
    """Add the engine to a session that is already running, in this process or behind Spark Connect.

    Raises `JarMissing` when the jar is not built or the session does not accept it.
    """
    if is_loaded(session):
        return
    if not JAR.exists():
        require_engine(session)
    if is_remote(session):
        session.addArtifacts(str(JAR))
    else:
        session.sql(f"ADD JAR '{JAR}'").collect()
    session.conf.set(_SETTING, CATALOG_CLASS)
    require_engine(session)


def is_remote(session: SparkSession) -> bool:
    """Return whether the session is a Spark Connect session."""
    return "connect" in type(session).__module__.split(".")


def _has_protocol(session: SparkSession) -> bool:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as f

    try:
        fields = session.range(1).select(f.call_function(f"{CATALOG}.{PROTOCOL}")).schema.fields
    except (PySparkException, Py4JError):
        return False
    return len(fields) == 1
