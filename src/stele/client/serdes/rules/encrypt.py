"""Rules of the types ENCRYPT and ENCRYPT_PAYLOAD: encrypt tagged fields, or whole payloads, with data keys.

A KEK, named by parameter `encrypt.kek.name`, is a key of a key management service (`encrypt.kms.type`,
`encrypt.kms.key.id`). It wraps the data keys of a subject, which the registry stores. The first writer creates a
missing KEK and data key. With a shared KEK the registry creates and unwraps the data keys instead.

Encrypted text stays text, in base64. With `encrypt.dek.expiry.days` a data key is replaced when it reaches that age. An
encrypted value then begins with 00 and the version number of its key, four bytes.

Source: docs/protocols/data-rules.md.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Final, NamedTuple, TypeVar

from stele.client.api import BlockingApi
from stele.client.keys import Algorithm, DekVersion
from stele.client.names import split_subject
from stele.client.serdes.rules.ciphers import Cipher, make_cipher
from stele.client.serdes.rules.model import (
    FieldExecutor,
    FieldLocation,
    FieldType,
    RuleContext,
    RuleExecutor,
    RuleMode,
    Tools,
    Visit,
)
from stele.errors import Conflict, DecodeError, NotFound, SteleError
from stele.protocol.confluent import Dek, Kek
from stele.wire import kms

KEK_NAME: Final = "encrypt.kek.name"
KMS_TYPE: Final = "encrypt.kms.type"
KMS_KEY_ID: Final = "encrypt.kms.key.id"
ALGORITHM: Final = "encrypt.dek.algorithm"
EXPIRY_DAYS: Final = "encrypt.dek.expiry.days"

_DAY: Final = 24 * 60 * 60 * 1000
_VERSION_BYTES: Final = 5
_KEPT: Final = 1024

T = TypeVar("T")


class EncryptionPlan(NamedTuple):
    """A rule's parameters for its data key: KEK, KMS key, algorithm, and days until the data key expires.

    `days` is 0 for a data key that does not expire.
    """

    kek: str
    kms_type: str
    kms_key_id: str
    algorithm: Algorithm
    days: int

    @classmethod
    def of(cls, context: RuleContext) -> EncryptionPlan:
        """Return the parameters of a rule. Raises `RuleFailed` for missing or invalid ones."""
        kek = context.find_parameter(KEK_NAME)
        if not kek:
            raise context.rule_failure(f"no parameter {KEK_NAME} names a KEK")
        algorithm = context.find_parameter(ALGORITHM) or "AES256_GCM"
        days = context.find_parameter(EXPIRY_DAYS) or "0"
        if algorithm not in kms.ALGORITHMS:
            raise context.rule_failure(f"{ALGORITHM} must be one of {', '.join(kms.ALGORITHMS)}")
        if not (days.isascii() and days.isdecimal() and len(days) < 10):
            raise context.rule_failure(f"{EXPIRY_DAYS} must be a number of days")
        own = context.find_parameter(KMS_TYPE) or "", context.find_parameter(KMS_KEY_ID) or ""
        return cls(kek, *own, _ALGORITHMS[algorithm], int(days))


_ALGORITHMS: Final[dict[str, Algorithm]] = {
    "AES128_GCM": "AES128_GCM",
    "AES256_GCM": "AES256_GCM",
    "AES256_SIV": "AES256_SIV",
}


class PayloadExecutor(RuleExecutor):
    """Runs rules of type ENCRYPT_PAYLOAD, which are encoding rules."""

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._keys = DataKeys(tools)

    def run(self, context: RuleContext, value: bytes) -> bytes:
        """Return the payload encrypted when writing, decrypted when reading."""
        return self._keys.make_transform(context, EncryptionPlan.of(context))(value)


class FieldEncryptor(FieldExecutor):
    """Runs rules of type ENCRYPT on texts and bytes in fields with the rule's tags; null stays null."""

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._keys = DataKeys(tools)

    def visit(self, context: RuleContext) -> Visit:
        """Return the function that encrypts or decrypts one field."""
        crypt = self._keys.make_transform(context, EncryptionPlan.of(context))

        def turn(place: FieldLocation, value: object) -> object:
            if value is None:
                return None
            if place.type is FieldType.STRING and isinstance(value, str):
                return _decode_text(context, crypt, place, value)
            if place.type is FieldType.BYTES and isinstance(value, bytes):
                return crypt(value)
            if context.mode is RuleMode.WRITE:
                raise context.rule_failure(
                    f"{place.full_name}: only text and bytes can be encrypted, not {place.type.value}"
                )
            return value

        return turn


def _decode_text(context: RuleContext, crypt: Callable[[bytes], bytes], place: FieldLocation, value: str) -> str:
    """Return a text encrypted to base64, or decrypted from it."""
    if context.mode is RuleMode.WRITE:
        return b64encode(crypt(value.encode())).decode()
    try:
        return crypt(b64decode(value)).decode()
    except ValueError as error:
        raise context.rule_failure(f"{place.full_name}: not encrypted text: {error}") from error


