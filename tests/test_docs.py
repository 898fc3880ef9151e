"""The documentation is true: its commands and snippets run, its links lead somewhere, its tables match the code."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import importlib.metadata
import inspect
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.support.doc_pages import list_steps, run_page
from tests.support.java_machine import JavaMachine
from tests.support.server_process import serving
from tools import reference
from tools.source_trees import list_nodes

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINKING = sorted([*PAGES, *ROOT.glob("examples/**/*.md"), *ROOT.glob("fuzz/*.md"), *ROOT.glob("examples/**/*.ipynb")])
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
WRITTEN_ON_DEMAND = {"docs/reference/coverage.md"}
"""Pages that a slow target of the Makefile writes; a fresh tree may lack them."""
DOCS_PATH = re.compile(r"(?<![\w./])docs/[\w./#-]*[\w#]")
EXECUTED = [page for page in PAGES if any(list_steps(page.read_text(encoding="utf-8")))]
EXECUTED_WITHOUT_BROKER = [
    page for page in EXECUTED if not any(step.needs_broker for step in list_steps(page.read_text(encoding="utf-8")))
]
"""Pages whose blocks need no broker. tests/interop/test_pages_with_a_broker.py runs the other pages."""
SUBJECT = re.compile(r"\b[a-z][\w-]*-(?:value|key)\b")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", EXECUTED_WITHOUT_BROKER, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_run(page: Path, tmp_path: Path, java_machine: JavaMachine) -> None:
    """Every block of a page runs in order, in an empty folder with a fresh server, and prints what the page shows."""
    with serving("--store", "memory:", folder=tmp_path) as server:
        run_page(page, tmp_path, server.url, java_machine=java_machine)


@pytest.mark.skipif(os.environ.get("HYPOTHESIS_PROFILE") != "long", reason="takes minutes: `make test-long` runs it")
@pytest.mark.timeout(1800)
def test_pages_run_in_sequence(tmp_path: Path) -> None:
    """All pages run one after the other against one registry, each in a folder of its own.

    The tutorial comes first: it begins with the command that starts a registry, and shows the first ids.
    """
    pages = sorted(EXECUTED, key=lambda page: page.parent.name != "tutorial")
    with serving("--store", "memory:", folder=tmp_path) as server:
        for number, page in enumerate(pages):
            folder = tmp_path / str(number)
            folder.mkdir()
            run_page(page, folder, server.url)


def test_pages_have_subjects_of_their_own() -> None:
    """No two pages use the same subject in their code, so that no page finds schemas of another one."""
    owners: dict[str, set[str]] = {}
    for page in EXECUTED:
        for step in list_steps(page.read_text(encoding="utf-8")):
            for subject in SUBJECT.findall(step.code):
                owners.setdefault(subject, set()).add(page.name)
    assert {subject: sorted(pages) for subject, pages in owners.items() if len(pages) > 1} == {}


def heading_anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, made as GitHub does: lower case, no punctuation, hyphens for spaces."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    anchors: set[str] = set()
    for title in HEADING.findall(text):
        plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", title).replace("`", "").lower()
        base = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        while (anchor := f"{base}-{number}" if number else base) in anchors:
            number += 1
        anchors.add(anchor)
    return anchors


def find_broken_link(base: Path, target: str) -> str | None:
    """Return the defect of a relative link in a page of the folder `base`, or None."""
    path, _, anchor = target.partition("#")
    page = (base / path).resolve()
    if not page.exists():
        return f"{target}: no such file"
    if anchor and page.suffix == ".md" and anchor not in heading_anchors(page):
        return f"{target}: {page.name} has no heading with this anchor"
    return None


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_resolve(page: Path) -> None:
    """Relative links point at files that exist and at headings that these files have."""
    text = FENCE.sub("", page.read_text(encoding="utf-8")) if page.suffix == ".md" else page.read_text(encoding="utf-8")
    for target in LINK.findall(text):
        if "://" not in target and not target.startswith("mailto:"):
            own = f"{page.name}{target}" if target.startswith("#") else target
            assert find_broken_link(page.parent, own) is None, f"{page.relative_to(ROOT)}: {target}"


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_have_no_marks_of_a_merge(page: Path) -> None:
    """No page has conflict markers of a merge."""
    assert not re.search(r"^(<{7}|>{7}) ", page.read_text(encoding="utf-8"), re.MULTILINE), page.name


def test_documentation_paths_in_code_resolve() -> None:
    """Every `docs/…` path that the code, the tests or the tools mention exists, with its heading if one is named."""
    sources = [
        path
        for folder in ("src", "tests", "tools", "bench", "examples", "fuzz")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".java", ".toml", ".html", ".j2"} and "__pycache__" not in path.parts
    ]
    broken = []
    for path in [*sources, *ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "pyproject.toml"]:
        targets = set(DOCS_PATH.findall(path.read_text(encoding="utf-8"))) - WRITTEN_ON_DEMAND
        problems = (find_broken_link(ROOT, target) for target in sorted(targets))
        broken += [f"{path.relative_to(ROOT)}: {problem}" for problem in problems if problem is not None]
    assert broken == []


IMPORT = re.compile(r"^[ >]*from (stele(?:\.\w+)*) import \(?([\w, ]+)", re.MULTILINE)


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_imported_names_exist(page: Path) -> None:
    """Every name that a page imports from Stele is there, in snippets that run and in those that do not."""
    text = page.read_text(encoding="utf-8").replace("\\n", "\n").replace('"', " ") if page.suffix == ".ipynb" else None
    for module, names in IMPORT.findall(text or page.read_text(encoding="utf-8")):
        imported_module = importlib.import_module(module)
        for name in re.findall(r"(\w+)(?: as \w+)?", names):
            if not hasattr(imported_module, name):
                importlib.import_module(f"{module}.{name}")  # a submodule, or an ImportError that names it


PATH_IN_PROSE = re.compile(r"`((?:[a-z_]+/)+[\w.-]*)`")


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_paths_in_prose_exist(name: str) -> None:
    """A path in backquotes exists in the repository or in the package."""
    paths = PATH_IN_PROSE.findall((ROOT / name).read_text(encoding="utf-8"))
    missing = [path for path in paths if not any((base / path).exists() for base in (ROOT, ROOT / "src" / "stele"))]
    assert missing == []


CROSS_REFERENCE = re.compile(
    r"\b(?:[Ss]ee|as in|[Rr]aises|[Ii]nverse of) ((?:(?:, |, and | or | and )?`[A-Za-z_][\w.]*`)+)"
)


@functools.cache
def find_defined_names(path: Path) -> frozenset[str]:
    """Return every name that a source file uses, defines or imports, and every part of a dotted one."""
    names: set[str] = set()
    for node in list_nodes(path):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names |= {*node.name.split("."), node.asname or ""}
    return frozenset(names)


@functools.cache
def list_documented_texts(path: Path) -> Sequence[str]:
    """Return the docstrings of a module, its classes, functions and values, without indentation."""
    return [
        inspect.cleandoc(node.value.value)
        for node in list_nodes(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]


SOURCES = sorted((ROOT / "src").rglob("*.py"))
BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_"))


def test_names_in_docstrings_exist() -> None:
    """The name after "See", "as in", "Raises" or "Inverse of" in a docstring exists in the source."""
    known = BUILTINS.union(*map(find_defined_names, SOURCES)) | {path.stem for path in (ROOT / "src").rglob("*.*")}
    known |= {path.parent.name for path in SOURCES} | {"toml", "py", "java"}
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in SOURCES
        for text in list_documented_texts(path)
        for names in CROSS_REFERENCE.findall(text)
        for name in re.findall(r"`([\w.]+)`", names)
        if not set(name.split(".")) <= known
    ]
    assert set(wrong) <= FORMER_NAMES


FORMER_NAMES = {"src/stele/core/commands.py: Lane"}
"""Removed names that docstrings still use. This set must only shrink."""
NAME_IN_MODULE = re.compile(r"`((?:\w+\.)*(\w+)\.([A-Z]\w*))`")


def test_names_of_modules_in_docstrings_are_defined_there() -> None:
    """If a docstring names a class or a constant as `module.Name`, that module has it."""
    names: dict[str, set[str]] = {}
    for path in SOURCES:
        for stem in (path.parent.name if path.stem == "__init__" else path.stem, path.parent.name):
            names.setdefault(stem, set(BUILTINS)).update(find_defined_names(path))
    wrong = [
        f"{path.relative_to(ROOT)}: {whole}"
        for path in SOURCES
        for text in list_documented_texts(path)
        for whole, module, name in NAME_IN_MODULE.findall(text)
        if {whole.split(".")[0], module} <= names.keys() and name not in names[module]
    ]
    assert wrong == []


CITATION = re.compile(r"\bSource: +(.{0,400})", re.DOTALL)
CITED_PAGE = re.compile(r"docs/protocols/[\w./#-]*[\w#]")
OWN_PAGES = "README|CHANGELOG|SECURITY|ARCHITECTURE|CONTRIBUTING|LICENSES"
LOOSE_CITATION = re.compile(
    r"\breference notes\b|\bMODEL C\d|\bMODEL:|\bseed [0-9]|\bseed's\b|\(RIP-\d+|\(PDP-\d+"
    r"|\b(?:Redpanda|Pravega|AVRO-1124|the) seed (?:asks|says|wants)\b"
    rf"|\b(?!{OWN_PAGES})[A-Z]{{4,}}\.md\b"
)


def test_sources_in_docstrings_lead_to_pages() -> None:
    """A docstring's `Source:` names a page of docs/protocols; no citation names something outside the repository."""
    wrong = []
    for path in SOURCES:
        for doc in list_documented_texts(path):
            cited = CITATION.findall(re.sub(r"\s+", " ", doc))
            wrong += [f"{path.relative_to(ROOT)}: {rest[:60]}" for rest in cited if not CITED_PAGE.match(rest)]
        text = path.read_text(encoding="utf-8")
        wrong += [f"{path.relative_to(ROOT)}: {loose}" for loose in LOOSE_CITATION.findall(text)]
    assert wrong == []


