"""Loads the profile of generated examples and sets how Spark starts Java, before any test is read."""

from __future__ import annotations

from tests.support.examples import load_profile
from tests.support.spark_jvm import start_machines_fast

load_profile()
start_machines_fast()
