"""Redpanda's access control entries, and the access rules that they become.

The model: docs/explanation/access.md#redpandas-entries.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stele.core.access import ANY, ANYBODY, AccessRule, NamePattern, Operation, ResourceType
from stele.core.access_rule_text import check_rule
from stele.errors import InvalidRequest
from stele.service.collections import Key

COLLECTION: Final = "redpanda.acls"

_Name = Annotated[str, Meta(min_length=1, max_length=1000)]


class Acl(msgspec.Struct, frozen=True):
    """An entry: it allows or denies a principal an operation on a subject or the registry.

    `host` and `resource` may be `*`, which matches any.
    """

    principal: _Name
    resource: _Name
    resource_type: Literal["REGISTRY", "SUBJECT"]
    operation: Literal["ALL", "READ", "WRITE", "REMOVE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER", "ALTER_CONFIGS"]
    permission: Literal["ALLOW", "DENY"]
    pattern_type: Literal["LITERAL", "PREFIXED", "PREFIX"] = "LITERAL"
    host: _Name = "*"
    principal_type: Literal["USER", "REDPANDA_ROLE"] | UnsetType = UNSET

    @property
    def key(self) -> Key:
        """Key of the entry in its collection: all its members."""
        return tuple("" if value is UNSET else value for value in msgspec.structs.astuple(self))


_ON_SUBJECTS: Final[dict[str, tuple[str, ...]]] = {
    "ALL": ("owner",),
    "READ": (Operation.READ, Operation.LIST),
    "WRITE": (Operation.REGISTER, Operation.LIST),
    "REMOVE": (Operation.DELETE, Operation.PURGE, Operation.LIST),
    "DESCRIBE": (Operation.LIST,),
    "DESCRIBE_CONFIGS": (Operation.LIST,),
    "ALTER": (Operation.CHANGE_POLICY, Operation.IMPORT),
    "ALTER_CONFIGS": (Operation.CHANGE_POLICY,),
}
_ON_REGISTRY: Final[dict[str, tuple[str, ...]]] = {
    **_ON_SUBJECTS,
    "ALL": ("admin",),
    "DESCRIBE_CONFIGS": (Operation.READ,),
    "ALTER": (Operation.CHANGE_POLICY, Operation.MANAGE_ACCESS),
}
_ROLE: Final = "RedpandaRole"


def make_rule(entry: Acl) -> AccessRule:
    """Return an entry as an access rule.

    Most entries include the right to list. An entry that denies does not deny listing, unless this is its only
    operation: a user who may not write can still list.

    Raises `InvalidRequest` for a host that is no address, and for invalid names.
    """
    is_subject = entry.resource_type == "SUBJECT"
    operations = (_ON_SUBJECTS if is_subject else _ON_REGISTRY)[entry.operation]
    if entry.permission == "DENY":
        operations = tuple(name for name in operations if name != Operation.LIST) or operations
    rule = AccessRule(
        _make_principal(entry), operations, entry.permission == "ALLOW", host=_make_host(entry.host), itself=True
    )
    if not is_subject:
        return check_rule(rule)
    is_literal = entry.pattern_type == "LITERAL"
    namespace, name = (ANY, ANY) if is_literal and entry.resource == ANY else _split_context(entry.resource)
    is_prefix = not is_literal and name != ANY
    return check_rule(
        msgspec.structs.replace(
            rule,
            resource_type=ResourceType.SUBJECT,
            namespace=namespace,
            name=name,
            pattern=NamePattern.PREFIX if is_prefix else NamePattern.LITERAL,
            itself=False,
        )
    )


def read_rules(document: bytes) -> tuple[AccessRule, ...]:
    """Return the rules of a stored entry: one, or none for an invalid entry.

    Earlier releases stored entries without validation. An invalid entry that allows is ignored. An invalid entry that
    denies applies to requests from any host.

    Raises `InvalidRequest`, `msgspec.MsgspecError`.
    """
    entry = msgspec.json.decode(document, type=Acl)
    try:
        return (make_rule(entry),)
    except InvalidRequest:
        return () if entry.permission == "ALLOW" else (make_rule(msgspec.structs.replace(entry, host=ANY)),)


def _split_context(name: str) -> tuple[str, str]:
    """Return the namespace and the unqualified name in a subject's name or in a prefix of one."""
    context, colon, bare = name.removeprefix(":.").partition(":")
    return (context, bare or ANY) if name.startswith(":.") and colon else ("", name)


def _make_principal(entry: Acl) -> str:
    kind, separator, name = entry.principal.partition(":")
    if not separator:
        kind, name = "User", entry.principal
    if kind == _ROLE or entry.principal_type == "REDPANDA_ROLE":
        return f"group:{name}"
    return ANYBODY if name == ANY else f"user:{name}"


def _make_host(host: str) -> str:
    try:
        return host if host == ANY else str(ip_address(host))
    except ValueError:
        return host
