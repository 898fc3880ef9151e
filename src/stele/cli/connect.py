"""How commands that talk to a registry find it: options, environment, and the profiles of the configuration file."""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from stele.cli.output import exit_on_error
from stele.cli.profiles import CREDENTIAL_FILES, Credentials, RegistryProfile, complete_profile, load_config
from stele.errors import InvalidRequest
from stele.tls_verification import make_client_context, unify_verification

if TYPE_CHECKING:
    import httpx

    from stele.client import Retry, SchemaRegistryClient

DEFAULT_URL: Final = "http://127.0.0.1:8081"
"""URL of the registry that is used when neither the command nor its environment names one."""
REGISTRY_PANEL: Final = "Registry and credentials"
"""Heading of these options in the help."""


class Connection(Credentials, frozen=True, kw_only=True):
    """Addresses of one registry and the credentials for it. It can be sent to other processes."""

    urls: tuple[str, ...]

    @property
    def has_credentials(self) -> bool:
        """Whether clients need credentials or certificates besides the addresses."""
        return any((self.user, self.token, self.token_url, self.ca, self.client_cert))

    def open_client(self, *, timeout: float = 10.0, retry: Retry | None = None) -> SchemaRegistryClient:
        """Open a client; the caller closes it. Raises `InvalidRequest` for an unusable address or certificate."""
        from stele.client import SchemaRegistryClient

        return SchemaRegistryClient(
            list(self.urls), auth=self._make_auth(), verify=self._tls_context(), timeout=timeout, retry=retry
        )

    def open_http(self, *, timeout: float = 5.0) -> httpx.Client:
        """Open an HTTP client for pages that belong to the server, not to its API; the caller closes it."""
        import httpx

        return httpx.Client(auth=self._make_auth(), verify=self._tls_context(), timeout=timeout)

    def _make_auth(self) -> httpx.Auth | tuple[str, str] | None:
        from stele.client import Bearer, OAuthClientCredentials

        if self.token:
            return Bearer(self.token)
        if self.user:
            return self.user, self.password
        if self.token_url:
            return OAuthClientCredentials(self.token_url, self.client_id, self.client_secret, scope=self.scope)
        return None

    def _tls_context(self) -> ssl.SSLContext:
        if not self.ca and not self.client_cert:
            return make_client_context()
        try:
            context = unify_verification(ssl.create_default_context(cafile=self.ca or None))
            if self.client_cert:
                context.load_cert_chain(self.client_cert, self.client_key or None)
        except (OSError, ssl.SSLError) as error:
            files = ", ".join(file for name in CREDENTIAL_FILES if (file := getattr(self, name)))
            raise InvalidRequest(f"cannot use the certificates in {files}: {error.strerror or error}") from None
        return context


@dataclass(frozen=True)
class RegistryOptions:
    """The options of every command that talks to a registry."""

    registry: Annotated[
        list[str] | None,
        typer.Option(
            "--registry",
            metavar="URL",
            help=f"Base URL of the registry (STELE_URL; else {DEFAULT_URL}). Repeat it for several servers.",
            rich_help_panel=REGISTRY_PANEL,
        ),
    ] = None
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            autocompletion=complete_profile,
            help="A registry of ~/.config/stele/config.toml (STELE_PROFILE).",
            rich_help_panel=REGISTRY_PANEL,
        ),
    ] = None
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            metavar="NAME[:PASSWORD]",
            help="User name (STELE_USER). The password is read from STELE_PASSWORD, or prompted for.",
            rich_help_panel=REGISTRY_PANEL,
        ),
    ] = None
    token: Annotated[
        str | None,
        typer.Option("--token", metavar="TOKEN", help="Bearer token (STELE_TOKEN).", rich_help_panel=REGISTRY_PANEL),
    ] = None
    ca: Annotated[
        str | None,
        typer.Option(
            "--ca", metavar="FILE", help="Certificates to trust, as PEM (STELE_CA).", rich_help_panel=REGISTRY_PANEL
        ),
    ] = None
    client_cert: Annotated[
        str | None,
        typer.Option(
            "--client-cert",
            metavar="FILE",
            help="Client certificate, as PEM (STELE_CLIENT_CERT).",
            rich_help_panel=REGISTRY_PANEL,
        ),
    ] = None
    client_key: Annotated[
        str | None,
        typer.Option(
            "--client-key",
            metavar="FILE",
            help="Key of the client certificate, if it is in another file (STELE_CLIENT_KEY).",
            rich_help_panel=REGISTRY_PANEL,
        ),
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether the command line itself names a registry."""
        return bool(self.registry or self.profile)

    def find_connection(self, environ: Mapping[str, str] = os.environ, *, ask: bool = True) -> Connection:
        """Return the registry that the command is about. Raises `InvalidRequest`.

        The address is that of --registry, else of --profile, else of STELE_URL, else of the profile that
        STELE_PROFILE or the configuration file names, else `DEFAULT_URL`. A profile's credentials go with its own
        address, or with that of --registry if --profile names it, and to no other server.

        Args:
            environ: The environment.
            ask: Ask on a terminal for a password that is missing.
        """
        profile = self._find_profile(environ)
        urls = split_addresses(self.registry or ())
        if not urls:
            urls = profile.addresses if profile else split_addresses([environ.get("STELE_URL", "")])
        return Connection(urls=urls or (DEFAULT_URL,), **self._find_credentials(profile, environ, ask=ask))

    def _find_credentials(
        self, profile: RegistryProfile | None, environ: Mapping[str, str], *, ask: bool
    ) -> dict[str, str]:
        """Return the credentials of the profile, or of the environment without one, overridden by the command line."""
        if profile is None:
            credentials = {name: environ.get(f"STELE_{name.upper()}", "") for name in Credentials.__struct_fields__}
        else:
            credentials = {name: getattr(profile, name) for name in Credentials.__struct_fields__}
        if self.user and self.token:
            raise InvalidRequest("--user and --token exclude one another")
        if self.user or self.token:
            credentials |= {"user": self.user or "", "token": self.token or "", "password": "", "token_url": ""}
        credentials |= {name: file for name in CREDENTIAL_FILES if (file := getattr(self, name))}
        user, colon, password = credentials["user"].partition(":")
        if user and not colon:
            password = credentials["password"] or environ.get("STELE_PASSWORD", "")
            if not password and ask and sys.stdin.isatty():
                password = typer.prompt(f"Password of {user}", hide_input=True, err=True)
        return credentials | {"user": user, "password": password}

    def _find_profile(self, environ: Mapping[str, str]) -> RegistryProfile | None:
        if self.profile is not None:
            return load_config().find_profile(self.profile)
        if self.registry or environ.get("STELE_URL"):
            return None
        config = load_config()
        name = environ.get("STELE_PROFILE") or config.profile
        return config.find_profile(name) if name else None


def split_addresses(texts: Sequence[str]) -> tuple[str, ...]:
    """Return all addresses; one text may hold several, separated by commas."""
    return tuple(address for text in texts for part in text.split(",") if (address := part.strip()))


@contextmanager
def connect(options: RegistryOptions) -> Iterator[SchemaRegistryClient]:
    """Yield a client and close it at the end. A `SteleError` ends the command with exit code 2."""
    with exit_on_error(), options.find_connection().open_client() as client:
        yield client


def options_from(parameters: Mapping[str, Any]) -> RegistryOptions:
    """Return the registry options among the parameters of a command that is not fully typed yet."""
    return RegistryOptions(**{member.name: parameters.get(member.name) for member in fields(RegistryOptions)})
