"""Drivers of key management services, each over the service's own library; `stele.wire.kms` finds them by type.

They wrap what Confluent's clients unwrap, and the other way round. Each call to a service ends after seconds. Messages
hold the service's error code and never what it was sent or answered.
"""

from typing import Final

CONNECT_SECONDS: Final = 5
ANSWER_SECONDS: Final = 10
