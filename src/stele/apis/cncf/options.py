"""Options of one deployment of the dialect, and the hook for access control that the API leaves to implementations."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import msgspec


class GroupPermission(Enum):
    """What callers may be allowed to do with a group."""

    READ = "read"
    WRITE = "write"


Authorizer = Callable[[str, str, GroupPermission], bool]
"""Returns whether a caller ('' is nobody in particular) has a permission on the group of that id.

Everybody sees the ids of all groups, whatever it returns: who creates a group must see which ids are taken.
"""


def allow_everyone(caller: str, group: str, permission: GroupPermission) -> bool:
    """Allow everybody everything: the default."""
    return True


class CncfOptions(msgspec.Struct, frozen=True):
    """Options of the dialect.

    Attributes:
        max_request_bytes: Longest request body.
        base_url: Base URI of version URIs as clients see it; '' is the address of each request.
        authorize: Decides what callers may do with a group.
    """

    max_request_bytes: int = 16 * 1024 * 1024
    base_url: str = ""
    authorize: Authorizer = allow_everyone
