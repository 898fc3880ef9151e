"""The doors through which the pure core meets the world: schema formats above it, the log below it."""

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
    """The texts a parsed schema can be printed as; each is stable for ever."""

    PRINTED = "printed"
    """Same meaning, same member order, no insignificant white space: what the Confluent dialect stores and returns."""
    NORMALIZED = "normalized"
    """PRINTED, and everything whose order has no meaning is sorted: equal for schemas that differ in style only."""
    CANONICAL = "canonical"
    """Only what a reader of data needs (Avro: parsing canonical form). Fingerprints are made of it."""

    __hash__ = object.__hash__  # Members are parts of keys of caches; the one of `Enum` is written in Python.


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
    """A schema after parsing: opaque to everyone but its own format, immutable, safe to share between threads.

    One that takes more or less memory than its text lets expect says how many bytes in an attribute `memory_size`, so
    that caches can count it.
    """

    @property
    def type_name(self) -> str:
        """Full name of the top type (Avro full name, first Protobuf message, JSON title), or ''."""
        ...


class Codec(Protocol):
    """Encodes, decodes and validates single data of one schema. Payload only: no frame, no schema id."""

    def encode(self, datum: Any) -> bytes:
        """Bytes of one datum. Raises `EncodeError`."""
        ...

    def decode(self, data: bytes) -> Any:
        """Return one datum, resolved to a reader's schema if there is one.

        Raises `DecodeError`, also when bytes are left over.
        """
        ...

    def validate(self, datum: Any) -> list[str]:
        """Why the datum does not fit, one sentence each with its path; empty when it fits."""
        ...

    def example(self) -> Any:
        """Return a small datum that fits. Raises `EncodeError` or `Invalid` when none is found."""
        ...


P = TypeVar("P", bound=Parsed)


class Format(Protocol[P]):
    """One schema language. Entry point group `stele.formats`; the built-in ones come in by the same door."""

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

        Empty: nothing can be compared. A name without a version counts as version 1. What a format promises about
        names and versions, and how to keep that: `stele.formats.rulesets`.
        """
        ...

    def parse(self, text: bytes, references: Mapping[str, bytes], *, name: str = "", strict: bool = True) -> P:
        """Parse one document.

        references maps reference names (Avro full name, import path, `$ref` target) to document texts, dependencies
        before dependants, the transitive closure flattened. name is the document's own file name, for imports.
        strict=False accepts what an older registry stored (bad names, bad defaults) as long as it has a meaning; what
        strict=True accepts has the same parsed form either way.
        Raises `MalformedSchema` with the place, `UnresolvedReference`; never anything else, in bounded time.
        """
        ...

    def canonical(self, parsed: P, form: TextForm) -> bytes:
        """Return the schema printed in one of its stable texts."""
        ...

    def render(self, parsed: P, style: str) -> str | None:
        """Another representation (`resolved`, `serialized`, `ignore_extensions` …); None for a style unknown here."""
        ...

    def fingerprints(self, parsed: P) -> Mapping[str, bytes]:
        """Digests of the CANONICAL form by kind (`rabin` is 8 bytes big-endian, `md5` 16, `sha256` 32)."""
        ...

    def check(self, reader: P, writer: P, ruleset: str = "") -> list[Finding]:
        """Whether the reader's schema can read data of the writer's: no finding that `breaks` means yes.

        ruleset is a full name, a bare name for its newest version, or '' for that of the default. Raises
        `UnknownRuleset`.
        """
        ...

    def fields(self, parsed: P) -> list[Field]:
        """Return all fields, depth first, for search, pages and lint."""
        ...

    def arrow_schema(self, parsed: P) -> pa.Schema:
        """Return the table shape of data of this schema. Raises `NotInstalled` without pyarrow."""
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
"""Make an entry of a pair: `LogEntry._make`, which is not of C, takes half as long again."""


class Log(Protocol):
    """A totally ordered, durable sequence of records. A driver knows no rules; it only keeps order and bytes.

    Every method may raise `StoreError` or `StoreTimeout`. Checksums are not a driver's business:
    `stele.storage.chained_log` adds them to every driver.
    """

    async def append(self, expected: int, records: Sequence[bytes]) -> bool:
        """Write records at expected+1 … atomically and durably; False, and nothing written, when the head has moved.

        Raises `RecordsTooLarge` when the store takes no write of that size; nothing is written then.
        """
        ...

    async def tail(self, after: int, limit: int) -> Sequence[LogEntry]:
        """At most limit entries with seq > after, in order, dense."""
        ...

    async def head(self) -> int:
        """Sequence number of the last durable record, 0 when empty: a linearizable barrier."""
        ...

    @property
    def notices_at_once(self) -> bool:
        """Whether `has_changed` knows of every append that has returned anywhere; else it may be late."""
        ...

    def has_changed(self) -> bool:
        """Return a cheap, synchronous hint: True means that another process may have appended since the last call.

        Never falsely negative where the log `notices_at_once`; elsewhere only `head` and `tail` are sure.
        """
        ...

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Fairness between writers of several processes. Correctness never depends on it."""
        ...

    async def wait(self, after: int, timeout: float) -> None:  # noqa: ASYNC109 - part of the driver's contract
        """Return when the head may be past `after`, or when timeout seconds have gone."""
        ...

    async def save_snapshot(self, seq: int, data: bytes) -> None:
        """Keep a state snapshot taken after record seq; older ones may be dropped."""
        ...

    async def load_snapshot(self) -> tuple[int, bytes | memoryview] | None:
        """Return the newest snapshot as (seq, data), or None. A view may be decoded once (`snapshot.load_state`)."""
        ...

    async def erase(self, seq: int, record: bytes) -> None:
        """Overwrite the record at seq with a redacted one, for bodies purged on purpose; order and seq stay."""
        ...

    async def require_writable(self) -> None:
        """Raise the `StoreError` that an append would meet now, as far as that can be known without one."""
        ...

    def may_lack_records(self) -> bool:
        """Whether records may have been acknowledged that this log does not have: it is a copy or was restored."""
        ...

    async def expect_lost_records(self) -> None:
        """Let `may_lack_records` be true until the next append: the log was restored, its original may have gone on."""
        ...

    async def close(self) -> None:
        """Release files and threads; the log stays on its medium."""
        ...
