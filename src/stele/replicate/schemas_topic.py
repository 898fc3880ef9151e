"""The `_schemas` topic of a registry of another make, to which records are added. Nothing else should write to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from stele.errors import InvalidRequest
from stele.migrate import broker
from stele.migrate.model import DumpVersion
from stele.migrate.registry_writer import Refusal
from stele.migrate.topic_reader import read_topic_records
from stele.migrate.topic_records import Flavour
from stele.migrate.topic_writer import build_version_record
from stele.replicate.dump_target import DumpTarget, Memory


class SchemasTopic(DumpTarget):
    """A topic that receives replicas.

    Args:
        bootstrap: A broker, `host:port`.
        topic: Its name.
        memory: Stores what was replicated to the topic.
        flavour: The make of the registry. Redpanda's records contain their own offsets and cannot be added.
        settings: Settings of the Kafka client.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        memory: Memory,
        flavour: Flavour = Flavour.CONFLUENT,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"kafka://{bootstrap}/{topic}", f"kafka://{bootstrap}/{topic}", memory)
        if flavour is Flavour.REDPANDA:
            raise InvalidRequest("records of Redpanda name their offsets: replicate to its API instead")
        self._bootstrap = bootstrap
        self._topic = topic
        self._flavour = flavour
        self._settings = settings

    def read_dump(self, subjects: Sequence[str] | None) -> list[DumpVersion]:
        """Return the versions in the records of the topic."""
        if not broker.has_topic(self._bootstrap, self._topic, settings=self._settings):
            return []
        dump = read_topic_records(broker.read_topic(self._bootstrap, self._topic, settings=self._settings))
        return [row for row in dump.versions if subjects is None or row.subject in subjects]

    def write_dump(self, rows: list[DumpVersion]) -> list[Refusal]:
        """Add records of versions."""
        records = [build_version_record(row, self._flavour) for row in rows]
        broker.append_to_topic(self._bootstrap, records, self._topic, settings=self._settings)
        return []

    def remove_version(self, subject: str, version: int) -> list[Refusal]:
        """Add the record that removes a version."""
        versions = [row for row in self.read_dump([subject]) if row.version == version]
        records = [build_version_record(replace(row, ts=None), self._flavour, is_gone=True) for row in versions]
        broker.append_to_topic(self._bootstrap, records, self._topic, settings=self._settings)
        return []

    def close(self) -> None:
        """Do nothing: there are no connections."""
