"""The manifest of a folder of schemas, `schemas.toml`: subjects, their files, policies and references, and lint."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta

from stele.core.policy import Policy, find_policy
from stele.core.policy_json import PolicyJson
from stele.errors import InvalidRequest, UnknownPolicy
from stele.review.files import SchemaFile, Tree, find_format, read_file
from stele.review.lint import LintConfig

_Table = TypeVar("_Table")

MANIFEST: Final = "schemas.toml"
"""File name of the manifest in its folder."""

LINT_FILE: Final = "stele-lint.toml"
"""Name of a file with the table `[lint]` only, for folders without a manifest."""


class PolicyTable(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """A policy without a common name, as a table with the options of `stele policy set`."""

    backward: str = "none"
    forward: str = "none"
    checkers: tuple[str, ...] = ()


class SubjectEntry(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """The entry of a subject in the manifest.

    file           path of its schema, from the manifest's folder
    format         format of the file; by default that of its suffix
    compatibility  its policy: a common name, or a table; None: the manifest's default, if it has one
    ruleset        the ruleset to prefer
    references     subject by name of a reference that the files do not determine: SUBJECT, or SUBJECT:VERSION
    normalize      whether the normalised text is registered
    """

    file: Annotated[str, Meta(min_length=1)]
    format: str | None = None
    compatibility: str | PolicyTable | None = None
    ruleset: str | None = None
    references: Mapping[str, str] = {}
    normalize: bool | None = None

    @property
    def path(self) -> str:
        """The path of the file in the form of `SchemaFile.path`: with slashes, without `./`."""
        return PurePosixPath(self.file.replace("\\", "/")).as_posix()


class Manifest(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """The state that a folder defines for a registry.

    subjects       subjects by name, `:.context:subject` in a context
    compatibility  policy of the subjects without one of their own; None: the policy in force in the registry
    ruleset        ruleset of the subjects without one of their own; None: the ruleset in force in the registry
    normalize      whether normalised texts are registered for the subjects that do not set it
    owns           patterns of the subjects that belong to this folder: `--prune` deletes no other ones
    lint           lint configuration of the files
    """

    subjects: Mapping[str, SubjectEntry] = {}
    compatibility: str | PolicyTable | None = None
    ruleset: str | None = None
    normalize: bool = False
    owns: tuple[str, ...] = ()
    lint: LintConfig = LintConfig()

    def policy_of(self, subject: str) -> Policy | None:
        """Return the policy to set at a subject itself; None leaves its policy unchanged. Raises `UnknownPolicy`."""
        entry = self.subjects.get(subject)
        own = entry.compatibility if entry is not None else None
        wanted = self.compatibility if own is None else own
        if wanted is None:
            return None
        if isinstance(wanted, str):
            return find_policy(wanted)
        return PolicyJson("directional", wanted.backward, wanted.forward, wanted.checkers).to_policy

    def ruleset_of(self, subject: str) -> str | None:
        """Return the ruleset to set at a subject; None leaves its ruleset unchanged."""
        entry = self.subjects.get(subject)
        return entry.ruleset if entry is not None and entry.ruleset is not None else self.ruleset

    def is_normalized(self, subject: str) -> bool:
        """Return whether the normalised text of a subject's file is registered."""
        entry = self.subjects.get(subject)
        return self.normalize if entry is None or entry.normalize is None else entry.normalize

    def without_policies(self) -> Manifest:
        """Return the manifest with its files and references only: policies and rulesets stay as they are."""
        subjects = {
            name: msgspec.structs.replace(entry, compatibility=None, ruleset=None)
            for name, entry in self.subjects.items()
        }
        return msgspec.structs.replace(self, subjects=subjects, compatibility=None, ruleset=None)

    def subject_of_file(self, path: str) -> str | None:
        """Return the subject that a file belongs to, None for none."""
        return next((name for name, entry in self.subjects.items() if entry.path == path), None)


def load_manifest(folder: Path, tree: Tree) -> Manifest:
    """Return the manifest of a folder. Without one every schema file is a subject: its path without the suffix.

    Raises `InvalidRequest` for a manifest with errors, and for one that names files that are not there.
    """
    path = folder / MANIFEST
    if not path.is_file():
        lint = load_lint_config(folder)
        return Manifest({_default_subject(file): SubjectEntry(name) for name, file in tree.items()}, lint=lint)
    manifest = _convert(read_file(path), Manifest, path)
    owners: dict[str, str] = {}
    for subject, entry in manifest.subjects.items():
        name = entry.path
        why = _find_fault(folder, manifest, subject, owners.setdefault(name, subject))
        if why is not None:
            raise InvalidRequest(f"{path}: subject {subject!r}: {why}")
    return manifest


def _find_fault(folder: Path, manifest: Manifest, subject: str, owner: str) -> str | None:
    """Return what is wrong with a subject's entry, None for nothing; owner is the first subject of its file."""
    entry = manifest.subjects[subject]
    if not (folder / entry.file).is_file():
        return f"there is no file {entry.file!r} in the folder"
    if entry.format is None and find_format(entry.file) is None:
        return f"{entry.file!r} has an unknown suffix: set `format`"
    if owner != subject:
        return f"{entry.file!r} belongs to {owner!r} already: give each subject a file of its own"
    try:
        manifest.policy_of(subject)
    except UnknownPolicy as error:
        return str(error)
    return None


def complete_tree(folder: Path, manifest: Manifest, tree: Tree) -> dict[str, SchemaFile]:
    """Return the files of a folder, and those that only the manifest declares schemas, in the manifest's formats."""
    files = dict(tree)
    for entry in manifest.subjects.values():
        name = entry.path
        wanted = entry.format or find_format(name) or ""
        if name not in files or files[name].format != wanted:
            files[name] = SchemaFile(name, wanted, read_file(folder / name))
    return files


def load_lint_config(folder: Path) -> LintConfig:
    """Return the lint configuration of a folder, from `stele-lint.toml` or the manifest's `[lint]`.

    The files are searched in the folder and in those above it, up to the top of a git repository. Raises
    `InvalidRequest`.
    """
    for place in (folder.resolve(), *folder.resolve().parents):
        for name in (LINT_FILE, MANIFEST):
            if (place / name).is_file():
                return read_lint_config(place / name)
        if (place / ".git").exists():
            break
    return LintConfig()


class _LintFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    lint: LintConfig = LintConfig()


def read_lint_config(path: Path) -> LintConfig:
    """Return the lint configuration in the table `[lint]` of a file. Raises `InvalidRequest`."""
    if path.name == MANIFEST:
        return _convert(read_file(path), Manifest, path).lint
    return _convert(read_file(path), _LintFile, path).lint


def _default_subject(file: SchemaFile) -> str:
    return file.path.removesuffix(PurePosixPath(file.path).suffix)


def _convert(text: str, kind: type[_Table], path: Path) -> _Table:
    try:
        return msgspec.convert(tomllib.loads(text), kind)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InvalidRequest(f"{path}: {error}") from None
