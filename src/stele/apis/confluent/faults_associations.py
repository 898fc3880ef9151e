"""Errors of associations and their answers."""

from __future__ import annotations

from typing import Any

from stele import errors as err


class NoAssociation(err.BindingNotFound):
    """The resource has no association."""

    def __init__(self, resource: str) -> None:
        super().__init__(f"Association for '{resource}' not found.")


class TooManyAssociations(err.Conflict):
    """The limit of associations (setting `max_associations`) is reached."""

    def __init__(self, most: int) -> None:
        super().__init__(f"A maximum of {most} associations already exist (max_associations)")


class ResourceTaken(err.AlreadyExists):
    """The resource has another association of that type."""

    def __init__(self, association_type: str, resource: str) -> None:
        super().__init__(f"An association of type '{association_type}' already exists for resource '{resource}'")


class SubjectTaken(err.Conflict):
    """The subject has associations, where none may be."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"An association already exists for subject '{subject}'")


class SubjectOwned(err.Conflict):
    """The subject has a strong association, which shares it with nobody."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"A strong association already exists for subject '{subject}'")


class NoActiveVersion(err.Conflict):
    """An association needs a live version of its subject."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"No active (non-deleted) version exists for subject '{subject}'")


class Frozen(err.Conflict):
    """A frozen association does not change, and ends only together with its subject."""

    def __init__(self, association_type: str, subject: str) -> None:
        super().__init__(f"The association of type  '{association_type}' is frozen for subject '{subject}'")


class InvalidAssociation(err.Invalid):
    """A property of an association is missing or wrong."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"The association specified an invalid value for property: '{name}', detail: {why}")


class BatchTooLarge(err.Invalid):
    """More requests in one batch than are taken."""

    def __init__(self) -> None:
        super().__init__("Associations batchMutate request exceeded a configured limit")


class OwnedTarget(err.Refused):
    """A subject with a strong association belongs to its resource: no other schema may depend on it."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"Subject {subject} has a strong association and cannot be referenced by another subject")


def _plain(error: Exception, asking: Any) -> str:
    return str(error)


ASSOCIATION_FAULTS = {
    NoAssociation: (404, 40410, _plain),
    TooManyAssociations: (409, 40902, _plain),
    ResourceTaken: (409, 40903, _plain),
    SubjectTaken: (409, 40904, _plain),
    SubjectOwned: (409, 40905, _plain),
    NoActiveVersion: (409, 40907, _plain),
    Frozen: (409, 40908, _plain),
    OwnedTarget: (422, 42205, _plain),
    InvalidAssociation: (422, 42212, _plain),
    BatchTooLarge: (422, 42213, _plain),
}
"""Status, code and wording by class; see `faults`."""
