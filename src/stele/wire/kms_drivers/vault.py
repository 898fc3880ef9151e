"""HashiCorp Vault's transit engine: `hcvault`, key id `https://host:8200/transit/keys/name` (also after `hcvault://`).

Credentials are the properties `token.id`, or `approle.role.id` and `approle.secret.id`, and `namespace`. Otherwise they
come from the environment: `VAULT_TOKEN`, or `VAULT_APPROLE_ROLE_ID` and `VAULT_APPROLE_SECRET_ID`, and
`VAULT_NAMESPACE`. Those of the environment are sent only to the server in `VAULT_ADDR`: a user who can set a key id
must not obtain them.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from stele.errors import NotInstalled
from stele.wire.kms import KmsDenied, KmsError
from stele.wire.kms_drivers import ANSWER_SECONDS, CONNECT_SECONDS

_PREFIX: Final = "hcvault://"
_PATH: Final = re.compile(r"/?(?P<mount>[^/]+(?:/[^/]+)*)/keys/(?P<name>[^/]+)")


class VaultKey:
    """A key of Vault's transit engine."""

    def __init__(self, client: Any, mount: str, name: str) -> None:
        self._client = client
        self._mount = mount
        self._name = name

    def wrap(self, material: bytes) -> bytes:
        """Encrypt a data key. Raises `KmsError`, `KmsDenied`."""
        text = base64.b64encode(material).decode("ascii")
        transit = self._client.secrets.transit
        answer = _call_vault(lambda: transit.encrypt_data(self._name, text, mount_point=self._mount))
        return str(answer["ciphertext"]).encode("ascii")

    def unwrap(self, wrapped: bytes) -> bytes:
        """Decrypt a data key that `wrap` encrypted. Raises `KmsError`, `KmsDenied`."""
        transit = self._client.secrets.transit
        try:
            text = wrapped.decode("ascii")
            answer = _call_vault(lambda: transit.decrypt_data(self._name, text, mount_point=self._mount))
            return base64.b64decode(answer["plaintext"], validate=True)
        except (UnicodeDecodeError, binascii.Error):
            raise KmsError("the key was not wrapped by Vault") from None


def _call_vault(call: Callable[[], Any]) -> Mapping[str, Any]:
    """Return the data of an answer of Vault. Raises `KmsError`, `KmsDenied`."""
    from hvac.exceptions import Forbidden, Unauthorized, VaultError  # type: ignore[import-untyped]  # it comes without types
    from requests.exceptions import RequestException

    try:
        answer = call()
        data: Mapping[str, Any] = answer["data"]
    except (Forbidden, Unauthorized):
        raise KmsDenied("Vault refuses its key to these credentials") from None
    except (VaultError, RequestException) as error:
        raise KmsError(f"Vault cannot be used: {type(error).__name__}") from None
    except (KeyError, TypeError):
        raise KmsError("Vault's answer has no data") from None
    return data


def hcvault(key_id: str, properties: Mapping[str, str]) -> VaultKey:
    """Open a key of Vault. Raises `KmsError`, `KmsDenied`, `NotInstalled`."""
    try:
        import hvac  # type: ignore[import-untyped]  # it comes without types
    except ImportError:
        raise NotInstalled("hvac", "vault") from None
    address, mount, name = _parse_key_id(key_id)
    own = _is_address_of_environment(address)
    environ: Mapping[str, str] = os.environ if own else {}
    token = properties.get("token.id")
    role = properties.get("approle.role.id"), properties.get("approle.secret.id")
    if not token and not all(role):
        token = environ.get("VAULT_TOKEN")
        role = environ.get("VAULT_APPROLE_ROLE_ID"), environ.get("VAULT_APPROLE_SECRET_ID")
    if not token and not all(role):
        raise KmsError(
            "no credentials for Vault: set token.id, or approle.role.id and approle.secret.id; those of the environment"
            " count for the server in VAULT_ADDR"
        )
    certificate = properties.get("ssl.certificate.location"), properties.get("ssl.key.location")
    client = hvac.Client(
        url=address,
        token=token or "",
        namespace=properties.get("namespace") or environ.get("VAULT_NAMESPACE"),
        verify=properties.get("ssl.ca.location") or os.environ.get("VAULT_CACERT") or True,
        cert=certificate if all(certificate) else None,
        timeout=(CONNECT_SECONDS, ANSWER_SECONDS),
        allow_redirects=False,
    )
    if not token:
        _call_vault(lambda: {"data": client.auth.approle.login(role_id=role[0], secret_id=role[1])})
    return VaultKey(client, mount, name)


def _parse_key_id(key_id: str) -> tuple[str, str, str]:
    """Return address, mount and name of a key. Raises `KmsError`."""
    try:
        parts = urlsplit(key_id.removeprefix(_PREFIX))
        match = _PATH.fullmatch(parts.path)
    except ValueError:
        match = None
    if match is None or parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
        raise KmsError("the id of a key in Vault must have the form https://host:8200/transit/keys/name")
    return f"{parts.scheme}://{parts.netloc}", match["mount"], match["name"]


def _is_address_of_environment(address: str) -> bool:
    return os.environ.get("VAULT_ADDR", "").rstrip("/").lower() == address.lower()
