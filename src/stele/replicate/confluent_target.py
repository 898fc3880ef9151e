"""A registry of any make with the Confluent API, written in IMPORT mode.

In this mode the client chooses ids and version numbers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from stele.client import SchemaRegistryClient
from stele.client.request import Effect, Request, encode_body, ignore_body, json_decoder
from stele.core.model import Settings
from stele.core.policy import find_policy
from stele.errors import NotFound, SteleError
from stele.migrate import registry_reader
from stele.migrate.model import DumpVersion
from stele.migrate.registry_reader import config_path
from stele.migrate.registry_writer import IMPORT, Refusal, VersionWriter
from stele.protocol.confluent import Config
from stele.protocol.replication import ImportAnswer, LevelName, LevelSettings, SettingsChange, SubjectName
from stele.replicate.dump_target import Carried, DumpTarget, Memory
from stele.replicate.dump_versions import qualify_place
from stele.replicate.plan import ReplicationPlan
from stele.service.replication.settings import parse_settings, print_settings

_read_config: Final = json_decoder(Config)

_NO_ROUTE: Final = (204, 405, 501)
"""Status codes, besides 404, of registries without the mode. Apicurio answers 204."""
_NO_IMPORT: Final = "that registry has no IMPORT mode: it would give the version another id and number"


class ConfluentTarget(DumpTarget):
    """A registry that receives replicas. Its subjects with replicas stay in IMPORT mode, closed to other writers.

    Args:
        client: Sends requests to the registry. Closing the target closes it.
        name: Name of the registry in messages and reports.
        authority: URI that is the authority of the target's own versions.
        memory: Stores what was replicated to the target.
    """

    def __init__(self, client: SchemaRegistryClient, name: str, authority: str, memory: Memory) -> None:
        super().__init__(name, authority, memory)
        self._client = client
        self._writer = VersionWriter(client)
        self._open: set[str] = set()

    def read_dump(self, subjects: Sequence[str] | None) -> list[DumpVersion]:
        """Return the versions of subjects; of all subjects if None."""
        if subjects is None:
            return registry_reader.read_versions(self._client)
        return registry_reader.read_subject_versions(self._client, subjects)

    def write_dump(self, rows: list[DumpVersion]) -> list[Refusal]:
        """Register versions, and soft-delete those that are deleted in the source; return what is refused."""
        closed = {
            subject for subject in sorted({row.subject for row in rows} - self._open) if not self._open_up(subject)
        }
        refused = [Refusal(row.subject, row.version, _NO_IMPORT) for row in rows if row.subject in closed]
        return refused + self._writer.write_versions([row for row in rows if row.subject not in closed])

    def _open_up(self, subject: str) -> bool:
        """Put a subject into IMPORT mode; return whether the registry has that mode.

        Some makes have no route for it, and others report success but do nothing. So the mode is read back.
        """
        try:
            self._client.set_mode(IMPORT, subject, force=True)
            is_open = self._client.mode(subject) == IMPORT
        except NotFound:
            return False
        except SteleError as error:
            if getattr(error, "status", None) in _NO_ROUTE:
                return False
            raise
        if is_open:
            self._open.add(subject)
        return is_open

    def remove_version(self, subject: str, version: int) -> list[Refusal]:
        """Delete a version permanently. A subject loses its mode with its last version."""
        self._open.discard(subject)
        return self._writer.delete_version(subject, version)

    # --- settings -------------------------------------------------------------------------------------------------

    def read_level_settings(self, levels: Sequence[LevelName]) -> list[LevelSettings]:
        """Return the compatibility levels that are set, and those that replication has set."""
        self._carried = self._memory.load()
        return [self._describe_level(level) for level in levels]

    def _describe_level(self, level: LevelName) -> LevelSettings:
        noted = self._load().get(_name_note(level))
        brought = None if noted is None else json.loads(noted.digest)
        return LevelSettings(*level, self._read_values(level), brought, "" if noted is None else noted.authority)

    def _read_values(self, level: LevelName) -> dict[str, Any] | None:
        request = Request("GET", config_path(name_level(level)), _read_config)
        try:
            word = self._client.send(request).compatibility_level
        except NotFound:
            return None
        return None if word is None else print_settings(Settings(policy=find_policy(word)))

    def fit_settings(self, values: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the policy as a level that is as strict or stricter, since such registries support levels only."""
        policy = parse_settings(values).policy
        return None if policy is None else print_settings(Settings(policy=find_policy(policy.nearest_name)))

    def apply(self, plan: ReplicationPlan) -> ImportAnswer:
        """Apply a part of a plan."""
        answer = super().apply(plan)
        refused = [change for change in plan.settings if not self._set_level(change)]
        names = [LevelName(change.namespace, change.subject) for change in refused]
        return replace(answer, settings=len(plan.settings) - len(refused), refused_settings=names)

    def _set_level(self, change: SettingsChange) -> bool:
        """Set or remove a level; return whether the target accepts it."""
        level = LevelName(change.namespace, change.subject)
        name, policy = name_level(level), parse_settings(change.values).policy
        if policy is None:
            request = Request("DELETE", config_path(name), ignore_body, effect=Effect.WRITE, subject=name)
        else:
            body = encode_body({"compatibility": policy.nearest_name})
            request = Request("PUT", config_path(name), ignore_body, body=body, effect=Effect.WRITE, subject=name)
        if self._writer.send_requests(name, None, [request]):
            return False
        self._note({_name_note(level): Carried(name, 0, json.dumps(change.values), change.source, "")})
        return True

    def close(self) -> None:
        """Close connections."""
        self._client.close()


def name_level(level: LevelName) -> str:
    """Return the name of a level in the Confluent API: a subject, `:.namespace:`, or '' for the registry."""
    if level.namespace is None:
        return ""
    if level.subject is None:
        return f":.{level.namespace}:"
    return qualify_place(SubjectName(level.namespace, level.subject))


def _name_note(level: LevelName) -> str:
    """Return the key in the memory for the settings of a level. It differs from every uid."""
    return f"settings:{name_level(level)}"
