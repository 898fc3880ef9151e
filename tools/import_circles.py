"""Find groups of modules of Stele that import each other in a circle.

    python -m tools.import_circles                   every circle below src/stele, one per line
    python -m tools.import_circles src/stele/spark   circles with a module below that folder

Imports inside functions and for type checkers count: they hide a circle, they do not remove it.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.source_trees import parse_source

from stele.formats.graph import strongly_connected

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "stele"


def module_name(path: Path, source: Path = SOURCE) -> str:
    """Return the dotted name of a file or folder of the package, without `__init__`."""
    parts = path.relative_to(source.parent).parts
    return ".".join(parts).removesuffix(".py").removesuffix(".__init__")


def _imported_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield (module, name) of every import at any depth; the name is '' for `import module`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


@cache
def build_import_graph(source: Path = SOURCE) -> dict[str, set[str]]:
    """Return the Stele modules that each module below the folder imports."""
    paths = {module_name(path, source): path for path in sorted(source.rglob("*.py"))}
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        edges = graph[name] = set()
        for module, member in _imported_names(parse_source(path)):
            target = f"{module}.{member}" if f"{module}.{member}" in paths else module
            if target in paths and target != name:
                edges.add(target)
    return graph


def find_import_circles(source: Path = SOURCE) -> list[frozenset[str]]:
    """Return the groups of two or more modules that reach each other by imports."""
    graph = build_import_graph(source)
    return [frozenset(group) for group in strongly_connected(graph, lambda name: sorted(graph[name]))]


def main() -> None:
    """Print the circles; exit with 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=SOURCE)
    below = module_name(parser.parse_args().folder.resolve())
    circles = [c for c in find_import_circles() if any(f"{name}.".startswith(f"{below}.") for name in c)]
    for circle in circles:
        print(" <-> ".join(sorted(circle)))
    raise SystemExit(bool(circles))


if __name__ == "__main__":
    main()
