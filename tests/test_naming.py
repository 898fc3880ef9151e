"""Rules for the names of functions, values and classes.

`python -m tools.naming --list src/stele/PART` prints all names with their places.
"""

from __future__ import annotations

import ast
import gzip
import re
from pathlib import Path
from typing import Final

from tests.conftest import pytest_make_parametrize_id
from tools.naming import list_functions, list_public_classes, list_vague_names
from tools.source_trees import list_nodes

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "stele"

SHARED_ON_PURPOSE: Final[dict[str, str]] = {
    "AppState": "in every dialect, what the requests of its application share",
    "Operations": "in every dialect, what one request does",
    "DeletionWarning": "the client reads what the service answers",
    "VersionUsage": "the client reads what the service answers",
    "LocationUsage": "the client reads what the service answers",
    "DeletionPreview": "the client reads what the service answers",
    "CensusRecord": "the client writes what the service reads",
    "JournalEntry": "the client reads what the service answers",
    "JournalPage": "the client reads what the service answers",
}
"""Class names that several modules use with the same meaning, each with the reason in a sentence."""


def _find_shared_classes() -> dict[str, list[str]]:
    """Return each public class name that is defined in several files, with these files."""
    return {
        name: sorted(str(path.relative_to(SOURCE)) for path in paths)
        for name, paths in list_public_classes(SOURCE).items()
        if len(paths) > 1
    }


def test_public_functions_are_no_bare_participles() -> None:
    """A function that acts is named by a verb and an object; one that returns yes or no begins with is, has or can."""
    participles = {
        f"{function.path.relative_to(SOURCE)}:{function.line}": function.name
        for function in list_functions(SOURCE)
        if function.is_public and function.is_bare_participle
    }
    assert not participles, f"give these functions a verb and an object: {participles}"


def test_values_have_names_that_say_what_they_are() -> None:
    """Values have names such as `subject`, `match` or `rows`, not `found`."""
    names = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for folder in ("src", "tests", "bench", "tools")
        for path, line, name in list_vague_names(ROOT / folder)
    ]
    assert not names, f"give these a noun: {names}"


def test_public_classes_do_not_share_names() -> None:
    """No two public classes have the same name, except those in `SHARED_ON_PURPOSE`."""
    shared = _find_shared_classes()
    new = {name: paths for name, paths in shared.items() if name not in SHARED_ON_PURPOSE}
    assert not new, f"give these classes names of their own: {new}"
    stale_names = sorted(SHARED_ON_PURPOSE.keys() - shared.keys())
    assert not stale_names, f"remove these names from SHARED_ON_PURPOSE: {stale_names}"


def test_tests_of_packed_data_have_names_without_the_time() -> None:
    """Test names do not depend on the time, so that all workers find the same tests."""
    assert pytest_make_parametrize_id(gzip.compress(b"data"), "data") == "data"
    assert pytest_make_parametrize_id(b"data", "data") is None


def test_docstrings_name_components() -> None:
    """A docstring names the caller, client, server or user that it is about."""
    people = re.compile(r"\b(?:whoever|nobody|somebody|anybody|everybody)\b", re.IGNORECASE)
    places = [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {match[0]}"
        for path in sorted(SOURCE.rglob("*.py"))
        for node in list_nodes(path)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for match in people.finditer(ast.get_docstring(node) or "")
    ]
    assert not places, f"name the component in these docstrings: {places}"
