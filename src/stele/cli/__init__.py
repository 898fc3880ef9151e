"""The command line: one file per noun. Exit code 0 only when a command did what was asked."""

import gc
import sys


def main() -> None:
    """Run the command line. The version is printed before the libraries of the command line are loaded."""
    if sys.argv[1:] == ["--version"]:
        from stele import __version__

        sys.stdout.write(f"stele {__version__}\n")
        return
    gc.disable()  # What is loaded stays: looking for garbage in it takes a sixth of the time.
    from stele.cli.app import app

    gc.enable()
    app()


__all__ = ["main"]
