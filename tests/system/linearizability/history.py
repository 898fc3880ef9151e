"""Requests of clients to a registry and the answers, with times of one monotonic clock."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

WRONG_BODY: Final = -1
"""Number of a text that no client sent."""


class Action(StrEnum):
    """A request about one subject, in the Confluent dialect."""

    REGISTER = "register"
    LOOK_UP = "look up"
    GET_BY_ID = "get by id"
    GET_LATEST = "get latest"
    GET_VERSION = "get version"
    LIST_VERSIONS = "list versions"
    LIST_ALL_VERSIONS = "list all versions"
    SOFT_DELETE_VERSION = "soft-delete version"
    PURGE_VERSION = "purge version"
    SOFT_DELETE_SUBJECT = "soft-delete subject"
    PURGE_SUBJECT = "purge subject"
    CHECK_COMPATIBILITY = "check compatibility"


WRITES: Final = frozenset(
    {
        Action.REGISTER,
        Action.SOFT_DELETE_VERSION,
        Action.PURGE_VERSION,
        Action.SOFT_DELETE_SUBJECT,
        Action.PURGE_SUBJECT,
    }
)
_IMMUTABLE: Final = frozenset({Action.GET_BY_ID, Action.GET_VERSION})
PURGES: Final = frozenset({Action.PURGE_VERSION, Action.PURGE_SUBJECT})


class Result(NamedTuple):
    """An answer: 200 or the error code, and the value.

    value    (version number, text) of a version, the text of an id, numbers of a list or a deletion, a verdict; None
             for errors
    """

    code: int
    value: Any = None


class Operation(NamedTuple):
    """One request.

    argument   number of the text, the version number, or (schema id, number of its text)
    invoked    nanoseconds, before the request was sent
    completed  nanoseconds, after the answer was read; None when the outcome is unknown
    schema_id  the id in the answer
    """

    client: int
    node: int
    action: Action
    subject: str
    argument: Any
    invoked: int
    completed: int | None = None
    result: Result | None = None
    schema_id: int | None = None


class History:
    """Operations in the order of their ends. Thread-safe."""

    def __init__(self) -> None:
        self._operations: list[Operation] = []
        self._lock = threading.Lock()

    def add(self, operation: Operation) -> None:
        """Add an operation that has ended, or whose outcome is unknown."""
        with self._lock:
            self._operations.append(operation)

    def list_operations(self) -> list[Operation]:
        """Return all operations."""
        with self._lock:
            return list(self._operations)


@contextmanager
def keep_history_of_failure(history: History, file: Path) -> Iterator[None]:
    """Write the whole history into a file when the block fails, and name the file in a note of the exception."""
    try:
        yield
    except BaseException as failure:
        write_history(history.list_operations(), file)
        failure.add_note(f"The whole history is in {file}: python -m tests.system.linearizability.check_history {file}")
        raise


def write_history(operations: list[Operation], file: Path) -> None:
    """Write operations as lines of JSON, in the order of the fields of `Operation`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.Encoder().encode_lines(operations))


def read_history(file: Path) -> list[Operation]:
    """Return the operations in a file of `write_history`."""
    rows = msgspec.json.Decoder(Operation).decode_lines(file.read_bytes())
    return [
        row._replace(
            argument=_freeze_list(row.argument),
            result=None if row.result is None else row.result._replace(value=_freeze_list(row.result.value)),
        )
        for row in rows
    ]


def _freeze_list(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def allow_lag(operations: list[Operation], seconds: float) -> list[Operation]:
    """Return the operations with successful reads of ids and exact versions moved back by `seconds`.

    The registry allows this lag for them, because they change only by a deletion. Answers of "not found" may not lag.
    """
    return [
        operation._replace(invoked=operation.invoked - int(seconds * 1e9))
        if operation.action in _IMMUTABLE and operation.result is not None and operation.result.code == 200
        else operation
        for operation in operations
    ]


def group_by_subject(operations: list[Operation]) -> dict[str, list[Operation]]:
    """Return the operations of each subject; subjects share no text, so each is linearizable by itself or not."""
    groups: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        groups[operation.subject].append(operation)
    return dict(groups)
