"""How commands find the registry, and which credentials they send to it."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from tests.support.certificates import write_certificates
from typer.testing import CliRunner

from stele.cli.app import app
from stele.cli.connect import DEFAULT_URL, Connection, RegistryOptions
from stele.client.connection import http_options
from stele.errors import InvalidRequest
from stele.storage.mysql.url import connect_options

CONFIG = """
profile = "staging"

[profiles.staging]
registry = ["https://a.example.org", "https://b.example.org"]
user = "ada"
password = "secret"
ca = "ca.pem"

[profiles.prod]
registry = "https://prod.example.org"
token = "abc"
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the user's configuration file, which is not written yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = tmp_path / "stele" / "config.toml"
    file.parent.mkdir()
    return file


def find_connection(environ: dict[str, str] | None = None, **options: Any) -> Connection:
    """Return the connection of a command with these options."""
    return RegistryOptions(**options).find_connection(environ or {}, ask=False)


def test_without_anything(config: Path) -> None:
    """Without a configuration file, an environment and options, the default URL is used."""
    assert find_connection() == Connection(urls=(DEFAULT_URL,))


def test_order_of_addresses(config: Path) -> None:
    """The first of --registry, --profile, STELE_URL, STELE_PROFILE and the file's own profile decides the address."""
    config.write_text(CONFIG)
    environ = {"STELE_URL": "http://e1, http://e2", "STELE_PROFILE": "prod"}
    assert find_connection(environ, registry=["http://r"], profile="prod").urls == ("http://r",)
    assert find_connection(environ, profile="prod").urls == ("https://prod.example.org",)
    assert find_connection(environ).urls == ("http://e1", "http://e2")
    assert find_connection({"STELE_PROFILE": "prod"}).urls == ("https://prod.example.org",)
    assert find_connection().urls == ("https://a.example.org", "https://b.example.org")


def test_credentials_go_to_their_own_registry(config: Path) -> None:
    """A profile's credentials go to another address only with --profile, and never together with the environment's."""
    config.write_text(CONFIG)
    staging = find_connection()
    assert (staging.user, staging.password, staging.token) == ("ada", "secret", "")
    assert staging.ca == str(config.parent / "ca.pem")
    assert not find_connection(registry=["http://other"]).has_credentials
    assert not find_connection({"STELE_URL": "http://other"}).has_credentials
    assert find_connection(registry=["http://other"], profile="prod").token == "abc"
    environ = {"STELE_TOKEN": "env", "STELE_USER": ""}
    assert find_connection(environ, profile="staging").token == ""
    assert find_connection(environ, registry=["http://other"]).token == "env"


def test_credentials_of_the_command_line_replace_others(config: Path) -> None:
    """A user or token on the command line replaces other credentials; certificates of the profile stay."""
    config.write_text(CONFIG)
    other = find_connection(user="bob:x:y")
    assert (other.user, other.password, other.token, other.ca) == ("bob", "x:y", "", str(config.parent / "ca.pem"))
    assert find_connection({"STELE_PASSWORD": "p"}, user="bob").password == "p"
    assert find_connection(token="t").user == ""
    with pytest.raises(InvalidRequest, match="exclude"):
        find_connection(user="a", token="b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profil = 'x'", "unknown key 'profil'; did you mean 'profile'?"),
        ("[profiles.x]\nregistry = 'http://a'\npasword = 'p'", "unknown key 'pasword' in [profiles.x]"),
        ("[profiles.x]\nuser = 'a'", "registry"),
        ("profile = 'y'\n[profiles.x]\nregistry = 'http://a'", "no profile 'y'"),
        ("[profiles", "config.toml"),
    ],
)
def test_a_wrong_configuration_file(config: Path, text: str, message: str) -> None:
    """An unknown key is an error that suggests the nearest known one; so is every other invalid content."""
    config.write_text(text)
    with pytest.raises(InvalidRequest) as error:
        find_connection()
    assert message in str(error.value)


def test_certificates_that_are_not_there(config: Path) -> None:
    """A missing certificate file is reported before anything is sent."""
    done = CliRunner().invoke(app, ["subject", "list", "--registry", "https://x", "--ca", "missing.pem"])
    assert done.exit_code == 2
    assert done.stderr.startswith("error: cannot use the certificates in missing.pem: No such file")


def test_a_registry_that_does_not_answer(config: Path) -> None:
    """An unreachable registry ends a command with one sentence and exit code 2."""
    done = CliRunner().invoke(app, ["subject", "list", "--registry", "http://127.0.0.1:1"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no registry answered GET /subjects (http://127.0.0.1:1")


def test_certificates_are_judged_alike_on_every_python(config: Path, tmp_path: Path) -> None:
    """TLS contexts use the same verification flags on all Python versions.

    Python 3.13 changed the defaults: it refuses certificate authorities that 3.11 accepts, and accepts some that it
    refuses.
    """
    write_certificates(tmp_path)
    context = Connection(urls=(DEFAULT_URL,), ca=str(tmp_path / "ca.pem"))._tls_context()
    mysql = connect_options(f"mysql://host/x?ssl-ca={tmp_path}/ca.pem")["ssl"]
    client = http_options(timeout=1.0, verify=True, headers=None)["verify"]
    for tls_context in (context, mysql, client):
        assert isinstance(tls_context, ssl.SSLContext)
        assert tls_context.verify_mode is ssl.CERT_REQUIRED
        assert not tls_context.verify_flags & (ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN)
