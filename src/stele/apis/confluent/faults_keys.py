"""Errors of the DEK registry and their answers."""

from __future__ import annotations

from typing import Any

from stele import errors as err


class KeyNotFound(err.NotFound):
    """No key of that name, or none of that subject, algorithm and version; the name is what the answer repeats."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Key '{name}' not found")


class KeyNotRetired(err.NotFound):
    """Permanent deletion before soft deletion."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Key '{name}' was not deleted first before being permanently deleted")


class KeyRetired(err.NotFound):
    """A data key cannot come back before the key that wraps it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Key '{name}' must be undeleted first")


class KeyExists(err.AlreadyExists):
    """The key is there already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Key '{name}' already exists; use a different value")


class TooManyKeys(err.Conflict):
    """The limit of keys (setting `max_keys`) is reached."""

    def __init__(self, most: int) -> None:
        super().__init__(f"A maximum of {most} keys already exist (max_keys)")


class InvalidKey(err.Invalid):
    """A field of a key is missing or wrong."""

    def __init__(self, field: str, why: str = "") -> None:
        super().__init__(f"Invalid or missing value for field '{field}' of key{': ' if why else ''}{why}")


class KeyInUse(err.Conflict):
    """Data keys are wrapped with the key."""

    def __init__(self, name: str) -> None:
        super().__init__(f"One or more references exist to the key {name}")


class KeyGenerationFailed(err.SteleError):
    """The KMS did not wrap or unwrap a data key."""


class KeyGenerationRefused(err.Refused):
    """The KMS does not let this server use its key."""


def _plain(error: Exception, asking: Any) -> str:
    return str(error)


KEY_FAULTS = {
    KeyGenerationRefused: (403, 40370, _plain),
    KeyNotFound: (404, 40470, _plain),
    KeyNotRetired: (404, 40471, _plain),
    KeyRetired: (404, 40472, _plain),
    KeyExists: (409, 40971, _plain),
    TooManyKeys: (409, 40972, _plain),
    InvalidKey: (422, 42271, _plain),
    KeyInUse: (422, 42272, _plain),
    KeyGenerationFailed: (500, 50070, _plain),
}
"""Status, code and wording by class; see `faults`."""
