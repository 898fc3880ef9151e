"""Settings of the Confluent dialect: what differs between releases and deployments."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from stele.core.model import MAX_INT32

Profile = Literal["7.9", "8.1"]
"""The release whose answers are given, where releases differ.

8.1 shows `guid`, `ts`, `deleted` and always `schemaType`, and registering answers the whole version. 7.9 has none of
the first three, leaves `schemaType` out for Avro, and registering answers the id alone.
"""

OLD: Final = "7.9"


class ConfluentOptions(msgspec.Struct, frozen=True):
    """Settings of the Confluent dialect.

    profile            see `Profile`
    incompatible_code  `error_code` of a refused schema: 409 up to 8.1, 40901 in later releases
    mode_mutable       whether modes may be changed through this API
    version, commit    answer of `GET /v1/metadata/version`
    cluster, kafka     answer of `GET /v1/metadata/id`: names of the registry's and the broker's cluster
    deployment         answer of `GET /v1/metadata/deployment`
    max_schemas        versions `GET /schemas` lists at once, at most
    max_items          subjects, versions or contexts listed at once, at most
    max_request_bytes  length of a request body, at most
    """

    profile: Profile = "8.1"
    incompatible_code: int = 409
    mode_mutable: bool = True
    version: str = "8.1.1"
    commit: str = ""
    cluster: str = "stele"
    kafka: str = ""
    deployment: tuple[str, ...] = ()
    max_schemas: int = 1000
    max_items: int = MAX_INT32
    max_request_bytes: int = 16 * 1024 * 1024
