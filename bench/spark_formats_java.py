"""A function in the JVM that reads Protobuf by Protobuf's own `DynamicMessage`, built for `spark_formats.py`."""

from __future__ import annotations

import base64
import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

from stele.spark.engines.jvm.build import find_javac, find_spark_jars

CATALOG = "dynamic"
_SOURCE = Path(__file__).parent / "java" / "DynamicMessages.java"


def add_catalog(spark: SparkSession, folder: Path) -> None:
    """Compile the function against the runtime of Protobuf inside PySpark, and add it to the session."""
    classes = folder / "classes"
    command = [str(find_javac()), "-d", str(classes), "--release", "17", "-cp", f"{find_spark_jars()}/*", str(_SOURCE)]
    subprocess.run(command, check=True, capture_output=True)
    with zipfile.ZipFile(folder / "dynamic.jar", "w") as jar:
        for path in classes.rglob("*.class"):
            jar.write(path, path.relative_to(classes).as_posix())
    spark.sql(f"ADD JAR '{folder / 'dynamic.jar'}'").collect()
    spark.conf.set(f"spark.sql.catalog.{CATALOG}", "DynamicMessages")


def call(schema: Any, message: str, type_: DataType) -> str:
    """Return the name of the function that reads a message of a parsed schema as that type."""
    descriptor = schema.message_class(message).DESCRIPTOR
    file = base64.b64encode(descriptor.file.serialized_pb).decode()
    spec = {"file": file, "message": descriptor.name, "type": type_.json()}
    return f"{CATALOG}.`{base64.urlsafe_b64encode(json.dumps(spec).encode()).decode()}`"
