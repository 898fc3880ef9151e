"""Serializes questions and answers between this process and the worker process.

Pickle writes them, because it is fast and supports the types in records: dates, decimals, UUIDs. A malicious expression
may control the worker process, so answers are read by an unpickler that creates only values of those types. A value
that expressions do not support stays in this process. `Foreign` represents it, and may come back in an answer.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import lru_cache
from types import FunctionType
from typing import Any, Final, NamedTuple
from uuid import UUID

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import Message

from stele.errors import DataError
from stele.expressions.questions import Answer, CelQuestion, JsonataQuestion, Question, UnsignedInt

_SCHEMAS_KEPT = 64
_BASES: Final[tuple[type[Any], ...]] = (bytes, int, float, dict, list, tuple)
_VALUES: Final = (date, datetime, time, timedelta, timezone, Decimal, UUID)
_VALUE_NAMES: Final = frozenset((kind.__module__, kind.__name__) for kind in _VALUES)
_QUESTIONS: Final = (CelQuestion, JsonataQuestion, UnsignedInt)


class Foreign(NamedTuple):
    """Placeholder for a value that stayed in the calling process."""

    place: int


class Packed(NamedTuple):
    """A question as bytes, and the values that stayed in the calling process."""

    data: bytes
    foreign: list[Any]


def pack_question(question: Question) -> Packed:
    """Serialize a question. Raises `DataError` for a value that is nested too deeply or contains itself."""
    foreign: list[Any] = []

    def replace_unknown(value: Any) -> Any:
        if isinstance(value, Message):
            kind: Any = value.DESCRIPTOR
            return read_message, (_describe_files(kind), kind.full_name, value.SerializePartialToString())
        foreign.append(value)
        return Foreign, (len(foreign) - 1,)

    return Packed(_pickle_value(question, replace_unknown), foreign)


def unpack_question(data: bytes) -> Question:
    """Read a question, in the worker process."""
    question: Question = pickle.loads(data)  # noqa: S301 - from the process that started this one
    return question


def pack_answer(answer: Answer) -> bytes:
    """Serialize an answer. A value that occurs several times is written several times.

    So shared parts do not hide the size of an answer. Raises `DataError` for anything that is not a value, such as a
    function or a type.
    """

    def refuse_unknown(value: Any) -> Any:
        if isinstance(value, Foreign):
            return Foreign, (value.place,)
        raise DataError(f"the result holds a {type(value).__name__}, which is not a CEL value")

    return _pickle_value(tuple(answer), refuse_unknown, by_tree=True)


def unpack_answer(packed: Packed, data: bytes) -> Answer:
    """Read the answer to a question. Raises `DataError` for anything that is not a value."""
    try:
        return Answer(*_AnswerReader(io.BytesIO(data), packed.foreign).load())
    except (pickle.UnpicklingError, EOFError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise DataError(f"the answer cannot be read: {error}") from error


class _AnswerReader(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, foreign: list[Any]) -> None:
        super().__init__(data)
        self._foreign = foreign

    def find_class(self, module: str, name: str) -> Any:
        """Return the constructor of an allowed value (pickle calls this)."""
        if (module, name) == (Foreign.__module__, Foreign.__name__):
            return self._foreign.__getitem__
        if (module, name) in _VALUE_NAMES:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not a type of values")


class _ValueWriter(pickle.Pickler):
    """Writes basic types as pickle does. Others become a basic type, or the result of `replace_unknown`."""

    replace_unknown: Callable[[Any], Any]

    def reducer_override(self, value: Any) -> Any:
        """Return the representation of a value that is not of a basic type (pickle calls this)."""
        if isinstance(value, type | FunctionType):
            return NotImplemented if value in _MAKERS else self.replace_unknown(value)
        if isinstance(value, datetime):
            has_plain_zone = value.tzinfo is None or type(value.tzinfo) is timezone
            return NotImplemented if type(value) is datetime and has_plain_zone else _datetime_parts(value)
        if type(value) in _MAKERS:
            return NotImplemented if type(value) is not Foreign else self.replace_unknown(value)
        if isinstance(value, str):
            return str, (str.__str__(value),)
        base = next((base for base in _BASES if isinstance(value, base)), None)
        return self.replace_unknown(value) if base is None else (base, (base(value),))


def _pickle_value(value: Any, replace_unknown: Callable[[Any], Any], *, by_tree: bool = False) -> bytes:
    buffer = io.BytesIO()
    writer = _ValueWriter(buffer, pickle.HIGHEST_PROTOCOL)
    writer.replace_unknown = replace_unknown
    writer.fast = by_tree
    try:
        writer.dump(value)
    except (RecursionError, ValueError) as error:  # ValueError: a value that contains itself
        raise DataError("the value is nested too deeply") from error
    return buffer.getvalue()


def _datetime_parts(value: datetime) -> tuple[type, tuple[Any, ...]]:
    """Return a datetime with its offset from UTC instead of its zone, which may need a library."""
    offset = value.utcoffset()
    zone = None if offset is None else timezone(offset)
    return datetime, (*value.timetuple()[:6], value.microsecond, zone)


# --- Protobuf ---------------------------------------------------------------------------------------------------------


@lru_cache(_SCHEMAS_KEPT)
def _describe_files(kind: Descriptor) -> tuple[bytes, ...]:
    """Return the serialized files that a message type needs, imports first."""
    files: dict[str, bytes] = {}

    def add(file: FileDescriptor) -> None:
        if file.name not in files:
            for other in file.dependencies:
                add(other)
            files[file.name] = file.serialized_pb

    add(kind.file)
    return tuple(files.values())


def read_message(files: tuple[bytes, ...], name: str, data: bytes) -> Message:
    """Return a message, in the worker process."""
    message = _message_class(files, name)()
    message.MergeFromString(data)
    return message


@lru_cache(_SCHEMAS_KEPT)
def _message_class(files: tuple[bytes, ...], name: str) -> type[Message]:
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


_MAKERS = frozenset({*_VALUES, str, *_BASES, *_QUESTIONS, Foreign, read_message})
"""Callables that pickle may write by name."""
