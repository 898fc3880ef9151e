"""Requests that the server itself sends, such as to webhooks: with limits, and never into its own network.

A user who can set a URL must not reach what only the server can reach: the server itself, its neighbours, the metadata
service of its cloud. A name is resolved once, and all its addresses are checked, whatever spelling the name has. The
connection goes to a checked address, so a second answer of the name service changes nothing. Each request is checked,
also one that follows a redirect.

The URLs of a store, a key server and the key set of an identity provider come from the settings of the server's owner.
They are not checked, because they usually are in the server's own network.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final, NamedTuple

import httpx

from stele.errors import ForbiddenAddress, Unavailable
from stele.tls_verification import make_client_context

Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host, for a port. Raises OSError."""

_SECONDS: Final = 10.0
_ANSWER_BYTES: Final = 1024 * 1024
_RESOLVING_THREADS: Final = 2
_NO_REUSE: Final = httpx.Limits(max_keepalive_connections=0)
"""Disables reuse of connections: another host at the same address has another certificate."""
_EMBEDDING: Final = (IPv6Network("::/96"), IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
"""Networks whose addresses end with the IPv4 address that packets are sent to."""
_SERVICES_OF_CLOUDS: Final = (ip_network("192.0.0.0/24"), ip_network("168.63.129.16/32"))
"""Metadata services at addresses that look like public ones: Oracle's, Azure's."""


class OutgoingAnswer(NamedTuple):
    """Status, body and headers (names in lower case) of an answer, the body as it was sent."""

    status: int
    body: bytes
    headers: Mapping[str, str]


class AddressRules:
    """Decides to which addresses the server may send requests: public ones, and those of listed networks.

    Args:
        networks: Networks such as `10.1.0.0/16` that are allowed besides public addresses.
    """

    def __init__(self, networks: Collection[str] = ()) -> None:
        self._networks = [ip_network(network) for network in networks]

    def allows(self, address: Address) -> bool:
        """Return whether requests may go to an address."""
        return all(
            _is_public(target) or any(target in network for network in self._networks)
            for target in _find_targets(address)
        )


def _find_targets(address: Address) -> list[Address]:
    """Return the addresses at which packets to an address may end up: an IPv6 address may hold an IPv4 address."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None or any(address in network for network in _EMBEDDING):
        return [IPv4Address(int(address) & 0xFFFFFFFF)]
    return [address, *filter(None, [address.sixtofour, *(address.teredo or ())])]


def _is_public(address: Address) -> bool:
    is_site_local = isinstance(address, IPv6Address) and address.is_site_local
    if any(address in network for network in _SERVICES_OF_CLOUDS):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or is_site_local)


@cache
def _resolving_threads() -> ThreadPoolExecutor:
    """Return threads for name resolution only: a slow name service must not block the threads that parse schemas."""
    return ThreadPoolExecutor(_RESOLVING_THREADS, thread_name_prefix="stele-resolve")


async def resolve_host(host: str, port: int) -> list[str]:
    """Return the addresses that the system knows for a host. Raises OSError.

    The host may be a name or an address, also in decimal or hexadecimal notation.
    """
    loop = asyncio.get_running_loop()
    rows = await loop.run_in_executor(
        _resolving_threads(), lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    )
    return [str(row[4][0]) for row in rows]


async def find_address(rules: AddressRules, host: str, port: int, *, resolver: Resolver = resolve_host) -> str:
    """Return an address of a host. The rules must allow all addresses of that host.

    Raises:
        ForbiddenAddress: The rules do not allow one of its addresses.
        Unavailable: It has no address.
    """
    try:
        address_texts = await resolver(host, port)
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"{host} has no address: {error}") from None
    addresses = [ip_address(text) for text in address_texts]
    for address in addresses:
        if not rules.allows(address):
            raise ForbiddenAddress(
                f"{host} is at {address}, which is not a public address; outgoing_networks lists the networks that"
                " requests may go to"
            )
    if not addresses:
        raise Unavailable(f"{host} has no address")
    return str(addresses[0])


class NamedTlsContext(ssl.SSLContext):
    """Verifies the certificate of one host, whatever host name a broker's client passes."""

    server_name: str

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        """Wrap a socket with the name of that host; see `ssl.SSLContext`."""
        return super().wrap_socket(*arguments, **{**options, "server_hostname": self.server_name})


def make_tls_context(host: str) -> NamedTlsContext:
    """Return the TLS context for connections to a host by one of its checked addresses."""
    context = NamedTlsContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs()
    context.server_name = host
    return context


def find_trusted_certificates() -> str:
    """Return the file or folder of the certificates that the system trusts."""
    paths = ssl.get_default_verify_paths()
    return paths.cafile or paths.capath or paths.openssl_cafile


class GuardedTransport(httpx.AsyncBaseTransport):
    """Sends each request to an address of its host that the rules allow. TLS still verifies the host's certificate.

    Args:
        rules: Allowed addresses.
        resolver: Finds the addresses of a host.
        inner: Sends the request, whose URL has the address in place of the name.
    """

    def __init__(
        self, rules: AddressRules, *, resolver: Resolver = resolve_host, inner: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._rules = rules
        self._resolver = resolver
        self._inner = inner or httpx.AsyncHTTPTransport(verify=make_client_context(), trust_env=False, limits=_NO_REUSE)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request. Raises `ForbiddenAddress`, and `httpx.ConnectError` for a host without address."""
        url = request.url
        address = await self._find_address(url)
        request.extensions = {**request.extensions, "sni_hostname": url.raw_host.decode("ascii")}
        request.url = url.copy_with(host=address)  # the header `Host` was made before and stays
        try:
            return await self._inner.handle_async_request(request)
        finally:
            request.url = url

    async def _find_address(self, url: httpx.URL) -> str:
        host = url.host
        if url.scheme not in {"http", "https"} or not host:
            raise ForbiddenAddress("the URL must begin with http:// or https:// and have a host")
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            return await find_address(self._rules, host, port, resolver=self._resolver)
        except Unavailable as error:
            raise httpx.ConnectError(str(error)) from None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


class OutgoingClient:
    """Sends requests with limits of time and size. Follows no redirects and uses no proxy.

    Args:
        rules: Allowed addresses.
        seconds: Maximum duration of a request in total.
        idle_seconds: Maximum time without any data from the other side; None: the duration of the request.
        answer_bytes: Maximum length of an answer's body.
        transport: Transport for tests; None: one that enforces the rules.
    """

    def __init__(
        self,
        rules: AddressRules,
        *,
        seconds: float = _SECONDS,
        idle_seconds: float | None = None,
        answer_bytes: int = _ANSWER_BYTES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._seconds = seconds
        self._answer_bytes = answer_bytes
        self._client = httpx.AsyncClient(
            transport=transport or GuardedTransport(rules),
            timeout=seconds if idle_seconds is None else idle_seconds,
            follow_redirects=False,
            trust_env=False,
            headers={"accept-encoding": "identity"},
        )

    async def send_request(
        self, method: str, url: str, *, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> OutgoingAnswer:
        """Return the answer to a request.

        Raises:
            ForbiddenAddress: The rules do not allow an address of the host.
            Unavailable: The host does not answer, takes too long or sends too much.
        """
        try:
            async with (
                asyncio.timeout(self._seconds),
                self._client.stream(method, url, headers=headers, content=body) as response,
            ):
                parts, length = [], 0
                async for part in response.aiter_raw():
                    parts.append(part)
                    length += len(part)
                    if length > self._answer_bytes:
                        raise Unavailable(f"the answer has more than {self._answer_bytes} bytes")
                return OutgoingAnswer(response.status_code, b"".join(parts), dict(response.headers))
        except TimeoutError:
            raise Unavailable(f"no answer within {self._seconds:g} seconds") from None
        except httpx.InvalidURL as error:
            raise ForbiddenAddress(f"not a URL: {error}") from None
        except httpx.HTTPError as error:
            raise Unavailable(f"no answer: {str(error) or type(error).__name__}") from None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()
