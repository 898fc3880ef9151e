"""The command line: one file per noun. Exit code 0 only when a command did what was asked."""

from stele.cli.app import main

__all__ = ["main"]
