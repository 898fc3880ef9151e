"""Google Cloud KMS: `gcp-kms`, key id `projects/…/locations/…/keyRings/…/cryptoKeys/…` (also after `gcp-kms://`).

Credentials are the library's own defaults (`GOOGLE_APPLICATION_CREDENTIALS`, the machine's account), or those of a
service account in the properties `client.id`, `client.email`, `private.key.id` and `private.key`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from stele.errors import NotInstalled
from stele.wire.kms import KmsDenied, KmsError
from stele.wire.kms_drivers import ANSWER_SECONDS

T = TypeVar("T")

_PREFIX: Final = "gcp-kms://"
_TOKEN_URI: Final = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
_ACCOUNT: Final = ("client.id", "client.email", "private.key.id", "private.key")


class GcpKey:
    """A key of Google Cloud KMS."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name

    def wrap(self, material: bytes) -> bytes:
        """Encrypt a data key. Raises `KmsError`, `KmsDenied`."""
        request = {"name": self._name, "plaintext": material}
        answer = _call_gcp(lambda: self._client.encrypt(request=request, timeout=ANSWER_SECONDS, retry=None))
        return bytes(answer.ciphertext)

    def unwrap(self, wrapped: bytes) -> bytes:
        """Decrypt a data key that `wrap` encrypted. Raises `KmsError`, `KmsDenied`."""
        request = {"name": self._name, "ciphertext": wrapped}
        answer = _call_gcp(lambda: self._client.decrypt(request=request, timeout=ANSWER_SECONDS, retry=None))
        return bytes(answer.plaintext)


def _call_gcp(call: Callable[[], T]) -> T:
    """Return what a call of the library returns. Raises `KmsError`, `KmsDenied`."""
    from google.api_core.exceptions import Forbidden, GoogleAPIError, Unauthorized
    from google.auth.exceptions import GoogleAuthError

    try:
        return call()
    except (Forbidden, Unauthorized) as error:
        raise KmsDenied(f"Google Cloud KMS answers {type(error).__name__}") from None
    except (GoogleAPIError, GoogleAuthError, ValueError) as error:
        raise KmsError(f"Google Cloud KMS cannot be used: {type(error).__name__}") from None


def gcp_kms(key_id: str, properties: Mapping[str, str]) -> GcpKey:
    """Open a key of Google Cloud KMS. Raises `KmsError`, `NotInstalled`."""
    try:
        from google.cloud import kms_v1
    except ImportError:
        raise NotInstalled("google-cloud-kms", "gcp") from None

    def make_client() -> Any:
        return kms_v1.KeyManagementServiceClient(credentials=_read_account(properties))

    return GcpKey(_call_gcp(make_client), key_id.removeprefix(_PREFIX))


def _read_account(properties: Mapping[str, str]) -> Any:
    """Return the credentials in the properties of a KEK; None if it has none."""
    from google.oauth2 import service_account

    if not all(properties.get(name) for name in _ACCOUNT):
        return None
    info = {name.replace(".", "_"): properties[name] for name in _ACCOUNT}
    return service_account.Credentials.from_service_account_info(  # type: ignore[no-untyped-call]  # as it comes
        {"type": "service_account", "token_uri": _TOKEN_URI, **info}
    )
