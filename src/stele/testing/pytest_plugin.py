"""Pytest fixture `stele_registry`: a registry on a random port, empty for each test.

The marker `stele_schemas` lists the schemas that are registered when the test begins:

    @pytest.mark.stele_schemas({"orders-value": '{"type": "string"}'})
    def test_my_producer(stele_registry):
        produce(registry_url=stele_registry.url)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from stele.testing import registry

if TYPE_CHECKING:
    from stele.testing.registry_box import RegistryBox


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker. Pytest calls this function."""
    config.addinivalue_line("markers", "stele_schemas(schemas): what `stele_registry` has when the test begins")


@pytest.fixture(scope="session")
def stele_registry_server() -> Iterator[RegistryBox]:
    """Return the registry that all tests of a run share. Use `stele_registry`, which empties it before each test."""
    with registry(port=0) as box:
        yield box


@pytest.fixture
def stele_registry(stele_registry_server: RegistryBox, request: pytest.FixtureRequest) -> RegistryBox:
    """Return a registry on a random port of 127.0.0.1, with the schemas of the marker `stele_schemas` and no others."""
    marker = request.node.get_closest_marker("stele_schemas")
    stele_registry_server.reset(marker.args[0] if marker is not None and marker.args else None)
    return stele_registry_server
