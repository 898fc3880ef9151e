"""How documentation pages are read: blocks, what they show, checks that are hidden."""

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
    """Blocks carry their code and what is shown below them; a check is a block without either."""
    assert list(list_steps(PAGE)) == [
        Step("bash", "echo no; false\n", 1, "n…\n"),
        Step("bash", "test 1 = 1\n"),
        Step("python", "print(1)\n"),
    ]


def test_what_is_shown_must_be_printed_in_order() -> None:
    """Lines are found in order; an ellipsis stands for any text."""
    printed = "one 1\ntwo\nthree\n"
    assert find_missing_line("one …\n…\nthree\n", printed) is None
    assert find_missing_line("three\none 1\n", printed) == "one 1"


@pytest.mark.parametrize(
    ("page", "why"), [(PAGE.replace("n…", "yes"), "does not print"), (PAGE.replace("; false", ""), "exit code 0")]
)
def test_a_page_that_lies_fails(page: str, why: str, tmp_path: Path) -> None:
    """Another exit code, and a line that is not printed, are errors."""
    path = tmp_path / "page.md"
    path.write_text(page, encoding="utf-8")
    with pytest.raises(AssertionError, match=why):
        run_page(path, tmp_path, "http://127.0.0.1:1")


def test_a_server_of_a_page_gets_a_free_port(tmp_path: Path) -> None:
    """Two pages with the same port run side by side; a page speaks of one port in all its blocks."""
    path = tmp_path / "page.md"
    blocks = ("echo stele serve --store memory: --port 18098 > first", "echo https://localhost:18098/ > second")
    path.write_text("\n".join(f"```bash\n{block}\n```\n" for block in blocks), encoding="utf-8")
    run_page(path, tmp_path, "http://127.0.0.1:1")
    port = (tmp_path / "first").read_text().rsplit(maxsplit=1)[-1]
    assert port != "18098"
    assert (tmp_path / "second").read_text() == f"https://localhost:{port}/\n"
