"""Syntax highlighting of schema texts: no text is lost, and none becomes markup."""

from __future__ import annotations

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from stele.ui.highlight import LONGEST, highlight_diff, highlight_text

TEXTS = st.text(alphabet='{}[]":,<>&/*#-+@ \n\\abntrue01.=\u202e', max_size=200)


def strip_tags(markup: str) -> str:
    """Return the text that a browser shows."""
    return html.unescape(re.sub(r"</?span[^>]*>", "", markup))


@given(TEXTS, st.sampled_from(["avro", "json", "protobuf", "thrift", "xsd", "opaque"]))
def test_a_text_is_shown_whole(text: str, format_name: str) -> None:
    """The markup without its elements is the text."""
    markup = highlight_text(text, format_name)
    assert strip_tags(markup) == text
    assert not re.search(r"<(?!/?span)", markup)


@given(TEXTS)
def test_a_diff_is_shown_whole(text: str) -> None:
    """The markup has every line, marked according to its first character."""
    markup = highlight_diff(text)
    assert strip_tags(markup) == text + "\n"
    assert not re.search(r"<(?!/?span)", markup)


def test_words_have_their_kind() -> None:
    """Keys, strings, words, numbers and comments have different classes."""
    assert highlight_text('{"a": "b", "c": null, "d": 1}', "avro") == (
        '{<span class="k">&#34;a&#34;</span>: <span class="s">&#34;b&#34;</span>, '
        '<span class="k">&#34;c&#34;</span>: <span class="w">null</span>, '
        '<span class="k">&#34;d&#34;</span>: <span class="n">1</span>}'
    )
    assert '<span class="c">// x</span>' in highlight_text("int32 a = 1; // x", "protobuf")
    assert '<span class="c">&lt;!-- x --&gt;</span>' in highlight_text("<!-- x --><a/>", "xsd")
    long = "1" * (LONGEST + 1)
    assert highlight_text(long, "json") == long
