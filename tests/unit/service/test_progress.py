"""Comparisons are counted and their verdicts cached, even if the request is aborted."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.unit.service.test_registry import put, record

from stele.apis.http.requests import REQUEST_SECONDS, limit_time
from stele.core.commands import ChangeSettings
from stele.core.findings import Finding
from stele.core.model import SettingsLevel
from stele.core.policy import POLICIES
from stele.errors import TimeLimitReached
from stele.formats import rulesets
from stele.service.check import Candidate, CheckRequest, check_compatibility
from stele.service.progress import track_progress
from stele.service.registry import Registry
from stele.storage.memory import MemoryLog

VERSIONS = 5


class SlowRules:
    """Rules that block after a number of comparisons."""

    def __init__(self, quick: int) -> None:
        self.left = quick
        self.compared = 0
        self.is_waiting = threading.Event()
        self.released = threading.Event()

    def run_ruleset(self, *_: Any) -> list[Finding]:
        """Return no findings; block when no quick comparison is left."""
        if not self.left:
            self.is_waiting.set()
            self.released.wait(120)
        self.left -= 1
        self.compared += 1
        return []


async def _refuse_call(*_: Any) -> Any:
    raise AssertionError


async def test_a_registration_that_is_given_up_goes_on_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how many comparisons were made, and a second attempt does not repeat them."""
    registry = await Registry.open(MemoryLog())
    await registry.execute(ChangeSettings(SettingsLevel(""), {"policy": POLICIES["BACKWARD_TRANSITIVE"]}))
    for number in range(VERSIONS):
        await put(registry, record("a", f"f{number}"))
    rules = SlowRules(quick=3)
    monkeypatch.setattr(rulesets, "run_ruleset", rules.run_ruleset)
    loop = asyncio.get_running_loop()
    tell_time = loop.time
    # The time is up when the rules wait, and not before, however long the first comparisons take.
    monkeypatch.setattr(loop, "time", lambda: tell_time() + 3600 * rules.is_waiting.is_set())

    async def register(*_: Any) -> None:
        await put(registry, record("a"))

    try:
        with pytest.raises(TimeLimitReached, match=r"\(request_seconds\); 3 of 5 comparisons were made$"):
            await limit_time(register)({REQUEST_SECONDS: 600}, _refuse_call, _refuse_call)  # type: ignore[typeddict-item, typeddict-unknown-key, arg-type]  # no more is looked at
    finally:
        rules.released.set()
    async with asyncio.timeout(120):
        while rules.compared < VERSIONS:  # noqa: ASYNC110 - the thread goes on to its end
            await asyncio.sleep(0.01)
    rules.compared, rules.left = 0, VERSIONS
    await register()
    assert rules.compared == 2
    await registry.close()


def test_a_check_keeps_what_it_has_found() -> None:
    """Progress has the findings with their final severity, and counts entries that the policy does not compare."""
    against = (Candidate('{"type":"string"}'), Candidate('{"type":"int"}'))
    with track_progress() as progress:
        answer = check_compatibility(CheckRequest("avro", '"int"', against=against, policy="BACKWARD_TRANSITIVE"))
    assert not answer.compatible
    assert progress.findings == answer.findings
    assert str(progress) == "2 of 2 comparisons were made"


def test_very_many_findings_are_not_kept() -> None:
    """Progress keeps only the first 1,000 findings."""
    with track_progress() as progress:
        for _ in range(3):
            progress.add_findings([Finding("R", "")] * 400)
    assert len(progress.findings) == 1000
    assert str(progress) == ""
