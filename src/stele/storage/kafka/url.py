"""The form of the URL of a store in Kafka, and the settings of its clients."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from stele.core.suggestions import suggest_name
from stele.errors import InvalidRequest
from stele.storage.credentials import find_credentials

__all__ = ["TopicAddress", "parse_url"]

_SHAPE: Final = "A store in Kafka is written kafka://broker:9092,broker:9092/topic?security.protocol=SASL_SSL"
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_DEFAULT_PORT: Final = 9092
_REPLICATION: Final = "replication.factor"
_CLIENT_SETTINGS: Final = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.endpoint.identification.algorithm",
    "client.id",
    "client.rack",
)
"""Parameters that are passed to Kafka's client unchanged."""


class TopicAddress(NamedTuple):
    """A topic, and how to reach it.

    brokers             addresses to begin with, comma-separated
    topic               its name
    client_settings     settings of Kafka's client; they hold the password
    replication_factor  of a topic that is created; None: the brokers' default
    """

    brokers: str
    topic: str
    client_settings: Mapping[str, str]
    replication_factor: int | None

    @property
    def place(self) -> str:
        """Name of the store in messages."""
        return f"kafka://{self.brokers}/{self.topic}"


def parse_url(url: str) -> TopicAddress:
    """Return the address in a URL, with user and password from the environment where the URL has none.

    Raises `InvalidRequest` for any other form and for unknown parameters; the message repeats no password.
    """
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise InvalidRequest(_SHAPE) from None
    credentials, _, hosts = parts.netloc.rpartition("@")
    topic = unquote(parts.path.removeprefix("/"))
    if not hosts or not _TOPIC.fullmatch(topic) or topic in {".", ".."} or parts.fragment:
        raise InvalidRequest(_SHAPE)
    parameters = dict(pairs)
    replication = parameters.pop(_REPLICATION, None)
    if replication is not None and not (replication.isdigit() and int(replication) > 0):
        raise InvalidRequest(f"{_REPLICATION} of a store in Kafka must be a number from 1")
    for name in parameters:
        if name not in _CLIENT_SETTINGS:
            known = (_REPLICATION, *_CLIENT_SETTINGS)
            raise InvalidRequest(
                f"a store in Kafka has no parameter '{name}'; known are {', '.join(known)}{suggest_name(name, known)}"
            )
    user, _, password = credentials.partition(":")
    parameters |= _find_login(unquote(user), unquote(password), parameters)
    return TopicAddress(
        ",".join(_add_port(host) for host in hosts.split(",")),
        topic,
        parameters,
        int(replication) if replication is not None else None,
    )


def _find_login(user: str, password: str, parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for user and password. The defaults are `SASL_SSL` and the mechanism `PLAIN`."""
    credentials = find_credentials()
    user, secret = user or credentials.user or "", password or credentials.password or ""
    if not user:
        return {}
    return {
        "security.protocol": parameters.get("security.protocol", "SASL_SSL"),
        "sasl.mechanism": parameters.get("sasl.mechanism", "PLAIN"),
        "sasl.username": user,
        "sasl.password": secret,
    }


def _add_port(host: str) -> str:
    if not host or host.startswith(":"):
        raise InvalidRequest(_SHAPE)
    return host if re.search(r":[0-9]+$", host) else f"{host}:{_DEFAULT_PORT}"
