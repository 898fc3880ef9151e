"""Drivers of key management services, each based on the service's own library; `stele.wire.kms` finds them by type.

They are compatible with Confluent's clients in both directions. Each call to a service times out after seconds.
Messages contain the service's error code, and never the data of a request or answer.
"""

from typing import Final

CONNECT_SECONDS: Final = 5
ANSWER_SECONDS: Final = 10
