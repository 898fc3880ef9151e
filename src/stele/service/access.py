"""Who is asking, and whether he may: what every request passes before anything is done for it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Final, NamedTuple, Protocol

import msgspec

from stele.core.access import AccessRules, Operation, Owner, Resource, namespace_resource, subject_resource
from stele.core.model import Content, Namespace, Reference, SchemaEntry, SubjectKey
from stele.core.state import State
from stele.core.traversal import find_version, list_entries, list_formats_of_text, list_versions_of_entry
from stele.errors import Forbidden, Unauthenticated

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


def make_owner() -> Owner:
    """Return the caller of the request that is being answered as the owner of what it makes."""
    caller = CALLER.get()
    principal = caller.principal
    return Owner(principal.name, tuple(sorted(principal.groups)), caller.address, caller.is_system)


def make_caller(owner: Owner | None, dialect: str) -> Caller:
    """Return who acts for an owner; for what has none, nobody in particular does."""
    if owner is None:
        return Caller(dialect=dialect)
    return Caller(Principal(owner.name, frozenset(owner.groups)), owner.address, dialect, is_system=owner.is_system)


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

    def find_known_principal(self, credentials: tuple[bytes, bytes], port: int) -> Principal | None:
        """Return who sent credentials that were verified before and still hold; None: `find_principal` finds out.

        Args:
            credentials: Name and value of the one header of a request that has credentials.
            port: To which the request came.
        """
        ...

    def find_principal(self, presented: PresentedCredentials) -> Principal | None:
        """Return the caller if that takes no waiting; None: `authenticate` finds out. Raises `Unauthenticated`."""
        ...

    async def authenticate(self, presented: PresentedCredentials) -> Principal:
        """Return the caller. Raises `Unauthenticated`; `Unavailable` when that cannot be found out now."""
        ...

    def list_challenges(self, port: int) -> Sequence[bytes]:
        """Return the values of `WWW-Authenticate`: how callers of a port may prove who they are."""
        ...


class AccessControl:
    """Decides for the caller of the request that is being answered.

    Args:
        rules: The rules in force.
        super_users: Principals that may do everything, whatever the rules say (`user:root`, `group:ops`).
    """

    def __init__(self, rules: AccessRules, super_users: frozenset[str] = frozenset()) -> None:
        self._rules = rules
        self.super_users = super_users

    @property
    def rules(self) -> AccessRules:
        """The rules in force."""
        return self._rules

    @property
    def is_open(self) -> bool:
        """Whether the caller may do everything, as far as can be told without a look at the rules one by one."""
        if (not self.rules.rules and self.rules.default_allow) or (caller := CALLER.get()).is_system:
            return True
        return not self.super_users.isdisjoint(caller.principal.names)

    def is_super(self, caller: Caller) -> bool:
        """Whether a caller may do everything, whatever the rules and quotas say."""
        return caller.is_system or not self.super_users.isdisjoint(caller.principal.names)

    def allows(self, operation: Operation, resource: Resource) -> bool:
        """Return whether the caller may do that."""
        caller = CALLER.get()
        if caller.is_system:
            return True
        names = caller.principal.names
        return (
            not names.isdisjoint(self.super_users)
            or self.rules.decide(names, operation, resource, caller.address).allowed
        )

    def require(self, operation: Operation, resource: Resource) -> None:
        """Raise `Forbidden` unless the caller may do that; `Unauthenticated` when nobody in particular asks."""
        if self.is_open or self.allows(operation, resource):
            return
        name = CALLER.get().principal.name
        if not name:
            raise Unauthenticated(f"an anonymous caller has no right to {operation} here")
        raise Forbidden(f"{name} has no right to {operation} here", operation=operation, resource=resource)

    def make_caller_key(self, principal: Principal, address: str) -> Hashable:
        """Return what decisions for a caller depend on, besides the rules."""
        return (principal, address) if self.rules.has_hosts else principal

    @property
    def view_key(self) -> Hashable:
        """What a list made for the caller is kept under: the same for all who may see everything."""
        if self.is_open:
            return None
        caller = CALLER.get()
        return self.make_caller_key(caller.principal, caller.address), self.rules.revision

    def make_filter(self, operation: Operation = Operation.LIST) -> Callable[[SubjectKey], bool]:
        """Return what tells of each of many subjects whether the caller may do that; it costs nothing where all may."""
        if self.is_open:
            return _accept_all
        return lambda key: self.allows(operation, subject_resource(key))

    def can_read(self, key: SubjectKey) -> bool:
        """Return whether the caller may read a subject."""
        return self.is_open or self.allows(Operation.READ, subject_resource(key))

    def can_list_namespace(self, namespace: Namespace) -> bool:
        """Return whether the caller may see that a namespace is there: by its own right or by that to a subject."""
        if self.is_open or self.allows(Operation.LIST, namespace_resource(namespace.name)):
            return True
        return any(map(self.make_filter(), (subject.key for subject in namespace.subjects.values())))

    def select_namespaces(self, namespaces: Iterable[Namespace]) -> Iterator[str]:
        """Yield the names of those namespaces that the caller may see in lists, in their order."""
        return (namespace.name for namespace in namespaces if self.can_list_namespace(namespace))

    def can_read_entry(self, entry: SchemaEntry) -> bool:
        """Return whether the caller may read what is behind a schema id: one subject that has it is enough."""
        return self.is_open or any(self.can_read(use.subject.key) for use in list_versions_of_entry(entry))

    def can_read_content(self, content: Content) -> bool:
        """Return whether the caller may read a text: one subject that has it is enough."""
        return self.is_open or any(
            self.can_read_entry(entry) for each in list_formats_of_text(content) for entry in list_entries(each)
        )

    def require_references(self, state: State, references: Iterable[Reference]) -> None:
        """Raise `Forbidden` unless the caller may read all that references lead to, directly or through others."""
        if self.is_open:
            return
        waiting, seen = list(references), set[Reference]()
        while waiting:
            reference = waiting.pop()
            if reference in seen:
                continue
            seen.add(reference)
            self.require(Operation.READ, subject_resource(reference.key))
            subject = state.find_subject(reference.key)
            version = None if subject is None else find_version(subject, reference.version_number)
            if version is not None:
                waiting.extend(version.schema.attachments.references)

    def select_visible(self, keys: Iterable[SubjectKey]) -> list[SubjectKey]:
        """Return those of some subjects that the caller may see in lists, in their order."""
        return list(filter(self.make_filter(), keys))


def _accept_all(key: SubjectKey) -> bool:
    return True


OPEN_ACCESS: Final = AccessControl(AccessRules((), default_allow=True))
"""Where everybody may do everything."""
