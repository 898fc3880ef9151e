"""Settings with secrets in answers."""

from __future__ import annotations

import pytest

from stele.service.disclosure import HIDDEN, hide_settings, hide_url, is_harmless, restore_settings, restore_url

NAMES = frozenset({"region", "method", "endpoint"})
SETTINGS = {
    "method": "PUT",
    "headers": {"Authorization": "Bearer s3cret"},
    "list": ["s3cret", {"region": "eu"}],
    "qos": 2,
    "region": "https://u:s3cret@h/",
}


def test_only_harmless_names_are_shown_and_the_rest_comes_back() -> None:
    """At any depth only harmless names and numbers are shown; sending back the shown settings changes nothing."""
    masked_settings = hide_settings(SETTINGS, NAMES)
    assert "s3cret" not in repr(masked_settings)
    assert (masked_settings["method"], masked_settings["qos"], masked_settings["list"][1]) == (
        "PUT",
        2,
        {"region": "eu"},
    )
    assert restore_settings(masked_settings, SETTINGS) == SETTINGS
    assert restore_settings({**masked_settings, "method": "POST"}, SETTINGS)["headers"] == SETTINGS["headers"]


@pytest.mark.parametrize(
    ("value", "harmless"),
    [
        ("https://host:8200/path", True),
        ("https://u:p@host", False),
        ("https://host/?token=x", False),
        ("https://host/path;a=1", False),
        ("eu-central-1", True),
        ("me@example.org", True),
    ],
)
def test_urls_with_credentials_are_hidden_under_any_name(value: str, harmless: bool) -> None:
    """A URL with credentials is hidden even under a harmless name."""
    assert is_harmless("endpoint", value, NAMES) is harmless


@pytest.mark.parametrize(
    ("url", "masked_url"),
    [
        ("https://host/hook", "https://host/hook"),
        ("https://u:p@host:8080/hook", f"https://{HIDDEN}@host:8080/hook"),
        ("https://host/hook?code=s3cret#x", f"https://host/hook?{HIDDEN}"),
        ("https://[bad/", HIDDEN),
    ],
)
def test_urls_are_shown_without_credentials(url: str, masked_url: str) -> None:
    """A shown URL that is sent back means the stored one; any other URL replaces it."""
    assert hide_url(url) == masked_url
    assert restore_url(masked_url, url) == url
    assert restore_url("https://other/", url) == "https://other/"
