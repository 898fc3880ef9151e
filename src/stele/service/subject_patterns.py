"""Patterns that select subjects, and formats that rename them, for exporters and replications."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from stele.core.model import SubjectKey
from stele.errors import InvalidRequest

ALL_CONTEXTS: Final = ":*:"
"""Prefix of a pattern for subjects of every namespace."""
_SUBJECT: Final = "${subject}"
_NAMESPACE: Final = "${namespace}"


def make_matcher(pattern: str) -> Callable[[SubjectKey], bool]:
    """Return a test for subjects: `orders-*` in the default namespace, `:.ns:name`, `:*:name` in every namespace."""
    if pattern.startswith(ALL_CONTEXTS):
        name = _only_stars(pattern.removeprefix(ALL_CONTEXTS) or "*")
        return lambda key: fnmatchcase(key.name, name)
    if pattern.startswith(":."):
        namespace, _, name = pattern[2:].partition(":")
        name = _only_stars(name or "*")
        return lambda key: key.namespace == namespace and fnmatchcase(key.name, name)
    name = _only_stars(pattern)
    return lambda key: not key.namespace and fnmatchcase(key.name, name)


def match_any(patterns: Iterable[str]) -> Callable[[SubjectKey], bool]:
    """Return a test for subjects that one of the patterns chooses."""
    tests = [make_matcher(pattern) for pattern in patterns]
    return lambda key: any(test(key) for test in tests)


def _only_stars(pattern: str) -> str:
    return pattern.replace("[", "[[]").replace("?", "[?]")


class Renaming(NamedTuple):
    """Names that subjects and namespaces get in another registry.

    Attributes:
        subject: Format of names of subjects; `${subject}` is the name here.
        namespace: Format of names of namespaces; `${namespace}` is the name here, '' for the default one.
    """

    subject: str = _SUBJECT
    namespace: str = _NAMESPACE

    def require_valid(self) -> None:
        """Raise `InvalidRequest` for a format in which all subjects would get one name."""
        if _SUBJECT not in self.subject:
            raise InvalidRequest(f"the format for subjects {self.subject!r} has no {_SUBJECT} in it")

    def rename_subject(self, key: SubjectKey) -> SubjectKey:
        """Return the name of a subject in the other registry."""
        namespace = self.namespace.replace(_NAMESPACE, key.namespace).strip(".")
        return SubjectKey(namespace, self.subject.replace(_SUBJECT, key.name))


SAME_NAMES: Final = Renaming()
"""Every subject keeps its name and its namespace."""
