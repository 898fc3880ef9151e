"""The interfaces between the pure core and its environment: schema formats and the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar, runtime_checkable

import msgspec

from stele.core.findings import Finding

if TYPE_CHECKING:
    import pyarrow as pa

# --- formats --------------------------------------------------------------------------------------------------------


class TextForm(Enum):
    """The forms in which a parsed schema can be printed. Each is stable for ever."""

    PRINTED = "printed"
    """Same meaning, same member order, no insignificant white space: what the Confluent dialect stores and returns."""
    NORMALIZED = "normalized"
    """PRINTED, with everything sorted whose order has no meaning: equal for schemas that differ only in style."""
    CANONICAL = "canonical"
    """Only the parts that a reader of data needs (Avro: parsing canonical form). Fingerprints use it."""

    __hash__ = object.__hash__  # Members are parts of cache keys, and that of `Enum` is slow Python code.


class Field(msgspec.Struct, frozen=True):
    """One field of a schema, at any depth.

    path is dotted from the root (`address.city`; `[]` enters an array, `{}` a map); type is the format's short word;
    default is JSON text or None when there is none. optional is whether data may lack the field or have null for it;
    None where the format does not say.
    """

    path: str
    type: str
    default: str | None = None
    doc: str = ""
    optional: bool | None = None


@runtime_checkable
class Parsed(Protocol):
    """A parsed schema: opaque except to its own format, immutable, safe to share between threads.

    If its memory differs much from what its text suggests, an attribute `memory_size` has the number of bytes, so that
    caches can count it.
    """

    @property
    def type_name(self) -> str:
        """Full name of the top type (Avro full name, first Protobuf message, JSON title), or ''."""
        ...


class Codec(Protocol):
    """Encodes, decodes and validates data of one schema. Payload only: no frame, no schema id."""

    def encode(self, datum: Any) -> bytes:
        """Return the bytes of one datum. Raises `EncodeError`."""
        ...

    def decode(self, data: bytes) -> Any:
        """Return one datum, resolved to a reader's schema if there is one.

        Raises `DecodeError`, also when bytes are left over.
        """
        ...

    def validate(self, datum: Any) -> list[str]:
        """Return why the datum is invalid, one sentence each with its path; empty when it is valid."""
        ...

    def example(self) -> Any:
        """Return a small valid datum. Raises `EncodeError` or `Invalid` when none is found."""
        ...


P = TypeVar("P", bound=Parsed)


class Format(Protocol[P]):
    """One schema language. Loaded from the entry point group `stele.formats`, also the built-in ones."""

    @property
    def name(self) -> str:
        """Lower-case name, unique: `avro`, `protobuf`, `json`, `opaque` …."""
        ...

    @property
    def media_types(self) -> Sequence[str]:
        """Media types of schema documents of this format, preferred one first."""
        ...

    @property
    def rulesets(self) -> Sequence[str]:
        """Full names (`name@1`) of every version of the compatibility rulesets; the name of the first is the default.

        Empty if the format cannot compare schemas. A name without a version counts as version 1.
        `stele.formats.rulesets` says what a format guarantees about names and versions, and how.
        """
        ...

    def parse(self, text: bytes, references: Mapping[str, bytes], *, name: str = "", strict: bool = True) -> P:
        """Parse one document.

        references maps reference names (Avro full name, import path, `$ref` target) to document texts, dependencies
        before dependants, the transitive closure flattened. name is the document's own file name, for imports.
        strict=False accepts texts that an older registry stored (bad names, bad defaults) as long as they have a
        meaning. A text that strict=True accepts has the same parsed form either way. Raises only `MalformedSchema` with
        the position and `UnresolvedReference`, in bounded time.
        """
        ...

    def canonical(self, parsed: P, form: TextForm) -> bytes:
        """Return the schema printed in one of its stable texts."""
        ...

    def render(self, parsed: P, style: str) -> str | None:
        """Return another form (`resolved`, `serialized`, `ignore_extensions` …); None for a style unknown here."""
        ...

    def fingerprints(self, parsed: P) -> Mapping[str, bytes]:
        """Return digests of the CANONICAL form by kind (`rabin` is 8 bytes big-endian, `md5` 16, `sha256` 32)."""
        ...

    def check(self, reader: P, writer: P, ruleset: str = "") -> list[Finding]:
        """Return findings on whether the reader's schema can read data of the writer's: it can if none `breaks`.

        ruleset is a full name, a bare name for its newest version, or '' for that of the default. Raises
        `UnknownRuleset`.
        """
        ...

    def fields(self, parsed: P) -> list[Field]:
        """Return all fields, depth first, for search, pages and lint."""
        ...

    def arrow_schema(self, parsed: P) -> pa.Schema:
        """Return the Arrow schema of data of this schema. Raises `NotInstalled` without pyarrow."""
        ...

    def codec(self, writer: P, reader: P | None = None) -> Codec:
        """Return a codec for data of writer, resolved to reader on decoding when given.

        Raises `Invalid` for a schema that describes no data (no message, no struct).
        """
        ...


# --- the log --------------------------------------------------------------------------------------------------------


class LogEntry(NamedTuple):
    """One record of the log: seq counts from 1 without gaps."""

    seq: int
    record: bytes


make_entry: Final[Callable[[Sequence[Any]], LogEntry]] = partial(tuple.__new__, LogEntry)
"""Make an entry from a pair. `LogEntry._make` takes half as long again, because it is not implemented in C."""


class Log(Protocol):
    """A totally ordered, durable sequence of records. A driver knows no rules; it only keeps order and bytes.

    Every method may raise `StoreError` or `StoreTimeout`. Drivers have no checksums: `stele.storage.chained_log` adds
    them to every driver.
    """

    async def append(self, expected: int, records: Sequence[bytes]) -> bool:
        """Write records at expected+1 … atomically and durably. Return False, and write nothing, if the head has moved.

        Raises `RecordsTooLarge`, and writes nothing, if the store accepts no write of that size.
        """
        ...

    async def tail(self, after: int, limit: int) -> Sequence[LogEntry]:
        """Return at most limit entries with seq > after, in order and without gaps."""
        ...

    async def head(self) -> int:
        """Return the sequence number of the last durable record, 0 when empty: a linearizable barrier."""
        ...

    @property
    def notices_at_once(self) -> bool:
        """Whether `has_changed` knows of every finished append of all processes; else it may be late."""
        ...

    def has_changed(self) -> bool:
        """Return a cheap, synchronous hint: True means that another process may have appended since the last call.

        Never falsely negative if the log `notices_at_once`; otherwise only `head` and `tail` are reliable.
        """
        ...

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Give writers of several processes fair turns. Correctness never depends on it."""
        ...

    async def wait(self, after: int, timeout: float) -> None:  # noqa: ASYNC109 - part of the driver's contract
        """Wait until the head may be past `after`, at most timeout seconds."""
        ...

    async def save_snapshot(self, seq: int, data: bytes) -> None:
        """Keep a state snapshot taken after record seq; older ones may be dropped."""
        ...

    async def load_snapshot(self) -> tuple[int, bytes | memoryview] | None:
        """Return the newest snapshot as (seq, data), or None. A view may be decoded once (`snapshot.load_state`)."""
        ...

    async def erase(self, seq: int, record: bytes) -> None:
        """Overwrite the record at seq with a redacted one, from which purged texts were removed; order and seq stay."""
        ...

    async def require_writable(self) -> None:
        """Raise the `StoreError` that an append would raise now, as far as that can be known without one."""
        ...

    def may_lack_records(self) -> bool:
        """Return whether acknowledged records may be missing in this log, because it is a copy or was restored."""
        ...

    async def expect_lost_records(self) -> None:
        """Let `may_lack_records` be true until the next append: the log was restored, its original may have gone on."""
        ...

    async def close(self) -> None:
        """Release files and threads. The stored log is not deleted."""
        ...
