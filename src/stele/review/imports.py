"""References among the files of a folder, read from the files themselves, so that users need not list them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from stele.errors import InvalidRequest, MalformedSchema
from stele.formats.capabilities import HasImports
from stele.formats.graph import strongly_connected
from stele.formats.registry import get_format
from stele.review.files import SchemaFile, Tree
from stele.service.check import NamedText


class ImportGraph:
    """The references among the schemas of a folder."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._exports: dict[str, dict[str, str]] = {}
        self._imports: dict[str, dict[str, str]] = {}

    def imports(self, path: str) -> dict[str, str]:
        """Return the files that a file refers to directly, by the names it uses; names found nowhere are left out."""
        if path not in self._imports:
            file = self._tree[path]
            targets = ((name, self._find(name, file)) for name in _read_names(file, is_export=False))
            self._imports[path] = {name: target for name, target in targets if target is not None}
        return self._imports[path]

    def closure(self, path: str) -> tuple[NamedText, ...]:
        """Return the texts that a file refers to, directly or not, dependencies first."""
        names: dict[str, str] = {}
        for target in self.sort([path]):
            for name, dependency in self.imports(target).items():
                if dependency != path:
                    names.setdefault(name, dependency)
        order = {target: index for index, target in enumerate(self.sort([path]))}
        by_order = sorted(names.items(), key=lambda item: order[item[1]])
        return tuple(NamedText(name, self._tree[target].text) for name, target in by_order)

    def needed_files(self, path: str) -> frozenset[str]:
        """Return the paths of all files that a file refers to, directly or not."""
        return frozenset(self.sort([path])) - {path}

    def sort(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return the files and all they refer to, dependencies first; the order within a cycle is not defined."""
        done: dict[str, None] = {}
        waiting = [(path, False) for path in reversed(list(paths))]
        seen: set[str] = set()
        while waiting:
            path, is_entered = waiting.pop()
            if is_entered:
                done[path] = None
            elif path not in seen:
                seen.add(path)
                waiting.append((path, True))
                waiting += [(target, False) for target in reversed(self.imports(path).values())]
        return tuple(done)

    def require_order(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return the files and all they refer to, dependencies first. Raises `InvalidRequest` for a cycle."""
        order = self.sort(paths)
        groups = strongly_connected(order, lambda path: self.imports(path).values())
        circle = next((group for group in groups if len(group) > 1), None)
        if circle is not None:
            raise InvalidRequest(f"files refer to each other in a circle: {', '.join(sorted(circle))}")
        return order

    def _exports_of(self, format_name: str) -> dict[str, str]:
        """Return the files of a format by the names they export."""
        if format_name not in self._exports:
            exports = self._exports[format_name] = {}
            for path, file in self._tree.items():
                if file.format == format_name:
                    for name in list_exports(file):
                        exports.setdefault(name, path)
        return self._exports[format_name]

    def _find(self, name: str, file: SchemaFile) -> str | None:
        """Return the file meant by a name: one that exports it, else one at that path."""
        exported = self._exports_of(file.format).get(name)
        if exported is not None and exported != file.path:
            return exported
        resolved_path = posixpath.normpath(posixpath.join(posixpath.dirname(file.path), name))
        for path in (resolved_path, posixpath.normpath(name)):
            if path in self._tree and path != file.path:
                return path
        ends = sorted(path for path in self._tree if path.endswith(f"/{name}") and path != file.path)
        return ends[0] if len(ends) == 1 else None


def list_exports(file: SchemaFile) -> list[str]:
    """Return the names that a file exports; none if it is not a schema, which the check reports."""
    return _read_names(file, is_export=True)


def _read_names(file: SchemaFile, *, is_export: bool) -> list[str]:
    """Return the names that a file exports or imports; none if it is not a schema, which the check reports."""
    fmt = get_format(file.format)
    if not isinstance(fmt, HasImports):
        return []
    try:
        read = fmt.list_exports if is_export else fmt.list_imports
        return list(read(file.text.encode("utf-8", "surrogatepass")))
    except MalformedSchema:
        return []
