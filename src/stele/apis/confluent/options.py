"""Settings of the Confluent dialect: what differs between releases and deployments."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from stele.core.model import MAX_INT32

Profile = Literal["7.9", "8.0", "8.1", "8.2", "8.3", "8.4"]
"""The release whose answers are given, where releases differ.

From 8.0 on there are `guid`, `ts`, `deleted` and always `schemaType`, and registering answers the whole version. 7.9
has none of the first three, leaves `schemaType` out for Avro, and registering answers the id alone; it knows neither
schemas by guid nor associations, and deletes no context. Before 8.1 a refusal of the mode does not name the context.
Up to 8.1 an incompatible schema has the error code 409 and the mode READONLY_OVERRIDE of the default context wins over
all others; from 8.2 on the code is 40901, and READONLY_OVERRIDE means READONLY.

A profile means the patch release that `RELEASES` names. 8.3 and 8.4 follow the newest public source, release 8.5.0-0.
"""

OLD: Final = "7.9"
_BEFORE_8_1: Final = ("7.9", "8.0")
_BEFORE_8_2: Final = (*_BEFORE_8_1, "8.1")

RELEASES: Final[dict[Profile, str]] = {
    "7.9": "7.9.0",
    "8.0": "8.0.0",
    "8.1": "8.1.1",
    "8.2": "8.2.0",
    "8.3": "8.3.0",
    "8.4": "8.4.0",
}
"""Patch release that each profile follows, in name and behaviour."""


class ConfluentOptions(msgspec.Struct, frozen=True):
    """Settings of the Confluent dialect.

    profile            see `Profile`
    incompatible_code  `error_code` of a refused schema; None: that of the profile
    mode_mutable       whether modes may be changed through this API
    version, commit    answer of `GET /v1/metadata/version`; no version: one of the profile
    cluster, kafka     answer of `GET /v1/metadata/id`: names of the registry's and the broker's cluster
    deployment         answer of `GET /v1/metadata/deployment`
    max_schemas        versions `GET /schemas` lists at once, at most
    max_items          subjects, versions or contexts listed at once, at most
    max_request_bytes  length of a request body, at most
    """

    profile: Profile = "8.1"
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
    def release(self) -> str:
        """The release this dialect says it is."""
        return self.version or RELEASES[self.profile]

    @property
    def refusal_code(self) -> int:
        """`error_code` of a refused schema."""
        return self.incompatible_code or (409 if self.profile in _BEFORE_8_2 else 40901)

    @property
    def has_override_mode(self) -> bool:
        """Whether READONLY_OVERRIDE is more than another name of READONLY."""
        return self.profile in _BEFORE_8_2

    @property
    def names_contexts(self) -> bool:
        """Whether refusals of the mode name the context."""
        return self.profile not in _BEFORE_8_1
