"""A node of a cluster under test: a `stele serve` process that can be killed and paused, and whose clock can be set."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import httpx
from tests.support.fork_server import Process, start_process
from tests.support.server_process import free_port
from tests.system.linearizability import shifted_clock
from tests.system.linearizability.network import NodeNetwork

START_SECONDS: Final = 120.0


class Node:
    """A node over a store. If it has a network of its own, its links can be cut.

    Args:
        number: Its index in the cluster.
        store: URL of the store.
        folder: Folder for its output, its state and the offset of its clock.
        network: Its network namespace; None: that of the test.
    """

    def __init__(self, number: int, store: str, folder: Path, network: NodeNetwork | None = None) -> None:
        self.number = number
        self.network = network
        self.output = folder / f"node-{number}.log"
        self._store = store
        self._clock = folder / f"node-{number}.clock"
        self._state_directory = folder / f"node-{number}.state"
        self._host = network.address if network else "127.0.0.1"
        self._port = free_port()
        self._process: Process | None = None
        self._was_ready = False
        self.url = f"http://{self._host}:{self._port}"
        shifted_clock.set_clock_offset(self._clock, 0)

    def start(self) -> None:
        """Start the process. Does not wait until it is ready."""
        self._was_ready = False
        arguments = [str(self._clock), "serve", "--store", self._store, "--log-level", "warning", "--insecure"]
        arguments += ["--host", self._host, "--port", str(self._port)]
        environ = {**os.environ, "STELE_STATE_DIR": str(self._state_directory)}
        with self.output.open("ab") as output:
            if not self.network:
                module = ["-m", shifted_clock.__name__]
                self._process = start_process([*module, *arguments], Path.cwd(), environ, output)
                return
            self._process = subprocess.Popen(
                self.network.wrap_command([sys.executable, shifted_clock.__file__, *arguments]),
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environ,
                start_new_session=True,
            )

    def is_ready(self) -> bool:
        """Return whether the node reports that it is ready."""
        try:
            is_ready = httpx.get(f"{self.url}/health/ready", timeout=1).status_code == 200
        except httpx.TransportError:
            return False
        self._was_ready |= is_ready
        return is_ready

    def wait_ready(self, seconds: float = START_SECONDS) -> None:
        """Wait until the node is ready. Starts it again if it gave up because the store was not reachable."""
        until = time.monotonic() + seconds
        while not self.is_ready():
            self.require_running()
            assert time.monotonic() < until, f"node {self.number} does not get ready:\n{self.read_output()}"
            time.sleep(0.05)

    def require_running(self) -> None:
        """Start a node again that gave up starting, as a supervisor does.

        Raises AssertionError when it had begun to serve and ended by itself.
        """
        if self._process is not None and self._process.poll() is not None:
            assert not self._was_ready, (
                f"node {self.number} ended by itself with {self._process.returncode}:\n{self.read_output()}"
            )
            self.start()

    def kill(self) -> None:
        """Kill the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Stop the process with SIGSTOP."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue a stopped process."""
        self._send(signal.SIGCONT)

    def shift_clock(self, seconds: float) -> None:
        """Set the offset of the node's clock."""
        shifted_clock.set_clock_offset(self._clock, seconds)

    def read_output(self) -> str:
        """Return the last 3,000 characters of the node's output."""
        return self.output.read_text(errors="replace")[-3000:]

    def _send(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, number)
