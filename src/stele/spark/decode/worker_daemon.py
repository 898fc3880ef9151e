"""The process that forks Spark's Python workers, with the modules that they need already imported.

Spark's own daemon, `pyspark.daemon`, imports next to nothing. Each worker that it forks imports Arrow and Stele for
itself, and after each task it collects garbage among all that it imported. Here the imports happen once, workers share
the memory of the modules, and the garbage collector skips them.

Spark starts it if the setting `spark.python.daemon.module` names this module.
"""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path


def prefer_installed_pyspark(path: list[str]) -> None:
    """Remove Spark's archives of Python sources from a search path if the same code is installed beside them.

    Spark puts `pyspark.zip` and the archive of `py4j` first on the path of its Python processes. Modules in an archive
    are compiled anew in each process. If pip installed PySpark, the archives are inside that very package, and the
    package has the same modules with their bytecode.
    """
    for entry in list(path):
        archive = Path(entry)
        if archive.parts[-4:-1] != ("pyspark", "python", "lib"):
            continue
        site = archive.parents[3]
        py4j = re.fullmatch(r"(py4j-[0-9.]+)-src\.zip", archive.name)
        same = site / f"{py4j[1]}.dist-info" if py4j else site / "pyspark" / "__init__.py"
        if (py4j or archive.name == "pyspark.zip") and str(site) in path and same.exists():
            path.remove(entry)


if __name__ == "__main__":
    prefer_installed_pyspark(sys.path)

import pyarrow.compute  # noqa: E402, F401 - for workers
from pyspark import worker  # noqa: E402, F401 - for workers
from pyspark.daemon import manager  # noqa: E402

import stele.spark.decode.records  # noqa: E402, F401 - for workers

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
