"""Whether a process was forked from the one that opened a log: handles are not for both."""

from __future__ import annotations

import os

_forks = 0


def count_forks() -> int:
    """Return how many forks lie between this process and the first one: a process that is forked off counts one more.

    This costs no system call, unlike `os.getpid`, and a handle asks with each use.
    """
    return _forks


def _note_fork() -> None:
    global _forks  # noqa: PLW0603 - the process has one
    _forks += 1


if hasattr(os, "register_at_fork"):  # where processes can be forked
    os.register_at_fork(after_in_child=_note_fork)
