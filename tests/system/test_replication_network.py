"""Replication over a network that loses every packet for a while: what neither side notices at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from tests.support.server_process import free_port, serving, wait_ready
from tests.system.linearizability.network import Link, NodeNetwork, open_network
from tests.system.test_replication import create, environ_of, register, status, uris, wait_for

pytestmark = pytest.mark.servers


@contextmanager
def serving_in(network: NodeNetwork, folder: Path, name: str) -> Iterator[str]:
    """A registry in a network namespace; its address."""
    port = free_port()
    command = [sys.executable, "-m", "stele.cli", "serve", "--host", "0.0.0.0", "--port", str(port)]
    command += ["--insecure", "--log-level", "error", "--store", f"sqlite:///{folder}/{name}.db"]
    environ = {**os.environ, **environ_of(name), "STELE_ALLOWED_HOSTS": "*"}
    with subprocess.Popen(network.wrap_command(command), cwd=folder, env=environ) as process:
        try:
            url = f"http://{network.address}:{port}"
            wait_ready(url, process)
            yield url
        finally:
            process.terminate()


def test_cut_links_between_three_registries(tmp_path: Path) -> None:
    """Two registries follow a third one; links are cut in the middle, and all agree in the end."""
    with ExitStack() as stack:
        source = stack.enter_context(
            serving("--store", f"sqlite:///{tmp_path}/s.db", folder=tmp_path, environ=environ_of("s"))
        )
        clients = [stack.enter_context(httpx.Client(base_url=source.url, timeout=30))]
        networks = [
            stack.enter_context(open_network(number, [int(source.url.rpartition(":")[2])])) for number in (0, 1)
        ]
        for network, name in zip(networks, ("left", "right"), strict=True):
            url = stack.enter_context(serving_in(network, tmp_path, name))
            clients.append(stack.enter_context(httpx.Client(base_url=url, timeout=30)))
        here, left, right = clients
        for client in (left, right):
            create(client, "from-source", "pull", source.url)
        for number in range(40):
            register(here, f"s-{number}")
            if number == 10:
                networks[0].cut(Link.STORE)
            if number == 30:
                wait_for(lambda: len(uris(right)) >= 30, True)
                networks[1].cut(Link.STORE)
        here.delete("/subjects/s-3")
        here.delete("/subjects/s-3?permanent=true")
        register(here, "s-3", '"int"')
        for network in networks:
            network.heal(Link.STORE)
        for client in (left, right):
            wait_for(lambda client=client: uris(client), uris(here), 120)  # type: ignore[misc]  # bound now
            assert status(client, "from-source").get("conflict_count", 0) == 0
            assert client.get("/subjects/s-3/versions/latest").json()["schema"] == '"int"'
