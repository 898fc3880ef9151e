"""The registry's state in memory: the result of folding the log, and nothing else.

State changes only through the small methods below, which can record how to undo themselves. That lets a writer decide a
whole batch of commands, each on the result of the ones before, and roll it back before anything is durable. So readers
never see a change that might still be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import msgspec

from stele.core.content_table import ContentTable
from stele.core.model import (
    DEFAULT_NAMESPACE,
    SHA_BYTES,
    Binding,
    BindingIndexKey,
    Collection,
    Content,
    CreatorUsage,
    Mode,
    Namespace,
    Settings,
    SettingsLevel,
    Subject,
    SubjectDetails,
    SubjectKey,
    Version,
    VersionDetails,
)
from stele.core.texts import BLOCK_BYTES, PackedTexts

OWN = "\0"
"""Slot of a namespace's own settings and mode among those of its subjects: no subject can have this name."""

K = TypeVar("K")
V = TypeVar("V")


_SEQ_BYTES = 7
_SEQ_PLACE = slice(-_SEQ_BYTES - SHA_BYTES, -SHA_BYTES)
"""A packed text's tag is its packed digests, the seq of the record that has it, and its SHA-256."""


class ErasedText(NamedTuple):
    """A purged content whose text is still in the log, in the record at seq."""

    seq: int
    sha: bytes


