"""Real brokers that receive events: Mosquitto (MQTT), a NATS server with JetStream, and RabbitMQ (AMQP 1.0).

A broker keeps its messages when it is stopped and started again; `drain` reads them. Each has an encrypted port with
the certificate of `tests.support.certificates`, and one user with a password.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from tests.support.certificates import write_certificates
from tests.support.database_process import start_program
from tests.support.server_process import free_port

USER, PASSWORD = "ann", "secret"
CREDENTIAL = {"credentialType": "PLAIN", "identifier": USER, "secret": PASSWORD}
_START_SECONDS = 180.0
"""Longest time to start or stop, in seconds. RabbitMQ starts in 10 s on an idle machine."""


class Message(NamedTuple):
    """A message that a broker keeps: its body, its media type, and the attributes that it carries beside the body."""

    body: bytes
    content_type: str
    attributes: dict[str, str]

    @property
    def event(self) -> dict[str, Any]:
        """The event of the message, in binary or structured content mode."""
        return json.loads(self.body) if self.body else self.attributes


class Broker(ABC):
    """A broker with its data in a folder that the user `nobody` can write; a context manager.

    `sink` and `encrypted_sink` are the URLs that subscriptions send to, with the protocol settings `settings`.
    """

    protocol: str
    scheme: str
    encrypted_scheme: str
    settings: ClassVar[Mapping[str, Any]]
    stop_signal = signal.SIGKILL

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.tls_port = free_port(), free_port()
        self.authority = folder / "ca.pem"
        self._process: subprocess.Popen[bytes] | None = None
        write_certificates(folder)

    @property
    def sink(self) -> str:
        """URL that subscriptions send to."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def encrypted_sink(self) -> str:
        """URL that subscriptions send to over TLS. The certificate is for `localhost`."""
        return f"{self.encrypted_scheme}://localhost:{self.tls_port}"

    def __enter__(self) -> Self:
        self.start()
        self.prepare()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the broker and wait until both ports accept connections."""
        self._process = start_program("setsid", *self.configure(), output=self.folder / "log")
        until = time.monotonic() + _START_SECONDS
        while True:
            assert self._process.poll() is None, (self.folder / "log").read_text()
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                socket.create_connection(("127.0.0.1", self.tls_port), 1).close()
            except OSError:
                assert time.monotonic() < until, (self.folder / "log").read_text()
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        """Stop the broker with `stop_signal` and wait until its ports are closed."""
        assert self._process is not None
        os.killpg(self._process.pid, self.stop_signal)
        self._process.wait(_START_SECONDS)
        until = time.monotonic() + _START_SECONDS
        while any(map(_is_open, (self.port, self.tls_port))):  # processes that it started may end after it
            assert time.monotonic() < until, (self.folder / "log").read_text()
            time.sleep(0.05)

    @abstractmethod
    def configure(self) -> list[str]:
        """Write the configuration and return the command that starts the broker."""

    @abstractmethod
    def prepare(self) -> None:
        """Create the session, stream or queue that keeps the messages."""

    @abstractmethod
    def drain(self, is_enough: Callable[[list[Message]], bool], seconds: float = 120.0) -> list[Message]:
        """Wait for enough messages and return all messages so far, in order. Raises `TimeoutError`."""


def _is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        pass
    return True


def _give_to_nobody(path: Path) -> Path:
    if os.geteuid() == 0:
        shutil.chown(path, "nobody")
    return path


# --- MQTT -----------------------------------------------------------------------------------------------------------


class Mosquitto(Broker):
    """Keeps messages in the session of a client that is disconnected."""

    protocol = "MQTT5"
    scheme, encrypted_scheme = "mqtt", "mqtts"
    settings: ClassVar = {"topicname": "stele/changes"}
    stop_signal = signal.SIGTERM  # it writes its sessions to disk now and then, and at the end

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._messages: list[Message] = []

    def configure(self) -> list[str]:
        """Write the configuration and the password file; see `Broker.configure`."""
        passwords = self.folder / "passwords"
        if not passwords.exists():
            passwords.write_text(f"{USER}:{PASSWORD}\n")
            subprocess.run(["mosquitto_passwd", "-U", str(passwords)], check=True)
            _give_to_nobody(passwords)
        config = self.folder / "mosquitto.conf"
        config.write_text(
            f"listener {self.port} 127.0.0.1\nlistener {self.tls_port}\ncertfile {self.folder}/server.pem\n"
            f"keyfile {self.folder}/server.key\npersistence true\npersistence_location {self.folder}/\n"
            f"password_file {passwords}\nallow_anonymous false\nuser nobody\n"
        )
        return ["mosquitto", "-c", str(config)]

    def _make_client(self) -> Any:
        from paho.mqtt import client
        from paho.mqtt.enums import CallbackAPIVersion

        mqtt_client = client.Client(CallbackAPIVersion.VERSION2, "reader", clean_session=None, protocol=client.MQTTv5)
        mqtt_client.username_pw_set(USER, PASSWORD)
        return mqtt_client

    def _connect(self, client: Any) -> None:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = 3600
        client.connect("127.0.0.1", self.port, clean_start=False, properties=properties)

    def prepare(self) -> None:
        """Subscribe the session that keeps the messages; see `Broker.prepare`."""
        client, done = self._make_client(), threading.Event()
        client.on_connect = lambda *_: client.subscribe("stele/#", qos=1)
        client.on_subscribe = lambda *_: done.set()
        self._connect(client)
        client.loop_start()
        assert done.wait(_START_SECONDS)
        client.disconnect()
        client.loop_stop()

    def drain(self, is_enough: Callable[[list[Message]], bool], seconds: float = 120.0) -> list[Message]:
        """Return the messages of the session; see `Broker.drain`."""
        messages = self._messages
        client = self._make_client()
        client.on_message = lambda client, userdata, message: messages.append(_read_mqtt(message))
        self._connect(client)
        client.loop_start()
        try:
            return _wait_for(messages, is_enough, seconds)
        finally:
            client.disconnect()
            client.loop_stop()


def _read_mqtt(message: Any) -> Message:
    properties = message.properties
    pairs = getattr(properties, "UserProperty", [])
    return Message(message.payload, getattr(properties, "ContentType", ""), dict(pairs))


def _wait_for(messages: list[Message], is_enough: Callable[[list[Message]], bool], seconds: float) -> list[Message]:
    until = time.monotonic() + seconds
    while not is_enough(messages):
        if time.monotonic() > until:
            raise TimeoutError(f"{len(messages)} messages came")
        time.sleep(0.05)
    return list(messages)


# --- NATS -----------------------------------------------------------------------------------------------------------


class NatsServer(Broker):
    """Keeps messages in a stream, from which every `drain` reads all."""

    protocol = "NATS"
    scheme, encrypted_scheme = "nats", "tls"
    settings: ClassVar = {"subject": "stele.changes"}

    def configure(self) -> list[str]:
        """Write the configurations of two servers; see `Broker.configure`.

        Encrypted connections go to the second server, a leaf node without a stream.
        """
        common = f'accounts {{ A {{ jetstream: true, users: [{{user: "{USER}", password: "{PASSWORD}"}}] }} }}\n'
        config = self.folder / "nats.conf"
        leaf_port = getattr(self, "_leaf_port", None) or free_port()
        self._leaf_port = leaf_port
        config.write_text(
            f'listen: "127.0.0.1:{self.port}"\njetstream {{ store_dir: "{self.folder}/jetstream" }}\n{common}'
            f'leafnodes {{ listen: "127.0.0.1:{leaf_port}" }}\n'
        )
        leaf = self.folder / "leaf.conf"
        leaf.write_text(
            f'listen: "127.0.0.1:{self.tls_port}"\n'
            f'tls {{ cert_file: "{self.folder}/server.pem", key_file: "{self.folder}/server.key" }}\n'
            f'accounts {{ A {{ users: [{{user: "{USER}", password: "{PASSWORD}"}}] }} }}\n'
            f'leafnodes {{ remotes: [{{ url: "nats://{USER}:{PASSWORD}@127.0.0.1:{leaf_port}", account: A }}] }}\n'
        )
        script = f"nats-server -c {leaf} & exec nats-server -c {config}"
        return ["sh", "-c", script]

    async def _connect(self) -> Any:
        import nats

        return await nats.connect(f"nats://127.0.0.1:{self.port}", user=USER, password=PASSWORD)

    def prepare(self) -> None:
        """Create the stream; see `Broker.prepare`."""

        async def add_stream() -> None:
            client = await self._connect()
            await client.jetstream(timeout=_START_SECONDS).add_stream(name="changes", subjects=["stele.>"])
            await client.close()

        asyncio.run(add_stream())

    def drain(self, is_enough: Callable[[list[Message]], bool], seconds: float = 120.0) -> list[Message]:
        """Return the messages of the stream; see `Broker.drain`."""

        async def read() -> list[Message]:
            client = await self._connect()
            messages: list[Message] = []
            try:
                stream = client.jetstream(timeout=_START_SECONDS)
                subscription = await stream.subscribe("stele.>", ordered_consumer=True)
                async with asyncio.timeout(seconds):
                    while not is_enough(messages):
                        headers = dict((message := await subscription.next_msg(seconds)).headers or {})
                        attributes = {
                            name.removeprefix("ce-"): value for name, value in headers.items() if name.startswith("ce-")
                        }
                        messages.append(Message(message.data, headers.get("content-type", ""), attributes))
            finally:
                await client.close()
            return messages

        return asyncio.run(read())


# --- AMQP 1.0 -------------------------------------------------------------------------------------------------------


class RabbitMq(Broker):
    """Keeps messages in a durable queue."""

    protocol = "AMQP"
    scheme, encrypted_scheme = "amqp", "amqps"
    settings: ClassVar = {"address": "/amq/queue/changes", "linkname": "stele", "linkproperties": {"team": "data"}}

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._epmd_port, self._dist_port = free_port(), free_port()
        self._messages: list[Message] = []

    def configure(self) -> list[str]:
        """Write the configuration and return the command with its environment variables; see `Broker.configure`."""
        folder = self.folder
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\nlisteners.ssl.1 = 127.0.0.1:{self.tls_port}\n"
            f"ssl_options.certfile = {folder}/server.pem\nssl_options.keyfile = {folder}/server.key\n"
            f"ssl_options.cacertfile = {folder}/ca.pem\ndefault_user = {USER}\ndefault_pass = {PASSWORD}\n"
        )
        (folder / "plugins").write_text("[rabbitmq_amqp1_0].\n")
        variables = {
            "HOME": str(folder),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "RABBITMQ_NODENAME": f"stele-{self.port}@localhost",
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins",
            "RABBITMQ_MNESIA_BASE": f"{folder}/data",
            "RABBITMQ_LOG_BASE": f"{folder}/logs",
            "RABBITMQ_PID_FILE": f"{folder}/pid",
            "RABBITMQ_SCHEMA_DIR": f"{folder}/schema",
            "RABBITMQ_GENERATED_CONFIG_DIR": f"{folder}/config",
        }
        pairs = [f"{name}={value}" for name, value in variables.items()]
        return ["env", *pairs, "/usr/lib/rabbitmq/bin/rabbitmq-server"]

    def stop(self) -> None:
        """Stop the broker and wait until Erlang's port mapper (epmd) has removed its node name.

        A node of the same name cannot start before that.
        """
        super().stop()
        command = ["epmd", "-port", str(self._epmd_port), "-names"]
        until = time.monotonic() + _START_SECONDS
        while f"stele-{self.port} " in subprocess.run(command, capture_output=True, text=True, check=False).stdout:
            assert time.monotonic() < until, "a node that was killed is still known"
            time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        self.stop()
        command = ["epmd", "-port", str(self._epmd_port), "-kill"]
        until = time.monotonic() + 10
        while subprocess.run(command, capture_output=True, check=False).returncode and time.monotonic() < until:
            time.sleep(0.1)  # epmd refuses to end while a node is registered

    def _connect(self) -> Any:
        from proton.utils import BlockingConnection

        until = time.monotonic() + _START_SECONDS
        while True:  # its ports are open before it accepts logins
            try:
                return BlockingConnection(
                    f"amqp://127.0.0.1:{self.port}",
                    timeout=60,
                    user=USER,
                    password=PASSWORD,
                    allowed_mechs="PLAIN",
                    allow_insecure_mechs=True,
                )
            except Exception:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def prepare(self) -> None:
        """Create the durable queue; see `Broker.prepare`."""
        from proton import Terminus
        from proton.reactor import ReceiverOption

        class DurableQueue(ReceiverOption):
            def apply(self, receiver: Any) -> None:
                receiver.source.durability = Terminus.DELIVERIES

        connection = self._connect()
        connection.create_receiver("/queue/changes", credit=0, options=DurableQueue())
        connection.close()

    def drain(self, is_enough: Callable[[list[Message]], bool], seconds: float = 120.0) -> list[Message]:
        """Return the messages of the queue; see `Broker.drain`."""
        from proton import Timeout

        connection, until = self._connect(), time.monotonic() + seconds
        receiver = connection.create_receiver("/amq/queue/changes", credit=50)
        try:
            while not is_enough(self._messages):
                try:
                    message = receiver.receive(timeout=max(until - time.monotonic(), 0.1))
                except Timeout:
                    raise TimeoutError(f"{len(self._messages)} messages came") from None
                receiver.accept()
                attributes = {
                    str(name).removeprefix("cloudEvents:"): value for name, value in (message.properties or {}).items()
                }
                media_type = str(message.content_type)  # the library says 'None' where there is none
                self._messages.append(
                    Message(bytes(message.body), "" if media_type == "None" else media_type, attributes)
                )
        finally:
            connection.close()
        return self._messages


BROKERS: dict[str, type[Broker]] = {"mqtt": Mosquitto, "nats": NatsServer, "amqp": RabbitMq}
