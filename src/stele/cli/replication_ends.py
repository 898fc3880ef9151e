"""The source and the target of `stele replicate run` and `diff`, opened from an address or a profile."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from stele.cli.connect import Connection, RegistryOptions, split_addresses
from stele.client import SchemaRegistryClient
from stele.errors import InvalidRequest, NotFound, SteleError
from stele.protocol.replication import ReadRequest
from stele.replicate.dump_target import Carried, Memory, ProcessMemory
from stele.replicate.registries import ReplicaSource, ReplicaTarget
from stele.replicate.stele_registry import HttpApi, SteleRegistry

_TIMEOUT_SECONDS: Final = 60.0
_KAFKA: Final = "kafka"


class EndKind(StrEnum):
    """Kinds of registries. The kind decides which API is used."""

    AUTO = "auto"
    """Stele if the registry answers as one, else any registry with the Confluent API."""
    STELE = "stele"
    CONFLUENT = "confluent"
    CNCF = "cncf"
    XREGISTRY = "xregistry"
    APICURIO = "apicurio"


_SOURCES_ONLY: Final = frozenset({EndKind.CNCF, EndKind.XREGISTRY, EndKind.APICURIO})
"""Kinds that can be sources only: they assign version numbers themselves."""


class FileMemory:
    """What was replicated to a target, in a file of JSON lines. The last line about a version counts.

    Args:
        path: The file. The first `save` creates it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> dict[str, Carried]:
        """Return what the file holds, by uid. Raises `InvalidRequest` for a file of another format."""
        if not self._path.exists():
            return {}
        rows_by_uid: dict[str, Carried] = {}
        for number, line in enumerate(self._path.read_text("utf-8").splitlines(), 1):
            try:
                uid, row = json.loads(line)
                rows_by_uid[uid] = msgspec.convert(row, Carried)
            except (ValueError, TypeError) as error:
                raise InvalidRequest(f"{self._path} line {number} is not the state of a replication: {error}") from None
        return rows_by_uid

    def save(self, changes: Mapping[str, Carried]) -> None:
        """Append changes to the file. They are durable when this returns."""
        with self._path.open("a", encoding="utf-8") as file:
            for uid, row in changes.items():
                file.write(json.dumps([uid, msgspec.to_builtins(row)]) + "\n")
            file.flush()
            os.fsync(file.fileno())


def find_connection(text: str) -> Connection:
    """Return the registry that an address, several with commas between, or a profile means. Raises `InvalidRequest`."""
    return (
        Connection(urls=split_addresses([text])) if "://" in text else RegistryOptions(profile=text).find_connection()
    )


def open_source(text: str, kind: EndKind, authority: str, poll_seconds: float) -> ReplicaSource:
    """Return the source that an address or profile means. Raises `InvalidRequest`, `RegistryUnreachable`."""
    connection = find_connection(text)
    url = _name_url(connection)
    if kind is EndKind.CNCF:
        from stele.replicate.cncf_source import CncfSource

        return CncfSource(connection.open_http(timeout=_TIMEOUT_SECONDS), url, authority, poll_seconds)
    if kind is EndKind.XREGISTRY:
        from stele.replicate.xregistry_source import XRegistrySource

        return XRegistrySource(connection.open_http(timeout=_TIMEOUT_SECONDS), url, authority, poll_seconds)
    if kind is EndKind.APICURIO:
        from stele.replicate.apicurio_source import ApicurioSource

        return ApicurioSource(connection.open_http(timeout=_TIMEOUT_SECONDS), url, authority, poll_seconds)
    client = connection.open_client(timeout=_TIMEOUT_SECONDS)
    if _is_stele(client, kind):
        return SteleRegistry(HttpApi(client), url)
    from stele.replicate.confluent_source import ConfluentSource
    from stele.replicate.foreign_api import ForeignApi

    api = ForeignApi(connection.open_http(timeout=_TIMEOUT_SECONDS), url)
    return ConfluentSource(client, api, url, authority or url, poll_seconds)


def open_target(text: str, kind: EndKind, authority: str, state: Path | None) -> ReplicaTarget:
    """Return the target that an address or profile means; `kafka://broker/topic` is a `_schemas` topic.

    Raises `InvalidRequest`, `RegistryUnreachable`.
    """
    memory: Memory = ProcessMemory() if state is None else FileMemory(state)
    parts = urlsplit(text)
    if parts.scheme == _KAFKA:
        from stele.replicate.schemas_topic import SchemasTopic

        return SchemasTopic(parts.netloc, parts.path.strip("/") or "_schemas", memory)
    if kind in _SOURCES_ONLY:
        raise InvalidRequest(f"a registry of kind {kind} cannot be a target")
    connection = find_connection(text)
    url = _name_url(connection)
    client = connection.open_client(timeout=_TIMEOUT_SECONDS)
    if _is_stele(client, kind):
        return SteleRegistry(HttpApi(client), url)
    from stele.replicate.confluent_target import ConfluentTarget

    return ConfluentTarget(client, url, authority or url, memory)


def _name_url(connection: Connection) -> str:
    """Return the address of a registry without credentials."""
    parts = urlsplit(connection.urls[0])
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")


def _is_stele(client: SchemaRegistryClient, kind: EndKind) -> bool:
    if kind is not EndKind.AUTO:
        return kind is EndKind.STELE
    try:
        HttpApi(client).read_versions(ReadRequest(uids=()))
    except NotFound:
        return False
    except SteleError as error:
        if getattr(error, "status", 0) in (405, 415):
            return False
        raise
    return True
