"""Turns texts into documents: parsing, canonical texts, digests and references, cached by content."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, cast

from stele.core import queries
from stele.core.compatibility_requests import SchemaSource
from stele.core.model import Reference, SchemaDocument, SubmittedText, Version
from stele.core.ports import Format, Parsed, TextForm
from stele.core.state import State
from stele.errors import MalformedSchema, NotFound, UnresolvedReference
from stele.formats.capabilities import (
    HasDigestText,
    HasIdentityText,
    HasLaxImports,
    ParsesQuickly,
    PrintsFaithfully,
    TakesAnyDefault,
    supports,
)
from stele.formats.registry import get_format, list_formats
from stele.service.limits import Limits
from stele.service.sized_cache import SizedCache

LATEST = -1
"""Version number of a reference to the newest version at the time of registration."""

CACHE_BYTES = 128 << 20
"""Approximate limit of the memory of parsed schemas, in bytes. Beyond it, the least recently used ones are dropped."""

PREPARED_BYTES = 64 << 20
"""The same for schemas that clients sent, in their registered form. Most of them share their parsed form."""

_COMPARISON_BYTES: Final = 16 << 20
"""The same for digests of comparison texts."""

_SOURCE_BYTES: Final = 400
_REFERENCE_BYTES: Final = 200
_SCHEMA_BYTES = 24 << 10
_BYTES_PER_BYTE = 64
"""Measured maximum memory in bytes of a parsed schema (`_SCHEMA_BYTES`), plus that of each byte of its texts."""


class PreparedSchema(NamedTuple):
    """A text that is a schema: the document to register, its resolved references, and its parsed form."""

    document: SchemaDocument
    references: tuple[Reference, ...]
    source: SchemaSource
    parsed: Parsed
    format: Format[Any]
    comparisons: dict[bool, bytes]
    """Digests of its comparison texts that are known, by whether they are normalized."""


class LazyDigests(Mapping[str, bytes]):
    """The digests of a schema, computed on first use: a compatibility check uses none."""

    def __init__(self, fmt: Format[Any], parsed: Parsed) -> None:
        self._compute: Callable[[], dict[str, bytes]] | None = partial(compute_digests, fmt, parsed)
        self._values: dict[str, bytes] = {}

    @property
    def is_computed(self) -> bool:
        """Whether the digests are already computed."""
        return self._compute is None

    def compute(self) -> dict[str, bytes]:
        """Return all digests."""
        compute = self._compute
        if compute is not None:
            self._values = compute()
            self._compute = None
        return self._values

    def __getitem__(self, kind: str) -> bytes:
        return self.compute()[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self.compute())

    def __len__(self) -> int:
        return len(self.compute())


class _PreparationKey(NamedTuple):
    """Everything that determines a prepared schema."""

    format: str
    sha: bytes
    references: tuple[Reference, ...]
    closure: tuple[tuple[str, bytes], ...]
    form: TextForm | None
    strict: bool
    lax_imports: bool
    checks_defaults: bool


_ComparisonKey = tuple[str, SchemaSource, bool]
"""Format and source of a registered text, and whether differences of style are ignored."""


class SchemaTexts(NamedTuple):
    """The texts of one source: its own and those of its references by name, dependencies first."""

    text: bytes
    references: Mapping[str, bytes]


def _estimate_memory(parsed: Parsed, texts: SchemaTexts) -> int:
    """Return the memory of a parsed form in bytes: its own `memory_size`, else an estimate by its texts."""
    size = getattr(parsed, "memory_size", None)
    if isinstance(size, int):
        return size
    return _SCHEMA_BYTES + _BYTES_PER_BYTE * measure_texts(texts)


class SchemaParser:
    """Parses texts off the event loop and caches the results; safe to use from several threads."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._parsed = SizedCache[tuple[str, SchemaSource, bool], Parsed](CACHE_BYTES)
        self._prepared = SizedCache[_PreparationKey, PreparedSchema](PREPARED_BYTES)
        self._comparisons = SizedCache[_ComparisonKey, bytes](_COMPARISON_BYTES)

    async def prepare_schema(
        self,
        state: State,
        format_name: str,
        text: bytes,
        references: Sequence[Reference] = (),
        *,
        form: TextForm | None = None,
        strict: bool = True,
        lax_imports: bool = False,
        checks_defaults: bool = True,
        needs_digests: bool = True,
    ) -> PreparedSchema:
        """Parse a text as a new schema. A text that was prepared before costs no more than its SHA-256.

        Args:
            state: State in which references are resolved.
            format_name: Format of the text.
            text: The text as sent.
            references: References of the text.
            form: Form in which the schema is printed to be registered; None keeps the author's bytes.
            strict: Whether the rules of the format apply; see `Format.parse`.
            lax_imports: Whether imports may be missing and options undeclared, as long as every type is declared
                somewhere. Formats without `HasLaxImports` have no such rule.
            checks_defaults: Whether defaults that do not fit are refused, in formats with `TakesAnyDefault`.
            needs_digests: Whether the digests will be used: then they are computed off the event loop. Otherwise the
                text is only compared, and is not printed where printing does not change it.

        Raises:
            SteleError: `UnknownFormat`, `MalformedSchema`, `UnresolvedReference`, `TooLarge`.
        """
        self.limits.check_text(text)
        self.limits.check_references(len(references))
        fmt = get_format(format_name)
        resolved = tuple(resolve_reference(state, reference) for reference in references)
        closure = queries.resolve_references(
            state, resolved, queries.ACTIVE_ONLY if strict else queries.ACTIVE_OR_SOFT_DELETED
        )
        self.limits.check_references(len(closure))
        self.limits.check_reference_depth(queries.measure_reference_depth(state, resolved))
        if not needs_digests and _prints_faithfully(fmt, form, strict and checks_defaults):
            form = None
        sha = hashlib.sha256(text).digest()
        key = _PreparationKey(fmt.name, sha, resolved, closure, form, strict, lax_imports, checks_defaults)
        known = self._prepared.get(key)
        if known is not None and (not needs_digests or has_digests(known)):
            return known
        texts = SchemaTexts(text, {name: state.get_text(state.contents[sha]) for name, sha in closure})
        if are_quick(fmt, texts):
            return self._prepare_text(fmt, key, texts, needs_digests)
        return await asyncio.to_thread(self._prepare_text, fmt, key, texts, needs_digests)

    async def prepare_inheriting_references(
        self, state: State, format_name: str, text: bytes, newest: Version | None, *, strict: bool = True
    ) -> PreparedSchema:
        """Parse a text of a dialect that cannot name references. They are those of the newest version.

        Args:
            state: State in which references are resolved.
            format_name: Format of the text.
            text: The text as sent.
            newest: Newest version of the subject the text is for, None where there is none.
            strict: See `prepare_schema`.

        Raises:
            UnresolvedReference: The text refers to others, and the newest version has no references, or other ones.
            SteleError: What `prepare_schema` raises.
        """
        inherited = newest.schema.attachments.references if newest is not None else ()
        try:
            prepared = await self.prepare_schema(state, format_name, text, strict=strict)
        except UnresolvedReference:
            if not inherited:
                raise
        else:
            if not inherited or not _has_unresolved_types(prepared):
                return prepared
        return await self.prepare_schema(state, format_name, text, inherited, strict=strict)

    def _prepare_text(
        self, fmt: Format[Any], key: _PreparationKey, texts: SchemaTexts, needs_digests: bool
    ) -> PreparedSchema:
        prepared = self._prepared.get(key)  # Another request may have prepared it meanwhile.
        if prepared is None:
            prepared = self._parse_text(fmt, key, texts)
            # The registered form and the submitted one. Parts that they share with others are counted twice.
            self._prepared.put(key, prepared, _estimate_memory(prepared.parsed, texts) + 2 * len(texts.text))
        digests = prepared.document.digests
        if needs_digests and isinstance(digests, LazyDigests):
            digests.compute()
        return prepared

    def _parse_text(self, fmt: Format[Any], key: _PreparationKey, texts: SchemaTexts) -> PreparedSchema:
        sent, source = SubmittedText(texts.text, key.sha), SchemaSource(key.sha, key.closure)
        if key.strict and not key.checks_defaults and supports(fmt, TakesAnyDefault):
            parsed: Parsed = fmt.parse_with_any_default(texts.text, texts.references)
        elif key.lax_imports and key.strict:
            parsed = self._parse_with_lax_imports(fmt, source, texts)
        else:
            parsed = self.parse_source(fmt, source, texts, strict=key.strict)
        text = texts.text if key.form is None else fmt.canonical(parsed, key.form)
        sha = hashlib.sha256(text).digest()
        other = sent if sha != sent.sha else None
        if other is not None and _prints_faithfully(fmt, key.form, key.strict and key.checks_defaults):
            self._remember_parsed((fmt.name, SchemaSource(sha, key.closure), False), parsed, texts)
        document = SchemaDocument(text, sha, fmt.name, parsed.type_name, LazyDigests(fmt, parsed), submitted=other)
        return PreparedSchema(document, key.references, SchemaSource(sha, key.closure), parsed, fmt, {})

    def parse_source(
        self, fmt: Format[Any], source: SchemaSource, texts: SchemaTexts, *, strict: bool = False
    ) -> Parsed:
        """Return the parsed form of a source from the cache, or parse it in the calling thread."""
        key = (fmt.name, source, strict)
        parsed = self._find_parsed(key)
        if parsed is None:
            parsed = fmt.parse(texts.text, texts.references, strict=strict)
            self._remember_parsed(key, parsed, texts)
        return parsed

    def _remember_parsed(self, key: tuple[str, SchemaSource, bool], parsed: Parsed, texts: SchemaTexts) -> None:
        self._parsed.put(key, parsed, _estimate_memory(parsed, texts))

    def _find_parsed(self, key: tuple[str, SchemaSource, bool]) -> Parsed | None:
        """Return the cached parsed form. A form that was parsed strictly also serves a lenient request."""
        name, source, strict = key
        parsed = self._parsed.get(key)
        return parsed if parsed is not None or strict else self._parsed.get((name, source, True))

    def _parse_with_lax_imports(self, fmt: Format[Any], source: SchemaSource, texts: SchemaTexts) -> Parsed:
        try:
            return self.parse_source(fmt, source, texts, strict=True)
        except MalformedSchema:
            if not isinstance(fmt, HasLaxImports):
                raise
            parsed = self.parse_source(fmt, source, texts, strict=False)
            if fmt.list_unresolved(parsed):
                raise
            return parsed

    def list_format_names(self) -> tuple[str, ...]:
        """Return the names of all formats."""
        return list_formats()

    async def can_compare(self, format_name: str) -> bool:
        """Return whether a format can compare schemas at all. Raises `UnknownFormat`."""
        return bool((await asyncio.to_thread(get_format, format_name)).rulesets)

    async def parse_registered(
        self, state: State, format_name: str, sha: bytes, references: Sequence[Reference]
    ) -> tuple[Format[Any], Parsed]:
        """Return the parsed form of a registered text with its references."""
        fmt = get_format(format_name)
        source = SchemaSource(sha, queries.resolve_references(state, references))
        parsed = self._find_parsed((fmt.name, source, False))
        if parsed is not None:
            return fmt, parsed
        texts = collect_texts(state, source)
        if are_quick(fmt, texts):
            return fmt, self.parse_source(fmt, source, texts)
        return fmt, await asyncio.to_thread(self.parse_source, fmt, source, texts)

    async def digest_prepared(self, prepared: PreparedSchema, *, normalized: bool) -> bytes:
        """Return the SHA-256 of the text by which a prepared schema is compared; see `comparison_text`."""
        known = prepared.comparisons.get(normalized)
        if known is not None:
            return known
        names = (name for name, _ in prepared.source.references)
        texts = SchemaTexts(prepared.document.text, dict.fromkeys(names, b""))
        if are_quick(prepared.format, texts):
            return self._digest_prepared(prepared, normalized)
        return await asyncio.to_thread(self._digest_prepared, prepared, normalized)

    def _digest_prepared(self, prepared: PreparedSchema, normalized: bool) -> bytes:
        fmt, source = prepared.format, prepared.source
        digest = prepared.comparisons[normalized] = _digest_comparison(fmt, prepared.parsed, normalized)
        if self._find_parsed((fmt.name, source, False)) is prepared.parsed:
            # The registered text has the same parsed schema, so its digest is known, too.
            self._remember_comparison((fmt.name, source, normalized), digest)
        return digest

    async def digest_registered(
        self, state: State, format_name: str, sha: bytes, references: Sequence[Reference], *, normalized: bool
    ) -> bytes:
        """Return the same digest for a registered text with its references."""
        fmt = get_format(format_name)
        source = SchemaSource(sha, queries.resolve_references(state, references))
        known = self.find_digest(fmt.name, source, normalized)
        if known is not None:
            return known
        key, texts = (fmt.name, source, normalized), collect_texts(state, source)
        if are_quick(fmt, texts):
            return self._digest_registered(fmt, key, texts)
        return await asyncio.to_thread(self._digest_registered, fmt, key, texts)

    def find_digest(self, format_name: str, source: SchemaSource, normalized: bool) -> bytes | None:
        """Return the digest of `digest_registered` if it is cached, else None."""
        return self._comparisons.get((format_name, source, normalized))

    def _digest_registered(self, fmt: Format[Any], key: _ComparisonKey, texts: SchemaTexts) -> bytes:
        _, source, normalized = key
        digest = _digest_comparison(fmt, self.parse_source(fmt, source, texts), normalized)
        self._remember_comparison(key, digest)
        return digest

    def _remember_comparison(self, key: _ComparisonKey, digest: bytes) -> None:
        self._comparisons.put(key, digest, estimate_source_memory(key[1]))