def test_every_protocol_page_is_listed_and_used() -> None:
    """The index of docs/protocols lists each page, and code or another page refers to it."""
    folder = ROOT / "docs" / "protocols"
    index = (folder / "README.md").read_text(encoding="utf-8")
    texts = [
        path.read_text(encoding="utf-8") for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md")]
    ]
    for page in folder.glob("*.md"):
        if page.name != "README.md":
            assert f"({page.name})" in index, page.name
            assert any(f"protocols/{page.name}" in text or f"]({page.name}" in text for text in texts), page.name


def test_reference_pages_agree_with_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    """The generated pages are equal to the current output of the generator."""
    assert reference.main(check=True) == 0, capsys.readouterr().err


def test_readme_names_the_two_commands_first() -> None:
    """The `make` commands of the README are documented targets, and its parts come in the right order."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make ([a-z-]+)", readme, re.MULTILINE):
        assert re.search(rf"^{target}:.*##", makefile, re.MULTILINE), target
    assert len(readme.splitlines()) <= 110, "the README fits a screen or two"
    assert readme.index("pip install stele-registry") < readme.index("```python") < readme.index("make demo")
    links = LINK.findall(readme[readme.index("## Where to go") :])
    assert len(links) == 6, "the first page ends with six doors"


def test_every_page_is_in_the_index() -> None:
    """docs/README.md links to every page, except those that another index lists."""
    folder = ROOT / "docs"
    listed = set(LINK.findall((folder / "README.md").read_text(encoding="utf-8")))
    pages = {path.relative_to(folder).as_posix() for path in folder.glob("*/*.md")} - {"reference/coverage.md"}
    assert {page for page in pages if not page.startswith(("adr/", "protocols/"))} - listed == set()


def test_troubleshooting_names_codes_that_exist() -> None:
    """The error codes on the troubleshooting page occur in the reference pages."""
    page = (ROOT / "docs" / "how-to" / "troubleshoot.md").read_text(encoding="utf-8")
    errors = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    records = (ROOT / "docs" / "reference" / "record-errors.md").read_text(encoding="utf-8")
    assert [code for code in re.findall(r"\b[45]\d{4}\b", page) if code not in errors] == []
    spark = page[page.index("## Spark") :]
    codes = set(re.findall(r"^\| `([A-Z_]{6,})` \|", spark, re.MULTILINE))
    assert codes
    assert [code for code in codes if f"`{code}`" not in records] == []


NEEDED = re.compile(r"^\*\*You need\*\*.*?(?=\n\n)", re.MULTILINE | re.DOTALL)
INSTALLED = re.compile(r"`pip install '?([^`']+)'?`")


@functools.cache
def list_modules() -> Mapping[str, list[str]]:
    """Return the distributions that provide each installed module."""
    return importlib.metadata.packages_distributions()


@functools.cache
def list_requirements(name: str) -> Sequence[Requirement]:
    """Return the requirements of a distribution, extras included; empty if it is not installed."""
    try:
        return [Requirement(text) for text in importlib.metadata.requires(name) or ()]
    except importlib.metadata.PackageNotFoundError:
        return ()


def find_importable(requirements: list[str]) -> set[str]:
    """Return the modules that are installed with these requirements and their dependencies."""
    waiting, seen = [Requirement(text) for text in requirements], set()
    while waiting:
        wanted = waiting.pop()
        for extra in {"", *wanted.extras}:
            if (key := (canonicalize_name(wanted.name), extra)) in seen:
                continue
            seen.add(key)
            waiting += [
                each
                for each in list_requirements(canonicalize_name(wanted.name))
                if each.marker is None or each.marker.evaluate({"extra": extra})
            ]
    names = {name for name, _ in seen}
    modules = {
        module for module, dists in list_modules().items() if names & {canonicalize_name(dist) for dist in dists}
    }
    return modules | {"stele"}  # an editable installation does not list its modules


@pytest.mark.parametrize(
    "page", [page for page in EXECUTED if page.parent.name in {"how-to", "tutorial"}], ids=lambda page: page.name
)
def test_pages_name_the_packages_that_they_import(page: Path) -> None:
    """A how-to page begins with the packages that it needs; its Python imports only those and the standard library."""
    text = page.read_text(encoding="utf-8")
    needed = NEEDED.search(text)
    assert needed, "the page begins with a paragraph **You need**"
    packages_match = INSTALLED.search(needed[0])
    assert packages_match, "the paragraph names what to install"
    known = find_importable(packages_match[1].split()) | set(sys.stdlib_module_names)
    imported = {
        name.split(".")[0]
        for step in list_steps(text)
        if step.kind == "python"
        for node in ast.walk(ast.parse(step.code))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported - known == set()
    assert "os.environ" not in "".join(step.code for step in list_steps(text)), "readers have not set these variables"
