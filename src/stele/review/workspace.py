"""The folders that files under review belong to, and the earlier states that they are compared with."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, Protocol

import msgspec

from stele.core.findings import WhenUndecided
from stele.core.policy import BACKWARD, Policy
from stele.errors import InvalidRequest
from stele.review.check import (
    Baseline,
    CheckRules,
    broken_import_report,
    check_file,
    removed_file_report,
)
from stele.review.files import SchemaFile, Tree, decode_text, find_format, read_file, read_folder
from stele.review.git import GitRef, parse_git_ref
from stele.review.imports import ImportGraph
from stele.review.lint import LintConfig, lint_file
from stele.review.manifest import MANIFEST, Manifest, complete_tree, load_lint_config, load_manifest
from stele.review.report import FileReport, Outcome
from stele.service.check import Candidate, NamedText


class Workspace:
    """A folder of schemas with its manifest.

    Attributes:
        root: The folder.
        files: Its schemas by path.
        manifest: The manifest of the folder.
        is_deep: Whether the folders in it belong to it.
    """

    def __init__(self, root: Path, files: Tree, manifest: Manifest, *, is_deep: bool) -> None:
        self.root = root
        self.files = dict(files)
        self.manifest = manifest
        self.is_deep = is_deep

    @cached_property
    def graph(self) -> ImportGraph:
        """The references among the files."""
        return ImportGraph(self.files)

    def candidate(self, path: str, references: Sequence[NamedText] = ()) -> Candidate:
        """Return a file with all that it refers to. Explicit references take precedence."""
        return _with_references(self.files[path], self.graph, references)

    def shown_path(self, path: str) -> str:
        """Return the path of a file, beginning with the folder as the user named it."""
        return (self.root / path).as_posix()


def open_workspace(root: Path, *, is_deep: bool = True) -> Workspace:
    """Return a folder of schemas, with the folders in it if `is_deep` is set. Raises `InvalidRequest`."""
    tree = read_folder(root, is_deep=is_deep)
    manifest = load_manifest(root, tree)
    return Workspace(root, complete_tree(root, manifest, tree), manifest, is_deep=is_deep)


def _with_references(file: SchemaFile, graph: ImportGraph, references: Sequence[NamedText]) -> Candidate:
    named = {each.name: each for each in graph.closure(file.path)} | {each.name: each for each in references}
    others = tuple(each for each in named.values() if each.schema != file.text)  # a file does not refer to itself
    return Candidate(file.text, others, file.path)


class ReviewTarget(msgspec.Struct, frozen=True):
    """A file under review: its workspace, its path there, and its name in reports."""

    workspace: Workspace
    path: str
    label: str

    @property
    def file(self) -> SchemaFile:
        """The schema file."""
        return self.workspace.files[self.path]


STDIN: Final = Path("-")
"""The path that stands for standard input."""


def open_targets(paths: Sequence[Path], format_name: str | None = None) -> list[ReviewTarget]:
    """Return the files at some paths; a folder stands for all schemas in it. Raises `InvalidRequest`.

    A file belongs to the nearest folder above it with a manifest; without one, to the folder it is in. `format_name` is
    the format of named files, in place of that of their suffix.
    """
    workspaces: dict[Path, Workspace] = {}
    targets = []
    for path in paths:
        if path.is_dir():
            workspace = workspaces.setdefault(path, open_workspace(path))
            if not workspace.files:
                raise InvalidRequest(f"{path}: there is no schema file in this folder")
            targets += [ReviewTarget(workspace, name, workspace.shown_path(name)) for name in workspace.files]
        else:
            targets.append(_open_file(path, format_name, workspaces))
    return targets


def _open_file(path: Path, format_name: str | None, workspaces: dict[Path, Workspace]) -> ReviewTarget:
    wanted = format_name or find_format(path)
    if wanted is None:
        raise InvalidRequest(f"{path}: unknown suffix; give --format")
    if path == STDIN:
        text = decode_text(sys.stdin.buffer.read(), "standard input")
        only = {"-": SchemaFile("-", wanted, text)}
        return ReviewTarget(Workspace(Path(), only, Manifest(), is_deep=False), "-", "-")
    text = read_file(path)
    root = _find_manifest_folder(path)
    folder = root or path.parent
    if folder not in workspaces:
        workspaces[folder] = open_workspace(folder, is_deep=root is not None)
    workspace = workspaces[folder]
    name = path.resolve().relative_to(folder.resolve()).as_posix()
    known = workspace.files.get(name)
    if known is None or (format_name is not None and known.format != format_name):
        workspace.files[name] = SchemaFile(name, wanted, text)
    return ReviewTarget(workspace, name, path.as_posix())


def _find_manifest_folder(path: Path) -> Path | None:
    """Return the nearest folder above a file that has a manifest, within its git repository."""
    for folder in path.parents:
        if (folder / MANIFEST).is_file():
            return folder
        if (folder / ".git").exists():
            return None
    return None


# --- what to compare with -------------------------------------------------------------------------------------------


class Source(Protocol):
    """An earlier state of files."""

    label: str

    def read_tree(self, workspace: Workspace) -> Tree:
        """Return the schemas that a workspace's folder had in that state, by path."""
        ...


