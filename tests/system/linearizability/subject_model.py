"""Model of one subject under sequential requests: the specification that histories are checked against.

Texts are numbered. Text N has a field of the type N % 4 of int, long, float, double. A text can read the data of
another one if its type is the same or a later one (Avro's promotions). The policy BACKWARD refuses the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tests.system.linearizability.history import WRONG_BODY, Action, Operation, Result

TEXTS: Final = 8
_TYPES: Final = ("int", "long", "float", "double")

SUBJECT_NOT_FOUND: Final = Result(40401)
VERSION_NOT_FOUND: Final = Result(40402)
SCHEMA_NOT_FOUND: Final = Result(40403)
SUBJECT_SOFT_DELETED: Final = Result(40404)
SUBJECT_NOT_SOFT_DELETED: Final = Result(40405)
VERSION_SOFT_DELETED: Final = Result(40406)
VERSION_NOT_SOFT_DELETED: Final = Result(40407)
INCOMPATIBLE: Final = Result(409)


class ModelVersion(NamedTuple):
    """A version of the subject."""

    number: int
    text: int
    is_deleted: bool = False


class SubjectState(NamedTuple):
    """All versions in order, and the texts that were ever purged, whose first ids no longer exist."""

    versions: tuple[ModelVersion, ...] = ()
    purged: frozenset[int] = frozenset()

    @property
    def active(self) -> tuple[ModelVersion, ...]:
        """The versions that are not soft-deleted."""
        return tuple(version for version in self.versions if not version.is_deleted)


def make_text(subject: str, number: int) -> str:
    """Return a text of the subject in the form in which the registry returns it."""
    field = {"name": "a", "type": _TYPES[number % len(_TYPES)], "doc": f"text {number}"}
    schema = {"type": "record", "name": subject.replace("-", "_"), "fields": [field]}
    return json.dumps(schema, separators=(",", ":"))


def number_of_text(subject: str, text: str) -> int:
    """Return the number of a text of `make_text`, or `WRONG_BODY` for any other text."""
    return next((number for number in range(TEXTS) if make_text(subject, number) == text), WRONG_BODY)


def apply_operation(state: SubjectState, operation: Operation) -> tuple[SubjectState, Result]:
    """Return the state after a request and the answer to it."""
    return _ACTIONS[operation.action](state, operation.argument)


def follow_operation(state: SubjectState, operation: Operation) -> SubjectState | None:
    """Return the state after an operation, or None if its answer is not that of the model."""
    after, result = apply_operation(state, operation)
    if operation.result is None or operation.result == result:
        return after
    if operation.action is Action.GET_BY_ID and operation.result == SCHEMA_NOT_FOUND:
        # The text was registered again and has another id.
        return state if operation.argument[1] in state.purged else None
    return None


def can_read(reader: int, writer: int) -> bool:
    """Return whether one text can read the data of another one."""
    return reader % len(_TYPES) >= writer % len(_TYPES)


def _register(state: SubjectState, text: int) -> tuple[SubjectState, Result]:
    for version in state.active:
        if version.text == text:
            return state, _answer(version)
    if not _fits_latest(state, text):
        return state, INCOMPATIBLE
    new_version = ModelVersion(state.versions[-1].number + 1 if state.versions else 1, text)
    others = tuple(version for version in state.versions if version.text != text)
    return state._replace(versions=(*others, new_version)), _answer(new_version)


def _look_up(state: SubjectState, text: int) -> tuple[SubjectState, Result]:
    matches = [version for version in state.active if version.text == text]
    return state, _answer(matches[0]) if matches else SCHEMA_NOT_FOUND if state.active else SUBJECT_NOT_FOUND


def _get_by_id(state: SubjectState, argument: tuple[int, int]) -> tuple[SubjectState, Result]:
    _, text = argument
    is_there = any(version.text == text for version in state.versions)
    return state, Result(200, text) if is_there else SCHEMA_NOT_FOUND


def _get_latest(state: SubjectState, _: Any) -> tuple[SubjectState, Result]:
    return state, _answer(state.active[-1]) if state.active else SUBJECT_NOT_FOUND


def _get_version(state: SubjectState, number: int) -> tuple[SubjectState, Result]:
    matches = [version for version in state.active if version.number == number]
    return state, _answer(matches[0]) if matches else VERSION_NOT_FOUND if state.active else SUBJECT_NOT_FOUND


def _list_versions(state: SubjectState, _: Any) -> tuple[SubjectState, Result]:
    return state, _list_numbers(state.active) if state.active else SUBJECT_NOT_FOUND


def _list_all_versions(state: SubjectState, _: Any) -> tuple[SubjectState, Result]:
    return state, _list_numbers(state.versions) if state.versions else SUBJECT_NOT_FOUND


def _soft_delete_version(state: SubjectState, number: int) -> tuple[SubjectState, Result]:
    version = _find_version(state, number)
    if isinstance(version, Result):
        return state, version
    if version.is_deleted:
        return state, VERSION_SOFT_DELETED
    return _mark_deleted(state, (version,)), Result(200, number)


def _purge_version(state: SubjectState, number: int) -> tuple[SubjectState, Result]:
    version = _find_version(state, number)
    if isinstance(version, Result):
        return state, version
    if not version.is_deleted:
        return state, VERSION_NOT_SOFT_DELETED
    return _remove(state, (version,)), Result(200, number)


def _soft_delete_subject(state: SubjectState, _: Any) -> tuple[SubjectState, Result]:
    if not state.active:
        return state, SUBJECT_SOFT_DELETED if state.versions else SUBJECT_NOT_FOUND
    return _mark_deleted(state, state.active), _list_numbers(state.active)


def _purge_subject(state: SubjectState, _: Any) -> tuple[SubjectState, Result]:
    if not state.versions:
        return state, SUBJECT_NOT_FOUND
    if state.active:
        return state, SUBJECT_NOT_SOFT_DELETED
    return _remove(state, state.versions), _list_numbers(state.versions)


def _check_compatibility(state: SubjectState, text: int) -> tuple[SubjectState, Result]:
    return state, Result(200, _fits_latest(state, text))


_ACTIONS: Final[Mapping[Action, Callable[[SubjectState, Any], tuple[SubjectState, Result]]]] = {
    Action.REGISTER: _register,
    Action.LOOK_UP: _look_up,
    Action.GET_BY_ID: _get_by_id,
    Action.GET_LATEST: _get_latest,
    Action.GET_VERSION: _get_version,
    Action.LIST_VERSIONS: _list_versions,
    Action.LIST_ALL_VERSIONS: _list_all_versions,
    Action.SOFT_DELETE_VERSION: _soft_delete_version,
    Action.PURGE_VERSION: _purge_version,
    Action.SOFT_DELETE_SUBJECT: _soft_delete_subject,
    Action.PURGE_SUBJECT: _purge_subject,
    Action.CHECK_COMPATIBILITY: _check_compatibility,
}


def _answer(version: ModelVersion) -> Result:
    return Result(200, (version.number, version.text))


def _list_numbers(versions: tuple[ModelVersion, ...]) -> Result:
    return Result(200, tuple(version.number for version in versions))


def _fits_latest(state: SubjectState, text: int) -> bool:
    return not state.active or can_read(text, state.active[-1].text)


def _find_version(state: SubjectState, number: int) -> ModelVersion | Result:
    if not state.versions:
        return SUBJECT_NOT_FOUND
    return next((version for version in state.versions if version.number == number), VERSION_NOT_FOUND)


def _mark_deleted(state: SubjectState, chosen: tuple[ModelVersion, ...]) -> SubjectState:
    versions = tuple(version._replace(is_deleted=True) if version in chosen else version for version in state.versions)
    return state._replace(versions=versions)


def _remove(state: SubjectState, chosen: tuple[ModelVersion, ...]) -> SubjectState:
    left = tuple(version for version in state.versions if version not in chosen)
    return SubjectState(left, state.purged | {version.text for version in chosen})
