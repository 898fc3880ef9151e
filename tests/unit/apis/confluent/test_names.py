"""Qualified names, versions, flags and pages of the Confluent dialect."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stele.apis.confluent.names import (
    InvalidContext,
    NoSuchResource,
    PrefixFilter,
    is_true,
    level_name,
    parse_context,
    parse_integer,
    parse_level,
    parse_prefix,
    parse_subject,
    parse_subject_key,
    parse_version,
    qualify_subject,
    require_valid_key,
    require_valid_level,
    slice_page,
)
from stele.core.model import REGISTRY_LEVEL, SettingsLevel, SubjectKey
from stele.errors import InvalidName, InvalidVersion

texts = st.text(st.characters(exclude_characters="\ue000", exclude_categories=["Cs"]))
spaces = st.text(st.characters(exclude_characters=":\ue000", exclude_categories=["Cs"])).filter(lambda s: s[:1] != ".")


@given(spaces, texts)
def test_every_subject_can_be_named(space: str, name: str) -> None:
    """The displayed name of a subject is parsed as the same subject, whatever its name and namespace are."""
    key = SubjectKey(space, name)
    assert parse_subject_key(qualify_subject(key)) == key


@given(spaces, texts)
def test_every_level_can_be_named(space: str, name: str) -> None:
    """The displayed name of a level is parsed as the same level."""
    for level in (
        REGISTRY_LEVEL,
        SettingsLevel(space),
        SettingsLevel(space, name) if name and space != "__GLOBAL" else REGISTRY_LEVEL,
    ):
        if level.namespace != "__GLOBAL":
            assert parse_level(level_name(level)) == level


@pytest.mark.parametrize(
    ("text", "context", "key", "is_qualified"),
    [
        ("a", "", ("", "a"), False),
        ("a", ".c", ("c", "a"), True),
        ("a", "c", ("c", "a"), True),
        ("a", ".", ("", "a"), True),
        (":.c:a", "", ("c", "a"), True),
        (":.c:a", ".d", ("c", "a"), True),
        (":.c:a:b", "", ("c", "a:b"), True),
        (":.:a", "", ("", "a"), True),
        (":.c:", "", ("c", ""), True),
        (":.c", "", ("c", ""), True),
        (":c:a", "", ("", ":c:a"), False),
        ("a\ue000b", "", ("", "a/b"), False),
        ("", "", ("", ""), False),
    ],
)
def test_subject_of(text: str, context: str, key: tuple[str, str], is_qualified: bool) -> None:
    """The context is that in the name, else that of the path, else the default one."""
    assert parse_subject(text, context) == (SubjectKey(*key), is_qualified)


@pytest.mark.parametrize("context", [".c", "c", ":.c:"])
def test_contexts_in_paths(context: str) -> None:
    """A context in a path is an unqualified name, or one between colons."""
    assert parse_context(context) == "c"


@pytest.mark.parametrize("context", [":", "::", ":c:", ":.c", ".c:", ":.c:x", ":.a:b:", ":*:"])
def test_context_with_other_colons_is_refused(context: str) -> None:
    """A context with any other colon is refused."""
    with pytest.raises(InvalidContext):
        parse_context(context)


@pytest.mark.parametrize(
    ("text", "context", "level"),
    [
        ("", "", SettingsLevel("")),
        ("", ".c", SettingsLevel("c")),
        ("a", "", SettingsLevel("", "a")),
        ("a", ".c", SettingsLevel("c", "a")),
        (":.c:", "", SettingsLevel("c")),
        (":.:", "", SettingsLevel("")),
        (":.__GLOBAL:", "", REGISTRY_LEVEL),
    ],
)
def test_level_of(text: str, context: str, level: SettingsLevel) -> None:
    """Settings belong to a subject, a context, or the registry."""
    assert parse_level(text, context) == level


@pytest.mark.parametrize("name", ["__GLOBAL", "__EMPTY", "a\0", "\n", "\x7f", "\x9f", "\ufffd"])
def test_names_nobody_may_create(name: str) -> None:
    """Reserved names, control characters and invalid UTF-8 are refused for subjects and levels."""
    for check in (
        lambda: require_valid_key(SubjectKey("", name)),
        lambda: require_valid_level(SettingsLevel("c", name)),
    ):
        with pytest.raises(InvalidName):
            check()


def test_names_anybody_may_create() -> None:
    """The empty name is valid; `__GLOBAL` is a level, but not a context of subjects."""
    assert require_valid_key(SubjectKey("", "")) == ("", "")
    assert require_valid_level(REGISTRY_LEVEL) == REGISTRY_LEVEL
    with pytest.raises(InvalidName):
        require_valid_key(SubjectKey("__GLOBAL", "a"))


@pytest.mark.parametrize(
    ("text", "context", "prefix"),
    [
        ("", "", PrefixFilter("", "")),
        ("a", "", PrefixFilter("", "a")),
        (":*:", "", PrefixFilter(None, "")),
        (":*:a", "", PrefixFilter(None, "a")),
        (":.c:a", "", PrefixFilter("c", "a")),
        (":*:", ".c", PrefixFilter("c", "")),
        ("a", ".c", PrefixFilter("c", "a")),
    ],
)
def test_prefix_of(text: str, context: str, prefix: PrefixFilter) -> None:
    """A prefix selects contexts and names of subjects."""
    assert parse_prefix(text, context) == prefix


@given(st.integers(1, 2**31 - 1))
def test_numbers_are_versions(number: int) -> None:
    """Every positive 32-bit integer is a version."""
    assert parse_version(str(number)) == number


@pytest.mark.parametrize("text", ["latest", "LATEST", " Latest ", "-1"])
def test_latest(text: str) -> None:
    """`latest`, in any case, and -1 mean the latest version."""
    assert parse_version(text) is None


@pytest.mark.parametrize("text", ["0", "-2", "2147483648", "1.0", "", "x", "١", "1_0", "9" * 5000])
def test_no_version(text: str) -> None:
    """Other texts are not versions."""
    with pytest.raises(InvalidVersion):
        parse_version(text)


@pytest.mark.parametrize("text", ["x", "1.5", "2147483648", "9" * 5000, " 1", "١"])
def test_no_integer(text: str) -> None:
    """A text that is no 32-bit integer raises `NoSuchResource`."""
    with pytest.raises(NoSuchResource):
        parse_integer(text)


def test_flags() -> None:
    """Only `true` sets a flag."""
    assert [is_true(text) for text in ("true", "TRUE", " true ", "", "1", "yes", "false")] == [True] * 3 + [False] * 4


@given(st.lists(st.integers()), st.integers(-5, 20), st.integers(-5, 20), st.integers(1, 20))
def test_pages(items: list[int], offset: int, limit: int, most: int) -> None:
    """A page is a slice of the list; a limit out of range counts as the maximum."""
    size = limit if 0 < limit <= most else most
    start = max(offset, 0)
    assert slice_page(items, str(offset), str(limit), most) == items[start : start + size]
