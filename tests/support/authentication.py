"""An authenticator for tests that calls a function of the headers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stele.service.access import Headers, PresentedCredentials, Principal


class HeaderAuthenticator:
    """Authenticates requests with a function of the headers, which raises `Unauthenticated` to reject them."""

    def __init__(self, identify: Callable[[Headers], Principal]) -> None:
        self._identify = identify

    def find_known_principal(self, credentials: tuple[bytes, bytes], port: int) -> Principal | None:
        """Return None: nothing is cached; see `Authenticator`."""
        return None

    def find_principal(self, presented: PresentedCredentials) -> Principal | None:
        """Return the principal that the function finds; see `Authenticator`."""
        return self._identify(presented.headers)

    async def authenticate(self, presented: PresentedCredentials) -> Principal:
        """Return the principal that the function finds; see `Authenticator`."""
        return self._identify(presented.headers)

    def list_challenges(self, port: int) -> Sequence[bytes]:
        """Return one Basic challenge; see `Authenticator`."""
        return (b'Basic realm="test"',)