class DataKeys:
    """The data keys of subjects, as stored in the registry. Ciphers are cached."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._cipher = lru_cache(_KEPT)(make_cipher)
        self._unwrapped = lru_cache(_KEPT)(_unwrap_key)

    def make_transform(self, context: RuleContext, plan: EncryptionPlan) -> Callable[[bytes], bytes]:
        """Return the function that encrypts fields when writing and decrypts them when reading.

        It serves one record and looks up each key once.
        """
        if context.mode is RuleMode.WRITE:
            return self._make_encryption(context, plan)
        if context.mode is not RuleMode.READ:
            raise context.rule_failure(f"encryption is not possible in the mode {context.mode.value}")
        known: dict[int, Cipher] = {}

        def decrypt(data: bytes) -> bytes:
            version, data = _split_key_version(data) if plan.days else (1, data)
            if version not in known:
                known[version] = self._cipher_of(context, plan, self._to_read(context, plan, version))
            return known[version].decrypt(data)

        return decrypt

    def _make_encryption(self, context: RuleContext, plan: EncryptionPlan) -> Callable[[bytes], bytes]:
        @cache
        def key() -> tuple[bytes, Cipher]:
            dek = self._to_write(context, plan)
            return b"\0" + dek.version.to_bytes(4, "big") if plan.days else b"", self._cipher_of(context, plan, dek)

        def encrypt(data: bytes) -> bytes:
            front, cipher = key()
            return front + cipher.encrypt(data)

        return encrypt

    # --- keys to encrypt keys

    def _require_client(self, context: RuleContext) -> BlockingApi:
        if self._tools.client is None:
            raise context.rule_failure("data keys need a registry, and the deserializer has none")
        return self._tools.client

    def _find_kek(self, context: RuleContext, plan: EncryptionPlan) -> Kek:
        """Return the rule's KEK. A writer creates it if it is missing."""
        client, where = self._require_client(context), split_subject(context.record.subject).context
        kek = _or_none(lambda: client.kek(plan.kek, context=where))
        if kek is None:
            if context.mode is not RuleMode.WRITE:
                raise context.rule_failure(f"there is no KEK {plan.kek!r}")
            if not plan.kms_type or not plan.kms_key_id:
                raise context.rule_failure(
                    f"there is no KEK {plan.kek!r}, and to create it {KMS_TYPE} and {KMS_KEY_ID} are needed"
                )
            wanted = Kek(plan.kek, plan.kms_type, plan.kms_key_id)
            kek = _create_or_get(
                lambda: client.create_kek(wanted, context=where), lambda: client.kek(plan.kek, context=where)
            )
        for expected, known in ((plan.kms_type, kek.kms_type), (plan.kms_key_id, kek.kms_key_id)):
            if expected and expected != known:
                raise context.rule_failure(
                    f"the KEK {plan.kek!r} is the key {known!r} of its KMS, not {expected!r} as in the rule"
                )
        return kek

    # --- data keys

    def _to_read(self, context: RuleContext, plan: EncryptionPlan, version: int) -> Dek:
        dek = self._find_dek(context, plan, version, deleted=True)
        if dek is None:
            raise context.rule_failure(f"there is no version {version} of the data key under {plan.kek!r}")
        return dek

    def _to_write(self, context: RuleContext, plan: EncryptionPlan) -> Dek:
        """Return the data key to write with. Create it if it is missing or has expired."""
        dek = self._find_dek(context, plan, "latest" if plan.days else 1)
        if dek is None:
            new_dek = self._create_dek(context, plan, 1)
            if new_dek is None:
                raise context.rule_failure(f"the data key under {plan.kek!r} could not be created")
            return new_dek
        if not plan.days or self._tools.now() - dek.ts <= plan.days * _DAY:
            return dek
        try:
            return self._create_dek(context, plan, dek.version + 1) or dek
        except SteleError:  # keep the old key; the next record tries again
            return dek

    def _find_dek(
        self, context: RuleContext, plan: EncryptionPlan, version: DekVersion, *, deleted: bool = False
    ) -> Dek | None:
        subject = context.record.subject
        if not subject:
            raise context.rule_failure("data keys belong to subjects, and without a topic the subject is not known")
        client = self._require_client(context)
        dek = _or_none(lambda: client.dek(plan.kek, subject, version, algorithm=plan.algorithm, deleted=deleted))
        return dek if dek is not None and dek.encrypted_key_material else None

    def _create_dek(self, context: RuleContext, plan: EncryptionPlan, version: int) -> Dek | None:
        client, subject, kek = self._require_client(context), context.record.subject, self._find_kek(context, plan)
        wrapped = None
        if not kek.shared:
            material = kms.new_material(plan.algorithm)
            settings = {**self._tools.config, **(kek.kms_props or {})}
            wrapped = kms.wrap(kek.kms_type, kek.kms_key_id, settings, material)
        try:
            return client.create_dek(plan.kek, subject, wrapped, version=version, algorithm=plan.algorithm)
        except Conflict:  # another client created it first
            return self._find_dek(context, plan, version)

    def _cipher_of(self, context: RuleContext, plan: EncryptionPlan, dek: Dek) -> Cipher:
        kek = self._find_kek(context, plan)
        plain = dek.plain_key()
        if plain is None:
            wrapped = dek.wrapped_key()
            if wrapped is None:
                raise context.rule_failure("the registry has neither a wrapped nor a plain data key")
            settings = {**self._tools.config, **(kek.kms_props or {})}
            plain = self._unwrapped(kek.kms_type, kek.kms_key_id, tuple(sorted(settings.items())), wrapped)
        return self._cipher(plan.algorithm, plain)


def _unwrap_key(kms_type: str, key_id: str, settings: tuple[tuple[str, str], ...], wrapped: bytes) -> bytes:
    return kms.unwrap(kms_type, key_id, dict(settings), wrapped)


def _split_key_version(data: bytes) -> tuple[int, bytes]:
    if len(data) < _VERSION_BYTES:
        raise DecodeError("too short to begin with the version of a data key")
    return int.from_bytes(data[1:_VERSION_BYTES], "big"), data[_VERSION_BYTES:]


def _or_none(ask: Callable[[], T]) -> T | None:
    try:
        return ask()
    except NotFound:
        return None


def _create_or_get(create: Callable[[], T], ask: Callable[[], T]) -> T:
    """Return the created object, or the existing one if another client created it first."""
    try:
        return create()
    except Conflict:
        return ask()
