"""Two engines that generate inputs: Stele's own, without dependencies, and atheris, which uses code coverage."""

from __future__ import annotations

import importlib
import pkgutil
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fuzz.mutate import Mutator
from fuzz.targets import Target, get_target

MAX_SIZE: Final = 24_000
"""Longest input in bytes. The size limits of the parsers are tested with each format."""
MAX_CORPUS: Final = 3_000
"""Largest number of inputs that Stele's own engine keeps."""

Execute = Callable[[bytes], frozenset[str]]


class OutOfTime(BaseException):
    """Ends a run; derived from BaseException so that nothing under test can catch it."""


def run_own_engine(chosen: Target, execute: Execute, seed: int) -> None:
    """Mutate inputs and keep those with new outcomes. Ends when `execute` raises `OutOfTime`."""
    rng = random.Random(seed)
    mutate = Mutator(chosen.edit, chosen.seeds)
    corpus: list[bytes] = []
    known: set[str] = set()

    def consider(data: bytes) -> None:
        notes = execute(data)
        if not notes <= known:
            known.update(notes)
            corpus.append(data)
            if len(corpus) > MAX_CORPUS:
                del corpus[rng.randrange(len(corpus))]

    for data in chosen.seeds:
        consider(data)
    while True:
        pool = corpus if corpus and rng.random() < 0.7 else chosen.seeds
        consider(mutate(rng.choice(pool), MAX_SIZE, rng))


def run_atheris(chosen: Target, execute: Execute, seed: int) -> None:
    """Let libFuzzer keep inputs that reach new code, and mutate them by Stele's mutations or its own."""
    engine = importlib.import_module("atheris")
    mutate = Mutator(chosen.edit, chosen.seeds)

    def mutate_data(data: bytes, max_size: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.1:
            return bytes(engine.Mutate(data, max_size))
        return mutate(data, max_size, rng)

    def one(data: bytes) -> None:
        execute(data)

    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for index, data in enumerate(chosen.seeds):
            (Path(folder) / f"{index:04}").write_bytes(data)
        flags = [f"-seed={seed or 1}", f"-max_len={MAX_SIZE}", "-timeout=86400", "-rss_limit_mb=0", "-verbosity=0"]
        engine.Setup([sys.argv[0], *flags, folder], one, custom_mutator=mutate_data)
        engine.Fuzz()


def instrumented_target(name: str, engine: str) -> Target:
    """Return a target. For the engine atheris, its code is instrumented for coverage."""
    if engine == "own":
        return get_target(name)
    with importlib.import_module("atheris").instrument_imports(include=["stele.formats", "stele.wire"]):
        for package in ("stele.formats", "stele.wire"):
            for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
                if not module.name.endswith(".worker"):
                    importlib.import_module(module.name)
        return get_target(name)


def available_engines() -> tuple[str, ...]:
    """Return the engines that can run here, the preferred one first."""
    try:
        importlib.import_module("atheris")
    except ImportError:
        return ("own",)
    return ("atheris", "own")
