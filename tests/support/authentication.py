"""An authenticator of one test: a function of the headers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stele.service.access import Headers, PresentedCredentials, Principal


class HeaderAuthenticator:
    """Asks a function who sends a request with these headers; the function raises `Unauthenticated`."""

    def __init__(self, identify: Callable[[Headers], Principal]) -> None:
        self._identify = identify

    def find_known_principal(self, credentials: tuple[bytes, bytes], port: int) -> Principal | None:
        """See `Authenticator`."""
        return None

    def find_principal(self, presented: PresentedCredentials) -> Principal | None:
        """See `Authenticator`."""
        return self._identify(presented.headers)

    async def authenticate(self, presented: PresentedCredentials) -> Principal:
        """See `Authenticator`."""
        return self._identify(presented.headers)

    def list_challenges(self, port: int) -> Sequence[bytes]:
        """See `Authenticator`."""
        return (b'Basic realm="test"',)
