"""Options of one deployment of the dialect, and its access control: resources, and permissions that operations require.

A resource is `prn::/namespace:{ns}/group:{g}`, names percent-encoded; schemas and codecs of a group are resources below
it. An `Authorizer` decides who has which permission.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Protocol
from urllib.parse import quote

import msgspec

Resource = Callable[[str, str], str]
"""Returns the name of a resource from the names of a namespace and a group."""


class ResourcePermission(IntEnum):
    """Permission of a caller on a resource; each includes the ones before it."""

    NONE = 0
    READ = 1
    READ_UPDATE = 2


class Authorizer(Protocol):
    """Decides about permissions; called in every request, and for every group of a list."""

    def __call__(self, caller: str, resource: str, permission: ResourcePermission) -> bool:
        """Return whether a caller ('' is nobody in particular) has at least this permission."""
        ...


def allow_everyone(caller: str, resource: str, permission: ResourcePermission) -> bool:
    """Allow everybody everything: the default."""
    return True


def namespace_resource(namespace: str) -> str:
    """Return the resource of a namespace; the default one has the empty name."""
    return f"prn::/namespace:{quote(namespace, safe='')}"


def group_resource(namespace: str, group: str) -> str:
    """Return the resource of a group."""
    return f"{namespace_resource(namespace)}/group:{quote(group, safe='')}"


def schemas_resource(namespace: str, group: str) -> str:
    """Return the resource of all schemas of a group."""
    return f"{group_resource(namespace, group)}/schemas:*"


def codecs_resource(namespace: str, group: str) -> str:
    """Return the resource of all codecs of a group."""
    return f"{group_resource(namespace, group)}/codecs:*"


class PravegaOptions(msgspec.Struct, frozen=True):
    """Options of the dialect.

    Attributes:
        max_request_bytes: Longest request body.
        authorize: Decides what callers may do.
    """

    max_request_bytes: int = 16 * 1024 * 1024
    authorize: Authorizer = allow_everyone
