"""Checks the sentences of pages, of the command line's help and of error pages against the rules in tools/prose.toml.

Help and error sentences are read where `make docs` writes them: docs/reference/commands.md and errors.md.

    python -m tools.prose [FILE…]
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).parent.parent
RULES = Path(__file__).with_suffix(".toml")
_BLOCK = re.compile(r"^```.*?^```$|^<!--.*?-->$|^(?:    |\t)\S[^\n]*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]+`|<[^>\n]+>")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_END = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.)\s)|(?<!\\)\|")


class ProseRules(msgspec.Struct):
    """The rules in tools/prose.toml.

    Attributes:
        longest_sentence: Largest number of words in a sentence.
        leave_out: Patterns of files that are not checked.
        instead: Forbidden wording as a regular expression, with its replacement.
    """

    longest_sentence: int
    leave_out: list[str]
    instead: Mapping[str, str]


class Problem(NamedTuple):
    """A sentence that breaks a rule."""

    line: int
    why: str


def load_rules() -> ProseRules:
    """Return the rules of the repository."""
    return msgspec.convert(tomllib.loads(RULES.read_text(encoding="utf-8")), ProseRules)


def find_problems(text: str, rules: ProseRules) -> Iterator[Problem]:
    """Yield the problems of a Markdown page. Code is not checked."""
    text = _BLOCK.sub(lambda match: "\n" * match[0].count("\n"), text)
    text = _LINK.sub(lambda match: match[1] or "link", _CODE.sub("code", text))
    for pattern, better in rules.instead.items():
        for match in re.finditer(pattern, text, re.IGNORECASE):
            line = text.count("\n", 0, match.start()) + 1
            yield Problem(line, f"“{match[0].strip()}”: write “{better}”")
    start = 0
    for end in [*(match.end() for match in _END.finditer(text)), len(text)]:
        words = len(re.findall(r"\w[\w'’-]*", text[start:end]))
        if words > rules.longest_sentence:
            line = text.count("\n", 0, start) + 1
            yield Problem(line, f"{words} words in one sentence; at most {rules.longest_sentence}")
        start = end


def list_pages(rules: ProseRules) -> list[Path]:
    """Return the pages that are checked."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/README.md")]
    return sorted(
        page for page in pages if not any(page.relative_to(ROOT).match(pattern) for pattern in rules.leave_out)
    )


def main() -> int:
    """Print the problems. Exits with 1 if there is one."""
    rules = load_rules()
    count = 0
    for page in [Path(name) for name in sys.argv[1:]] or list_pages(rules):
        for problem in sorted(find_problems(page.read_text(encoding="utf-8"), rules)):
            print(f"{page}:{problem.line}: {problem.why}")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
