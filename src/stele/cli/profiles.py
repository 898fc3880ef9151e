"""The user's configuration file: registries by name, with their credentials.

profile = "staging"                             # used if nothing else names a registry

[profiles.staging]
registry = "https://registry.example.org"       # or a list of addresses
user = "ada"                                    # with password, or token alone,
password = "…"                                  # or token_url, client_id, client_secret and scope
ca = "company-ca.pem"
client_cert = "ada.pem"
client_key = "ada.key"
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from stele.core.suggestions import suggest_name
from stele.errors import InvalidRequest

CREDENTIAL_FILES: Final = ("ca", "client_cert", "client_key")
"""The fields of `Credentials` that name files."""


class Credentials(msgspec.Struct, frozen=True):
    """Credentials and certificates for requests to a registry. Empty fields are not used."""

    user: str = ""
    password: str = ""
    token: str = ""
    token_url: str = ""
    client_id: str = ""
    client_secret: str = ""
    scope: str = ""
    ca: str = ""
    client_cert: str = ""
    client_key: str = ""


class RegistryProfile(Credentials, frozen=True, kw_only=True):
    """A registry and how to reach it. Relative file names count from the folder of the configuration file."""

    registry: str | list[str]

    @property
    def addresses(self) -> tuple[str, ...]:
        """The base URLs of the registry's servers."""
        return (self.registry,) if isinstance(self.registry, str) else tuple(self.registry)


class ConfigFile(msgspec.Struct, frozen=True):
    """Content of the configuration file."""

    profile: str = ""
    profiles: Mapping[str, RegistryProfile] = {}

    def find_profile(self, name: str) -> RegistryProfile:
        """Return the profile of a name. Raises `InvalidRequest`."""
        profile = self.profiles.get(name)
        if profile is None:
            hint = suggest_name(name, self.profiles)
            raise InvalidRequest(f"no profile {name!r} in {config_path()}{hint}")
        return profile


def config_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the configuration file: below XDG_CONFIG_HOME, else below ~/.config."""
    base = environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "stele" / "config.toml"


def load_config(path: Path | None = None) -> ConfigFile:
    """Read the configuration file; a missing file counts as empty. Raises `InvalidRequest`."""
    path = path or config_path()
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ConfigFile()
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"{path}: {error}") from None
    _check_keys(path, "", table, ConfigFile)
    for name, profile in table.get("profiles", {}).items():
        if isinstance(profile, dict):
            _check_keys(path, f" in [profiles.{name}]", profile, RegistryProfile)
    try:
        config = msgspec.convert(table, ConfigFile)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{path}: {error}") from None
    return msgspec.structs.replace(
        config, profiles={name: _resolve_files(profile, path.parent) for name, profile in config.profiles.items()}
    )


def complete_profile(incomplete: str) -> list[str]:
    """Return the profiles that begin with what was typed in a shell; none if the file cannot be read."""
    try:
        return [name for name in load_config().profiles if name.startswith(incomplete)]
    except InvalidRequest:
        return []


def _check_keys(path: Path, place: str, table: Mapping[str, Any], struct: type[msgspec.Struct]) -> None:
    for key in table:
        if key not in struct.__struct_fields__:
            hint = suggest_name(key, struct.__struct_fields__)
            raise InvalidRequest(f"{path}: unknown key {key!r}{place}{hint}")


def _resolve_files(profile: RegistryProfile, folder: Path) -> RegistryProfile:
    files = {name: getattr(profile, name) for name in CREDENTIAL_FILES}
    resolved = {name: str(folder / Path(file).expanduser()) for name, file in files.items() if file}
    return msgspec.structs.replace(profile, **resolved)
