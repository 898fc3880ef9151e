"""The log in Kafka with two nodes: messages in the topic, compaction, and brokers that restart.

Source: docs/protocols/redpanda.md#one-log-many-writers.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from tests.support.kafka import KafkaBroker, kafka
from tests.support.sealing import check_sealing

from stele.core import commands as cmd
from stele.core.model import SubjectKey
from stele.errors import InvalidRequest, StoreError
from stele.service.registry import Registry
from stele.storage import open_log
from stele.storage.kafka.client import END_OF_TOPIC
from stele.storage.kafka.log import KafkaLog
from stele.storage.kafka.maintenance import TopicFiles, inspect_topic
from stele.storage.kafka.topic import name_snapshot_topic
from stele.testing.log_crew import read_all

pytestmark = pytest.mark.servers

CLEANER = {"log.cleaner.backoff.ms": "200", "log.cleaner.enable": "true", "log.retention.check.interval.ms": "1000"}
SHORT_SESSION = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"}
"""Short sessions, so that a killed broker can register again soon."""
EAGER = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.001",
    "segment.ms": "500",
    "delete.retention.ms": "500",
    "max.compaction.lag.ms": "500",
}
"""Settings of a topic that is compacted as soon as possible."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder for the broker's files."""
    return tmp_path_factory.mktemp("kafka")


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[str]:
    """Run a broker that compacts often, and yield its address."""
    with kafka(folder, CLEANER) as address:
        yield address


@pytest.fixture
def topic() -> str:
    """Return the name of a new topic."""
    return f"stele-{os.urandom(6).hex()}"


@pytest.fixture
def url(broker: str, topic: str) -> str:
    """Return the URL of a new store."""
    return f"kafka://{broker}/{topic}"


@pytest_asyncio.fixture
async def nodes(url: str) -> AsyncIterator[tuple[KafkaLog, KafkaLog]]:
    """Open two nodes."""
    a, b = await KafkaLog.open(url), await KafkaLog.open(url)
    a._node, b._node = "A", "B"
    yield a, b
    await a.close()
    await b.close()


def _make_topic(broker: str, topic: str, config: dict[str, str], partitions: int = 1) -> None:
    admin = AdminClient({"bootstrap.servers": broker})
    admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result()