def _prints_faithfully(fmt: Format[Any], form: TextForm | None, is_strict: bool) -> bool:
    """Return whether parsing a text that was printed in a form gives the schema it was printed from."""
    return form is TextForm.PRINTED and is_strict and supports(fmt, PrintsFaithfully) and fmt.prints_faithfully


def are_quick(fmt: Format[Any], *schemas: SchemaTexts) -> bool:
    """Return whether parsing, printing and comparing schemas is too fast to be worth a thread."""
    if not supports(fmt, ParsesQuickly):
        return False
    return all(len(texts.text) <= fmt.quick_bytes and not texts.references for texts in schemas)


def estimate_source_memory(source: SchemaSource) -> int:
    """Return the approximate memory of a source in bytes, including a small cached value."""
    return _SOURCE_BYTES + _REFERENCE_BYTES * len(source.references)


def has_digests(prepared: PreparedSchema) -> bool:
    """Return whether the digests of a schema are available without delay."""
    digests = prepared.document.digests
    return not isinstance(digests, LazyDigests) or digests.is_computed


def _has_unresolved_types(prepared: PreparedSchema) -> bool:
    """Return whether a lenient parse left out types that references may declare."""
    return isinstance(prepared.format, HasLaxImports) and bool(prepared.format.list_unresolved(prepared.parsed))


