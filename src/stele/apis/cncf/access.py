"""Who may do what with groups: a hook, since the API leaves access control to implementations."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum


class Permission(Enum):
    """What callers may be allowed to do with a group."""

    READ = "read"
    WRITE = "write"


Authorizer = Callable[[str, str, Permission], bool]
"""Whether a caller, '' for nobody in particular, has a permission on the group of that id.

The ids of all groups are listed to everybody, whatever it answers: who makes a group must see which ids are taken.
"""


def everyone(actor: str, group: str, permission: Permission) -> bool:
    """The default: everybody may do everything."""
    return True
