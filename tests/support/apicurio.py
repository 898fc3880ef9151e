"""A real Apicurio registry with its data in memory, from Maven Central."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from tests.support.java_options import LIGHT
from tests.support.server_process import free_port

_START = 240.0  # seconds it may take to answer
_DELETIONS = ("artifact", "artifact-version", "group")


@contextmanager
def run_apicurio(folder: Path, version: str) -> Iterator[str]:
    """Run a registry with its files in a folder, and yield its URL.

    Deletions are enabled. Releases after 2 disable them by default.
    """
    archive = _download(folder, version)
    subprocess.run(["tar", "-xzf", archive, "-C", folder], timeout=600, check=True)  # Python 3.11.2 has no safe way
    archive.unlink()
    port = free_port()
    words = ["java", "-Xmx512m", *LIGHT, f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1"]
    words += [f"-Dapicurio.rest.deletion.{what}.enabled=true" for what in _DELETIONS]
    with (folder / "log").open("wb") as log:
        runner = f"apicurio-registry-app-{version}-runner.jar"
        server = subprocess.Popen([*words, "-jar", runner], cwd=folder, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(url, server, folder / "log")
        yield url
    finally:
        server.kill()
        server.wait()


def _download(folder: Path, version: str) -> Path:
    assert shutil.which("mvn"), "Maven is missing: these tests need `mvn` and a JDK of at least 17"
    artifact = f"io.apicurio:apicurio-registry-app:{version}:tar.gz:all"
    copy = ["dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    done = subprocess.run(["mvn", "-q", "-B", *copy], cwd=folder, capture_output=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout.decode()
    return folder / f"apicurio-registry-app-{version}-all.tar.gz"


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START
    while True:
        try:
            if httpx.get(f"{url}/apis/ccompat/v7/subjects", timeout=60).status_code == 200:
                return
        except httpx.TransportError:
            pass
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.5)
