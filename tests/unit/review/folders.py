"""Folders of schemas for tests, and git repositories of them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

MONEY = '{"type": "record", "name": "Money", "namespace": "shop", "fields": [{"name": "cents", "type": "long"}]}\n'
ORDER = """{
  "type": "record", "name": "Order", "namespace": "shop",
  "fields": [
    {"name": "id", "type": "long"},
    {"name": "total", "type": "Money"}
  ]
}
"""
BROKEN_ORDER = ORDER.replace('"Money"}', '"Money"},\n    {"name": "note", "type": "string"}')
"""The order with one more field, without a default, in line 6."""
BETTER_ORDER = ORDER.replace('"Money"}', '"Money"},\n    {"name": "note", "type": "string", "default": ""}')
MANIFEST = """
compatibility = "FULL"

[subjects.money]
file = "money.avsc"

[subjects.orders-value]
file = "order.avsc"
compatibility = "BACKWARD_TRANSITIVE"
"""


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder, and return it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def commit_all(folder: Path, message: str = "schemas") -> None:
    """Commit everything in a folder, which becomes a repository with the branch main."""
    if not (folder / ".git").exists():
        run_git(folder, "init", "-q", "-b", "main")
    run_git(folder, "add", "-A")
    run_git(folder, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", message)


def run_git(folder: Path, *arguments: str) -> None:
    """Run git in a folder."""
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)
