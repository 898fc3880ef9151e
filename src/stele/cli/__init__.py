"""The command line: one module per noun. The exit code is 0 only if the command did what was asked."""

import gc
import sys


def main() -> None:
    """Run the command line. `--version` alone is answered without loading the libraries of the command line."""
    if sys.argv[1:] == ["--version"]:
        from stele import __version__

        sys.stdout.write(f"stele {__version__}\n")
        return
    gc.disable()  # Loaded modules stay: collecting garbage among them takes a sixth of the time.
    from stele.cli.app import app

    gc.enable()
    app()


__all__ = ["main"]
