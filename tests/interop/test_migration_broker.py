"""`_schemas` topics on a broker: export to a topic, and import from it."""

from __future__ import annotations

import sys

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # documented there
from msgspec.structs import replace
from tests.unit.migrate.samples import dump, row

from stele.client import Schema
from stele.errors import InvalidRequest, NotInstalled, StoreError
from stele.migrate import broker as topics
from stele.migrate import topic_reader as folding
from stele.migrate import topic_writer
from stele.migrate.topic_records import Flavour
from stele.replicate.dump_target import ProcessMemory
from stele.replicate.replicator import Replicator
from stele.replicate.schemas_topic import SchemasTopic
from stele.replicate.stele_registry import HttpApi, SteleRegistry
from stele.testing import registry

pytestmark = pytest.mark.timeout(300)

SMALL = dump(row("a", 1, 1), row("a", 2, 2, "", ("b", 1)), row("b", 1, 3, deleted=True))
TIMED = replace(SMALL, versions=tuple(replace(version, ts=1_700_000_000_000) for version in SMALL.versions))


@pytest.fixture
def real(request: pytest.FixtureRequest) -> bool:
    """Whether the broker is a real one: topics of librdkafka's mock broker cannot be configured."""
    return bool(request.node.callspec.params["broker"] == "kraft")


@pytest.fixture
def new_topic(broker: str, topic: str, real: bool) -> str:
    """A topic with four partitions, the fixed number of librdkafka's mock broker."""
    if real:
        admin = AdminClient({"bootstrap.servers": broker})
        admin.create_topics([NewTopic(topic, 4)])[topic].result(120)
    else:
        Producer({"bootstrap.servers": broker}).list_topics(topic, timeout=120)
    return topic


@pytest.fixture
def single(request: pytest.FixtureRequest, topic: str, real: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    """A topic that an export may write to.

    On a real broker it does not exist yet. On librdkafka's mock broker it exists, and only its first partition is used.
    """
    if real:
        return topic
    monkeypatch.setattr(topics, "_create_topic", lambda settings, topic: None)
    monkeypatch.setattr(topics, "_require_one_partition", lambda kafka, consumer, topic: None)
    return str(request.getfixturevalue("new_topic"))


@pytest.mark.parametrize("flavour", Flavour)
def test_there_and_back(broker: str, single: str, flavour: Flavour) -> None:
    """Records of every flavour have their expected offsets and fold into the same registry."""
    written = topic_writer.write_records(TIMED, flavour)
    topics.write_topic(broker, written.records, single)
    steps: list[tuple[str, int, int | None]] = []
    read = list(topics.read_topic(broker, single, progress=lambda *step: steps.append(step)))
    entries = [(record.key, record.value, record.offset) for record in read]
    assert entries == [(record.key, record.value, record.offset) for record in written.records]
    assert folding.read_topic_records(read) == TIMED
    assert steps[-1] == ("records", len(read), len(read))


def test_only_empty_topics_are_filled(broker: str, single: str) -> None:
    """A topic with records of another registry is refused."""
    records = topic_writer.write_records(SMALL, Flavour.CONFLUENT).records
    topics.write_topic(broker, records, single)
    with pytest.raises(InvalidRequest, match="has records already"):
        topics.write_topic(broker, records, single)


def test_an_empty_topic_is_an_empty_registry(broker: str, single: str) -> None:
    """Reading an empty topic returns no records."""
    topics.write_topic(broker, [], single)
    assert list(topics.read_topic(broker, single)) == []


def test_topics_of_several_partitions(broker: str, new_topic: str) -> None:
    """A topic with several partitions is refused, because its records have no total order."""
    with pytest.raises(InvalidRequest, match="has 4 partitions; the topic of a registry has one"):
        list(topics.read_topic(broker, new_topic))


def test_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing broker raises an error within a limited time."""
    monkeypatch.setattr(topics, "_SECONDS", 0.5)
    with pytest.raises(StoreError):
        list(topics.read_topic("127.0.0.1:9", "t"))


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without confluent-kafka the error names the package to install."""
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(NotInstalled, match=r"stele-registry\[kafka\]"):
        list(topics.read_topic("x", "t"))


def test_a_topic_follows_a_registry(broker: str, single: str) -> None:
    """A replication adds records for new, deleted and replaced versions. A second run adds nothing."""
    with registry(public_url="http://a.example") as box:
        box.register_all({"x": '"int"', "y": '"long"'})
        source = SteleRegistry(HttpApi(box.client), box.url)
        replicator = Replicator(source, SchemasTopic(broker, single, ProcessMemory()))
        assert replicator.synchronize().registered == 2
        assert replicator.synchronize().same == 2
        box.client.delete_subject("x")
        box.client.delete_subject("x", permanent=True)
        box.client.register("x", Schema('"double"'))
        box.client.delete_subject("y")
        outcome = replicator.synchronize()
        assert (outcome.registered, outcome.removed, outcome.conflicts) == (1, 2, ())
        versions = folding.read_topic_records(topics.read_topic(broker, single)).versions
        assert [(row.subject, row.schema, row.deleted) for row in versions] == [
            ("x", '"double"', False),
            ("y", '"long"', True),
        ]