class State:
    """Everything in the log, indexed for reading. Changed by `fold` alone; not safe across threads."""

    def __init__(self) -> None:
        self.seq = 0
        self.shared_seq = 0
        """The newest record that may concern more than one subject: all but those that add a subject's newest version.

        For one subject alone, the seq of its newest version gives the same information.
        """
        self.settings: Settings | None = None
        self.mode: Mode | None = None
        self.namespaces: dict[str, Namespace] = {DEFAULT_NAMESPACE: Namespace(DEFAULT_NAMESPACE, 0)}
        self.contents = ContentTable()
        """Contents by SHA-256 of the text. For a text in several formats the first, which chains the others."""
        self.referrers: dict[tuple[str, str, int], list[Version]] = {}
        self.bindings: dict[tuple[str, str, str, str], Binding] = {}
        self.collections: dict[str, Collection] = {}
        self.rulesets: dict[tuple[str, str], int] = {}
        """Adopted versions of rulesets, by format and bare name. For all others version 1 is in force."""
        self.closed: list[Subject] = []
        self.serial = 0
        self.latest_at = 0
        """The newest time in the log (ms): no record is written with an earlier one."""
        self.skipped_schema_ids = 0
        self.skipped_numbers = 0
        """Schema ids, and encoding ids, that are skipped where none was assigned yet: see `IdsSkipped`."""
        self.text_bytes = 0
        """Total length of all texts in bytes, before they are packed."""
        self.packed_texts = PackedTexts()
        self.loose: list[Content] = []
        self.interned: dict[Any, Any] = {}
        self.by_uid: dict[int, Version] | None = None
        self.by_origin: dict[str, tuple[Version, ...]] | None = None
        self.by_digest: dict[bytes, tuple[Content, ...]] | None = None
        self.by_place: dict[BindingIndexKey, tuple[Binding, ...]] | None = None
        self.by_serial: dict[int, Subject] | None = None
        self.by_creator: dict[str, CreatorUsage] | None = None
        """Indexes that few deployments need: built on first use (see `queries`), then maintained by `fold`."""
        self.purges = 0
        """Number of schema ids that were removed. Caches of answers by id watch it."""
        self.erased: list[ErasedText] = []
        """Contents purged since this list was last emptied: their texts may still be in the log."""
        self._measured = (0, 0)
        """How many of the loose contents were measured, and the bytes of their texts."""
        self._undo: list[Callable[[], object]] | None = None
        self._outer_undos: list[list[Callable[[], object]] | None] = []
        """Undo lists of the drafts around the present one, outermost first."""

    # --- reading --------------------------------------------------------------------------------------------------

    def find_namespace(self, name: str) -> Namespace | None:
        """Return the namespace, or None if it never had content."""
        return self.namespaces.get(name)

    def find_subject(self, key: SubjectKey) -> Subject | None:
        """Return the present incarnation of a subject, or None."""
        namespace = self.namespaces.get(key.namespace)
        return None if namespace is None else namespace.subjects.get(key.name)

    def get_text(self, content: Content) -> bytes:
        """Return the raw bytes of a content; empty when they were purged."""
        text_or_handle = content.text_or_handle
        return (
            self.packed_texts.get_text(text_or_handle)
            if isinstance(text_or_handle, int)
            else text_or_handle.text or b""
        )

    def get_text_length(self, content: Content) -> int:
        """Return the length of a content in bytes; 0 when it was purged."""
        text_or_handle = content.text_or_handle
        return (
            self.packed_texts.get_length(text_or_handle)
            if isinstance(text_or_handle, int)
            else len(text_or_handle.text or b"")
        )

    def get_digests(self, content: Content) -> bytes:
        """Return the packed digests of a content (see `digests`)."""
        text_or_handle = content.text_or_handle
        return (
            self.packed_texts.get_tag(text_or_handle)[: _SEQ_PLACE.start]
            if isinstance(text_or_handle, int)
            else text_or_handle.digests
        )

    def get_seq(self, content: Content) -> int:
        """Return the number of the log record that has the text."""
        text_or_handle = content.text_or_handle
        return (
            int.from_bytes(self.packed_texts.get_tag(text_or_handle)[_SEQ_PLACE], "big")
            if isinstance(text_or_handle, int)
            else text_or_handle.seq
        )

    def settings_at(self, level: SettingsLevel) -> Settings | None:
        """Return the settings attached to exactly this level."""
        if level.namespace is None:
            return self.settings
        namespace = self.namespaces.get(level.namespace)
        return None if namespace is None else namespace.settings.get(settings_slot(level))

    def mode_at(self, level: SettingsLevel) -> Mode | None:
        """Return the mode attached to exactly this level."""
        if level.namespace is None:
            return self.mode
        namespace = self.namespaces.get(level.namespace)
        return None if namespace is None else namespace.modes.get(settings_slot(level))

    # --- changing, for `fold` ---------------------------------------------------------------------------------------

    def change(self, target: Any, **values: Any) -> None:
        """Set attributes of a struct (or of this state)."""
        if self._undo is not None:
            old = {name: getattr(target, name) for name in values}
            self._undo.append(lambda: _assign_attributes(target, old))
        _assign_attributes(target, values)

    def touch(self, target: msgspec.Struct) -> None:
        """Prepare to undo plain assignments to attributes of a struct: a faster `change` for registrations."""
        if self._undo is not None:
            old = msgspec.structs.asdict(target)
            self._undo.append(lambda: _assign_attributes(target, old))

    def set_item(self, table: MutableMapping[K, V], key: K, value: V) -> None:
        """Set `table[key] = value`."""
        if self._undo is not None:
            if key in table:
                old = table[key]
                self._undo.append(lambda: table.__setitem__(key, old))
            else:
                self._undo.append(lambda: table.__delitem__(key))
        table[key] = value

    def remove_item(self, table: MutableMapping[K, V], key: K) -> None:
        """Remove the key if it is there."""
        if key not in table:
            return
        if self._undo is not None:
            old = table[key]
            self._undo.append(lambda: table.__setitem__(key, old))
        del table[key]

    def append_to(self, row: list[V], value: V) -> None:
        """Call `row.append(value)`."""
        if self._undo is not None:
            self._undo.append(row.pop)
        row.append(value)

    def keep_unpacked(self, content: Content) -> None:
        """Add a content whose text is not packed yet."""
        self.append_to(self.loose, content)

    def add_referrer(self, target: tuple[str, str, int], version: Version) -> None:
        """Note that a version refers to the target."""
        if target not in self.referrers:
            self.set_item(self.referrers, target, [])
        self.append_to(self.referrers[target], version)

    def intern_value(self, value: V) -> V:
        """Return the first value equal to this one: equal attachments and policies are stored once."""
        return self.interned.setdefault(value, value)  # type: ignore[no-any-return]  # keys are their own values

    def share_details(self, details: SubjectDetails) -> SubjectDetails:
        """Return the details as the one object that all equal subjects share, if they are sharable."""
        return self.intern_value(details) if details.is_sharable else details

    def share_version_details(self, details: VersionDetails) -> VersionDetails:
        """Return the details as the one object that all equal versions share, if they are sharable."""
        return self.intern_value(details) if details.is_sharable else details

    # --- drafts and housekeeping ------------------------------------------------------------------------------------

    def begin_draft(self) -> None:
        """Start recording how to undo changes. A draft inside another one must be rolled back first."""
        self._outer_undos.append(self._undo)
        self._undo = []

    @property
    def is_drafting(self) -> bool:
        """Whether changes are being recorded."""
        return self._undo is not None

    def roll_back(self) -> None:
        """Undo everything since the last `begin_draft`."""
        for undo in reversed(self._undo or ()):
            undo()
        self._undo = self._outer_undos.pop()

    def get_index(self, name: str, build: Callable[[State], dict[K, V]]) -> dict[K, V]:
        """Return the lazily built index of that name.

        An index that was built within a draft is built again after the draft is rolled back.
        """
        if getattr(self, name) is None:
            for undos in (*self._outer_undos, self._undo):
                if undos is not None:
                    undos.insert(0, lambda: setattr(self, name, build(self)))
            setattr(self, name, build(self))
        return getattr(self, name)  # type: ignore[no-any-return]  # just set to one

    def pack_texts(self, *, rest: bool = False) -> None:
        """Move loose texts into compressed blocks; only full blocks unless rest is set. Never within a draft."""
        if self._undo is not None or not (rest or self._fills_a_block()):
            return
        block: list[Content] = []
        texts: list[bytes] = []
        size = 0
        for content in self.loose:
            text_or_handle = content.text_or_handle
            if isinstance(text_or_handle, int) or text_or_handle.text is None:  # purged meanwhile
                continue
            block.append(content)
            texts.append(text_or_handle.text)
            size += len(text_or_handle.text)
            if size >= BLOCK_BYTES:
                self._pack_block(block, texts)
                block, texts, size = [], [], 0
        if block and rest:
            self._pack_block(block, texts)
            block = []
        self.loose[:] = block
        self._measured = (0, 0)

    def _fills_a_block(self) -> bool:
        """Return whether the loose texts may be enough for a block. Measures only those added since the last call."""
        count, size = self._measured if self._measured[0] <= len(self.loose) else (0, 0)
        for content in islice(self.loose, count, None):
            text_or_handle = content.text_or_handle
            size += 0 if isinstance(text_or_handle, int) else len(text_or_handle.text or b"")
        self._measured = (len(self.loose), size)
        return size >= BLOCK_BYTES

    def _pack_block(self, block: list[Content], texts: list[bytes]) -> None:
        tags = [
            self.get_digests(content) + self.get_seq(content).to_bytes(_SEQ_BYTES, "big") + content.sha
            for content in block
        ]
        for content, handle in zip(block, self.packed_texts.pack_block(texts, tags), strict=True):
            content.text_or_handle = handle


def _assign_attributes(target: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        setattr(target, name, value)


def settings_slot(level: SettingsLevel) -> str:
    """Return the key of a level below the registry for its settings and mode in its namespace."""
    return OWN if level.subject is None else level.subject


def uid_from_bytes(data: bytes) -> int:
    """Return a 16-byte uid as the integer the model keeps."""
    return int.from_bytes(data, "big")


def uid_to_bytes(uid: int) -> bytes:
    """Return the 16 bytes of a uid: inverse of `uid_from_bytes`."""
    return uid.to_bytes(16, "big")
