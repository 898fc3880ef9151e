"""Schemas to source code: compilers by name, and where what they make goes.

    files = compiler("python").compile('{"type": "record", …}', "AVRO")
    publish(files, Folder(Path("generated")), "shop/1.0")

A compiler turns a schema into files; a target takes files with a context (a version, a coordinate, a folder) that only
it understands. Both are what RIP-42 asks for. A compiler of one's own enters by the entry point `stele.compilers`.
"""

from stele.codegen.compilers import COMPILERS, Compiler, Target, get_compiler, publish_sources
from stele.codegen.folder import SourceFolder
from stele.codegen.python import PythonCompiler

__all__ = ["COMPILERS", "Compiler", "PythonCompiler", "SourceFolder", "Target", "get_compiler", "publish_sources"]
