"""Names that packages export exist and are documented."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import stele

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(stele.__path__, "stele.")
    if module.name.count(".") < 4 and not module.name.endswith("__main__")
)


def test_there_are_modules() -> None:
    """The search finds modules, so that the tests below are not empty."""
    assert len(MODULES) > 700


def test_every_module_imports_and_is_documented() -> None:
    """Every module can be imported by itself and has a docstring."""
    wrong = []
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except Exception as error:
            error.add_note(f"{name} cannot be imported")
            wrong.append(error)
            continue
        if not (module.__doc__ or "").strip():
            wrong.append(AssertionError(f"{name} has no docstring"))
    if wrong:
        raise ExceptionGroup("modules that do not import or have no docstring", wrong)


def test_exported_names_exist() -> None:
    """`__all__` lists existing names once; the linter keeps their order."""
    wrong = []
    for name in MODULES:
        module = importlib.import_module(name)
        names = list(getattr(module, "__all__", ()))
        wrong += [f"{name}.__all__ repeats {each}" for each in sorted(set(names)) if names.count(each) > 1]
        wrong += [f"{name}.__all__ has {each}, which is not there" for each in names if not hasattr(module, each)]
    assert not wrong, "\n".join(wrong)


def test_public_names_have_docstrings() -> None:
    """Every public class and function of a module has a docstring."""
    silent = [
        f"{name}.{member} has no docstring"
        for name in MODULES
        for member, value in vars(importlib.import_module(name)).items()
        if not member.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == name
        and not (value.__doc__ or "").strip()
    ]
    assert not silent, "\n".join(silent)
