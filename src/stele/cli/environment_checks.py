"""Checks of what is installed: Python, Stele, its extras and their versions, Java, Spark, the clock."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from stele import __version__
from stele.cli.diagnosis import Diagnosis, judge_bad, judge_doubtful, judge_good

DISTRIBUTION: Final = "stele-registry"
EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "protobuf": ("grpc_tools", "google.type"),
    "fast": ("uvloop",),
    "snappy": ("cramjam",),
    "kafka": ("confluent_kafka",),
    "mqtt": ("paho.mqtt",),
    "nats": ("nats",),
    "amqp": ("proton",),
    "postgres": ("psycopg", "psycopg_binary"),
    "mysql": ("pymysql", "cryptography"),
    "xsd": ("xmlschema", "lxml"),
    "rules": ("celpy", "cryptography", "jsonata", "re2"),
    "access": ("jwt", "argon2", "bcrypt", "cryptography"),
    "aws": ("boto3",),
    "azure": ("azure.identity", "azure.keyvault.keys"),
    "gcp": ("google.cloud.kms",),
    "vault": ("hvac",),
    "otel": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
    "spark": ("pyspark", "pandas", "pyarrow", "numpy", "numba", "pyiceberg"),
    "connect": ("grpc_status", "grpc", "yaml"),
    "shell": ("prompt_toolkit",),
    "notebook": ("IPython",),
    "jupyter": ("jupyterlab",),
}
"""Modules of each extra. The first one is installed by no other package, so it shows whether the extra is installed."""
_NEWEST_PYTHON: Final = (3, 13)
"""The newest Python version that the tests run on."""
_JAVA: Final = 17
"""The oldest Java version that Spark 4 runs on."""
_JAVA_SECONDS: Final = 20.0
_JAR: Final = Path(__file__).parents[1] / "spark" / "engines" / "jvm" / "stele-spark.jar"
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[^\]]*\])?\s*(?P<limits>[^;]*)(?:;(?P<marker>.*))?")
_LIMIT = re.compile(r"(?P<sign>[<>=!]=|[<>])\s*(?P<version>[\d.]+)")
_RELEASED: Final = 1_767_225_600
"""2026-01-01 in Unix time. A clock that shows an earlier time is wrong, because this release is newer."""


def check_environment() -> Iterator[Diagnosis]:
    """Yield the results of all checks of this environment."""
    yield check_python()
    yield judge_good("STELE", f"Stele {__version__} in {Path(__file__).parents[1]}")
    if sys.platform == "linux":
        yield judge_good("PLATFORM", platform.platform())
    else:
        yield judge_doubtful("PLATFORM", f"{platform.platform()} is not tested", "run the server on Linux")
    yield from (check_extra(name) for name in EXTRAS)
    yield check_versions()
    yield check_java()
    yield check_spark()
    yield check_clock(time.time())


def check_python(version_info: tuple[int, ...] = tuple(sys.version_info[:3])) -> Diagnosis:
    """Check whether the tests run on this version of Python."""
    detail = f"Python {'.'.join(map(str, version_info))} in {sys.prefix}"
    if version_info[:2] > _NEWEST_PYTHON:
        newest = ".".join(map(str, _NEWEST_PYTHON))
        return judge_doubtful("PYTHON", f"{detail} is newer than {newest}, the newest tested", f"use Python {newest}")
    return judge_good("PYTHON", detail)


def check_extra(name: str) -> Diagnosis:
    """Check which packages of an extra are missing. Without its first one, the extra is not installed: no problem."""
    missing = [module for module in EXTRAS[name] if not is_installed(module)]
    code, install = f"EXTRA_{name.upper()}", f"pip install '{DISTRIBUTION}[{name}]'"
    if not missing:
        return judge_good(code, f"{name}: installed")
    if missing[0] == EXTRAS[name][0]:
        return judge_good(code, f"{name}: not installed", install)
    return judge_doubtful(code, f"{name}: {', '.join(missing)} missing", install)


def is_installed(module: str) -> bool:
    """Return whether a module can be found. This imports its parent packages, but not the module itself."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def check_versions() -> Diagnosis:
    """Check whether all installed packages have versions that Stele works with."""
    wrong = [
        f"{name} {misfit} is not {limits}"
        for name, limits in read_requirements()
        if (misfit := find_misfit(name, limits))
    ]
    if wrong:
        return judge_bad("VERSIONS", "; ".join(wrong), f"pip install --upgrade {DISTRIBUTION}, with your extras")
    return judge_good("VERSIONS", "all installed packages fit together")


