"""The compiler processes: deadline, crash, fork, threads."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from stele.errors import NotInstalled, Unavailable
from stele.formats.protobuf import compiler, compiler_worker
from stele.formats.protobuf.compiler import CompilerPool

GOOD = b'syntax = "proto3"; message A {}'
CRASH = (
    b'import "google/protobuf/descriptor.proto"; extend google.protobuf.MessageOptions { optional A a = 50001; }'
    b"message A { optional A a = 1; option (a) = " + b"{a:" * 20_000 + b"}" * 20_000 + b"; }"
)
SLOW = b'syntax = "proto3"; message A { ' + b"int32 a = 1; " * 100_000 + b"}"


def test_a_crash_is_survived() -> None:
    """Input that kills the compiler process answers None, and the next job runs in a new process."""
    pool = CompilerPool(1)
    try:
        assert pool.compile_file("a", [("a", CRASH)]) is None
        outcome = pool.compile_file("a", [("a", GOOD)])
        assert outcome is not None
        assert outcome.ok
    finally:
        pool.close()


def test_a_killed_process_is_not_the_fault_of_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the process of a job is killed from outside, the job runs in a new one; a second kill raises `Unavailable`."""
    pool = CompilerPool(1)

    def kill_process() -> None:
        (slot,) = pool._slots.queue
        assert slot is not None
        slot.kill()

    try:
        assert pool.compile_file("a", [("a", GOOD)]) is not None
        kill_process()
        outcome = pool.compile_file("a", [("a", GOOD)])
        assert outcome is not None
        assert outcome.ok
        kill_process()

        def start_dying_process() -> compiler._CompilerProcess:
            process = compiler._CompilerProcess()
            process.kill()
            return process

        monkeypatch.setattr(pool, "_start_process", start_dying_process)
        with pytest.raises(Unavailable, match="killed twice"):
            pool.compile_file("a", [("a", GOOD)])
    finally:
        pool.close()


def test_an_interrupted_job_leaves_no_answer_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted thread does not leave its answer for the next job."""
    pool = CompilerPool(1)

    def interrupt(stream: object) -> list[bytes]:
        raise KeyboardInterrupt

    try:
        assert pool.compile_file("a", [("a", GOOD)]) is not None
        with monkeypatch.context() as patch:
            patch.setattr(compiler_worker, "read_message", interrupt)
            with pytest.raises(KeyboardInterrupt):
                pool.compile_file("a", [("a", b"rubbish")])
        outcome = pool.compile_file("a", [("a", GOOD)])
        assert outcome is not None
        assert outcome.ok
    finally:
        pool.close()


def test_the_deadline_ends_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that takes too long is killed."""
    pool = CompilerPool(1)
    try:
        assert pool.compile_file("a", [("a", GOOD)]) is not None
        with monkeypatch.context() as patch:
            patch.setattr(compiler, "DEADLINE", 1.0)
            assert pool.compile_file("a", [("a", SLOW)]) is None
        assert pool.compile_file("a", [("a", GOOD)]) is not None
    finally:
        pool.close()


def test_an_alarm_that_comes_late_is_not_blamed_on_the_next_schema() -> None:
    """A process that was killed just after its answer is replaced, and the next job is compiled."""
    pool = CompilerPool(1)
    try:
        assert pool.compile_file("a", [("a", GOOD)]) is not None
        process = pool._slots.queue[0]
        assert process is not None
        process._time_out()
        assert pool.compile_file("a", [("a", GOOD)]) is not None
    finally:
        pool.close()


def test_messages_are_kept_apart_between_jobs_and_threads() -> None:
    """Many threads share few processes, and each gets the messages of its own text."""
    pool = CompilerPool(2)

    def job(number: int) -> bool:
        bad = number % 2
        outcome = pool.compile_file(
            "a", [("a", b"message A%d { optional %s x = 1; }" % (number, b"Nope" if bad else b"int32"))]
        )
        assert outcome is not None
        return outcome.ok != bool(bad) and ("Nope" in outcome.messages) == bool(bad)

    try:
        with ThreadPoolExecutor(8) as threads:
            assert all(threads.map(job, range(200)))
    finally:
        pool.close()


def test_compiler_messages_do_not_reach_the_server(capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing the compiler prints appears on the standard streams of this process."""
    pool = CompilerPool(1)
    try:
        outcome = pool.compile_file("a", [("a", b"rubbish")])
    finally:
        pool.close()
    assert outcome is not None
    assert "Expected top-level statement" in outcome.messages
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_uses_processes_of_its_own() -> None:
    """After a fork the child starts its own compiler, and the parent's keeps working."""
    pool = CompilerPool(1)
    try:
        assert pool.compile_file("a", [("a", GOOD)]) is not None
        child = os.fork()
        if child == 0:
            try:
                outcome = pool.compile_file("a", [("a", GOOD)])
                pool.close()
                os._exit(0 if outcome is not None and outcome.ok else 1)
            finally:
                os._exit(2)  # an error must not make a second test process of it
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        outcome = pool.compile_file("a", [("a", GOOD)])
        assert outcome is not None
        assert outcome.ok
    finally:
        pool.close()


def test_importing_the_format_loads_neither_library_nor_compiler() -> None:
    """Importing the format loads neither the Protobuf library nor the compiler."""
    code = "import sys, stele.formats.protobuf; print(*[m for m in sys.modules if m.startswith(('google.', 'grpc'))])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == []


def test_a_missing_compiler_is_named_with_its_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra everything starts; the first Protobuf schema raises an error that names what to install."""
    monkeypatch.setattr(compiler, "find_spec", lambda _name: None)
    with pytest.raises(NotInstalled, match=r"pip install 'stele-registry\[protobuf\]'$"):
        compiler.compiler_folder()
