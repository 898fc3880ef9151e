"""Who is asking, and whether he may: what every request passes before anything is done for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Final, NamedTuple, Protocol

import msgspec

from stele.core.access import AccessRules, Operation, Resource, subject_resource
from stele.core.model import SubjectKey
from stele.errors import Forbidden

Headers = Sequence[tuple[bytes, bytes]]


class Principal(msgspec.Struct, frozen=True):
    """A caller that proved who it is; the empty name is nobody in particular."""

    name: str = ""
    groups: frozenset[str] = frozenset()
    method: str = ""
    """How it proved that: `basic`, `key`, `jwt`, `mtls`; '' for nobody in particular."""

    @property
    def names(self) -> frozenset[str]:
        """What rules call it: `user:ann`, `group:dev`."""
        own = {f"user:{self.name}"} if self.name else set()
        return frozenset(own | {f"group:{group}" for group in self.groups})


ANONYMOUS = Principal()


class Caller(msgspec.Struct, frozen=True):
    """Who sent a request, from where, through what.

    principal   who it is
    address     where the request came from; '' when that is not known
    dialect     name of the dialect it was sent in
    agent       what the client says it is (`User-Agent`)
    request_id  of the request, as in the log of requests
    is_system   the server itself, or a program that uses the registry in its own process: it may do everything
    """

    principal: Principal = ANONYMOUS
    address: str = ""
    dialect: str = ""
    agent: str = ""
    request_id: str = ""
    is_system: bool = False


SYSTEM: Final = Caller(is_system=True)

CALLER: ContextVar[Caller] = ContextVar("stele.caller", default=SYSTEM)
"""Who sent the request that is being answered; set by the server at the start of each request."""


class PeerCertificate(NamedTuple):
    """The certificate with which a client opened a TLS connection, after its signatures were checked.

    subject  its distinguished name, most specific part first: `CN=ann,OU=dev,O=Example`
    names    its alternative names: `DNS:host.example.org`, `URI:spiffe://example.org/ann`, `email:ann@example.org`
    """

    subject: str
    names: tuple[str, ...] = ()


class PresentedCredentials(NamedTuple):
    """What a request brings along that may prove who sends it.

    headers      of the request, names in lower case
    port         to which it came
    address      from which it came
    certificate  of its connection; None: there is none
    """

    headers: Headers
    port: int = 0
    address: str = ""
    certificate: PeerCertificate | None = None


class Authenticator(Protocol):
    """Turns what a request presents into a principal; asked on every request."""

    def find_principal(self, presented: PresentedCredentials) -> Principal | None:
        """Return the caller if that takes no waiting; None: `authenticate` finds out. Raises `Unauthenticated`."""
        ...

    async def authenticate(self, presented: PresentedCredentials) -> Principal:
        """Return the caller. Raises `Unauthenticated`; `Unavailable` when that cannot be found out now."""
        ...

    def list_challenges(self, port: int) -> Sequence[bytes]:
        """Return the values of `WWW-Authenticate`: how callers of a port may prove who they are."""
        ...


class AnyoneAuthenticator:
    """The default: every caller is anonymous and nobody is asked who he is."""

    def find_principal(self, presented: PresentedCredentials) -> Principal | None:
        """See `Authenticator`."""
        return ANONYMOUS

    async def authenticate(self, presented: PresentedCredentials) -> Principal:
        """See `Authenticator`."""
        return ANONYMOUS

    def list_challenges(self, port: int) -> Sequence[bytes]:
        """See `Authenticator`."""
        return ()


class AccessControl:
    """Decides for the caller of the request that is being answered.

    Args:
        rules: The rules in force.
        super_users: Principals that may do everything, whatever the rules say (`user:root`, `group:ops`).
    """

    def __init__(self, rules: AccessRules, super_users: frozenset[str] = frozenset()) -> None:
        self.rules = rules
        self.super_users = super_users

    def allows(self, operation: Operation, resource: Resource) -> bool:
        """Return whether the caller may do that."""
        caller = CALLER.get()
        if caller.is_system:
            return True
        names = caller.principal.names
        return not names.isdisjoint(self.super_users) or self.rules.decide(names, operation, resource).allowed

    def require(self, operation: Operation, resource: Resource) -> None:
        """Raise `Forbidden` unless the caller may do that."""
        if not self.allows(operation, resource):
            who = CALLER.get().principal.name or "an anonymous caller"
            raise Forbidden(f"{who} has no right to {operation} here", operation=operation, resource=resource)

    def select_visible(self, keys: Iterable[SubjectKey]) -> list[SubjectKey]:
        """Return those of some subjects that the caller may see in lists, in their order."""
        return [key for key in keys if self.allows(Operation.LIST, subject_resource(key))]


OPEN_ACCESS: Final = AccessControl(AccessRules((), default_allow=True))
"""Where everybody may do everything."""
