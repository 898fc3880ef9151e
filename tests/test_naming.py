"""Names that a stranger can read: no function is a bare participle, no two public classes share a name.

The lists below hold what is left of older names. They only shrink: a name that is gone has to leave its list, and a new
one does not enter it. `python tools/naming.py --list src/stele/PART` prints the places.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tools.naming import list_functions, list_public_classes

SOURCE = Path(__file__).parent.parent / "src" / "stele"

PARTICIPLES_LEFT: Final[dict[str, frozenset[str]]] = {
    "apis": frozenset(
        {
            "labelled",
        }
    ),
    "cli": frozenset(
        {
            "moved",
        }
    ),
    "client": frozenset(
        {
            "bound",
            "guarded",
            "shown",
        }
    ),
    "formats": frozenset(
        {
            "converted",
        }
    ),
    "migrate": frozenset(
        {
            "delivered",
        }
    ),
    "spark": frozenset(
        {
            "decoded",
            "encoded",
            "found",
            "named",
            "summed",
        }
    ),
    "wire": frozenset({}),
}
"""Public functions whose whole name is a past participle, by part of the source."""

SHARED_ON_PURPOSE: Final[dict[str, str]] = {
    "AppState": "in every dialect, what the requests of its application share",
    "Operations": "in every dialect, what one request does",
    "DeletionWarning": "the client reads what the service answers",
    "VersionUsage": "the client reads what the service answers",
    "LocationUsage": "the client reads what the service answers",
    "DeletionPreview": "the client reads what the service answers",
}
"""Class names that mean the same wherever they stand, each with the reason in a sentence."""

SHARED_CLASSES_LEFT: Final = frozenset(
    {
        "CensusRecord",
        "Draft",
        "Failure",
        "JournalEntry",
        "JournalPage",
        "Mode",
        "Problem",
        "Registry",
        "Report",
        "Rule",
        "RuleSet",
        "Schema",
        "SchemaSource",
        "Scope",
        "Settings",
        "Slot",
        "Verdict",
    }
)
"""Names that public classes of different meaning share."""


def _find_participles() -> dict[str, dict[str, str]]:
    """Return public functions that are bare participles: for each part of the source, a place by name."""
    participles: dict[str, dict[str, str]] = {}
    for function in list_functions(SOURCE):
        if function.is_public and function.is_bare_participle:
            path = function.path.relative_to(SOURCE)
            part = participles.setdefault(path.parts[0].removesuffix(".py"), {})
            part[function.name] = f"{path}:{function.line}"
    return participles


def _find_shared_classes() -> dict[str, list[str]]:
    """Return the files of each public class name that stands in several."""
    return {
        name: sorted(str(path.relative_to(SOURCE)) for path in paths)
        for name, paths in list_public_classes(SOURCE).items()
        if len(paths) > 1
    }


def test_public_functions_are_no_bare_participles() -> None:
    """A function that acts is a verb with an object, one that answers yes or no begins with is, has or can."""
    new = {
        place: name
        for part, places in _find_participles().items()
        for name, place in places.items()
        if name not in PARTICIPLES_LEFT.get(part, ())
    }
    assert not new, f"give these functions a verb and an object: {new}"


def test_public_classes_do_not_share_names() -> None:
    """One name, one meaning: two classes of one name make a reader look up which of them is meant."""
    known = {*SHARED_CLASSES_LEFT, *SHARED_ON_PURPOSE}
    new = {name: paths for name, paths in _find_shared_classes().items() if name not in known}
    assert not new, f"give these classes names of their own: {new}"


def test_lists_of_old_names_shrink() -> None:
    """A name that is gone leaves its list, so that it does not come back."""
    participles = _find_participles()
    gone = {part: sorted(names - set(participles.get(part, ()))) for part, names in PARTICIPLES_LEFT.items()}
    assert not any(gone.values()), f"remove these names from PARTICIPLES_LEFT: {gone}"
    apart = sorted({*SHARED_CLASSES_LEFT, *SHARED_ON_PURPOSE} - set(_find_shared_classes()))
    assert not apart, f"remove these names from the lists of shared classes: {apart}"
