"""The caller of a request and its rights. Every request is checked here before anything is done for it."""

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
    """A caller whose identity is verified. The empty name stands for an anonymous caller."""

    name: str = ""
    groups: frozenset[str] = frozenset()
    method: str = ""
    """Method of authentication: `basic`, `key`, `jwt` or `mtls`; '' for an anonymous caller."""

    @property
    def names(self) -> frozenset[str]:
        """Names of the principal in access rules: `user:ann`, `group:dev`."""
        own = {f"user:{self.name}"} if self.name else set()
        return frozenset(own | {f"group:{group}" for group in self.groups})


ANONYMOUS = Principal()


class Caller(msgspec.Struct, frozen=True):
    """The sender of a request, with its address and the API that it used.

    principal   verified identity
    address     where the request came from; '' when that is not known
    dialect     name of the dialect it was sent in
    agent       name of the client software (`User-Agent`)
    request_id  id of the request, as in the request log
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
"""Caller of the current request. The server sets it at the start of each request."""


def make_owner() -> Owner:
    """Return the caller of the current request as the owner of what the request creates."""
    caller = CALLER.get()
    principal = caller.principal
    return Owner(principal.name, tuple(sorted(principal.groups)), caller.address, caller.is_system)


def make_caller(owner: Owner | None, dialect: str) -> Caller:
    """Return the caller that acts for an owner. Without an owner, return an anonymous caller."""
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
    """The parts of a request that may prove the identity of its sender.

    headers      headers of the request, names in lower case
    port         port to which the request came
    address      address from which it came
    certificate  certificate of its connection; None: there is none
    """

    headers: Headers
    port: int = 0
    address: str = ""
    certificate: PeerCertificate | None = None


class Authenticator(Protocol):
    """Turns the credentials of a request into a principal. Called for every request."""

    def find_known_principal(self, credentials: tuple[bytes, bytes], port: int) -> Principal | None:
        """Return the principal of credentials that were verified before and are still valid.

        None means that they are not known: call `find_principal` then.

        Args:
            credentials: Name and value of the one header of a request that has credentials.
            port: Port to which the request came.
        """
        ...

    def find_principal(self, presented: PresentedCredentials) -> Principal | None:
        """Return the principal if that needs no waiting. Raises `Unauthenticated`.

        None means that it needs waiting: call `authenticate` then.
        """
        ...

    async def authenticate(self, presented: PresentedCredentials) -> Principal:
        """Return the caller. Raises `Unauthenticated`; `Unavailable` when that cannot be found out now."""
        ...

    def list_challenges(self, port: int) -> Sequence[bytes]:
        """Return the values of `WWW-Authenticate`: the ways in which callers of a port can authenticate."""
        ...


class AccessControl:
    """Decides what the caller of the current request may do.

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
        """Whether it is certain, without checking the rules one by one, that the caller may do everything."""
        if (not self.rules.rules and self.rules.default_allow) or (caller := CALLER.get()).is_system:
            return True
        return not self.super_users.isdisjoint(caller.principal.names)

    def is_super(self, caller: Caller) -> bool:
        """Return whether a caller may do everything, whatever the rules and quotas say."""
        return caller.is_system or not self.super_users.isdisjoint(caller.principal.names)

    def allows(self, operation: Operation, resource: Resource) -> bool:
        """Return whether the caller may perform an operation on a resource."""
        caller = CALLER.get()
        if caller.is_system:
            return True
        names = caller.principal.names
        return (
            not names.isdisjoint(self.super_users)
            or self.rules.decide(names, operation, resource, caller.address).allowed
        )

    def require(self, operation: Operation, resource: Resource) -> None:
        """Raise `Forbidden` unless the caller may perform the operation; `Unauthenticated` for an anonymous caller."""
        if self.is_open or self.allows(operation, resource):
            return
        name = CALLER.get().principal.name
        if not name:
            raise Unauthenticated(f"an anonymous caller has no right to {operation} here")
        raise Forbidden(f"{name} has no right to {operation} here", operation=operation, resource=resource)

    def make_caller_key(self, principal: Principal, address: str) -> Hashable:
        """Return the properties of a caller that decisions depend on, besides the rules."""
        return (principal, address) if self.rules.has_hosts else principal

    @property
    def view_key(self) -> Hashable:
        """Cache key of lists made for the caller. It is the same for all callers that may see everything."""
        if self.is_open:
            return None
        caller = CALLER.get()
        return self.make_caller_key(caller.principal, caller.address), self.rules.revision

    def make_filter(self, operation: Operation = Operation.LIST) -> Callable[[SubjectKey], bool]:
        """Return a test of whether the caller may perform an operation on a subject, for use on many subjects.

        The test costs almost nothing when the caller may do everything.
        """
        if self.is_open:
            return _accept_all
        return lambda key: self.allows(operation, subject_resource(key))

    def can_read(self, key: SubjectKey) -> bool:
        """Return whether the caller may read a subject."""
        return self.is_open or self.allows(Operation.READ, subject_resource(key))

    def can_list_namespace(self, namespace: Namespace) -> bool:
        """Return whether the caller may see that a namespace exists.

        It may if it has that right for the namespace itself or for one of its subjects.
        """
        if self.is_open or self.allows(Operation.LIST, namespace_resource(namespace.name)):
            return True
        return any(map(self.make_filter(), (subject.key for subject in namespace.subjects.values())))

    def select_namespaces(self, namespaces: Iterable[Namespace]) -> Iterator[str]:
        """Yield the names of those namespaces that the caller may see in lists, in their order."""
        return (namespace.name for namespace in namespaces if self.can_list_namespace(namespace))

    def can_read_entry(self, entry: SchemaEntry) -> bool:
        """Return whether the caller may read the schema with an id. The right to one subject that has it is enough."""
        return self.is_open or any(self.can_read(use.subject.key) for use in list_versions_of_entry(entry))

    def can_read_content(self, content: Content) -> bool:
        """Return whether the caller may read a text: one subject that has it is enough."""
        return self.is_open or any(
            self.can_read_entry(entry) for each in list_formats_of_text(content) for entry in list_entries(each)
        )

    def require_references(self, state: State, references: Iterable[Reference]) -> None:
        """Raise `Forbidden` unless the caller may read all direct and indirect references."""
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
        """Return the subjects that the caller may see in lists, in their order."""
        return list(filter(self.make_filter(), keys))


def _accept_all(key: SubjectKey) -> bool:
    return True


OPEN_ACCESS: Final = AccessControl(AccessRules((), default_allow=True))
"""Access control that allows every caller everything."""
