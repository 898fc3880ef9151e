"""Builds the jar: `python -m stele.spark.engines.jvm.build`.

The Java sources beside this file are compiled by the JDK's `javac` against only the jars inside PySpark. One jar runs
on Spark 4.0 to 4.3. The same sources and the same JDK give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

from stele.errors import NotInstalled, SteleError
from stele.spark.engines import error_codes
from stele.spark.engines.jvm import JAR

SOURCES = Path(__file__).with_name("java")
RELEASE = "17"
"""The oldest Java that Spark 4 runs on."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


class JarBuildFailed(SteleError):
    """Raised when the jar cannot be built; the message says what is missing, or has javac's output."""


def build(target: Path = JAR) -> Path:
    """Compile the sources and write the jar. Raises `JarBuildFailed` without a JDK, `NotInstalled` without PySpark."""
    with tempfile.TemporaryDirectory() as folder:
        classes = Path(folder)
        _compile_sources(classes)
        messages = {code.name: message for code, message in error_codes.MESSAGES.items()}
        (classes / "io/stele/spark/error_messages.json").write_text(json.dumps(messages, sort_keys=True))
        draft = target.with_name(f"{target.name}.{os.getpid()}")
        _pack_jar(classes, draft)
        draft.replace(target)
    return target


def _compile_sources(classes: Path) -> None:
    sources = sorted(str(path) for path in SOURCES.rglob("*.java"))
    options = ["-d", str(classes), "--release", RELEASE, "-encoding", "UTF-8", "-g:source,lines", "-proc:none"]
    command = [
        str(find_javac()),
        *options,
        "-Xlint:all,-classfile,-path,-processing",
        "-cp",
        f"{find_spark_jars()}/*",
        *sources,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # javac warns about classes that Spark's jars were built with and do not contain; they do not matter here
    if done.returncode:
        raise JarBuildFailed(f"javac failed:\n{done.stdout}{done.stderr}")


def _pack_jar(classes: Path, target: Path) -> None:
    """Write a jar whose bytes depend only on its files."""
    files = sorted(path for path in classes.rglob("*") if path.is_file())
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as jar:
        jar.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF", _EPOCH), "Manifest-Version: 1.0\r\n\r\n")
        for path in files:
            entry = zipfile.ZipInfo(path.relative_to(classes).as_posix(), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            jar.writestr(entry, path.read_bytes())


def find_javac() -> Path:
    """Return the compiler of JAVA_HOME, else of the PATH. Raises `JarBuildFailed`."""
    home = os.environ.get("JAVA_HOME")
    javac = shutil.which("javac", path=str(Path(home) / "bin")) if home else None
    javac = javac or shutil.which("javac")
    if javac is None:
        raise JarBuildFailed("building needs a JDK of 17 or newer: no javac in JAVA_HOME or on the PATH")
    return Path(javac)


def find_spark_jars() -> Path:
    """Return the folder of jars inside PySpark. Raises `NotInstalled`."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise NotInstalled("PySpark", "spark")
    return Path(spec.origin).with_name("jars")


def is_fresh() -> bool:
    """Return whether the jar exists and is newer than its sources."""
    made_of = [*SOURCES.rglob("*.java"), Path(__file__), Path(error_codes.__file__)]
    return JAR.exists() and JAR.stat().st_mtime >= max(path.stat().st_mtime for path in made_of)


def main() -> int:
    """Build the jar and return the exit code: 1 if it cannot be built, unless `--if-possible` is given, else 0.

    With `--if-stale` a jar that is newer than its sources is not built again.
    """
    parser = argparse.ArgumentParser(prog="python -m stele.spark.engines.jvm.build", description="Build the jar.")
    parser.add_argument(
        "--if-possible", action="store_true", help="if there is no JDK or PySpark, print a note and succeed"
    )
    parser.add_argument("--if-stale", action="store_true", help="build only if a source is newer than the jar")
    options = parser.parse_args()
    if options.if_stale and is_fresh():
        return 0
    try:
        sys.stdout.write(f"{build()}\n")
    except (JarBuildFailed, NotInstalled) as error:
        sys.stderr.write(f"The jvm engine was not built: {error}\n")
        return 0 if options.if_possible else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
