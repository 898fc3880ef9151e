"""How documentation pages are read: blocks, their expected output, hidden checks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.doc_pages import Step, find_missing_line, list_steps, run_page

PAGE = """# A page

<!-- exits with 1 -->
```bash
echo no; false
```

It prints:

```output
n…
```

<!-- check
test 1 = 1
-->

```python
print(1)
```

```toml
ignored = true
```
"""


def test_steps_are_blocks_and_hidden_checks() -> None:
    """A block has its code and the output below it; a hidden check becomes a block."""
    assert list(list_steps(PAGE)) == [
        Step("bash", "echo no; false\n", 1, "n…\n"),
        Step("bash", "test 1 = 1\n"),
        Step("python", "print(1)\n"),
    ]


def test_what_is_shown_must_be_printed_in_order() -> None:
    """Expected lines are found in order. An ellipsis stands for any text."""
    printed = "one 1\ntwo\nthree\n"
    assert find_missing_line("one …\n…\nthree\n", printed) is None
    assert find_missing_line("three\none 1\n", printed) == "one 1"


@pytest.mark.parametrize(
    ("page", "why"), [(PAGE.replace("n…", "yes"), "does not print"), (PAGE.replace("; false", ""), "exit code 0")]
)
def test_a_page_that_lies_fails(page: str, why: str, tmp_path: Path) -> None:
    """A page fails on another exit code and on an expected line that is not printed."""
    path = tmp_path / "page.md"
    path.write_text(page, encoding="utf-8")
    with pytest.raises(AssertionError, match=why):
        run_page(path, tmp_path, "http://127.0.0.1:1")


def test_a_server_of_a_page_gets_a_free_port(tmp_path: Path) -> None:
    """A port in a page is replaced by one free port in all blocks, so that pages with the same port run in parallel."""
    path = tmp_path / "page.md"
    blocks = ("echo stele serve --store memory: --port 18098 > first", "echo https://localhost:18098/ > second")
    path.write_text("\n".join(f"```bash\n{block}\n```\n" for block in blocks), encoding="utf-8")
    run_page(path, tmp_path, "http://127.0.0.1:1")
    port = (tmp_path / "first").read_text().rsplit(maxsplit=1)[-1]
    assert port != "18098"
    assert (tmp_path / "second").read_text() == f"https://localhost:{port}/\n"
