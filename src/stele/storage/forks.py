"""Detects whether a process was forked from the one that opened a log: the two must not share handles."""

from __future__ import annotations

import os

_forks = 0


def count_forks() -> int:
    """Return how many forks lie between this process and the first one: each forked process counts one more.

    Unlike `os.getpid` this costs no system call, and a handle calls it on each use.
    """
    return _forks


def _note_fork() -> None:
    global _forks  # noqa: PLW0603 - the process has one
    _forks += 1


if hasattr(os, "register_at_fork"):  # where processes can be forked
    os.register_at_fork(after_in_child=_note_fork)
