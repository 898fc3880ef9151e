"""The tools for pages: links of the documentation site, its version switch, and the linter of prose."""

from __future__ import annotations

import json
from pathlib import Path

from tools.prose import find_problems, list_pages, load_rules
from tools.site import HIDDEN, ROOT, add_version, describe_site, rewrite_links
from tools.site import list_pages as list_site_pages


def test_links_lead_to_pages_of_the_site_or_to_the_repository() -> None:
    """A link between copied pages stays relative, any other link leads to the repository, and code is unchanged."""
    pages = list_site_pages()
    text = (
        "![p](../pictures/report-drift.png) "
        "[a](../../SECURITY.md#x) [b](convert.md) [c](../../Makefile) [d](https://e.org)\n```\n[e](../../Makefile)\n```"
    )
    result = rewrite_links(text, ROOT / "docs" / "how-to" / "lint.md", pages, "https://git")
    assert result == (
        "![p](../pictures/report-drift.png) "
        "[a](../project/SECURITY.md#x) [b](../how-to/convert.md) [c](https://git/Makefile) [d](https://e.org)\n"
        "```\n[e](../../Makefile)\n```"
    )


def test_hidden_checks_are_not_on_the_site() -> None:
    """The site omits hidden checks and other marks around blocks, which only the tests use."""
    assert HIDDEN.sub("", "a\n<!-- exits with 1 -->\nb\n<!-- check\nx\n-->\nc\n") == "a\nb\nc\n"


def test_every_page_of_docs_is_in_the_navigation() -> None:
    """Every page is in the navigation."""
    listed = json.dumps(describe_site("http://site/"))
    assert [place for place in list_site_pages().values() if f'"{place.as_posix()}"' not in listed] == []


def test_the_version_switch_lists_the_newest_first(tmp_path: Path) -> None:
    """Building a version again does not list it twice."""
    for version in ("0.9", "0.10", "0.9"):
        add_version(tmp_path, version)
    rows = json.loads((tmp_path / "versions.json").read_text(encoding="utf-8"))
    assert [(row["version"], row["aliases"]) for row in rows] == [("0.10", ["latest"]), ("0.9", [])]
    assert "url=0.10/" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_prose_rules_find_sentences_and_leave_code_alone() -> None:
    """A forbidden phrase and a long sentence are found at their lines; code is not read."""
    rules = load_rules()
    text = (
        f"One.\n\nIt makes no sense.\n\n    makes no sense\n\n`via` and\n{'word ' * (rules.longest_sentence + 1)}end.\n"
    )
    assert [problem.line for problem in find_problems(text, rules)] == [3, 7]


def test_pages_follow_the_prose_rules() -> None:
    """All pages that `make check` reads pass."""
    rules = load_rules()
    wrong = [
        f"{page.relative_to(ROOT)}:{problem.line}: {problem.why}"
        for page in list_pages(rules)
        for problem in find_problems(page.read_text(encoding="utf-8"), rules)
    ]
    assert wrong == []