class GitSource:
    """The state of files in a git commit."""

    def __init__(self, ref: GitRef) -> None:
        self._ref = ref
        self.label = ref.ref

    def read_tree(self, workspace: Workspace) -> Tree:
        """Return the schemas of the commit."""
        return self._ref.read_folder(workspace.root, is_deep=workspace.is_deep)


class FolderSource:
    """A copy of the folder, with the same paths in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.label = folder.as_posix()

    def read_tree(self, workspace: Workspace) -> Tree:
        """Return the schemas of the copy."""
        return read_folder(self._folder, is_deep=workspace.is_deep)


class FileSource:
    """An earlier state of a single file."""

    def __init__(self, path: Path, target: ReviewTarget) -> None:
        self._path = path
        self._target = target
        self.label = path.as_posix()

    def read_tree(self, workspace: Workspace) -> Tree:
        """Return the workspace with the earlier text of the one file."""
        return {**workspace.files, self._target.path: self.read_earlier()}

    def read_earlier(self) -> SchemaFile:
        """Return the earlier text under the path of the file that is compared with it."""
        return SchemaFile(self._target.path, self._target.file.format, read_file(self._path))


def open_sources(
    against: Sequence[str], targets: Sequence[ReviewTarget], format_name: str | None = None
) -> list[Source]:
    """Return the earlier states that texts name: FOLDER#REF, a folder, or a file. Raises `InvalidRequest`.

    `format_name` is the format of all files, in place of that of their suffixes.
    """
    return [_open_source(text, targets, format_name) for text in against]


def _open_source(text: str, targets: Sequence[ReviewTarget], format_name: str | None) -> Source:
    ref = parse_git_ref(text)
    if ref is not None:
        return GitSource(ref)
    path = Path(text)
    if path.is_dir():
        return FolderSource(path)
    if len(targets) != 1:
        raise InvalidRequest(f"--against {text}: give one file to compare with, not {len(targets)}")
    wanted, source_format = targets[0].file.format, find_format(path)
    if format_name is None and source_format is not None and source_format != wanted:
        raise InvalidRequest(
            f"{targets[0].label} is {wanted} and {path} is {source_format} by their suffixes; give --format"
        )
    return FileSource(path, targets[0])


# --- the review -----------------------------------------------------------------------------------------------------


class CheckOptions(msgspec.Struct, frozen=True):
    """Options of the user; None leaves a value to the manifest, then to the defaults."""

    policy: Policy | None = None
    ruleset: str | None = None
    undecided: WhenUndecided = WhenUndecided.REFUSE
    references: tuple[NamedText, ...] = ()

    def rules_for(self, target: ReviewTarget) -> CheckRules:
        """Return the rules for the check of a file."""
        manifest = target.workspace.manifest
        subject = manifest.subject_of_file(target.path) or ""
        policy = self.policy or manifest.policy_of(subject) or BACKWARD
        return CheckRules(policy, self.ruleset or manifest.ruleset_of(subject) or "", undecided=self.undecided)


def check_targets(
    targets: Sequence[ReviewTarget], sources: Sequence[Source], options: CheckOptions
) -> list[FileReport]:
    """Compare files with their earlier states, oldest first. Files removed since the newest state are reported last.

    Raises `UnknownRuleset`, and `InvalidRequest` for an earlier state that cannot be read.
    """
    earlier = _EarlierStates(sources)
    reports = []
    for target in targets:
        broken = _find_broken_import(target)
        if broken is not None:
            reports.append(broken_import_report(target.label, broken))
            continue
        schema = target.workspace.candidate(target.path, options.references)
        baselines = earlier.baselines(target, options.references)
        reports.append(check_file(target.label, target.file.format, schema, baselines, options.rules_for(target)))
    folders = {id(target.workspace): target.workspace for target in targets if _is_whole(target.workspace, targets)}
    for workspace in folders.values():
        reports += earlier.removed_files(workspace)
    return reports


def find_earlier(
    targets: Sequence[ReviewTarget], sources: Sequence[Source], references: Sequence[NamedText] = ()
) -> list[tuple[ReviewTarget, Baseline]]:
    """Return the files that an earlier state has, each with its newest earlier version."""
    earlier = _EarlierStates(sources)
    pairs = ((target, earlier.baselines(target, references)) for target in targets)
    return [(target, baselines[-1]) for target, baselines in pairs if baselines]


def _is_whole(workspace: Workspace, targets: Sequence[ReviewTarget]) -> bool:
    """Return whether a workspace includes the folders in it, and all its files are under review."""
    return (
        workspace.is_deep
        and {target.path for target in targets if target.workspace is workspace} >= workspace.files.keys()
    )


def _find_broken_import(target: ReviewTarget) -> str | None:
    """Return the path of a file that the target needs and that is not a schema, None if there is none."""
    workspace = target.workspace
    for needed in workspace.graph.sort([target.path])[:-1]:
        file = workspace.files[needed]
        report = check_file(needed, file.format, workspace.candidate(needed), (), CheckRules())
        if report.outcome is Outcome.INVALID:
            return workspace.shown_path(needed)
    return None


class _EarlierStates:
    """The trees of the sources, each read once for each workspace."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._trees: dict[tuple[int, int], tuple[Tree, ImportGraph]] = {}

    def baselines(self, target: ReviewTarget, references: Sequence[NamedText]) -> list[Baseline]:
        """Return the earlier versions of a file, oldest first."""
        baselines = []
        for index, source in enumerate(self._sources):
            tree, graph = self._read(index, target.workspace)
            if target.path in tree:
                file = msgspec.structs.replace(tree[target.path], format=target.file.format)
                label = source.label if isinstance(source, FileSource) else f"{source.label}:{target.label}"
                baselines.append(Baseline(index + 1, _with_references(file, graph, references), label))
        return baselines

    def removed_files(self, workspace: Workspace) -> list[FileReport]:
        """Return reports of files that are in the newest state but not in the workspace."""
        if not self._sources or isinstance(self._sources[-1], FileSource):
            return []
        tree, _ = self._read(len(self._sources) - 1, workspace)
        removed_paths = sorted(path for path in tree if path not in workspace.files)
        return [removed_file_report(workspace.shown_path(path), self._sources[-1].label) for path in removed_paths]

    def _read(self, index: int, workspace: Workspace) -> tuple[Tree, ImportGraph]:
        key = index, id(workspace)
        if key not in self._trees:
            tree = self._sources[index].read_tree(workspace)
            self._trees[key] = tree, ImportGraph(tree)
        return self._trees[key]


def lint_targets(
    targets: Sequence[ReviewTarget],
    config: LintConfig | None,
    references: Sequence[NamedText] = (),
    before: Candidate | None = None,
) -> list[FileReport]:
    """Lint files, each by the configuration of its folder unless one is given. Raises `UnknownRule`."""
    configs: dict[Path, LintConfig] = {}
    reports = []
    for target in targets:
        root = target.workspace.root
        own = config or configs.setdefault(root, load_lint_config(root))
        if own.is_excluded(target.path):
            continue
        schema = target.workspace.candidate(target.path, references)
        reports.append(lint_file(target.label, target.file.format, schema, own, before))
    return reports
