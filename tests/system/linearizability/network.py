"""Networks of nodes: a network namespace for each, with one link to the clients and one to the store.

Each link can be cut. A store listens on 127.0.0.1 of the test. In a node's namespace, relays listen on the same ports
of its own 127.0.0.1 and pass all data over the link to the store. So the URL of the store is the same for all nodes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum

from tests.system.linearizability import relay


class Link(StrEnum):
    """A link of a node."""

    CLIENTS = "c"
    STORE = "s"


class NodeNetwork:
    """The network of one node, made by `open_network`."""

    def __init__(self, number: int) -> None:
        self._name = f"stele-{os.getpid()}-{number}"
        self._devices = {link: f"st{os.getpid()}{link}{number}" for link in Link}
        # 100.64.0.0/10 is reserved for carriers (RFC 6598): neither this machine nor a container uses it.
        block = f"100.{64 + os.getpid() % 64}.{os.getpid() // 64 % 64 * 4 + number % 4}"
        self._addresses = {Link.CLIENTS: (f"{block}.1", f"{block}.2"), Link.STORE: (f"{block}.5", f"{block}.6")}
        # While the device of a link is down, its packets would take the default route, and a gateway might answer.
        self._sinks = [(f"{block}.{first}/30", "dev", "lo", "metric", "4096") for first in (0, 4)]

    @property
    def address(self) -> str:
        """Address at which clients reach the node."""
        return self._addresses[Link.CLIENTS][1]

    @property
    def store_address(self) -> str:
        """Address at which the node reaches the store."""
        return self._addresses[Link.STORE][0]

    def wrap_command(self, command: Sequence[str]) -> list[str]:
        """Return a command that runs another one in the namespace."""
        return ["ip", "netns", "exec", self._name, *command]

    def cut(self, link: Link) -> None:
        """Lose every packet on a link."""
        _run_ip("link", "set", self._devices[link], "down")

    def heal(self, link: Link) -> None:
        """Let packets pass again."""
        _run_ip("link", "set", self._devices[link], "up")

    def add(self) -> None:
        """Create the namespace and its links. Raises AssertionError without the permission."""
        _run_ip("netns", "add", self._name)
        _run_ip("-n", self._name, "link", "set", "lo", "up")
        for sink in self._sinks:
            _run_ip("route", "add", *sink)
        for link, device in self._devices.items():
            here, there = self._addresses[link]
            _run_ip("link", "add", device, "type", "veth", "peer", "name", f"{link}0", "netns", self._name)
            _run_ip("addr", "add", f"{here}/30", "dev", device)
            _run_ip("link", "set", device, "up")
            _run_ip("-n", self._name, "addr", "add", f"{there}/30", "dev", f"{link}0")
            _run_ip("-n", self._name, "link", "set", f"{link}0", "up")

    def remove(self) -> None:
        """Delete the namespace and its links."""
        for sink in self._sinks:
            subprocess.run(["ip", "route", "del", *sink], capture_output=True, check=False)
        for device in self._devices.values():
            subprocess.run(["ip", "link", "del", device], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "del", self._name], capture_output=True, check=False)


@contextmanager
def open_network(number: int, store_ports: Sequence[int]) -> Iterator[NodeNetwork]:
    """Create the network of a node with relays to the ports of the store, and delete it at the end.

    Raises AssertionError where network namespaces are not allowed.
    """
    network = NodeNetwork(number)
    with ExitStack() as stack:
        stack.callback(network.remove)
        network.add()
        for port in store_ports:
            outside = (network.store_address, port, "127.0.0.1", port)
            inside = ("127.0.0.1", port, network.store_address, port)
            stack.enter_context(_run_relay([], outside))
            stack.enter_context(_run_relay(network.wrap_command([]), inside))
        yield network


@contextmanager
def open_relay(port: int, address: str) -> Iterator[None]:
    """Relay connections from a port of 127.0.0.1 to the same port of an address, such as a node's."""
    with _run_relay([], ("127.0.0.1", port, address, port)):
        yield


@contextmanager
def _run_relay(prefix: list[str], ends: tuple[str, int, str, int]) -> Iterator[None]:
    command = [*prefix, sys.executable, "-S", relay.__file__, *map(str, ends)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n", f"no relay {ends}"
            yield
        finally:
            process.kill()


def _run_ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, (
        f"network partitions need root, iproute2 and network namespaces: ip {' '.join(arguments)}: {done.stderr}"
    )
