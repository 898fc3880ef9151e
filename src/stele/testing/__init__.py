"""Helpers for tests: a registry for the tests of users, and conformance suites for plug-ins of Stele.

    from stele.testing import registry

    def test_my_producer() -> None:
        with registry({"orders-value": '{"type": "string"}'}) as box:
            ...

The pytest plug-in (`stele.testing.pytest_plugin`) has the same as a fixture with a port, `stele_registry`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stele.testing.registry_box import RegistryBox, Schemas

__all__ = ["registry"]


def registry(schemas: Schemas = None, *, port: int | None = None, **settings: Any) -> RegistryBox:
    """Start a registry in this process; use it with `with` or `async with`.

    Args:
        schemas: Schemas to register first: a mapping of subjects to schemas, pairs of them, or a folder of files.
        port: TCP port to listen on, too, for clients outside of this process; 0 takes a free one.
        **settings: Settings of the server, as in `stele.toml`.

    Returns:
        The registry, with `client`, `async_client`, `transport`, `app`, `url`, `fail` and `reset`.
    """
    from stele.testing.registry_box import RegistryBox

    return RegistryBox(schemas, port=port, **settings)
