"""What packages export: existing, documented."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import stele

PACKAGES = sorted(
    module.name
    for module in pkgutil.walk_packages(stele.__path__, "stele.")
    if module.name.count(".") < 4 and not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_module_imports_and_is_documented(name: str) -> None:
    """A module imports by itself and says in its docstring what it is for."""
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip(), f"{name} has no docstring"


@pytest.mark.parametrize("name", PACKAGES)
def test_exported_names_exist(name: str) -> None:
    """`__all__` lists existing names once; the linter keeps their order."""
    module = importlib.import_module(name)
    names = list(getattr(module, "__all__", ()))
    assert len(names) == len(set(names)), f"{name}.__all__ repeats a name"
    missing = [exported for exported in names if not hasattr(module, exported)]
    assert not missing


@pytest.mark.parametrize("name", PACKAGES)
def test_public_names_have_docstrings(name: str) -> None:
    """Every public class and function defined in a module explains itself."""
    module = importlib.import_module(name)
    silent = [
        shown
        for shown, value in vars(module).items()
        if not shown.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == name
        and not (value.__doc__ or "").strip()
    ]
    assert not silent
