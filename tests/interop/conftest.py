"""Other vendors' clients, unmodified, against a real server; and a broker, either librdkafka's mock or a real one.

`STELE_INTEROP_URL` names another registry to run the same tests against.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from uuid import uuid4

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient
from grpc_tools import protoc  # type: ignore[import-untyped]  # ships no types
from tests.support.kafka import kafka
from tests.support.mock_broker import run_mock_broker
from tests.support.server_process import serving

from stele.client import SchemaRegistryClient


@pytest.fixture(scope="session")
def registry_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a registry of its own, started for these tests."""
    elsewhere = os.environ.get("STELE_INTEROP_URL")
    if elsewhere:
        yield elsewhere
        return
    with serving("--store", "memory:", folder=tmp_path_factory.mktemp("registry")) as server:
        yield server.url


@pytest.fixture
def ours(registry_url: str) -> Iterator[SchemaRegistryClient]:
    """Stele's client."""
    with SchemaRegistryClient(registry_url, timeout=120, deadline=240) as client:
        yield client


@pytest.fixture
def theirs(registry_url: str) -> Iterator[TheirClient]:
    """confluent-kafka's client."""
    with TheirClient({"url": registry_url}) as client:
        yield client


@pytest.fixture
def topic() -> str:
    """A topic no other test uses."""
    return f"topic-{uuid4().hex[:12]}"


@pytest.fixture(scope="session", params=["librdkafka", pytest.param("kraft", marks=pytest.mark.servers)])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a broker: first the mock broker in librdkafka, then a real one."""
    if request.param == "kraft":
        with kafka(tmp_path_factory.mktemp("kafka")) as address:
            yield address
        return
    with run_mock_broker() as address:
        yield address


@pytest.fixture
def compile_proto(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], list[ModuleType]]:
    """Function that generates Python modules from .proto texts by file name, in the order given.

    The generated code registers its files in one pool for the whole process, so each test needs file names and
    packages of its own.
    """

    def compile_(texts: dict[str, str]) -> list[ModuleType]:
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        arguments = ["protoc", f"-I{tmp_path}", f"-I{_well_known()}", f"--python_out={tmp_path}", *texts]
        assert protoc.main(arguments) == 0
        monkeypatch.syspath_prepend(str(tmp_path))
        return [importlib.import_module(name.replace(".proto", "_pb2")) for name in texts]

    return compile_


def _well_known() -> Path:
    return Path(str(files("grpc_tools"))) / "_proto"
