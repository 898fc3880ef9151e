"""Pravega's file of users and their permissions, and the access rules that it becomes.

A line is `user:hash:resource,PERMISSION;resource,PERMISSION`. A resource is a part of a tree below `prn::/`, such as
`prn::/namespace:ns/group:g`, with `*` as a wildcard. The hash is that of a password, as in htpasswd files.

The model: docs/explanation/access.md#pravegas-file.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import unquote

from stele.core.access import ANY, AccessRule, NamePattern, Operation, ResourceType
from stele.core.access_rule_text import check_rule
from stele.errors import InvalidRequest

_TREE: Final = re.compile(r"prn::/(?:namespace:(?P<namespace>[^/]*)(?:/(?:group:(?P<group>[^/]*)(?P<part>/.*)?|\*))?)?")
_READ: Final = (Operation.LIST, Operation.READ)
_UPDATE: Final = (*_READ, Operation.REGISTER, Operation.BIND, Operation.DELETE, Operation.CHANGE_POLICY)
_PERMISSIONS: Final = {"NONE": (), "READ": _READ, "READ_UPDATE": _UPDATE}
_NAMESPACE_ALONE: Final = {"READ": (Operation.LIST,), "READ_UPDATE": (Operation.LIST, Operation.REGISTER)}
"""Operations on a namespace without its groups, by permission: listing it, and creating groups in it."""
_ESCAPED: Final = re.compile(r"([\\?])")


class AclUser(NamedTuple):
    """A line of the file: a user, the hash of the password ('' if there is none), and the user's access rules."""

    name: str
    password_hash: str
    rules: tuple[AccessRule, ...]


def parse_acl_users(text: str) -> list[AclUser]:
    """Return the users of a file. Raises `InvalidRequest`, which names the line."""
    users = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                users.append(_parse_line(line.strip()))
            except InvalidRequest as error:
                raise InvalidRequest(f"line {number}: {error}") from None
    return users


def parse_acl_file(text: str) -> list[AccessRule]:
    """Return the rules of a file. Raises `InvalidRequest`, which names the line."""
    return [rule for user in parse_acl_users(text) for rule in user.rules]


def _parse_line(line: str) -> AclUser:
    name, separator, rest = line.partition(":")
    if not name or not separator:
        raise InvalidRequest("a line must have the form `user:hash:resource,PERMISSION;…`")
    password_hash, _, entries = rest.partition(":")
    rules = [_parse_entry(name, entry.strip()) for entry in entries.split(";") if entry.strip()]
    return AclUser(name, password_hash, tuple(rule for rule in rules if rule is not None))


def _parse_entry(user: str, entry: str) -> AccessRule | None:
    resource, separator, permission = (part.strip() for part in entry.rpartition(","))
    operations = _PERMISSIONS.get(permission)
    if not separator or operations is None:
        raise InvalidRequest(f"{entry!r} has no permission: write resource,READ or resource,READ_UPDATE")
    if not operations:
        return None
    principal = f"user:{user}"
    if resource in {"*", "prn::*", "prn::/*"}:
        return check_rule(AccessRule(principal, operations))
    tree = _TREE.fullmatch(resource)
    if tree is None:
        raise InvalidRequest(f"{resource!r} is not a resource: write `prn::/namespace:NAME/group:NAME` or a part of it")
    namespace, group = tree["namespace"], tree["group"]
    if namespace is None:
        return check_rule(AccessRule(principal, operations, itself=True))
    if group is None:
        allowed = operations if resource.endswith("/*") else _NAMESPACE_ALONE[permission]
        name = _make_glob(namespace)
        return check_rule(AccessRule(principal, allowed, True, ResourceType.NAMESPACE, name, pattern=NamePattern.GLOB))
    if "*" in namespace and namespace != ANY:
        raise InvalidRequest(
            f"{resource!r} has a wildcard in a namespace before a group: only * alone is allowed there"
        )
    return check_rule(
        AccessRule(
            principal,
            operations,
            True,
            ResourceType.SUBJECT,
            unquote(namespace),
            _make_glob(group),
            NamePattern.GLOB,
        )
    )


def _make_glob(name: str) -> str:
    return "*".join(_ESCAPED.sub(r"\\\1", unquote(part)).replace("*", r"\*") for part in name.split("*"))
