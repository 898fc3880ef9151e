"""Several `log_worker` processes on one log: started together, killed at any time, and checked afterwards."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec

from stele.core.ports import Log, LogEntry
from stele.testing.log_worker import WorkerReport, record_of

__all__ = ["Crew", "CrewVerdict", "Member", "examine", "read_all"]


_LEAST_KILLS: Final = 3


class Member(NamedTuple):
    """One worker process, its name (unique in the log) and its file of acknowledgements."""

    name: str
    process: subprocess.Popen[bytes]
    acks: Path


class CrewVerdict(NamedTuple):
    """The result of `examine`. For a correct log the last three lists are empty."""

    records: int
    acknowledged: int
    lost: Sequence[str]
    doubled: Sequence[str]
    spoilt: Sequence[str]


def start_worker(options: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a `log_worker` with these options, with pipes to its standard input and from its standard output."""
    command = [sys.executable, "-m", "stele.testing.log_worker", *options]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


class Crew:
    """Starts workers on the log at url. Use it as a context manager, which kills all remaining processes.

    turn, batch, size, seconds: the options of the worker. acks=False turns off the file of acknowledgements, which is
    only needed when workers are killed, and whose fsync takes as long as the append.
    """

    def __init__(
        self,
        url: str,
        folder: Path,
        *,
        turn: bool = True,
        batch: int = 1,
        size: int = 0,
        seconds: float = 0,
        acks: bool = True,
    ) -> None:
        self.members: list[Member] = []
        self._folder = folder
        self._acks = acks
        self._options = ["--url", url, "--batch", str(batch), "--size", str(size), "--seconds", str(seconds)]
        self._options += ["--turn"] if turn else []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            self.kill(member)

    def hire(self, seconds: float = 0) -> Member:
        """Start one more worker, which waits for `go`. seconds replaces that of the crew unless it is 0."""
        name = f"w{len(self.members)}"
        acks = self._folder / f"{name}.acks"
        own = ["--seconds", str(seconds)] if seconds else []
        options = [*self._options, *own, "--name", name, *(["--acks", str(acks)] if self._acks else [])]
        self.members.append(Member(name, start_worker(options), acks))
        return self.members[-1]

    def go(self, members: Sequence[Member]) -> None:
        """Start the members together, once all are ready."""
        for _, process, _ in members:
            if process.stdout is None or process.stdout.readline() != b"ready\n":
                raise RuntimeError("a worker did not get ready; its own message is on standard error")
        for _, process, _ in members:
            if process.stdin is not None:
                process.stdin.write(b"go\n")
                process.stdin.flush()

    def reports(self, timeout: float = 240, members: Sequence[Member] | None = None) -> list[WorkerReport]:
        """Wait until some members, or all, end by themselves, and return their reports."""
        waited_for = self.members if members is None else members
        outputs = [process.communicate(timeout=timeout)[0] for _, process, _ in waited_for]
        return [msgspec.json.decode(output, type=WorkerReport) for output in outputs]

    def kill(self, member: Member) -> None:
        """Kill a member with SIGKILL, like the out-of-memory killer or a power failure."""
        member.process.send_signal(signal.SIGKILL)
        member.process.communicate()

    def rampage(self, seconds: float, workers: int, seed: int) -> int:
        """Keep some workers appending, and kill and replace a random one at random moments.

        Returns the number of kills. It continues until several were killed, since on a slow machine the first
        replacement may take all the time.
        """
        chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
        alive = [self.hire() for _ in range(workers)]
        self.go(alive)
        spare = self.hire()  # started ahead: the time between kills is spent appending, not importing
        end = time.monotonic() + seconds
        kills = 0
        while time.monotonic() < end or kills < _LEAST_KILLS:
            time.sleep(chance.uniform(0, 0.15))
            victim = alive.pop(chance.randrange(workers))
            if victim.process.poll() is not None:
                raise RuntimeError(f"worker {victim.name} ended by itself with {victim.process.returncode}")
            self.kill(victim)
            kills += 1
            self.go([spare])
            alive.append(spare)
            spare = self.hire()
        for member in (*alive, spare):
            self.kill(member)
        return kills


async def read_all(log: Log, limit: int = 1000) -> list[LogEntry]:
    """Return every record of the log. Raises AssertionError when the sequence is not 1, 2, 3 …."""
    entries: list[LogEntry] = []
    while more := await log.tail(len(entries), limit):
        entries += more
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1)), "the log has gaps"
    assert await log.head() == len(entries)
    return entries


async def examine(log: Log, members: Sequence[Member], size: int = 0) -> CrewVerdict:
    """Compare the log with the acknowledgements of its writers.

    lost     acknowledged, but not at the acknowledged place
    doubled  written twice, acknowledged or not
    spoilt   bytes that no worker wrote

    A record may be there without acknowledgement: its writer was killed between the two.
    """
    entries = await read_all(log)
    doubled, spoilt, lost = [], [], []
    seen: set[bytes] = set()
    for seq, record in entries:
        head = record.partition(b"\n")[0]
        name, _, number = head.decode(errors="replace").partition(" ")
        if not number.isdigit() or record != record_of(name, int(number), size):
            spoilt.append(f"record {seq}")
        if head in seen:
            doubled.append(f"record {seq}: {head!r}")
        seen.add(head)
    promises = [promise for member in members for promise in _promises(member)]
    for seq, name, i in promises:
        if seq > len(entries) or entries[seq - 1].record != record_of(name, i, size):
            lost.append(f"record {seq}: {name} {i}")
    return CrewVerdict(len(entries), len(promises), lost, doubled, spoilt)


def _promises(member: Member) -> Iterator[tuple[int, str, int]]:
    """Yield (seq, name, number) of each acknowledged record."""
    # A line without its end was being written when the worker was killed. It does not count as an acknowledgement.
    lines = member.acks.read_text().split("\n")[:-1] if member.acks.exists() else []
    for line in lines:
        seq, number, count = map(int, line.split())
        yield from ((seq + i, member.name, number + i) for i in range(count))
