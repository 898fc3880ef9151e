"""Loads the profile of tests with generated examples, before any of them is read."""

from __future__ import annotations

from tests.support.examples import load_profile

load_profile()
