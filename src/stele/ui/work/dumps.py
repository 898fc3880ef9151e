"""Dumps: the files that a page reads, and a registry's own versions in the same form."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

import msgspec

from stele.core import queries, zstd
from stele.core.model import Version, VersionState
from stele.core.state import State
from stele.errors import InvalidRequest, TooLarge
from stele.service.registry import Registry
from stele.ui.links import qualify_name

if TYPE_CHECKING:
    from stele.migrate.model import Dump

MOST_VERSIONS: Final = 20_000
"""Maximum number of versions in a dump that a page makes or compares; commands have no limit."""
MOST_UNPACKED: Final = 64 * 1024 * 1024
"""Maximum size of a compressed file that a page reads, in bytes after decompression."""
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_ARCHIVE: Final = b'{"archive":'


def pack_dump(data: bytes) -> bytes:
    """Return a file compressed. `read_dump` reads it like the file itself."""
    return data if data.startswith((_GZIP, _ZSTD)) else gzip.compress(data, 6, mtime=0)


def read_dump(data: bytes) -> Dump:
    """Return the content of a file: the dump of a topic, compressed or not, or an archive of `stele export`.

    Settings, modes, keys, associations and exporters are left out; the notes of the dump name them.

    Raises:
        InvalidRequest: It is neither, or damaged; the message names the line.
        TooLarge: It holds more than a page reads.
    """
    from stele.migrate.dump_file import read_records
    from stele.migrate.model import Dump
    from stele.migrate.topic_reader import read_topic_records

    text = _unpack(data) if data.startswith((_GZIP, _ZSTD)) else data
    if text.startswith(_ARCHIVE):
        return _read_archive(data)
    topic_dump = read_topic_records(read_records(io.BytesIO(text)))
    _require_few(len(topic_dump.versions))
    extras = sum(1 for _ in topic_dump.extras.items())
    left_out = {"settings": len(topic_dump.configs), "modes": len(topic_dump.modes), "keys and associations": extras}
    words = ", ".join(f"{what} ({count:,})" for what, count in left_out.items() if count)
    note = f"Pages import versions only. Left out: {words}. `stele import topic` takes them."
    notes = (*topic_dump.notes, note) if words else topic_dump.notes
    return Dump(topic_dump.versions, contexts=topic_dump.contexts, notes=notes)


def _unpack(data: bytes) -> bytes:
    try:
        with _open_packed(data) as file:
            text = file.read(MOST_UNPACKED + 1)
    except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
        raise InvalidRequest(f"the file is damaged: {error}") from None
    if len(text) > MOST_UNPACKED:
        raise TooLarge(f"the file has more than {MOST_UNPACKED // 2**20} MiB when it is unpacked: use `stele import`")
    return text


def _open_packed(data: bytes) -> BinaryIO:
    file = io.BytesIO(data)
    return cast("BinaryIO", gzip.open(file) if data.startswith(_GZIP) else zstd.ZstdFile(file))


def _read_archive(data: bytes) -> Dump:
    from stele.migrate.archive import Archive

    archive = Archive(io.BytesIO(data), Path("the archive"))
    note = "Pages import versions only, not what else the archive has. `stele import FILE` takes everything."
    return msgspec.structs.replace(build_dump(archive.state), notes=(note,))


def build_dump(state: State, is_wanted: Callable[[Version], bool] = lambda version: True) -> Dump:
    """Return the wanted versions of a registry as a dump.

    Settings, modes, keys and associations are left out. Raises `TooLarge`.
    """
    from stele.migrate.dependency_order import sort_by_dependency
    from stele.migrate.model import DEFAULT_CONTEXT, Dump

    versions = [
        version
        for namespace in state.namespaces.values()
        for subject in namespace.subjects.values()
        for version in queries.list_versions(subject, queries.ACTIVE_OR_SOFT_DELETED)
        if is_wanted(version)
    ]
    _require_few(len(versions))
    contexts = {DEFAULT_CONTEXT, *(f".{version.subject.key.namespace}" for version in versions)}
    return Dump(
        sort_by_dependency([_describe_version(state, version) for version in versions]),
        contexts=tuple(sorted(contexts)),
    )


def _require_few(count: int) -> None:
    if count > MOST_VERSIONS:
        raise TooLarge(
            f"there are {count:,} versions, and pages can take {MOST_VERSIONS:,}: "
            "use `stele export` and `stele import --dry-run` instead"
        )


def _describe_version(state: State, version: Version) -> Any:
    from stele.migrate.model import normalize_version
    from stele.protocol.confluent import Rule, RuleSet, SchemaReference

    attachments = version.schema.attachments
    rules = attachments.rule_set
    rule_set = None
    if rules is not None:
        phases = {
            phase: [
                Rule(**{name: getattr(rule, name, None) for name in Rule.__struct_fields__}) for rule in phase_rules
            ]
            for phase in ("migration_rules", "domain_rules", "encoding_rules")
            if (phase_rules := getattr(rules, phase))
        }
        rule_set = RuleSet(**phases)  # type: ignore[arg-type]  # the phases are lists of rules
    return normalize_version(
        qualify_name(version.subject.key),
        version.version_number,
        version.schema.schema_id,
        state.get_text(version.content).decode("utf-8", "replace"),
        schema_type=(version.kind.custom_format or version.kind.format).upper(),
        references=[
            SchemaReference(row.name, qualify_name(row.key), row.version_number) for row in attachments.references
        ],
        metadata=attachments.metadata,
        rule_set=rule_set,
        deleted=version.state is VersionState.SOFT_DELETED,
        ts=version.at or None,
    )


def write_dump(registry: Registry, is_wanted: Callable[[Version], bool] = lambda version: True) -> bytes:
    """Return the wanted versions of a registry as the dump of a topic. Raises `TooLarge`."""
    from stele.migrate.dump_file import write_records
    from stele.migrate.topic_records import Flavour
    from stele.migrate.topic_writer import write_records as make_records

    topic = make_records(build_dump(registry.state, is_wanted), Flavour.CONFLUENT)
    return b"".join(write_records(topic.records))
