"""Lets pytest explain the assertions of the shared suite as it does those of test files."""

import pytest

pytest.register_assert_rewrite("stele.testing.log_suite", "stele.testing.log_process_suite", "stele.testing.log_crew")
