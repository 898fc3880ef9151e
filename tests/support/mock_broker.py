"""librdkafka's mock broker in a process of its own.

In the process of the tests, other users of librdkafka can keep the broker from ending.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def run_mock_broker() -> Iterator[str]:
    """Run a Kafka broker without storage; yield its address, `host:port`."""
    command = [sys.executable, "-m", "tests.support.mock_broker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def main() -> None:
    """Print the broker's address and run it until standard input ends."""
    from confluent_kafka import Producer

    keeper = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock"})  # the broker lives as long as this
    (broker,) = keeper.list_topics(timeout=240).brokers.values()
    sys.stdout.write(f"{broker.host}:{broker.port}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
