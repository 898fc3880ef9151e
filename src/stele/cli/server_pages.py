"""The pages of a server beside its APIs: its index, its probes, its metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from stele.cli.connect import Connection
from stele.errors import InvalidRequest, RegistryUnreachable

if TYPE_CHECKING:
    import httpx

_JSON: Final = "application/json"


class IndexedName(msgspec.Struct, frozen=True):
    """An API in the index of a server."""

    name: str


class IndexPage(msgspec.Struct, frozen=True):
    """The fields of a server's index that commands read. Other registries have none of them."""

    version: str = ""
    status: str = ""
    reason: str = ""
    store: str = ""
    counts: dict[str, int] = {}
    dialects: list[IndexedName] = []


class ServerPages:
    """Asks one server of a registry: the first of its addresses that answers.

    Raises `RegistryUnreachable` if none does.
    """

    def __init__(self, client: httpx.Client, urls: tuple[str, ...]) -> None:
        import httpx

        self._client = client
        faults = []
        for url in urls:
            self.url = url.rstrip("/")
            try:
                self.first = self.get_page("/health/live")
            except httpx.InvalidURL as error:
                raise InvalidRequest(f"{url!r} is not the address of a registry: {error}") from None
            except httpx.UnsupportedProtocol:
                raise InvalidRequest(
                    f"{url!r} is not the address of a registry: it must have the form http(s)://host[:port][/path]"
                ) from None
            except httpx.RequestError as error:
                faults.append(f"{self.url}: {str(error) or type(error).__name__}")
            else:
                return
        raise RegistryUnreachable(f"no registry answers at {'; '.join(faults)}")

    def get_page(self, path: str, accept: str = _JSON) -> httpx.Response:
        """Return the answer to GET, whatever its status. Raises `httpx.RequestError`."""
        return self._client.get(self.url + path, headers={"accept": accept})

    def read_index(self) -> IndexPage:
        """Return the index; an empty one if the server has none."""
        return decode_page(self.get_page("/").content, IndexPage) or IndexPage()


def decode_page(body: bytes, kind: Any) -> Any:
    """Return a JSON page as a value of type `kind`, or None for anything else."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError:
        return None


@contextmanager
def open_server_pages(connection: Connection) -> Iterator[ServerPages]:
    """Yield the pages of a registry's server. Raises `RegistryUnreachable`, `InvalidRequest`."""
    import httpx

    with connection.open_http() as client:
        try:
            yield ServerPages(client, connection.urls)
        except httpx.RequestError as error:
            raise RegistryUnreachable(
                f"the registry stopped answering: {str(error) or type(error).__name__}"
            ) from error
