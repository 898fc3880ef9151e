"""A user at a terminal: a shell in an empty folder with an empty home, the lines typed into it, and its output."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Self

import pexpect

_ESCAPE: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
_PROMPT: Final = r"<(\d+)> \$ $"
_CONTINUED: Final = r"<more> $"
_KEPT: Final = ("JAVA_HOME", "SPARK_LAUNCHER_OPTS", "SPARK_SUBMIT_OPTS", "LD_LIBRARY_PATH")
"""Variables of this process that the shell has, too: where Java is, and how tests start it."""


class TerminalOutput(NamedTuple):
    """Output of some commands in a terminal.

    Attributes:
        raw: All characters that the commands wrote, colours and other escapes included.
        code: The exit code of the last command.
    """

    raw: str
    code: int = 0

    @property
    def lines(self) -> list[str]:
        """The lines without escapes. Each redraw of a line counts as a line."""
        return re.split(r"\r*\n|\r", _ESCAPE.sub("", self.raw))

    @property
    def text(self) -> str:
        """The words with one space between them, without line breaks."""
        return " ".join(_ESCAPE.sub("", self.raw).split())

    @property
    def is_coloured(self) -> bool:
        """Whether the output has escape sequences."""
        return _ESCAPE.search(self.raw) is not None


class Terminal:
    """A shell that tests type into. The installed `stele` is on its path. It inherits no settings of this process."""

    def __init__(self, folder: Path, columns: int = 80) -> None:
        home = folder.with_name(f"{folder.name}-home")
        home.mkdir(exist_ok=True)
        folder.mkdir(exist_ok=True)
        environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environ |= {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "PS1": "<$?> $ ",
            "PS2": "<more> ",
        }
        self.folder = folder
        self.columns = columns
        self._shell = pexpect.spawn(
            "bash",
            ["--noprofile", "--norc", "--noediting"],
            cwd=folder,
            env=environ,
            dimensions=(40, columns),
            encoding="utf-8",
            timeout=180,
        )
        self._shell.delaybeforesend = None
        self._shell.expect(_PROMPT)

    def type(self, lines: str, *, seconds: float = 180.0) -> TerminalOutput:
        """Type lines, each when the shell shows a prompt, and return the output of their commands."""
        raw = ""
        for line in lines.splitlines():
            self._send(line)
            if self._shell.expect([_PROMPT, _CONTINUED], timeout=seconds) == 0:
                raw += self._shell.before
        return TerminalOutput(raw, int(self._shell.match[1]))

    def start(self, line: str, until: str, *, seconds: float = 180.0) -> TerminalOutput:
        """Type a command that keeps running, and return its output up to and including the text `until`."""
        self._send(line)
        self._shell.expect_exact(until, timeout=seconds)
        return TerminalOutput(self._shell.before + self._shell.after)

    def interrupt(self) -> TerminalOutput:
        """Press Ctrl-C, and return what the command prints before it ends."""
        self._shell.sendintr()
        self._shell.expect(_PROMPT)
        return TerminalOutput(self._shell.before, int(self._shell.match[1]))

    def assert_fits(self, screen: TerminalOutput) -> None:
        """Assert that no line is longer than the terminal is wide, and that no line is cut with `…`."""
        long = [line for line in screen.lines if len(line) > self.columns]
        assert not long, f"longer than {self.columns} columns: {long}"
        cut = [line for line in screen.lines if line.rstrip().endswith("…") and not line.rstrip().endswith(" …")]
        assert not cut, f"cut: {cut}"

    def _send(self, line: str) -> None:
        self._shell.sendline(line)
        self._shell.expect_exact("\r\n")  # the end of the echo

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the terminal and end the programs that run in it."""
        try:
            self._shell.close(force=True)
        except pexpect.ExceptionPexpect:  # it was killed, but did not end within 0.1 s
            self._shell.ptyproc.wait()
            self._shell.close(force=True)


@contextmanager
def open_terminals(folder: Path, columns: int = 80) -> Iterator[tuple[Terminal, Terminal]]:
    """Open two terminals in one folder: for the server and for its user."""
    with Terminal(folder, columns) as first, Terminal(folder, columns) as second:
        yield first, second
