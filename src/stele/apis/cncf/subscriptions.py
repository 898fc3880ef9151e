"""Subscriptions to events of the registry: what is a good one, where they are kept, what of them is shown.

They are documents of a collection beside the schemas, with the credentials for their sinks; answers leave the secrets
out, and a subscription that is put back without them keeps the ones it had.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from stele.apis.cncf import entities as api
from stele.apis.cncf import uris
from stele.apis.cncf.translate import DIALECT
from stele.errors import InvalidRequest, NotFound, TooLarge
from stele.service import collections, filters
from stele.service.collections import Changes, Items
from stele.service.registry import Registry

COLLECTION = "subscriptions"

_MOST = 1000
_MOST_BYTES = 64 * 1024
"""Subscriptions, and bytes of one."""

_PROTOCOLS = ("HTTP", "MQTT3", "MQTT5", "AMQP", "NATS", "KAFKA")
_ALIASES = {"HTTPS": "HTTP"}
_CREDENTIALS = {
    "PLAIN": ("identifier", "secret"),
    "ACCESSTOKEN": ("accessToken",),
    "REFRESHTOKEN": ("refreshToken", "refreshTokenEndpoint"),
}
"""What a credential must have, by type."""
_SECRETS = {"secret", "accessToken", "refreshToken"}

_decoder = msgspec.json.Decoder(api.Subscription)


class SubscriptionNotFound(NotFound):
    """No subscription has that id."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no subscription '{name}'.")


# --- what is a good one ---------------------------------------------------------------------------------------------


def wanted(name: str, given: api.SubscriptionRequest, before: api.Subscription | None = None) -> api.Subscription:
    """The subscription a request wants, under that id; before is the one it takes the place of.

    Raises `InvalidRequest` with what is wrong, `TooLarge`.
    """
    protocol = _ALIASES.get(given.protocol, given.protocol)
    if protocol not in _PROTOCOLS:
        raise InvalidRequest(f"{given.protocol[:100]!r} is no protocol: {', '.join(_PROTOCOLS)}")
    uris.uri_in(given.sink, "sink")
    if protocol == "HTTP" and not given.sink.lower().startswith(("http://", "https://")):
        raise InvalidRequest("the sink of an HTTP subscription is an http or https URI")
    if given.source is not None:
        uris.uri_in(given.source, "source")
    if given.types is not None and not all(given.types):
        raise InvalidRequest("a type of events is not empty")
    subscription = api.Subscription(
        name,
        given.sink,
        protocol,
        given.source,
        given.types,
        _filters(given),
        given.config,
        _settings(protocol, given),
        _credential(given.credential, before.credential if before is not None else None),
    )
    if len(msgspec.json.encode(subscription)) > _MOST_BYTES:
        raise TooLarge(f"a subscription has at most {_MOST_BYTES} bytes")
    return subscription


def _filters(given: api.SubscriptionRequest) -> list[dict[str, Any]] | None:
    if given.filter is not None and given.filters is not None:
        raise InvalidRequest("filters has all filters: leave out the older filter")
    found = [given.filter] if given.filter is not None else given.filters
    if found is not None:
        filters.check_filters(found)
    return found


def _settings(protocol: str, given: api.SubscriptionRequest) -> dict[str, Any] | None:
    settings = given.settings if given.settings is not None else given.older_settings
    if protocol != "HTTP" or settings is None:
        return settings
    headers, method = settings.get("headers", {}), settings.get("method", "POST")
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise InvalidRequest("headers among the settings of HTTP map names to texts")
    if not isinstance(method, str) or not method.isascii() or not method.isalpha():
        raise InvalidRequest("method among the settings of HTTP is the name of a method")
    return settings


def _credential(given: dict[str, Any] | None, before: dict[str, Any] | None) -> dict[str, Any] | None:
    if given is None:
        return None
    kind = given.get("credentialType")
    if kind not in _CREDENTIALS:
        raise InvalidRequest(f"credentialType of a sinkCredential is one of {', '.join(_CREDENTIALS)}")
    if not all(isinstance(value, str) for value in given.values()):
        raise InvalidRequest("what a sinkCredential has are texts")
    if before is not None and before.get("credentialType") == kind:
        given = {**{name: text for name, text in before.items() if name in _SECRETS}, **given}
    missing = [name for name in _CREDENTIALS[kind] if not given.get(name)]
    if missing:
        raise InvalidRequest(f"a sinkCredential of type {kind} has {' and '.join(missing)}, too")
    return given


def shown(subscription: api.Subscription) -> api.Subscription:
    """A subscription without what is secret."""
    if subscription.credential is None:
        return subscription
    told = {name: text for name, text in subscription.credential.items() if name not in _SECRETS}
    return replace(subscription, credential=told)


# --- where they are kept --------------------------------------------------------------------------------------------


async def read(registry: Registry) -> Mapping[str, api.Subscription]:
    """All subscriptions by id, sorted, with their secrets."""
    items = await collections.read_collection(registry, COLLECTION)
    return {name: _decoder.decode(text) for (name,), text in sorted(items.items())}


async def read_one(registry: Registry, name: str) -> api.Subscription:
    """One subscription. Raises `SubscriptionNotFound`."""
    return _one(await collections.read_collection(registry, COLLECTION), name)


async def create(registry: Registry, name: str, given: api.SubscriptionRequest, actor: str) -> api.Subscription:
    """Keep a new one. Raises `InvalidRequest`, `TooLarge`."""
    subscription = wanted(name, given)

    def change(items: Items) -> tuple[Changes, api.Subscription]:
        if len(items) >= _MOST:
            raise TooLarge(f"there are {_MOST} subscriptions already")
        return {(name,): msgspec.json.encode(subscription)}, subscription

    return await collections.edit_collection(registry, COLLECTION, change, actor=actor, via=DIALECT)


async def update(registry: Registry, name: str, given: api.SubscriptionRequest, actor: str) -> api.Subscription:
    """Replace one. Raises `SubscriptionNotFound`, `InvalidRequest`, `TooLarge`."""

    def change(items: Items) -> tuple[Changes, api.Subscription]:
        subscription = wanted(name, given, _one(items, name))
        return {(name,): msgspec.json.encode(subscription)}, subscription

    return await collections.edit_collection(registry, COLLECTION, change, actor=actor, via=DIALECT)


async def delete(registry: Registry, name: str, actor: str) -> api.Subscription:
    """End one; what it was. Raises `SubscriptionNotFound`."""

    def change(items: Items) -> tuple[Changes, api.Subscription]:
        return {(name,): None}, _one(items, name)

    return await collections.edit_collection(registry, COLLECTION, change, actor=actor, via=DIALECT)


def _one(items: Items, name: str) -> api.Subscription:
    found = items.get((name,))
    if found is None:
        raise SubscriptionNotFound(name)
    return _decoder.decode(found)
