"""Tests of the fuzzer: it runs every target and finds planted faults."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from fuzz import judge
from fuzz.mutate import Mutator
from fuzz.parts import Parts, split_parts
from fuzz.steps import Broken, Steps
from fuzz.targets import TARGETS, Target, get_target

RUNS = 60
SLOW_RUNS = {"xsd": 15}


@pytest.mark.parametrize("name", TARGETS)
def test_smoke(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few seeds and reproducible mutations of them cause no failure in any target."""
    monkeypatch.setattr(judge, "FOUND", tmp_path)
    chosen = get_target(name)
    fuzz_judge = judge.Judge(name, chosen, lambda _: False)
    rng = random.Random(1)
    mutate = Mutator(chosen.edit, chosen.seeds)
    for _ in range(SLOW_RUNS.get(name, RUNS)):
        fuzz_judge(mutate(rng.choice(chosen.seeds), 8_000, rng))
    assert fuzz_judge.failures == {}
    assert 0 < fuzz_judge.accepted < fuzz_judge.executions


@pytest.mark.parametrize("name", TARGETS)
def test_mutations_repeat(name: str) -> None:
    """The same seed gives the same inputs, none longer than asked for."""
    chosen = get_target(name)
    first, second = (
        [Mutator(chosen.edit, chosen.seeds)(seed, 3_000, random.Random(7)) for seed in chosen.seeds[:30]]
        for _ in range(2)
    )
    assert first == second
    assert first != list(chosen.seeds[:30])
    assert all(len(data) <= 3_000 for data in first)


def parse_with_faults(data: Parts, steps: Steps) -> None:
    """A fuzz target with two faults."""
    if b"bang" in data.document:
        steps.run_step("parse document", lambda: 1 // 0)
    if b"lie" in data.other:
        raise Broken("an example does not fit")
    steps.accepted += 1


@pytest.mark.parametrize(("data", "kind", "small"), [
    (b"x" * 500 + b"bang" + b"y" * 500, "crash ZeroDivisionError parse document", b"bang"),
    (Parts(b"long" * 90, b"a lie").join(), "crash Broken", Parts(b"", b"lie").join()),
])  # fmt: skip
def test_faults_are_kept(data: bytes, kind: str, small: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure is counted by its kind, minimized, and written with the command that reproduces it."""
    monkeypatch.setattr(judge, "FOUND", tmp_path)
    fuzz_judge = judge.Judge("avro", Target(parse_with_faults, lambda data, _: data, [data]), lambda _: False)
    fuzz_judge(data)
    (failure,) = fuzz_judge.failures
    assert failure.startswith(kind)
    files = [path for path in tmp_path.glob("avro-*") if not path.suffix]
    assert [path.read_bytes() for path in files] == [small]
    assert f"--reproduce fuzz/found/{files[0].name}" in files[0].with_suffix(".txt").read_text()


def test_slow_inputs_are_kept_when_they_really_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step over the time limit is a failure only if a second measurement confirms it."""
    monkeypatch.setattr(judge, "FOUND", tmp_path)
    monkeypatch.setattr(judge, "HANG", -1.0)

    def run(data: Parts, steps: Steps) -> None:
        steps.run_step("check x", len, data.document)

    def failures(suspect: Callable[[bytes], bool]) -> list[str]:
        fuzz_judge = judge.Judge("avro", Target(run, lambda data, _: data, [b"x"]), suspect)
        fuzz_judge(b"x")
        return list(fuzz_judge.failures)

    assert failures(lambda _: True) == ["slow check x"]
    assert failures(lambda _: False) == []


def test_parts() -> None:
    """Joined parts can be split again. Everything after the third separator is data."""
    whole = Parts(b"a", b"", b"c", b"d\n\x00\xfe\x00\ne")
    assert split_parts(whole.join()) == whole
    assert split_parts(b"only") == Parts(b"only")
    assert split_parts(b"") == Parts(b"")


def test_a_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The supervisor runs a worker and prints its figures. Without a failure it exits with 0."""
    from fuzz import run

    assert run.main(["--target", "wire", "--seconds", "1", "--engine", "own"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["executions"] > 10
    assert figures["failures"] == {}
    monkeypatch.setattr(judge, "FOUND", tmp_path)
    (tmp_path / "input").write_bytes(b"\x00\x00\x00\x00\x07abc")
    assert run.main(["--target", "wire", "--reproduce", str(tmp_path / "input")]) == 0
    assert "no failure" in capsys.readouterr().out
