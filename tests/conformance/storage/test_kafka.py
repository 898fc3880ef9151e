"""The log in a Kafka topic satisfies the contract of a log, in one process and in many, on a real broker."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.kafka import kafka

from stele.storage import open_log
from stele.testing.log_process_suite import LogProcessConformance
from stele.testing.log_suite import LogConformance, Opener

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker."""
    if address := os.environ.get("STELE_TEST_KAFKA"):
        yield address
        return
    with kafka(tmp_path_factory.mktemp("kafka")) as address:
        yield address


@pytest.fixture
def url(broker: str) -> str:
    """A new topic."""
    return f"kafka://{broker}/stele-{os.urandom(6).hex()}"


class TestKafkaLog(LogConformance):
    """Handles of one process on one topic. Handles without checksums are not tested, because the suite is slow here."""

    @pytest.fixture
    def opener(self, url: str) -> Opener:
        """Handles on one new topic."""
        return lambda: open_log(url)


class TestKafkaProcesses(LogProcessConformance):
    """Processes on one topic. A client needs half a second for its first message, while others write."""

    fair = 0.2
    contention_seconds = 4

    @pytest.fixture
    def url(self, broker: str, tmp_path: Path) -> str:
        """One new topic."""
        return f"kafka://{broker}/{tmp_path.name}-{os.urandom(4).hex()}"
