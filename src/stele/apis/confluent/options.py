"""Settings of the Confluent dialect: what differs between releases and deployments."""

from __future__ import annotations

import msgspec

from stele.apis.confluent.profiles import PROFILES, Profile, ProfileName
from stele.core.model import MAX_INT32


class ConfluentOptions(msgspec.Struct, frozen=True):
    """Settings of the Confluent dialect.

    profile            registry whose behaviour applies where registries differ: a name in `PROFILES`
    incompatible_code  `error_code` of a refused schema; None: that of the profile
    mode_mutable       whether modes may be changed through this API
    version, commit    answer of `GET /v1/metadata/version`; no version: one of the profile
    cluster, kafka     answer of `GET /v1/metadata/id`: names of the registry's and the broker's cluster
    deployment         answer of `GET /v1/metadata/deployment`
    max_schemas        versions `GET /schemas` lists at once, at most
    max_items          subjects, versions or contexts listed at once, at most
    max_request_bytes  length of a request body, at most
    """

    profile: ProfileName = "8.1"
    incompatible_code: int | None = None
    mode_mutable: bool = True
    version: str = ""
    commit: str = ""
    cluster: str = "stele"
    kafka: str = ""
    deployment: tuple[str, ...] = ()
    max_schemas: int = 1000
    max_items: int = MAX_INT32
    max_request_bytes: int = 16 * 1024 * 1024

    @property
    def differences(self) -> Profile:
        """Behaviour of the registry that the profile names."""
        return PROFILES[self.profile]

    @property
    def release(self) -> str:
        """Release that this dialect reports."""
        return self.version or self.differences.release

    @property
    def refusal_code(self) -> int:
        """`error_code` of a refused schema."""
        return self.incompatible_code or self.differences.refusal_code
