"""Java clients of the Confluent API that Maven Central has, unmodified; their stories are in java/src.

Confluent's own client and serializers (io.confluent:*) are not there. Of what is: Spring Cloud's client, and that of
the Hermes broker, which knows only the members answers had before release 8.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.running import serving

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1200)]
PROJECT = Path(__file__).parent / "java"
SECONDS = 580  # the first run downloads what the project needs


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled project, in a folder of its own."""
    assert shutil.which("mvn"), "Maven is missing: these tests need `mvn` and a JDK of at least 17"
    folder = tmp_path_factory.mktemp("java") / "project"
    shutil.copytree(PROJECT, folder)
    maven(folder, "compile")
    return folder


def maven(folder: Path, *arguments: str) -> None:
    """Run Maven; what it printed is shown when it fails."""
    command = ["mvn", "-q", "-B", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-6000:]}\n{done.stderr[-2000:]}"


@pytest.mark.parametrize(("client", "profile"), [("spring", "8.1"), ("spring", "7.9"), ("hermes", "7.9")])
def test_client(client: str, profile: str, project: Path, tmp_path: Path) -> None:
    """A client registers, evolves, encodes, decodes and is refused what is incompatible; then its subject goes."""
    with serving("--store", "memory:", "--confluent-profile", profile, folder=tmp_path) as server:
        maven(project, "exec:java", "-Dexec.mainClass=interop.Main", f"-Dexec.args={client} {server.url}")
