"""Texts into documents: parsing, canonical texts, digests and references, remembered by content."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from cachetools import LRUCache

from stele.core import queries
from stele.core.compatibility_requests import SchemaSource
from stele.core.model import Reference, SchemaDocument, SubmittedText, Version
from stele.core.ports import Format, Parsed, TextForm
from stele.core.state import State
from stele.errors import MalformedSchema, NotFound, UnresolvedReference
from stele.formats.capabilities import HasDigestText, HasIdentityText, HasLaxImports, TakesAnyDefault
from stele.formats.registry import get_format, list_formats
from stele.service.limits import Limits

LATEST = -1
"""Ordinal of a reference to whatever is newest when it is registered."""

CACHE_BYTES = 128 << 20
"""About how much memory parsed schemas may take, in bytes; beyond, the least recently used ones are given up."""

_SCHEMA_BYTES = 24 << 10
_BYTES_PER_BYTE = 64
"""Measured: so much memory takes a parsed schema of its own at most, and each byte of its texts."""


class PreparedSchema(NamedTuple):
    """A text that is a schema: the document to register, its resolved references, and its parsed form."""

    document: SchemaDocument
    references: tuple[Reference, ...]
    source: SchemaSource
    parsed: Parsed
    format: Format[Any]


class SchemaTexts(NamedTuple):
    """The texts of one source: its own and those of its references by name, dependencies first."""

    text: bytes
    references: Mapping[str, bytes]


class _CachedSchema(NamedTuple):
    """A parsed schema with about how many bytes of memory it takes."""

    parsed: Parsed
    size: int


def _estimate_memory(parsed: Parsed, texts: SchemaTexts) -> int:
    """Return what the parsed form says it takes (`memory_size`), else an estimate by its texts; in bytes."""
    size = getattr(parsed, "memory_size", None)
    if isinstance(size, int):
        return size
    return _SCHEMA_BYTES + _BYTES_PER_BYTE * (len(texts.text) + sum(map(len, texts.references.values())))


class SchemaParser:
    """Parses texts off the event loop and remembers what it parsed; safe to use from several threads."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._parsed: LRUCache[tuple[str, SchemaSource, bool], _CachedSchema]
        self._parsed = LRUCache(CACHE_BYTES, getsizeof=lambda cached: cached.size)
        self._lock = threading.Lock()

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
    ) -> PreparedSchema:
        """Parse a text as a new schema.

        Args:
            state: State that references resolve in.
            format_name: Format of the text.
            text: The text as sent.
            references: What the text refers to.
            form: How the schema is printed to be registered; None keeps the author's bytes.
            strict: Whether the rules of the format hold; see `Format.parse`.
            lax_imports: Whether imports may be missing and options undeclared, as long as every type is declared
                somewhere. Formats without `HasLaxImports` have no such rule.
            checks_defaults: Whether defaults that do not fit are refused, in formats with `TakesAnyDefault`.

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
        texts = {name: state.get_text(state.contents[sha]) for name, sha in closure}
        return await asyncio.to_thread(
            self._parse_and_digest, fmt, text, resolved, closure, texts, form, strict, lax_imports, checks_defaults
        )

    async def prepare_inheriting_references(
        self, state: State, format_name: str, text: bytes, newest: Version | None, *, strict: bool = True
    ) -> PreparedSchema:
        """Parse a text of a dialect that cannot name references: they mean what they mean in the newest version.

        Args:
            state: State that references resolve in.
            format_name: Format of the text.
            text: The text as sent.
            newest: Newest version of the subject the text is for, None where there is none.
            strict: See `prepare_schema`.

        Raises:
            UnresolvedReference: The text refers to others and the newest version has none to inherit, or other ones.
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

    def _parse_and_digest(
        self,
        fmt: Format[Any],
        text: bytes,
        references: tuple[Reference, ...],
        closure: tuple[tuple[str, bytes], ...],
        texts: Mapping[str, bytes],
        form: TextForm | None,
        strict: bool,
        lax_imports: bool,
        checks_defaults: bool,
    ) -> PreparedSchema:
        sent = SubmittedText(text, hashlib.sha256(text).digest())
        source, sources = SchemaSource(sent.sha, closure), SchemaTexts(text, texts)
        if strict and not checks_defaults and isinstance(fmt, TakesAnyDefault):
            parsed: Parsed = fmt.parse_with_any_default(text, texts)
        elif lax_imports and strict:
            parsed = self._parse_with_lax_imports(fmt, source, sources)
        else:
            parsed = self.parse_source(fmt, source, sources, strict=strict)
        if form is not None:
            text = fmt.canonical(parsed, form)
        sha = hashlib.sha256(text).digest()
        other = sent if sha != sent.sha else None
        document = SchemaDocument(text, sha, fmt.name, parsed.type_name, compute_digests(fmt, parsed), submitted=other)
        return PreparedSchema(document, references, SchemaSource(sha, closure), parsed, fmt)

    def parse_source(
        self, fmt: Format[Any], source: SchemaSource, texts: SchemaTexts, *, strict: bool = False
    ) -> Parsed:
        """Return the parsed form of a source, remembered; parses in the calling thread."""
        key = (fmt.name, source, strict)
        with self._lock:
            cached = self._parsed.get(key)
        if cached is None:
            parsed = fmt.parse(texts.text, texts.references, strict=strict)
            cached = _CachedSchema(parsed, _estimate_memory(parsed, texts))
            with self._lock, suppress(ValueError):  # larger than the cache
                self._parsed[key] = cached
        return cached.parsed

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
        """Names of all formats there are."""
        return list_formats()

    async def can_compare(self, format_name: str) -> bool:
        """Whether schemas of a format can be compared at all. Raises `UnknownFormat`."""
        return bool((await asyncio.to_thread(get_format, format_name)).rulesets)

    async def parse_registered(
        self, state: State, format_name: str, sha: bytes, references: Sequence[Reference]
    ) -> tuple[Format[Any], Parsed]:
        """Return the parsed form of a registered text with its references."""
        fmt = get_format(format_name)
        source = SchemaSource(sha, queries.resolve_references(state, references))
        return fmt, await asyncio.to_thread(self.parse_source, fmt, source, collect_texts(state, source))


