"""Refuses requests that a page of another site makes a browser send to this server.

A page may send requests anywhere, also to a server that only its reader's machine can reach. Two checks stop it. First,
a request that changes something names the page's origin, which must be this server's or one in the settings. Second,
the name of a page may point to this server's address afterwards (DNS rebinding): such a page sends that name as `Host`,
which must be known.

Source: docs/protocols/http.md#pages-of-other-sites
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from stele.errors import ForeignSite

_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_MOST_KNOWN: Final = 256
"""Number of values of `Host` whose result is cached."""


class SiteGuard:
    """Checks requests by their `Host` and `Origin`.

    Args:
        hosts: Names this server answers to, besides addresses and names without a dot: `registry.example.org`,
            `*.example.org` for every name below, `*` for every name. If empty, every name is accepted, except on
            connections to a loopback address, where no further name is.
        origins: Origins whose pages may send requests that change something; `*` is every one.
    """

    def __init__(self, hosts: Collection[str], origins: Collection[str]) -> None:
        self._names = frozenset(name.lower() for name in hosts if not name.startswith("*"))
        self._endings = tuple(name[1:].lower() for name in hosts if name.startswith("*"))
        self._has_hosts = bool(hosts)
        self._origins = frozenset(origins)
        self._known: dict[tuple[bytes, str], bool] = {}

    def find_refusal(self, method: str, headers: Sequence[tuple[bytes, bytes]], address: str) -> ForeignSite | None:
        """Return why a request is refused, None if it is not.

        Args:
            method: Method of the request.
            headers: Headers of the request, names in lower case.
            address: Address of this server to which the connection goes.
        """
        host = origin = b""
        for name, value in headers:
            if name == b"host":
                host = value
            elif name == b"origin":
                origin = value
        if not self.knows_host(host, address):
            site = host.decode("ascii", "replace")
            return ForeignSite(f"'{site}' is not a name of this server; the setting allowed_hosts lists its names")
        if origin and method not in _SAFE_METHODS and not self._is_own_origin(origin.decode("latin-1"), host):
            site = origin.decode("ascii", "replace")
            return ForeignSite(
                f"pages of '{site}' may not change anything here; the setting cors_origins lists those that may"
            )
        return None

    def knows_host(self, host: bytes, address: str) -> bool:
        """Return whether a value of `Host` is a name of this server, for connections to an address of it."""
        verdict = self._known.get((host, address))
        if verdict is None:
            verdict = self._judge_host(host.decode("latin-1").lower(), address)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[host, address] = verdict
        return verdict

    def _judge_host(self, host: str, address: str) -> bool:
        if not host:
            return True  # browsers always send it
        try:
            name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
        except ValueError:
            return False
        if "." not in name or name.endswith(".localhost") or _is_address(name) or name in self._names:
            return True  # no DNS entry can point a name without a dot, such as localhost, to another address
        if any(name.endswith(ending) for ending in self._endings):
            return True
        return not self._has_hosts and not _is_loopback(address)

    def _is_own_origin(self, origin: str, host: bytes) -> bool:
        if "*" in self._origins or origin in self._origins:
            return True
        return is_same_origin(origin, host)


def is_same_origin(origin: str, host: bytes) -> bool:
    """Return whether a value of `Origin` names the server that a value of `Host` names."""
    scheme, _, place = origin.partition("://")
    default = {"http": ":80", "https": ":443"}.get(scheme)
    own = host.decode("latin-1").lower()
    return default is not None and place.removesuffix(default) == own.removesuffix(default)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(address: str) -> bool:
    return _is_address(address) and ip_address(address).is_loopback