def _read_topic(broker: str, topic: str) -> list[tuple[int, dict[str, Any], bytes | None]]:
    """Return all messages as (offset, key, value)."""
    consumer = Consumer({"bootstrap.servers": broker, "group.id": "test", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    messages = []
    try:
        while True:
            message = consumer.poll(60)
            assert message is not None
            error = message.error()
            if error is None:
                messages.append((message.offset(), json.loads(message.key()), message.value()))
            elif error.name() == END_OF_TOPIC:  # other errors are temporary: a broker may not know a new topic yet
                return messages
    finally:
        consumer.close()


def _short(messages: list[tuple[int, dict[str, Any], bytes | None]]) -> list[str]:
    """Return the messages in the notation of the examples: `1-A` and the type of message; `NULL` for a tombstone."""
    names = {"RECORDS": "record", "REPLACEMENT": "erased", "RESTORED": "restored"}
    return [
        f"{key['seq']}-{key['node']} {'NULL' if value is None else names[key['keytype']]}" for _, key, value in messages
    ]


# --- the worked examples of the design (see the source above) -------------------------------------------------------


async def test_uncontended_lifecycle(nodes: tuple[KafkaLog, KafkaLog], broker: str, topic: str) -> None:
    """Writes claim 1, 2, 3 … An erasure writes the replacement and a tombstone for the original key."""
    a, _ = nodes
    for seq, record in enumerate([b"schema 1", b"schema 2", b"deleted"]):
        assert await a.append(seq, [record])
    await a.erase(1, b"gone")
    await a.erase(2, b"gone")
    assert _short(_read_topic(broker, topic)) == [
        "1-A record",
        "2-A record",
        "3-A record",
        "1-A erased",
        "1-A NULL",
        "2-A erased",
        "2-A NULL",
    ]
    claims = [key for _, key, _ in _read_topic(broker, topic)]
    assert claims[4] == claims[0]
    assert claims[6] == claims[1]


async def test_contended_writes_of_the_same_value(nodes: tuple[KafkaLog, KafkaLog], broker: str, topic: str) -> None:
    """Two nodes claim 1. The second one reads the record of the first one and deletes its own message."""
    a, b = nodes
    assert await asyncio.gather(a.append(0, [b"schema"]), b.append(0, [b"schema"])) in ([True, False], [False, True])
    for node in nodes:
        assert await node.tail(0, 9) == [(1, b"schema")]
    await _until(lambda: len(_read_topic(broker, topic)) == 3)
    written = _short(_read_topic(broker, topic))
    loser = written[1][2]
    assert sorted(written[:2]) == ["1-A record", "1-B record"]
    assert written[2] == f"1-{loser} NULL"


async def test_contended_writes_of_different_subjects(
    nodes: tuple[KafkaLog, KafkaLog], broker: str, topic: str
) -> None:
    """The node that lost reads the missing record and claims the next number."""
    a, b = nodes
    won = await asyncio.gather(a.append(0, [b"foo"]), b.append(0, [b"bar"]))
    assert sorted(won) == [False, True]
    loser, record = (b, b"bar") if won[0] else (a, b"foo")
    assert await loser.append(await loser.head(), [record])
    assert {entry.record for entry in await a.tail(0, 9)} == {b"foo", b"bar"}
    assert await a.tail(0, 9) == await b.tail(0, 9)
    await _until(lambda: f"1-{loser._node} NULL" in _short(_read_topic(broker, topic)))
    assert _short(_read_topic(broker, topic)).count(f"2-{loser._node} record") == 1


async def test_contended_erasures(nodes: tuple[KafkaLog, KafkaLog], broker: str, topic: str) -> None:
    """Two nodes erase the same record: both write a tombstone for the original key, and both succeed."""
    a, b = nodes
    assert await a.append(0, [b"secret", b"other secret"])
    await asyncio.gather(a.erase(1, b"gone"), b.erase(1, b"gone"), b.erase(2, b"away"))
    for node in nodes:
        assert await node.tail(0, 9) == [(1, b"gone"), (2, b"away")]
    messages = _read_topic(broker, topic)
    taken_back = {json.dumps(key) for _, key, value in messages if value is None}
    left = [value for _, key, value in messages if value is not None and json.dumps(key) not in taken_back]
    assert [b"secret" in value for value in left] == [False]


async def _until(is_true: Any, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not await asyncio.to_thread(is_true):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)


# --- compaction -----------------------------------------------------------------------------------------------------


def _find_segments(data: Path, folders: str, wanted: bytes) -> list[Path]:
    """Return the files of topics that contain some bytes.

    Compaction replaces files. If one disappears during the search, the search starts again.
    """
    while True:
        files = [file for file in data.glob(f"{folders}/*") if file.name.endswith((".log", ".log.swap"))]
        with suppress(FileNotFoundError):
            return [file for file in files if wanted in file.read_bytes()]


async def test_compaction_takes_what_was_erased_and_nothing_else(
    broker: str, topic: str, url: str, folder: Path
) -> None:
    """Erased records and lost claims leave the broker's files; old and new nodes read the same log."""
    _make_topic(broker, topic, EAGER)
    a, b = await KafkaLog.open(url), await KafkaLog.open(url)
    records = [b"record %d" % i for i in range(20)]
    records[7] = b"the word sesame is in this record"
    for seq, record in enumerate(records):
        assert await a.append(seq, [record])
        if seq == 7:
            assert await asyncio.gather(
                a.append(8, [b"eight"]), b.append(8, [b"sesame was said by a loser, or a winner"])
            ) in ([True, False], [False, True])
            records.insert(8, (await a.tail(8, 1))[0].record)
            break
    head = await a.head()
    assert _find_segments(folder / "data", f"{topic}-0", b"sesame")
    await b.erase(8, b"erased")
    await a.erase(9, b"erased")
    expected = [entry.record for entry in await a.tail(0, 99)]
    deadline = time.monotonic() + 240
    while _find_segments(folder / "data", f"{topic}-0", b"sesame"):
        assert time.monotonic() < deadline, "Kafka has not compacted the topic"
        # The last messages stay in the active segment, which is never compacted.
        assert await a.append(await a.head(), [b"more"])
        await asyncio.sleep(0.7)
    for handle in (a, b, fresh := await KafkaLog.open(url)):
        assert [entry.record for entry in await handle.tail(0, head)] == expected
    assert [stored for _, stored in TopicFiles(url).read_stored(0)][:head] == expected
    for handle in (a, b, fresh):
        await handle.close()


async def test_a_purged_schema_leaves_the_topic(broker: str, topic: str, url: str) -> None:
    """A permanently deleted schema is only in messages that have a tombstone."""
    registry = await Registry.open(await open_log(url))
    key = SubjectKey("", "secrets")
    text = b'{"type": "enum", "name": "Word", "symbols": ["Sesame"]}'
    prepared = await registry.parser.prepare_schema(await registry.fresh_state(), "avro", text, ())
    await registry.execute(cmd.RegisterSchema(key, prepared.document, prepared.references))
    assert any(b"Sesame" in (value or b"") for _, _, value in _read_topic(broker, topic))
    for mode in (cmd.DeleteMode.SOFT, cmd.DeleteMode.HARD):
        await registry.execute(cmd.DeleteSubject(key, mode))
    await registry.close()
    messages = _read_topic(broker, topic)
    taken_back = {json.dumps(key) for _, key, value in messages if value is None}
    left = [value or b"" for _, key, value in messages if json.dumps(key) not in taken_back]
    assert not any(b"Sesame" in value for value in left)


async def test_sealed_secrets_leave_the_topic(
    broker: str, topic: str, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sealing removes plain secrets from all messages without a tombstone, and compaction from the broker's files."""
    for name in (topic, name_snapshot_topic(topic)):
        _make_topic(broker, name, EAGER)

    def find_files(wanted: bytes) -> list[Path]:
        return _find_segments(folder / "data", f"{topic}*", wanted)

    async def wait(registry: Registry) -> None:
        deadline = time.monotonic() + 240
        number = 0
        while find_files(b"open-sesame"):
            assert time.monotonic() < deadline, "Kafka has not compacted the topic"
            number += 1  # the last messages stay in the active segment, which is never compacted
            await registry.execute(cmd.CreateSubject(SubjectKey("", f"more-{number}")))
            await registry._save_snapshot(always=True)
            await asyncio.sleep(0.7)

    await check_sealing(url, find_files, monkeypatch, wait_for_erasure=wait)


# --- brokers --------------------------------------------------------------------------------------------------------


async def test_refused_topics(broker: str, topic: str, url: str) -> None:
    """A topic with several partitions, a deleting policy, or messages of another program is refused with an error."""
    _make_topic(broker, topic, {"cleanup.policy": "compact"}, partitions=3)
    with pytest.raises(StoreError, match="has 3 partitions; a log needs one"):
        await KafkaLog.open(url)
    _make_topic(broker, f"{topic}-b", {"cleanup.policy": "compact,delete"})
    with pytest.raises(StoreError, match=r"has the cleanup\.policy 'compact,delete', which deletes records"):
        await KafkaLog.open(f"{url}-b")
    _make_topic(broker, f"{topic}-c", {"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": broker})
    producer.produce(f"{topic}-c", key=b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', value=b"{}")
    producer.flush()
    with pytest.raises(StoreError, match="has messages of another program"):
        await KafkaLog.open(f"{url}-c")


async def test_messages_of_a_newer_release(broker: str, topic: str, url: str) -> None:
    """An older release stops at messages of a newer one with an error. Foreign messages after records are skipped."""
    log = await KafkaLog.open(url)
    assert await log.append(0, [b"a"])
    producer = Producer({"bootstrap.servers": broker})
    producer.produce(topic, key=b"junk", value=b"junk")
    producer.flush()
    assert await log.append(1, [b"b"])
    assert [entry.record for entry in await read_all(log)] == [b"a", b"b"]
    producer.produce(topic, key=b'{"keytype":"RECORDS","seq":3,"magic":2,"new":true}', value=b"?")
    producer.flush()
    with pytest.raises(
        StoreError, match="messages of layout 2, but this program knows only layout 1: use a newer Stele"
    ):
        await log.head()
    await log.close()
    with pytest.raises(StoreError, match="use a newer Stele"):
        await KafkaLog.open(url)


async def test_records_that_are_too_big(broker: str, topic: str, url: str) -> None:
    """The error names the setting of the topic to raise. The log continues."""
    _make_topic(broker, topic, {"cleanup.policy": "compact", "max.message.bytes": "2000"})
    log = await KafkaLog.open(url)
    with pytest.raises(StoreError, match=r"takes no message of that size.*Raise max\.message\.bytes"):
        await log.append(0, [os.urandom(5000)])
    assert await log.append(0, [b"small"])
    await log.close()


async def test_the_condition_of_a_topic(url: str) -> None:
    """`inspect_topic` reports the state of a topic for `stele doctor` and creates nothing."""
    assert not inspect_topic(url).exists
    with pytest.raises(InvalidRequest, match="there is no store"):
        TopicFiles(url)
    await (await KafkaLog.open(url)).close()
    condition = inspect_topic(url)
    assert condition.exists
    assert condition.doubts == ("the topic has one replica: its records are lost with that broker",)


async def test_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a broker, opening the log fails in time with an error."""
    monkeypatch.setattr("stele.storage.kafka.client.ANSWER_SECONDS", 1.0)
    with pytest.raises(
        StoreError, match=r"The log kafka://127\.0\.0\.1:1/x (cannot be reached|does not answer in time)"
    ):
        await KafkaLog.open("kafka://127.0.0.1:1/x")


async def test_a_deleted_topic(broker: str, topic: str, url: str) -> None:
    """A write does not create a deleted topic again."""
    log = await KafkaLog.open(url)
    assert await log.append(0, [b"a"])
    admin = AdminClient({"bootstrap.servers": broker})
    admin.delete_topics([topic])[topic].result()
    failure: StoreError | None = None
    while failure is None:  # a broker deletes a topic after a delay
        try:
            await log.append(await log.head(), [b"b"])
        except StoreError as error:
            failure = error
        await asyncio.sleep(0.05)
    await log.close()
    # The first error may be due to a deletion in progress. After it, no more records are written.
    await _until(lambda: topic not in admin.list_topics().topics)


async def test_a_broker_that_restarts(tmp_path: Path) -> None:
    """While a broker is killed and restarted, two nodes lose no acknowledged record and write none twice."""
    with KafkaBroker(tmp_path, SHORT_SESSION) as broker:
        url = f"kafka://{broker.address}/restarts"
        nodes = [await KafkaLog.open(url) for _ in range(2)]
        acknowledged: list[bytes] = []
        done = asyncio.Event()

        async def write(i: int, node: KafkaLog) -> None:
            number = 0
            while not done.is_set():
                record = b"%d %d" % (i, number)
                number += 1
                try:
                    while not await node.append(await node.head(), [record]):
                        pass
                except StoreError:
                    await asyncio.sleep(0.1)  # not written, or outcome unknown: go on with another record
                else:
                    acknowledged.append(record)

        writing = asyncio.gather(*(write(i, node) for i, node in enumerate(nodes)))
        await asyncio.sleep(2)
        await _until(lambda: len(acknowledged) > 0)
        before = len(acknowledged)
        await asyncio.to_thread(broker.restart)
        during = len(acknowledged)
        await _until(lambda: len(acknowledged) > during + 10)
        done.set()
        await writing
        assert before > 0
        nodes.append(await KafkaLog.open(url))
        logs = [[entry.record for entry in await node.tail(0, 10**6)] for node in nodes]
        assert logs[0] == logs[1] == logs[2]
        assert len(set(logs[0])) == len(logs[0])
        assert set(acknowledged) <= set(logs[0])
        for node in nodes:
            await node.close()
