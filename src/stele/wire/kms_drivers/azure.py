"""Azure Key Vault: `azure-kms`, key id `https://vault.vault.azure.net/keys/name/version` (also after `azure-kms://`).

The vault's RSA key encrypts by RSA-OAEP-256, as Confluent's clients do. Without a version the newest one is used: then
data keys that an older version has wrapped cannot be unwrapped. Credentials are the library's own defaults
(environment, managed identity), or the properties `tenant.id`, `client.id` and `client.secret`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from stele.errors import NotInstalled
from stele.wire.kms import KmsDenied, KmsError
from stele.wire.kms_drivers import ANSWER_SECONDS, CONNECT_SECONDS

T = TypeVar("T")

_PREFIX: Final = "azure-kms://"
_DENIED: Final = frozenset({401, 403})


class AzureKey:
    """A key of Azure Key Vault."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def wrap(self, material: bytes) -> bytes:
        """Encrypt a data key. Raises `KmsError`, `KmsDenied`."""
        from azure.keyvault.keys.crypto import EncryptionAlgorithm

        answer = _call_azure(lambda: self._client.encrypt(EncryptionAlgorithm.rsa_oaep_256, material))
        return bytes(answer.ciphertext)

    def unwrap(self, wrapped: bytes) -> bytes:
        """Decrypt a data key that `wrap` encrypted. Raises `KmsError`, `KmsDenied`."""
        from azure.keyvault.keys.crypto import EncryptionAlgorithm

        answer = _call_azure(lambda: self._client.decrypt(EncryptionAlgorithm.rsa_oaep_256, wrapped))
        return bytes(answer.plaintext)


def _call_azure(call: Callable[[], T]) -> T:
    """Return what a call of the library returns. Raises `KmsError`, `KmsDenied`."""
    from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError

    try:
        return call()
    except ClientAuthenticationError:
        raise KmsDenied("Azure does not accept the credentials for its key") from None
    except HttpResponseError as error:
        kind = KmsDenied if error.status_code in _DENIED else KmsError
        raise kind(f"Azure Key Vault answers HTTP {error.status_code}") from None
    except (AzureError, ValueError) as error:
        raise KmsError(f"Azure Key Vault cannot be used: {type(error).__name__}") from None


def azure_kms(key_id: str, properties: Mapping[str, str]) -> AzureKey:
    """Open a key of Azure Key Vault. Raises `KmsError`, `NotInstalled`."""
    try:
        from azure.identity import ClientSecretCredential, DefaultAzureCredential
        from azure.keyvault.keys.crypto import CryptographyClient
    except ImportError:
        raise NotInstalled("azure-keyvault-keys", "azure") from None

    def make_client() -> Any:
        account = [properties.get(name, "") for name in ("tenant.id", "client.id", "client.secret")]
        credential = ClientSecretCredential(*account) if all(account) else DefaultAzureCredential()
        return CryptographyClient(
            key_id.removeprefix(_PREFIX),
            credential,
            connection_timeout=CONNECT_SECONDS,
            read_timeout=ANSWER_SECONDS,
            retry_total=1,
        )

    return AzureKey(_call_azure(make_client))
