"""Subjects, contexts and naming strategies."""

from __future__ import annotations

import pytest

from stele.client import QualifiedName, qualify_subject, record_name, split_subject, topic_name, topic_record_name
from stele.errors import InvalidName


@pytest.mark.parametrize(
    ("subject", "context", "full"),
    [
        ("s", "", "s"),
        ("s", "team", ":.team:s"),
        ("s", ".team", ":.team:s"),
        ("", "team", ":.team:"),
        (":.other:s", "team", ":.other:s"),
    ],
)
def test_qualify(subject: str, context: str, full: str) -> None:
    """A context is put before the subject, with or without its dot. A qualified name keeps its own context."""
    assert qualify_subject(subject, context) == full


@pytest.mark.parametrize(
    ("name", "context", "subject"),
    [
        ("s", "", "s"),
        (":.team:s", "team", "s"),
        (":.team:a:b", "team", "a:b"),
        (":.team", "", ":.team"),
        ("a:b", "", "a:b"),
    ],
)
def test_split(name: str, context: str, subject: str) -> None:
    """The second colon ends the context; other colons belong to the subject."""
    assert split_subject(name) == QualifiedName(context, subject)
    assert str(split_subject(name)) == name


def test_contexts_have_no_colon() -> None:
    """A context name with a colon is refused, because the colon separates context and subject."""
    with pytest.raises(InvalidName):
        qualify_subject("s", "a:b")


def test_strategies() -> None:
    """The three usual naming strategies return their subjects."""
    assert topic_name("t", "key", "r.R") == "t-key"
    assert record_name("t", "key", "r.R") == "r.R"
    assert topic_record_name("t", "key", "r.R") == "t-r.R"


def test_missing_parts_are_said() -> None:
    """A missing topic or record type raises an error."""
    with pytest.raises(InvalidName, match="topic"):
        topic_name("", "value", "r.R")
    with pytest.raises(InvalidName, match="record type"):
        record_name("t", "value", "")
    with pytest.raises(InvalidName, match="record type"):
        topic_record_name("t", "value", "")
