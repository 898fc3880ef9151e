"""Avro ⇄ Arrow engines: they decode framed bytes to columns under the reader's schema, and encode them back.

This package does not use Spark.

Source: docs/protocols/spark.md, docs/protocols/avro.md#schema-resolution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stele.errors import Invalid, NotInstalled

if TYPE_CHECKING:
    from stele.spark.engines.base import Engine


def get_engine(name: str = "auto") -> Engine:
    """Return the engine `vm` or `python`; `auto` is `vm` where numba is installed. Raises `Invalid`, `NotInstalled`.

    The engine `jvm` is not among them: it is part of Spark's plans and does not use Arrow (`engines.jvm.programs`).
    """
    if name == "jvm":
        raise Invalid("the engine jvm works in plans of from_registry and to_registry only: choose auto, vm or python")
    if name not in {"auto", "vm", "python"}:
        raise Invalid(f"there is no engine {name!r}: choose auto, jvm, vm or python")
    if name != "python":
        try:
            from stele.spark.engines.vm import VmEngine

            return VmEngine()
        except NotInstalled:
            if name == "vm":
                raise
    from stele.spark.engines.python import PythonEngine

    return PythonEngine()
