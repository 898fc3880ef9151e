"""A real Kafka broker of one node (KRaft), from Maven Central's artifacts."""

from __future__ import annotations

import base64
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from confluent_kafka import KafkaException, Producer
from tests.support.java_options import LIGHT, get_archive_option, get_recording_option
from tests.support.maven import jars, make_once
from tests.support.server_process import free_port

_POM = Path(__file__).with_name("kafka-pom.xml")
_START = 240.0  # seconds
USER, PASSWORD = "ann", "secret"


@contextmanager
def kafka(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a broker with its data in a folder and yield its address. `settings` override the defaults."""
    with KafkaBroker(folder, settings) as broker:
        yield broker.address


def _java_command(option: str) -> list[str]:
    logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return ["java", "-Xmx512m", *LIGHT, option, logging, "-cp", f"{jars(_POM)}/*"]


def _find_archive() -> Path:
    """Return the archive of the classes that a broker loads. The first call records it with a broker of its own."""
    archive = jars(_POM).with_suffix(".jsa")
    make_once(archive, _record_archive)
    return archive


def _record_archive(archive: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, KafkaBroker(Path(folder), classes=get_recording_option(archive)):
        pass


class KafkaBroker:
    """A broker with its data in a folder; a context manager. `settings` override the defaults.

    secure   adds a second address with TLS, with the certificate of `tests.support.certificates`. Clients log in
             by PLAIN or SCRAM-SHA-512 as `USER` with `PASSWORD`.
    classes  option of the Java machine that replaces the archive of its classes

    Attributes:
        address: Address without TLS and without authentication.
        secure_address: Address with TLS and a password.
        authority: File of the certificate authority that signed the certificate.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, str] | None = None, *, secure: bool = False, classes: str = ""
    ) -> None:
        self._java = _java_command(classes or get_archive_option(_find_archive()))
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        self._config = folder / "server.properties"
        secure_port = free_port()
        self.secure_address = f"localhost:{secure_port}"
        self.authority = folder / "ca.pem"
        self._is_secure = secure
        more = _list_secure_settings(folder, port, secure_port) if secure else {}
        rows = _settings(folder, port, {**more, **(settings or {})}).items()
        self._config.write_text("".join(f"{name}={value}\n" for name, value in rows))
        self._log = folder / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # Option and id are one argument, because an id may begin with a hyphen.
        options = [f"--cluster-id={cluster}", "--config", str(self._config)]
        if self._is_secure:
            options += ["--add-scram", f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"]
        format_storage = [*self._java, "kafka.tools.StorageTool", "format", *options]
        done = subprocess.run(format_storage, capture_output=True, text=True, timeout=_START, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(120)  # a broker that records its classes takes long
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def kill(self) -> None:
        """Kill the broker."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def restart(self) -> None:
        """Kill the broker and start it again; returns when it answers."""
        self.kill()
        self._start()

    def _start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(self._config)], stdout=log, stderr=subprocess.STDOUT
            )
        _wait(self.address, self._process, self._log)


def _list_secure_settings(folder: Path, port: int, secure_port: int) -> dict[str, str]:
    from tests.support.certificates import write_certificates  # the lakehouse tests lack its packages

    write_certificates(folder)
    (folder / "keystore.pem").write_bytes((folder / "server.key").read_bytes() + (folder / "server.pem").read_bytes())
    modules = "org.apache.kafka.common.security"
    return {
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{secure_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_SSL://localhost:{secure_port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": (
            f'{modules}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        ),
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{modules}.scram.ScramLoginModule required;",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "keystore.pem"),
    }


def _settings(folder: Path, port: int, more: Mapping[str, str]) -> dict[str, str]:
    controller = free_port()
    listeners = more.get("listeners", f"PLAINTEXT://127.0.0.1:{port}")
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(folder / "data"),
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        **more,
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
    }


def _wait(address: str, broker: subprocess.Popen[bytes], log: Path) -> None:
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    until = time.monotonic() + _START
    while time.monotonic() < until:
        assert broker.poll() is None, f"the broker ended:\n{log.read_text()[-4000:]}"
        try:
            producer.list_topics(timeout=5)
            return
        except KafkaException:
            time.sleep(0.2)
    raise AssertionError(f"the broker does not answer:\n{log.read_text()[-4000:]}")
