"""Syntax trees of sources, parsed and walked once per process."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache
from pathlib import Path


@cache
def parse_source(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def list_nodes(path: Path) -> Sequence[ast.AST]:
    """Return every node of the syntax tree of a file, outer ones before those inside them."""
    return tuple(ast.walk(parse_source(path)))
