"""How functions, classes and values are named: shares of one-word and bare-participle names, classes that share a name.

    python -m tools.naming                     the figures of src/stele, in all and by part
    python -m tools.naming --list src/stele/x  every one-word function and bare participle below a folder

`tests/test_naming.py` holds the tree to the same rules.
"""

from __future__ import annotations

import argparse
import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.source_trees import list_nodes, parse_source

ROOT = Path(__file__).parent.parent

IRREGULAR_PARTICIPLES = frozenset(
    [
        "begun",
        "bound",
        "bought",
        "brought",
        "built",
        "caught",
        "chosen",
        "done",
        "drawn",
        "fed",
        "felt",
        "forgiven",
        "found",
        "given",
        "gone",
        "grown",
        "heard",
        "held",
        "hidden",
        "kept",
        "known",
        "laid",
        "led",
        "left",
        "lent",
        "lost",
        "made",
        "meant",
        "met",
        "paid",
        "said",
        "seen",
        "sent",
        "shown",
        "sold",
        "sought",
        "spent",
        "spoken",
        "stood",
        "stuck",
        "taken",
        "taught",
        "thrown",
        "told",
        "torn",
        "understood",
        "woken",
        "won",
        "worn",
        "woven",
        "written",
    ]
)
NO_PARTICIPLES = frozenset(
    ["embed", "exceed", "feed", "heed", "need", "proceed", "seed", "shed", "speed", "succeed", "breed", "bleed", "wed"]
)
VAGUE_NAMES = frozenset(["asked", "beside", "found", "given", "gone", "held", "made", "said", "shown", "told"])
"""Names of locals and parameters that do not describe a value.

`seen` and `kept` are allowed: what a walk has visited, and what remains next to what is removed.
"""


class Function(NamedTuple):
    """One function or method of a file."""

    path: Path
    line: int
    name: str

    @property
    def is_one_word(self) -> bool:
        """Whether its name has no underscore, except leading ones."""
        return "_" not in self.name.strip("_")

    @property
    def is_bare_participle(self) -> bool:
        """Whether its whole name is a past participle: `shown`, `told`, `settled`."""
        word = self.name.strip("_")
        regular = word.endswith("ed") and word not in NO_PARTICIPLES
        return self.is_one_word and (regular or word in IRREGULAR_PARTICIPLES)

    @property
    def is_public(self) -> bool:
        """Whether its name does not begin with an underscore."""
        return not self.name.startswith("_")


def list_functions(folder: Path) -> Iterator[Function]:
    """Yield every function and method below a folder, nested ones too, without magic methods."""
    for path in sorted(folder.rglob("*.py")):
        for node in list_nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
                yield Function(path, node.lineno, node.name)


def list_public_classes(folder: Path) -> dict[str, list[Path]]:
    """Return the files that define each public class name at their top level."""
    classes: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        for node in parse_source(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(path)
    return classes


def list_vague_names(folder: Path) -> Iterator[tuple[Path, int, str]]:
    """Yield (file, line, name) of each local variable and parameter below a folder with a vague name."""
    for path in sorted(folder.rglob("*.py")):
        nodes = list_nodes(path)
        fields = {
            part.target
            for node in nodes
            if isinstance(node, ast.ClassDef)
            for part in node.body
            if isinstance(part, ast.AnnAssign)
        }
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in fields:
                name = node.id
            elif isinstance(node, ast.arg):
                name = node.arg
            else:
                continue
            if name in VAGUE_NAMES:
                yield path, node.lineno, name


def _print_figures(label: str, functions: list[Function]) -> None:
    one_word = sum(f.is_one_word for f in functions)
    participles = sum(f.is_bare_participle for f in functions)
    total = len(functions) or 1
    shares = f"{one_word / total:6.1%} one word  {participles / total:5.1%} participle"
    print(f"{label:24}{total:7} functions  {shares}")


def main() -> None:
    """Print the figures, or list the names they count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "src" / "stele")
    parser.add_argument("--list", action="store_true", help="list one-word names; participles have a star")
    arguments = parser.parse_args()
    functions = list(list_functions(arguments.folder))
    if arguments.list:
        for f in functions:
            if f.is_one_word:
                print(f"{f.path}:{f.line}: {f.name}{' *' if f.is_bare_participle else ''}")
        return
    _print_figures("all", functions)
    by_part: dict[str, list[Function]] = defaultdict(list)
    for f in functions:
        by_part["/".join(f.path.relative_to(arguments.folder).parts[:-1][:2]) or "."].append(f)
    for part, own in sorted(by_part.items()):
        _print_figures("  " + part, own)
    for name, paths in sorted(list_public_classes(arguments.folder).items(), key=lambda item: -len(item[1])):
        if len(paths) > 1:
            print(f"class {name} in {', '.join(str(path.relative_to(arguments.folder)) for path in paths)}")


if __name__ == "__main__":
    main()