def read_requirements() -> list[tuple[str, str]]:
    """Return the packages that this distribution requires, with their version limits, such as `>=4.0,<4.4`.

    Includes the packages of extras, except `dev`: their limits also apply to a package that another one installed. The
    list is empty if Stele runs from its sources.
    """
    try:
        texts = requires(DISTRIBUTION) or []
    except PackageNotFoundError:  # run from its sources
        return []
    parsed = (match for text in texts if (match := _REQUIREMENT.match(text)))
    tested = {"dev"}
    return [
        (match["name"], match["limits"].strip(" ()"))
        for match in parsed
        if not any(f"extra == '{name}'" in (match["marker"] or "").replace('"', "'") for name in tested)
    ]


def find_misfit(name: str, limits: str) -> str:
    """Return the installed version of a package if it is outside its limits, else ''."""
    try:
        installed_version = version(name)
    except PackageNotFoundError:
        return ""
    return "" if is_within(installed_version, limits) else installed_version


def is_within(release: str, limits: str) -> bool:
    """Return whether a version is within limits such as `>=2.2,<3`. Endings like `rc1` do not count."""
    numbers = parse_release(release)
    compare = {
        "==": numbers.__eq__,
        "!=": numbers.__ne__,
        ">=": numbers.__ge__,
        "<=": numbers.__le__,
        ">": numbers.__gt__,
        "<": numbers.__lt__,
    }
    return all(compare[match["sign"]](parse_release(match["version"])) for match in _LIMIT.finditer(limits))


def parse_release(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, without zeros at their end: `4.0.1rc2` gives (4, 0, 1)."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    numbers = [int(part) for part in match[0].split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def check_java() -> Diagnosis:
    """Check whether there is a Java that Spark runs on. A missing Java is an error only if PySpark is installed."""
    fix = f"install a JDK {_JAVA} or newer, then set JAVA_HOME or put java on the PATH"
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        detail = f"no java in JAVA_HOME={home}" if home else "no java on the PATH"
        if is_installed("pyspark"):
            return judge_bad("JAVA", detail, fix)
        return judge_good("JAVA", f"{detail}; only Spark needs it")
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_JAVA_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return judge_bad("JAVA", f"{java} does not run: {error}", fix)
    match = re.search(r'version "(?:1\.)?(\d+)[^"]*"', done.stderr)
    detail = f"{match[0].replace('version ', 'Java ').replace(chr(34), '')} in {java}" if match else f"{java}"
    if match and int(match[1]) < _JAVA:
        return judge_bad("JAVA", f"{detail} is too old for Spark", fix)
    return judge_good("JAVA", detail)


def check_spark() -> Diagnosis:
    """Check whether PySpark is installed, SPARK_HOME names no other Spark, and the engine `jvm` is built."""
    if not is_installed("pyspark"):
        return judge_good("SPARK", "not installed; pipelines, SQL and data reports need it", _pip_line("spark"))
    detail = f"PySpark {version('pyspark')}"
    home = os.environ.get("SPARK_HOME")
    spec = find_spec("pyspark")
    own = Path(spec.origin).parent if spec and spec.origin else None
    if home and own is not None and Path(home).resolve() != own.resolve():
        return judge_doubtful("SPARK", f"{detail}, but SPARK_HOME={home} is another Spark", "unset SPARK_HOME")
    if not _JAR.exists():
        return judge_doubtful(
            "SPARK", f"{detail} without the engine jvm: decoding is slower", "python -m stele.spark.engines.jvm.build"
        )
    return judge_good("SPARK", f"{detail} with the engine jvm")


def check_clock(now: float) -> Diagnosis:
    """Check that the clock is not earlier than this release. Times of versions and certificates depend on it."""
    detail = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    if now < _RELEASED:
        return judge_bad("CLOCK", f"{detail} is before this release was made", "set the clock, for example with NTP")
    return judge_good("CLOCK", detail)


def _pip_line(extra: str) -> str:
    return f"pip install '{DISTRIBUTION}[{extra}]'"
