"""AWS KMS: `aws-kms`, key id an ARN (`arn:aws:kms:…`, also with `aws-kms://` before it) or an id or alias in a region.

Credentials are those of the library boto3 (environment, profile, role of the machine), or the properties
`access.key.id` and `secret.access.key`, or `profile`. With `role.arn` (`role.session.name`, `role.external.id`) these
assume that role first. `region` applies if the key id has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from stele.errors import NotInstalled
from stele.wire.kms import KmsDenied, KmsError
from stele.wire.kms_drivers import ANSWER_SECONDS, CONNECT_SECONDS

T = TypeVar("T")

_PREFIX: Final = "aws-kms://"
_DENIED: Final = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "UnrecognizedClientException",
    }
)
"""Error codes with which AWS denies these credentials access."""


class AwsKey:
    """A key of AWS KMS."""

    def __init__(self, client: Any, key_id: str) -> None:
        self._client = client
        self._key_id = key_id

    def wrap(self, material: bytes) -> bytes:
        """Encrypt a data key. Raises `KmsError`, `KmsDenied`."""
        answer = call_aws(lambda: self._client.encrypt(KeyId=self._key_id, Plaintext=material))
        return bytes(answer["CiphertextBlob"])

    def unwrap(self, wrapped: bytes) -> bytes:
        """Decrypt a data key that `wrap` encrypted. Raises `KmsError`, `KmsDenied`."""
        answer = call_aws(lambda: self._client.decrypt(KeyId=self._key_id, CiphertextBlob=wrapped))
        return bytes(answer["Plaintext"])


def call_aws(call: Callable[[], T]) -> T:
    """Return what a call of boto3 returns. Raises `KmsError`, `KmsDenied`."""
    from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]  # it comes without types

    try:
        return call()
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", "unknown"))
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        kind = KmsDenied if code in _DENIED or status in {401, 403} else KmsError
        raise kind(f"AWS KMS answers {code}") from None
    except (BotoCoreError, ValueError) as error:
        raise KmsError(f"AWS KMS cannot be used: {type(error).__name__}") from None


def aws_kms(key_id: str, properties: Mapping[str, str]) -> AwsKey:
    """Open a key of AWS KMS. Raises `KmsError`, `NotInstalled`."""
    try:
        import boto3  # type: ignore[import-untyped]  # it comes without types
        from botocore.config import Config  # type: ignore[import-untyped]  # it comes without types
    except ImportError:
        raise NotInstalled("boto3", "aws") from None
    name = key_id.removeprefix(_PREFIX)
    parts = name.split(":")
    region = parts[3] if len(parts) >= 6 else properties.get("region")
    config = Config(connect_timeout=CONNECT_SECONDS, read_timeout=ANSWER_SECONDS, retries={"total_max_attempts": 2})

    def make_client() -> Any:
        access = properties.get("access.key.id"), properties.get("secret.access.key")
        if all(access):
            session = boto3.Session(access[0], access[1], region_name=region)
        else:
            session = boto3.Session(region_name=region, profile_name=properties.get("profile"))
        if role := properties.get("role.arn"):
            credentials = _assume_role(session.client("sts", config=config), role, properties)
            session = boto3.Session(
                credentials["AccessKeyId"],
                credentials["SecretAccessKey"],
                credentials["SessionToken"],
                region_name=region,
            )
        return session.client("kms", config=config)

    return AwsKey(call_aws(make_client), name)


def _assume_role(client: Any, role: str, properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return temporary credentials of a role."""
    wanted = {"RoleArn": role, "RoleSessionName": properties.get("role.session.name") or "stele"}
    if external := properties.get("role.external.id"):
        wanted["ExternalId"] = external
    credentials: Mapping[str, str] = client.assume_role(**wanted)["Credentials"]
    return credentials
