"""The Java Avro library of the PySpark wheel as an oracle: one JVM for all tests of a session."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyspark

_JARS = ("avro-1", "jackson-core-2", "jackson-databind-2", "jackson-annotations-2", "slf4j-api-2", "commons-compress-1")


class JavaError(Exception):
    """Raised when Java refuses a schema or a comparison. It has the first line of Java's message."""


def call_java(method: Callable[..., Any], *arguments: Any) -> Any:
    """Call a method of Java. Raises `JavaError` for an exception of Java.

    A Spark session in this process replaces Py4J's errors by its own; the original one is their cause.
    """
    from py4j.protocol import Py4JJavaError

    try:
        return method(*arguments)
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, Py4JJavaError):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        raise JavaError(str(cause.java_exception).partition("\n")[0]) from error


class Java:
    """The functions of the library that tests use."""

    def __init__(self, avro: Any) -> None:
        self._avro = avro

    def parse(self, text: str) -> Any:
        """A Java schema. Raises `JavaError`."""
        return call_java(self._avro.Schema.Parser().parse, text)

    def print_schema(self, text: str) -> str:
        """Return the result of `Schema.toString`."""
        return str(self.parse(text).toString())

    def canonical(self, text: str) -> str:
        """Return the result of `SchemaNormalization.toParsingForm`."""
        return str(self._avro.SchemaNormalization.toParsingForm(self.parse(text)))

    def rabin(self, text: str) -> bytes:
        """`SchemaNormalization.parsingFingerprint64`, big-endian."""
        value = self._avro.SchemaNormalization.parsingFingerprint64(self.parse(text))
        return int(value).to_bytes(8, "big", signed=True)

    def incompatibilities(self, reader: str, writer: str) -> set[tuple[str, str]]:
        """Return (type, location) of each finding of `SchemaCompatibility`; none if compatible. Raises `JavaError`."""
        check = self._avro.SchemaCompatibility.checkReaderWriterCompatibility
        incompatibilities = call_java(check, self.parse(reader), self.parse(writer)).getResult().getIncompatibilities()
        # By index, because a Java iterator ends with an exception of Java, which a Spark session replaces.
        return {
            (str(one.getType()), str(one.getLocation()))
            for one in map(incompatibilities.get, range(incompatibilities.size()))
        }


@cache
def java() -> Java:
    """Return the oracle. Without a JVM the tests that use it fail, because a JDK is a requirement of the tests."""
    assert shutil.which("java") is not None, "no java on the path"
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    jars = Path(pyspark.__path__[0]) / "jars"
    wanted = [str(jar) for prefix in _JARS for jar in sorted(jars.glob(f"{prefix}*.jar"))]
    bridge = next(iter(sorted(jars.glob("py4j-*.jar"))))
    # The JVM ends with this process: it watches its standard input (die_on_exit).
    with Path(os.devnull).open("wb") as nowhere:
        port, token = launch_gateway(
            jarpath=str(bridge),
            classpath=os.pathsep.join(wanted),
            die_on_exit=True,
            enable_auth=True,
            redirect_stderr=nowhere,
        )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    return Java(gateway.jvm.org.apache.avro)