def resolve_reference(state: State, reference: Reference) -> Reference:
    """Return the reference with a version number in place of `LATEST`. Raises `UnresolvedReference`."""
    if reference.version_number != LATEST:
        return reference
    try:
        newest = queries.get_version(state, reference.key, None)
    except NotFound:
        raise UnresolvedReference(
            f'No schema reference found for subject "{reference.subject}" and version latest'
        ) from None
    return Reference(reference.name, reference.namespace, reference.subject, newest.version_number)


def collect_texts(state: State, source: SchemaSource, extra: Mapping[bytes, bytes] | None = None) -> SchemaTexts:
    """Return the texts of a source. `extra` has texts that are not registered, by SHA-256."""
    own = (extra or {}).get(source.sha)
    text = own if own is not None else state.get_text(state.contents[source.sha])
    return SchemaTexts(text, {name: state.get_text(state.contents[sha]) for name, sha in source.references})


def measure_texts(texts: SchemaTexts) -> int:
    """Return the length of the texts of a source together, in bytes."""
    return len(texts.text) + sum(map(len, texts.references.values()))


def compute_digests(fmt: Format[Any], parsed: Parsed) -> dict[str, bytes]:
    """Return every digest by which other registries look up a schema."""
    own_text = cast("HasDigestText[Any]", fmt).digest_text if supports(fmt, HasDigestText) else None
    text = fmt.canonical(parsed, TextForm.NORMALIZED) if own_text is None else own_text(parsed)
    return {**fmt.fingerprints(parsed), "normalized": hashlib.sha256(text).digest()}


def comparison_text(fmt: Format[Any], parsed: Parsed, *, normalized: bool) -> bytes:
    """Return the text by which Confluent compares schemas: two equal schemas of a format have the same text.

    normalized ignores differences of style.
    """
    if normalized:
        return fmt.canonical(parsed, TextForm.NORMALIZED)
    own_text = cast("HasIdentityText[Any]", fmt).identity_text if supports(fmt, HasIdentityText) else None
    return fmt.canonical(parsed, TextForm.PRINTED) if own_text is None else own_text(parsed)


def _digest_comparison(fmt: Format[Any], parsed: Parsed, normalized: bool) -> bytes:
    return hashlib.sha256(comparison_text(fmt, parsed, normalized=normalized)).digest()
