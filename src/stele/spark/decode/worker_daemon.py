"""The process that forks Spark's Python workers, with what they need imported before they are forked.

Spark's own daemon, `pyspark.daemon`, imports next to nothing. Each worker that it forks imports Arrow and Stele for
itself, and after each task it collects garbage among all that it imported. Here the imports happen once,
workers share their memory, and the garbage collector leaves them alone.

Spark starts it where the setting `spark.python.daemon.module` names this module.
"""

from __future__ import annotations

import gc

import pyarrow.compute  # noqa: F401 - for workers
from pyspark import worker  # noqa: F401 - for workers
from pyspark.daemon import manager

import stele.spark.decode.records  # noqa: F401 - for workers

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    manager()
