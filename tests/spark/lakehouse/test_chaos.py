"""A pipeline under failures: its process and its registry are killed at any moment, schemas change, records are broken.

In every case each record is a row or a dead letter, once, and in the right columns.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # documented there
from pyspark.sql import SparkSession
from tests.spark.lakehouse.stack import open_producer, pipeline_file, register, running, send
from tests.spark.orders import V1, V2, V3, order
from tests.support.kafka import kafka
from tests.support.server_process import free_port, wait_ready

from stele.spark.pipeline import load_config, read_dead_letters
from stele.spark.pipeline.journal import BatchJournal
from stele.spark.pipeline.sinks import open_sink

pytestmark = pytest.mark.servers

BATCHES = int(os.environ.get("STELE_CHAOS_BATCHES", "24"))
"""Number of batches; 200 is the long run. Each batch takes about two seconds, each kill about twenty."""
PER_BATCH = 40
LEAST_KILLS = 4
WAIT = 900  # seconds
SUBJECT, TOPIC = "orders-value", "orders"
TABLE = 'name = "shop.orders"'


class Restarting:
    """A registry that is killed and started again on the same port, with the same log."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._process = self._start()

    def restart(self, pause: float) -> None:
        """Kill the registry, wait, and start it."""
        self.stop()
        time.sleep(pause)
        self._process = self._start()

    def stop(self) -> None:
        """Kill the registry."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "stele.cli", "serve", "--port", str(self._port), "--log-level", "error"]
        process = subprocess.Popen(command, cwd=self._folder, start_new_session=True)
        wait_ready(self.url, process)
        return process


def _patiently(call: Callable[[], int]) -> int:
    """Call a registry that can be unavailable, with retries, and return its answer."""
    until = time.monotonic() + 120
    while True:
        try:
            return call()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def _damage_record(record: bytes, chance: random.Random) -> bytes:
    """Return a record that cannot be decoded: cut, lengthened, of an unknown id, or without a frame."""
    return chance.choice([record[:-1], record + b"!", b"\0\x7f\xff\xff\xff" + record[5:], b"\1" + record[1:], b""])


class Sender(threading.Thread):
    """Sends orders of all versions so far.

    Two versions are registered meanwhile, and one record in a hundred is broken.
    """

    def __init__(self, broker: str, registry: Restarting, first: int) -> None:
        super().__init__()
        self._producer = open_producer(broker)
        self._registry = registry
        self._ids = [first]
        self._chance = random.Random(7)
        self.good: dict[int, int] = {}
        self.bad = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        """Send the records, in as many parts as there are batches."""
        for part in range(BATCHES):
            if part in {BATCHES // 3, 2 * BATCHES // 3}:
                schema = (V2, V3)[len(self._ids) - 1]
                self._ids.append(_patiently(lambda schema=schema: register(self._registry.url, SUBJECT, schema)))  # type: ignore[misc]  # bound now
            send(self._producer, TOPIC, [self._record(part * PER_BATCH + n) for n in range(PER_BATCH)])
            if self.stopped.wait(0.1):
                return

    def _record(self, number: int) -> bytes:
        version = self._chance.randrange(len(self._ids))
        record = order(version + 1, self._ids[version], number)
        if self._chance.random() < 0.01:
            self.bad += 1
            return _damage_record(record, self._chance)
        self.good[number] = version + 1
        return record


def _kill_again_and_again(
    file: Path, log: Path, journal: BatchJournal, registry: Restarting, going: Callable[[], bool]
) -> int:
    """Run the pipeline until all records are sent, with SIGKILL after some batches, at any moment.

    Returns the number of kills, which is at least `LEAST_KILLS`: a pipeline that got far before its first kills is
    killed when it starts again.
    """
    chance, kills = random.Random(11), 0
    while going() or kills < LEAST_KILLS:
        process = running(file, log=log)
        enough = journal.read_totals().through + chance.randint(1, max(BATCHES // 6, 9))
        until = time.monotonic() + WAIT
        while journal.read_totals().through < enough and going():
            assert process.poll() is None, log.read_text()[-4000:]
            assert time.monotonic() < until, f"no {enough} batches within {WAIT} seconds: {log.read_text()[-4000:]}"
            if chance.random() < 0.02 and journal.read_totals().batches:
                registry.restart(chance.uniform(0, 3))
            time.sleep(0.5)
        time.sleep(chance.uniform(0, 2))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
    return kills


@pytest.mark.timeout(3000)
def test_every_record_arrives_once(spark: SparkSession, tmp_path: Path) -> None:
    """Rows and dead letters are the records that were sent, each once, with the columns of its version."""
    registry = Restarting(tmp_path)
    sender = None
    try:
        with kafka(tmp_path) as broker:
            admin = AdminClient({"bootstrap.servers": broker})  # must live until its answer arrives
            admin.create_topics([NewTopic(TOPIC, num_partitions=3)])[TOPIC].result(60)
            sender = Sender(broker, registry, register(registry.url, SUBJECT, V1))
            source = f'topics = ["{TOPIC}"]\nmax_records_per_trigger = {PER_BATCH}\npatience = 600'
            often = '[trigger]\ninterval = "0 seconds"'
            file = pipeline_file(tmp_path, "delta", broker, registry.url, source=source, table=TABLE, more=often)
            log = tmp_path / "pipeline.log"
            journal = BatchJournal(str(tmp_path / "state"))
            sender.start()
            kills = _kill_again_and_again(
                file,
                log,
                journal,
                registry,
                lambda: sender.is_alive() or journal.read_totals().through < BATCHES * 9 // 10,
            )
            assert kills >= LEAST_KILLS
            sender.join()
            file.write_text(file.read_text().replace('interval = "0 seconds"', "available_now = true"))
            assert running(file, log=log).wait(WAIT) == 0, log.read_text()[-4000:]
        totals = journal.read_totals()
        assert totals.through + 1 >= BATCHES
        assert (totals.rows, totals.dead_letters) == (len(sender.good), sender.bad), (totals, kills)
        config = load_config(file)
        rows = open_sink(spark, config.table, "shop.orders").read_table().collect()
        assert sorted(row.id for row in rows) == sorted(sender.good)
        for row in rows:
            version = sender.good[row.id]
            assert (row.note is not None, row.place.country is not None) == (version == 3, version == 3)
            assert (row._stele_version, row.place.city) == (version, f"city {row.id}")
        assert read_dead_letters(config, spark=spark).count() == sender.bad
    finally:
        if sender is not None:
            sender.stopped.set()
        registry.stop()
