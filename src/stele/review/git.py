"""Files as they are in a git commit, read with the `git` command."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import msgspec

from stele.errors import InvalidRequest, NotInstalled
from stele.review.files import SchemaFile, find_format, select_schemas

_REF_WORDS: Final = ("branch=", "tag=", "ref=", "commit=")
"""Optional prefixes of the ref, because other tools write `.git#branch=main`."""


class GitRef(msgspec.Struct, frozen=True):
    """A commit of a repository: its top folder, and the ref as it was written."""

    top: Path
    ref: str

    def read_folder(self, folder: Path, *, is_deep: bool = True) -> dict[str, SchemaFile]:
        """Return the schemas that a folder of the work tree has in the commit, by path in that folder."""
        name = self._name_in_commit(folder)
        prefix = "" if name == "." else f"{name}/"
        options = ["-r", "-z"] if is_deep else ["-z"]
        listed = _run_git(self.top, "ls-tree", *options, self.ref, *([] if name == "." else ["--", prefix]))
        rows = [row for row in listed.split(b"\0") if b" blob " in row.partition(b"\t")[0]]
        paths = [row.partition(b"\t")[2].decode("utf-8", "surrogateescape") for row in rows]
        wanted = [(path.removeprefix(prefix), row) for path, row in zip(paths, rows, strict=True) if find_format(path)]
        texts = _read_blobs(self.top, [_object_id(row) for _, row in wanted])
        return select_schemas(zip((path for path, _ in wanted), texts, strict=True), is_lenient=not is_deep)

    def _name_in_commit(self, path: Path) -> str:
        try:
            return path.resolve().relative_to(self.top).as_posix()
        except ValueError:
            raise InvalidRequest(f"{path} is not in the git repository {self.top}") from None


def parse_git_ref(text: str) -> GitRef | None:
    """Return the commit that `FOLDER#REF` names (`.git#main`, `schemas#v1.2`), or None for a plain path.

    Raises `InvalidRequest` for a folder outside a repository, and for a ref that the repository does not have.
    """
    folder, mark, ref = text.rpartition("#")
    if not mark or Path(text).exists():
        return None
    for word in _REF_WORDS:
        ref = ref.removeprefix(word)
    place = Path(folder or ".")
    if place.name == ".git":
        place = place.parent
    if not place.is_dir():
        raise InvalidRequest(f"{text}: there is no folder {folder}; write FOLDER#REF, such as .git#main")
    if not ref or ref.startswith("-"):
        raise InvalidRequest(f"{text}: name a branch, tag or commit behind the #, such as .git#main")
    top = Path(_run_git(place, "rev-parse", "--show-toplevel").decode().rstrip("\n"))
    try:
        _run_git(top, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    except InvalidRequest:
        hint = "fetch it first: a checkout in CI often has one commit only (GitHub: `fetch-depth: 0`)"
        raise InvalidRequest(f"{text}: the repository has no branch, tag or commit {ref!r} here; {hint}") from None
    return GitRef(top, ref)


def _object_id(row: bytes) -> str:
    """Return the id in a row of `ls-tree`: mode, type and id, a tab, the path."""
    return row.partition(b"\t")[0].split()[2].decode("ascii")


def _read_blobs(top: Path, ids: list[str]) -> list[bytes]:
    """Return the contents of blobs, read by one process."""
    answer = _run_git(top, "cat-file", "--batch", stdin="".join(f"{each}\n" for each in ids).encode())
    contents, at = [], 0
    for _ in ids:
        end = answer.index(b"\n", at)
        size = int(answer[at:end].rsplit(b" ", 1)[1])
        contents.append(answer[end + 1 : end + 1 + size])
        at = end + size + 2
    return contents


def _run_git(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """Return what git writes. Raises `InvalidRequest` with git's own message, `NotInstalled` without git."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], input=stdin, capture_output=True, check=False)
    except FileNotFoundError:
        raise NotInstalled("git") from None
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip().removeprefix("fatal: ")
        raise InvalidRequest(f"git: {reason or f'{arguments[0]} failed'}")
    return done.stdout
