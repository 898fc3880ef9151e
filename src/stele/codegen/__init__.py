"""Generates source code from schemas: compilers by language, and targets that receive the files.

    files = get_compiler("python").compile('{"type": "record", …}', "AVRO")
    publish_sources(files, SourceFolder(Path("generated")), "shop/1.0")

A compiler turns a schema into files. A target receives files with a context (a version, a coordinate, a folder) that
only it understands. RIP-42 requires both. The entry point group `stele.compilers` adds further compilers.
"""

from stele.codegen.compilers import COMPILERS, Compiler, Target, get_compiler, publish_sources
from stele.codegen.folder import SourceFolder
from stele.codegen.python import PythonCompiler

__all__ = ["COMPILERS", "Compiler", "PythonCompiler", "SourceFolder", "Target", "get_compiler", "publish_sources"]
