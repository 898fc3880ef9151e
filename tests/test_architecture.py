"""The layers of the architecture, walked through the syntax tree of every module: nobody has to remember them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "stele"
MODULES = sorted(SOURCE.rglob("*.py"))

_DATA = {"errors", "core"}
MAY_IMPORT = {
    "errors": {"core"},  # for annotations only: see test_errors_import_nothing_at_run_time
    "core": {"errors"},
    "templates": set(),  # renders pages for whoever has templates, and knows nothing of Stele
    "formats": _DATA,
    "wire": _DATA,
    "protocol": _DATA,
    "storage": _DATA,
    "service": _DATA | {"formats", "wire", "storage"},
    "apis": _DATA | {"service", "protocol", "templates"},
    "ui": _DATA | {"service"},
    "server": _DATA | {"storage", "service", "apis", "ui"},
    "client": _DATA | {"formats", "wire", "protocol"},
    "spark": _DATA | {"formats", "wire", "protocol", "client", "templates"},
    "codegen": _DATA | {"formats", "wire", "protocol", "client"},
    "migrate": _DATA | {"formats", "service", "client", "protocol"},
    "cli": _DATA | {"formats", "wire", "protocol", "client", "spark", "codegen", "migrate", "service", "server"},
}
MAX_FILE_LINES = 700
MAX_FUNCTION_LINES = 60
EXCUSE = "# Long because"


def part_of(path: Path) -> str:
    """The top-level part a module belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def parse_module(path: Path) -> ast.Module:
    """The syntax tree of a module, parsed once for all tests of this file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of everything a module imports, inside functions too."""
    for node in ast.walk(parse_module(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def test_imports_go_downwards() -> None:
    """A module imports its own part and the parts below it, nothing else of Stele."""
    wrong = []
    for path in MODULES:
        part = part_of(path)
        if part in {"__init__", "testing"}:
            continue
        allowed = MAY_IMPORT[part] | {part}
        wrong += [
            f"{path.relative_to(SOURCE)}:{line} imports {name}, but {part} may import {sorted(allowed)} only"
            for line, name in imports(path)
            if name.startswith("stele.") and name.split(".")[1] not in allowed and name != "stele.__version__"
        ]
    assert not wrong, "\n".join(wrong)


def test_errors_import_nothing_at_run_time() -> None:
    """The error tree stands at the bottom: what it imports of Stele, it imports for type checkers alone."""
    tree = parse_module(SOURCE / "errors.py")
    outside = [
        node for node in tree.body if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stele")
    ]
    assert not outside


def test_testing_is_imported_by_nobody() -> None:
    """Test helpers shipped to users stay out of the product."""
    users = [
        path.name for path in MODULES if part_of(path) != "testing" for _, n in imports(path) if "stele.testing" in n
    ]
    assert not users


def test_dialects_do_not_import_each_other() -> None:
    """A dialect knows the core, the service and the shared `http`, no other dialect; `http` knows none."""
    for path in (SOURCE / "apis").rglob("*.py"):
        parts = path.relative_to(SOURCE / "apis").parts
        for line, name in imports(path):
            pieces = name.split(".")
            if len(parts) > 1 and pieces[:2] == ["stele", "apis"] and (SOURCE / "apis" / pieces[2]).is_dir():
                assert pieces[2] in {parts[0], "http"}, f"{path}:{line} imports {name}"


def test_core_has_no_dialect_words() -> None:
    """The names of the systems whose dialects are spoken are no identifiers and no values in the core."""
    dialects = (
        "confluent",
        "redpanda",
        "pravega",
        "rocketmq",
        "cncf",
        "azure",
        "openschema",
        "avro1124",
        "schema_repo",
    )
    for path in (SOURCE / "core").rglob("*.py"):
        nodes = list(ast.walk(parse_module(path)))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # may name the source of an idea
        for node in nodes:
            if id(node) in docstrings:
                continue
            names = (getattr(node, kind, None) for kind in ("name", "id", "attr", "value"))
            name = next((name for name in names if isinstance(name, str)), "")
            assert not any(word in name.lower() for word in dialects), f"{path}: {name}"


def test_core_is_pure() -> None:
    """The core has no clock, input, output, chance or threads."""
    banned = {"asyncio", "datetime", "io", "os", "pathlib", "random", "secrets", "socket", "threading", "time", "uuid"}
    for path in (SOURCE / "core").rglob("*.py"):
        used = {name.split(".")[0] for _, name in imports(path)}
        assert not used & banned, f"{path.name} imports {used & banned}"


def test_files_and_functions_stay_small() -> None:
    """A file holds one idea and a function fits a screen, or a comment says why not."""
    long = []
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        if len(lines) > MAX_FILE_LINES and EXCUSE not in text:
            long.append(f"{path.relative_to(SOURCE)} has {len(lines)} lines")
        for node in ast.walk(parse_module(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                body = "\n".join(lines[node.lineno - 1 : node.end_lineno])
                if length > MAX_FUNCTION_LINES and EXCUSE not in body:
                    long.append(f"{path.relative_to(SOURCE)}: {node.name} has {length} lines")
    assert not long, "\n".join(long)


def test_broad_catches_say_why() -> None:
    """`except Exception` stands only where a process must outlive a defect, or where the error goes on."""
    allowed = {"server/app.py", "service/registry.py"}
    for path in MODULES:
        if str(path.relative_to(SOURCE)) in allowed or part_of(path) == "testing":
            continue
        for node in ast.walk(parse_module(path)):
            if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise):
                name = getattr(node.type, "id", None)
                assert name not in {"Exception", "BaseException"}, f"{path}:{node.lineno}"
                assert node.type is not None, f"{path}:{node.lineno} catches everything"
