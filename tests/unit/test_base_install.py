"""Size and contents of `pip install stele-registry` without extras: enough for what the pages promise."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
MOST_BYTES = 60_000_000
OPTIONAL = (
    "grpc_tools", "google.type", "uvloop", "cramjam", "zstandard", "opentelemetry", "pyspark", "pandas", "pyarrow",
    "numpy", "numba", "pyiceberg", "confluent_kafka", "lxml", "xmlschema", "cryptography", "celpy", "prompt_toolkit",
)  # fmt: skip
"""Modules of packages that only extras install."""
_SERVE_WITHOUT_EXTRAS = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in OPTIONAL:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
from stele.cli.offline import open_offline
from stele.client import Schema, SchemaRegistryClient, serdes
from stele.errors import NotInstalled
from stele.formats.registry import get_format
with open_offline("memory:") as transport, SchemaRegistryClient("http://here", transport=transport) as client:
    for text, kind in (('"int"', "AVRO"), ("{}", "JSON")):
        client.register(kind, Schema(text, kind))
    try:
        client.register("p", Schema('syntax = "proto3"; message M {}', "PROTOBUF"))
    except Exception as error:
        print(error)
try:
    get_format("xsd").parse(b"<schema xmlns='http://www.w3.org/2001/XMLSchema'/>", {})
except NotInstalled as error:
    print(error)
"""


def _collect_distributions() -> dict[str, Distribution]:
    """Return the packages that the distribution needs without extras, directly or not, by name."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        waiting = list(tomllib.load(file)["project"]["dependencies"])
    distributions: dict[str, Distribution] = {}
    while waiting:
        requirement = Requirement(waiting.pop())
        name = requirement.name.lower()
        if name not in distributions and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            distributions[name] = distribution(name)
            waiting += distributions[name].requires or ()
    return distributions


def test_the_base_stays_small() -> None:
    """Without extras, the files of Stele and its dependencies take at most 60 MB, without compiled bytecode."""
    sizes = {
        name: sum(
            path.stat().st_size
            for file in each.files or ()
            if (path := Path(str(file.locate()))).suffix != ".pyc" and path.is_file()
        )
        for name, each in _collect_distributions().items()
    }
    sizes["stele"] = sum(path.stat().st_size for path in (ROOT / "src").rglob("*.py"))
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:8]
    assert sum(sizes.values()) < MOST_BYTES, f"{sum(sizes.values()):,} bytes; the largest: {largest}"


def test_a_server_needs_no_extra() -> None:
    """Server, client and serdes work without optional packages. Errors of Protobuf and XSD name the extra they need."""
    code = _SERVE_WITHOUT_EXTRAS.replace("OPTIONAL", repr(OPTIONAL))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pip install 'stele-registry[protobuf]'" in done.stdout
    assert "pip install 'stele-registry[xsd]'" in done.stdout
