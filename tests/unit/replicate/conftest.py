"""Fixtures of registries: those of a test file's `boxes`, emptied for each test."""

from __future__ import annotations

import pytest

from stele.testing.registry_box import RegistryBox


@pytest.fixture
def a(boxes: list[RegistryBox]) -> RegistryBox:
    """The source, or the registry behind it."""
    boxes[0].reset()
    return boxes[0]


@pytest.fixture
def b(boxes: list[RegistryBox]) -> RegistryBox:
    """The target."""
    boxes[1].reset()
    return boxes[1]
