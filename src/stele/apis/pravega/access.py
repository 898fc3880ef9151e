"""Who may do what: the resources of the API and the permissions its operations ask for.

A resource is `prn::/namespace:{ns}/group:{g}`, names percent-encoded; schemas and codecs of a group are resources below
it. Whether somebody has a permission is decided elsewhere: see `Authorizer`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Protocol
from urllib.parse import quote

Resource = Callable[[str, str], str]
"""The name of a resource of a group, by namespace and group."""


class ResourcePermission(IntEnum):
    """What a caller may do with a resource; each includes the ones before it."""

    NONE = 0
    READ = 1
    READ_UPDATE = 2


class Authorizer(Protocol):
    """Decides about permissions; called on every request, and for every group of a list."""

    def __call__(self, caller: str, resource: str, permission: ResourcePermission) -> bool:
        """Whether the caller ('' is nobody in particular) has at least this permission."""
        ...


def allow_everyone(caller: str, resource: str, permission: ResourcePermission) -> bool:
    """The default: everybody may do everything."""
    return True


def namespace_resource(namespace: str) -> str:
    """The resource of a namespace; the default one has the empty name."""
    return f"prn::/namespace:{quote(namespace, safe='')}"


def group_resource(namespace: str, group: str) -> str:
    """The resource of a group."""
    return f"{namespace_resource(namespace)}/group:{quote(group, safe='')}"


def schemas_resource(namespace: str, group: str) -> str:
    """The resource of all schemas of a group."""
    return f"{group_resource(namespace, group)}/schemas:*"


def codecs_resource(namespace: str, group: str) -> str:
    """The resource of all codecs of a group."""
    return f"{group_resource(namespace, group)}/codecs:*"
