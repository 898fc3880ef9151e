"""Runs the notebook of the walk-through and writes it back with its outputs: `python -m tools.run_notebook`.

Standard error and the times of cells are left out. The notebook stores the hash of the code that was run, so that a
test can check whether the outputs belong to the present code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient

NOTEBOOK: Final = Path(__file__).parent.parent / "examples" / "walkthrough" / "walkthrough.ipynb"
HASH: Final = "code_sha256"
"""The name in the notebook's metadata of the hash of the code that was run."""


def hash_code(notebook: Any) -> str:
    """Return the hash of a notebook's code cells, in their order."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return sha256("\0".join(code).encode()).hexdigest()


def run_notebook(path: Path, variables: Mapping[str, str] | None = None) -> Any:
    """Return the notebook with its outputs, run in a fresh kernel in its folder.

    Args:
        path: File of the notebook.
        variables: Environment variables of the kernel in addition to those of this process.

    Raises:
        CellExecutionError: A cell fails.
    """
    notebook: Any = nbformat.read(path, as_version=4)
    environ = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"} | dict(variables or {})
    client = NotebookClient(
        notebook,
        startup_timeout=600,
        timeout=1200,
        iopub_timeout=300,  # after this time nbclient drops outputs without an error
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,
    )
    client.execute(env=environ)
    return notebook


def drop_noise(notebook: Any) -> None:
    """Remove outputs that differ from run to run: standard error and the version of the kernel."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        HASH: hash_code(notebook),
    }


def main() -> None:
    """Run the notebook and write it back."""
    notebook = run_notebook(NOTEBOOK)
    drop_noise(notebook)
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    main()
