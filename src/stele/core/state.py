"""The registry's state in memory: what folding the log gives, and nothing that the log does not say.

State changes only through the small methods below, which can record how to undo themselves. That lets a writer decide a
whole batch of commands, each seeing the ones before it, and take it all back before anything is durable: readers never
see what might yet be lost.
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
    """Everything the log says, indexed for reading. Mutated by `fold` alone; not safe across threads."""

    def __init__(self) -> None:
        self.seq = 0
        self.shared_seq = 0
        """The newest record that may concern more than one subject: all but those that add a subject's newest version.

        Of a subject alone, the seq of its newest version says the same.
        """
        self.settings: Settings | None = None
        self.mode: Mode | None = None
        self.namespaces: dict[str, Namespace] = {DEFAULT_NAMESPACE: Namespace(DEFAULT_NAMESPACE, 0)}
        self.contents = ContentTable()
        """By SHA-256 of the text. Of a text in several formats the first, which chains the others."""
        self.referrers: dict[tuple[str, str, int], list[Version]] = {}
        self.bindings: dict[tuple[str, str, str, str], Binding] = {}
        self.collections: dict[str, Collection] = {}
        self.rulesets: dict[tuple[str, str], int] = {}
        """Versions of rulesets taken over, by format and bare name; of all others version 1 is in force."""
        self.closed: list[Subject] = []
        self.serial = 0
        self.latest_at = 0
        """The newest time in the log (ms): no record is written with an earlier one."""
        self.skipped_schema_ids = 0
        self.skipped_numbers = 0
        """Ids and encoding ids that are left out where none was given yet: see `IdsSkipped`."""
        self.text_bytes = 0
        """Length of all texts together, before they are packed."""
        self.packed_texts = PackedTexts()
        self.loose: list[Content] = []
        self.interned: dict[Any, Any] = {}
        self.by_uid: dict[int, Version] | None = None
        self.by_origin: dict[str, tuple[Version, ...]] | None = None
        self.by_digest: dict[bytes, tuple[Content, ...]] | None = None
        self.by_place: dict[BindingIndexKey, tuple[Binding, ...]] | None = None
        self.by_serial: dict[int, Subject] | None = None
        self.by_creator: dict[str, CreatorUsage] | None = None
        """Indexes few deployments ask for: built on first use (see `queries`), kept by `fold` from then on."""
        self.purges = 0
        """How many schema ids went away: what caches of answers by id watch."""
        self.erased: list[ErasedText] = []
        """Contents purged since somebody last emptied this list: their texts may be left in the log."""
        self._measured = (0, 0)
        """How many of the loose contents were measured, and the bytes of their texts."""
        self._undo: list[Callable[[], object]] | None = None
        self._outer_undos: list[list[Callable[[], object]] | None] = []
        """What undoes the drafts that the present one was begun in, outermost first."""

    # --- reading --------------------------------------------------------------------------------------------------

    def find_namespace(self, name: str) -> Namespace | None:
        """Return the namespace, or None when nothing was ever in it."""
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
        """Return the log record that has the text."""
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
        """Announce plain assignments to attributes of a struct: `change` for the paths every registration takes."""
        if self._undo is not None:
            old = msgspec.structs.asdict(target)
            self._undo.append(lambda: _assign_attributes(target, old))

    def set_item(self, table: MutableMapping[K, V], key: K, value: V) -> None:
        """table[key] = value."""
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
        """row.append(value)."""
        if self._undo is not None:
            self._undo.append(row.pop)
        row.append(value)

    def keep_unpacked(self, content: Content) -> None:
        """Take note of a content whose text is not packed yet."""
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
        """Return the details, as the one object that all subjects have that are alike."""
        return self.intern_value(details) if details.is_sharable else details

    def share_version_details(self, details: VersionDetails) -> VersionDetails:
        """Return the details, as the one object that all versions have that are alike."""
        return self.intern_value(details) if details.is_sharable else details

    # --- drafts and housekeeping ------------------------------------------------------------------------------------

    def begin_draft(self) -> None:
        """Start recording how to undo changes. A draft within a draft is taken back first."""
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

        One built within a draft is built again once the draft is taken back.
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
        """Whether the loose texts may be enough for a block; looks only at those it has not seen before."""
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
    """Return where a level below the registry keeps its settings and mode in its namespace."""
    return OWN if level.subject is None else level.subject


def uid_from_bytes(data: bytes) -> int:
    """Return a 16-byte uid as the integer the model keeps."""
    return int.from_bytes(data, "big")


def uid_to_bytes(uid: int) -> bytes:
    """Return the 16 bytes of a uid: inverse of `uid_from_bytes`."""
    return uid.to_bytes(16, "big")
