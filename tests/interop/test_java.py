"""Java clients from Maven Central, unmodified, against a real server. Their programs are in java/*/src.

- Pravega: its client 0.6.0 with the serializers for Avro, JSON and Protobuf. These declare a test jar that does not
  exist and that they do not use, so it is excluded.
- schema-repo: both clients of release 0.1.3, one for its own server and one for that of AVRO-1124 (the patch of
  AVRO-1124 itself was never published). Their API has no deletion, so another dialect deletes.
- Azure: its client 1.4.9 and the serializer for Avro.
- RocketMQ: its client 0.1.0 with the serializers for Avro and JSON.
- Confluent: its own client, serializers, rules, field encryption and Connect converter, all of release 7.7.0. They are
  in the jar of Snowflake's connector (the artifacts of io.confluent themselves are not on Maven Central, and no jar
  with the serializers for JSON and Protobuf was found). Also Flink's serializers, Spring Cloud's client, and that of
  the Hermes broker, which knows only the members of answers before release 8.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.interop.test_azure_client import ending_tls
from tests.support.server_process import free_port, serving

from stele.wire import pravega as wire

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1200)]
SOURCES = Path(__file__).parent / "java"
DOWNLOAD_SECONDS = 900  # the first run fetches what the modules need
STORY_SECONDS = 240
PASSWORD = "changeit"  # of the store of CAs; it must have a password
QUICK_START = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


class Project:
    """The compiled modules, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def tell(self, module: str, program: str, *arguments: str, trusting: Path | None = None) -> str:
        """Run a program of a module and return its output, which is shown when it fails.

        `trusting` is a store of CAs.
        """
        target = self._folder / module / "target"
        path = f"{target / 'classes'}:{(target / 'classpath').read_text().strip()}"
        trust = [f"-Djavax.net.ssl.trustStore={trusting}", f"-Djavax.net.ssl.trustStorePassword={PASSWORD}"]
        command = ["java", *QUICK_START, *(trust if trusting else []), "-cp", path, f"interop.{program}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=STORY_SECONDS, check=False)
        assert done.returncode == 0, f"{program} {arguments}:\n{done.stdout[-6000:]}\n{done.stderr[-4000:]}"
        assert done.stdout.count("\n") > 5, f"{program} {arguments} told nothing:\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """All modules, compiled by one run of Maven, with the class path of each."""
    assert shutil.which("mvn"), "Maven is missing: these tests need `mvn` and a JDK of at least 17"
    folder = tmp_path_factory.mktemp("java") / "project"
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("target"))
    command = ["mvn", "-q", "-B", "compile", "dependency:build-classpath"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    return Project(folder)


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """URL of each dialect on one server for all programs. Each program deletes what it created."""
    pravega, repo, rocketmq = free_port(), free_port(), free_port()
    listen = (f"pravega={pravega}", f"schema-repo={repo}", f"rocketmq={rocketmq}")
    flags = [flag for item in listen for flag in ("--listen", item)]
    with serving("--store", "memory:", *flags, folder=tmp_path_factory.mktemp("server")) as server:
        yield {
            "confluent": server.url,
            "pravega": server.url,
            "pravega by prefix": f"{server.url}/pravega",
            "pravega by port": f"http://127.0.0.1:{pravega}",
            "schema-repo": f"{server.url}/avro1124/schema-repo",
            "schema-repo at the root": f"{server.url}/schema-repo",
            "schema-repo by port": f"http://127.0.0.1:{repo}/schema-repo",
            "rocketmq": server.url,
            "rocketmq by prefix": f"{server.url}/rocketmq",
            "rocketmq by port": f"http://127.0.0.1:{rocketmq}",
        }


@pytest.fixture(scope="module")
def before_release_8(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a server with the answers of release 7.9."""
    flags = ("--store", "memory:", "--confluent-profile", "7.9")
    with serving(*flags, folder=tmp_path_factory.mktemp("older")) as server:
        yield server.url


OWN = [("serdes", "Serdes", story) for story in ("client", "avro", "rules", "encryption", "connect")]
OTHERS = [("confluent", "Confluent", client) for client in ("flink", "spring", "hermes")]


@pytest.mark.parametrize(("module", "program", "story"), [*OWN, *OTHERS[:2]])
def test_confluent(module: str, program: str, story: str, project: Project, urls: Mapping[str, str]) -> None:
    """A client registers, evolves, encodes and decodes. An incompatible schema is refused, and the subject deleted."""
    project.tell(module, program, story, urls["confluent"])


@pytest.mark.parametrize(("module", "program", "story"), [*OWN[:2], *OTHERS[1:]])
def test_confluent_before_release_8(
    module: str, program: str, story: str, project: Project, before_release_8: str
) -> None:
    """The programs also work with the answers of the older profile, which Hermes needs."""
    project.tell(module, program, story, before_release_8)


@pytest.mark.parametrize(
    ("story", "place"),
    [
        ("groups", "pravega"),
        ("schemas", "pravega"),
        ("schemas", "pravega by prefix"),
        ("schemas", "pravega by port"),
        ("avro", "pravega"),
        ("json", "pravega"),
        ("protobuf", "pravega"),
        ("formats", "pravega"),
    ],
)
def test_pravega(story: str, place: str, project: Project, urls: Mapping[str, str]) -> None:
    """The client manages groups and schemas; serializers of every format register, evolve, encode, decode, delete."""
    project.tell("pravega", "Pravega", story, urls[place])


ORDERS = {"avro": b"\x54", "json": b'{"amount":42,"currency":"EUR"}', "protobuf": b"\x08\x2a"}
CODECS = {"None": wire.NONE, "GzipCompressor": wire.GZIP, "SnappyCompressor": wire.SNAPPY}


def test_pravega_events(project: Project, urls: Mapping[str, str]) -> None:
    """Stele reads the events of the serializers of every format and codec, and they read Stele's events."""
    output = project.tell("pravega", "Pravega", "write", urls["pravega"])
    ours = []
    for language, codec, event in (line.split()[1:] for line in output.splitlines() if line.startswith("event ")):
        number, payload = wire.unframe(bytes.fromhex(event))
        assert wire.decompress(CODECS[codec], payload).rstrip(b"\0") == ORDERS[language]
        ours.append(wire.frame(number, wire.compress(CODECS[codec], ORDERS[language])).hex())
    assert len(ours) == len(ORDERS) * len(CODECS)
    project.tell("pravega", "Pravega", "read", urls["pravega"], *ours)


@pytest.mark.parametrize("client", ["rest", "avro1124"])
@pytest.mark.parametrize("place", ["schema-repo", "schema-repo at the root", "schema-repo by port"])
def test_schema_repo(client: str, place: str, project: Project, urls: Mapping[str, str]) -> None:
    """A client registers subjects and schemas with validators, encodes and decodes. Another dialect deletes."""
    project.tell("schemarepo", "SchemaRepo", client, urls[place], urls["confluent"])


@pytest.mark.parametrize("place", ["rocketmq", "rocketmq by prefix", "rocketmq by port"])
def test_rocketmq(place: str, project: Project, urls: Mapping[str, str]) -> None:
    """The client registers, evolves, binds, reads and deletes, with and without headers. Serializers round-trip."""
    project.tell("rocketmq", "RocketMq", urls[place], f"{urls[place]}/schema-registry/v1")


@pytest.mark.parametrize("prefix", ["", "/cncf"])
def test_azure(prefix: str, project: Project, urls: Mapping[str, str], tmp_path: Path) -> None:
    """The client, which requires https, registers, evolves and reads. Its serializer encodes and decodes."""
    with ending_tls(urls["confluent"], tmp_path) as (host, certificate):
        store = tmp_path / "trusted.p12"
        options = ["-file", str(certificate), "-keystore", str(store), "-storepass", PASSWORD]
        subprocess.run(
            ["keytool", "-importcert", "-noprompt", "-alias", "test", *options], check=True, capture_output=True
        )
        project.tell("azure", "Azure", host + prefix, urls["confluent"] + prefix, trusting=store)