def _has_unresolved_types(prepared: PreparedSchema) -> bool:
    """Return whether a lenient parse left out types that references may declare."""
    return isinstance(prepared.format, HasLaxImports) and bool(prepared.format.list_unresolved(prepared.parsed))


def resolve_reference(state: State, reference: Reference) -> Reference:
    """Return the reference with its number filled in. Raises `UnresolvedReference`."""
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
    """Return the texts behind a source; extra holds texts that are not registered, by SHA-256."""
    own = (extra or {}).get(source.sha)
    text = own if own is not None else state.get_text(state.contents[source.sha])
    return SchemaTexts(text, {name: state.get_text(state.contents[sha]) for name, sha in source.references})


def compute_digests(fmt: Format[Any], parsed: Parsed) -> dict[str, bytes]:
    """Return every digest of a schema that other registries look up by."""
    text = fmt.digest_text(parsed) if isinstance(fmt, HasDigestText) else fmt.canonical(parsed, TextForm.NORMALIZED)
    return {**fmt.fingerprints(parsed), "normalized": hashlib.sha256(text).digest()}


def comparison_text(fmt: Format[Any], parsed: Parsed, *, normalized: bool) -> bytes:
    """Return the text that two schemas of a format share if they are the same to Confluent.

    normalized ignores differences of style.
    """
    if normalized:
        return fmt.canonical(parsed, TextForm.NORMALIZED)
    return fmt.identity_text(parsed) if isinstance(fmt, HasIdentityText) else fmt.canonical(parsed, TextForm.PRINTED)
