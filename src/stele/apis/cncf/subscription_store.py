"""Subscriptions to events of the registry: validation and storage.

A subscription is a document of a collection, stored with the credentials for its sink. Responses hide values that may
be secret. If a client replaces a subscription by a copy of a response, the hidden values keep their secrets. The owner
of a subscription is the user who wrote it last; it delivers only events that this user may read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from stele.apis.cncf import models as api
from stele.errors import InvalidRequest, NotFound, TooLarge
from stele.protocol import cncf_uris as uris
from stele.protocol.cncf import DIALECT, Subscription
from stele.service import collections, filters
from stele.service.access import make_owner
from stele.service.collections import Changes, Items
from stele.service.delivery.overview import COLLECTION
from stele.service.delivery.sink_settings import PROTOCOLS, describe_sink
from stele.service.disclosure import hide_settings, hide_url, is_harmless, restore_settings, restore_url
from stele.service.registry import Registry

_MAX_SUBSCRIPTIONS = 1000
_MAX_BYTES = 64 * 1024
"""Largest size of one subscription, in bytes. `_MAX_SUBSCRIPTIONS` is the largest number of subscriptions."""

_ALIASES = {"HTTPS": "HTTP"}
_CREDENTIALS = {
    "PLAIN": ("identifier", "secret"),
    "ACCESSTOKEN": ("accessToken",),
    "REFRESHTOKEN": ("refreshToken", "refreshTokenEndpoint"),
}
"""Members that a credential must have, by type."""
_PUBLIC_CREDENTIAL = frozenset(
    {"accesstokenexpiresutc", "accesstokentype", "credentialtype", "identifier", "refreshtokenendpoint"}
)
"""Members of a credential that responses show, in lower case."""
_HARMLESS = frozenset(
    {
        "accept",
        "acks",
        "address",
        "clientid",
        "content-type",
        "contentmode",
        "expiry",
        "linkname",
        "method",
        "partitionkeyextractor",
        "qos",
        "retain",
        "sendersettlementmode",
        "subject",
        "topic",
        "topicname",
    }
)
"""Names of settings and of headers whose values responses show, in lower case."""

_decoder = msgspec.json.Decoder(Subscription)


class SubscriptionNotFound(NotFound):
    """No subscription has that id."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no subscription '{name}'.")


# --- what is a good one ---------------------------------------------------------------------------------------------


def build_subscription(
    name: str,
    body: api.SubscriptionRequest,
    root: str,
    before: Subscription | None = None,
    begin: str | None = None,
) -> Subscription:
    """Return the subscription that a request describes.

    Args:
        name: Id of the subscription.
        body: The request.
        root: Base URI of the registry, the source of its events; '' if it is not configured.
        before: Subscription that it replaces.
        begin: Position after which its events begin; None: that of the subscription it replaces.

    Raises:
        InvalidRequest: A member is wrong.
        NotInstalled: The client of the protocol is missing.
        TooLarge: The subscription is too long.
    """
    protocol = _ALIASES.get(body.protocol, body.protocol)
    if protocol not in PROTOCOLS:
        raise InvalidRequest(f"{body.protocol[:100]!r} is not a protocol of this server; known: {', '.join(PROTOCOLS)}")
    uris.check_uri(body.sink, "sink")
    if body.source is not None:
        uris.check_uri(body.source, "source")
        if root and body.source.rstrip("/") != root.rstrip("/"):
            raise InvalidRequest(f"the source of events must be the root of this registry: {root}")
    if body.types is not None and not all(body.types):
        raise InvalidRequest("a type of events must not be empty")
    subscription = Subscription(
        name,
        restore_url(body.sink, before.sink) if before is not None else body.sink,
        protocol,
        body.source,
        body.types,
        _check_filters(body),
        _restore(body.config, before.config if before is not None else None),
        _restore(
            body.settings if body.settings is not None else body.older_settings,
            before.settings if before is not None else None,
        ),
        _complete_credential(body.credential, before.credential if before is not None else None),
        before.begin if before is not None else begin,
        make_owner(),
    )
    describe_sink(subscription)
    if len(msgspec.json.encode(subscription)) > _MAX_BYTES:
        raise TooLarge(f"a subscription has at most {_MAX_BYTES} bytes")
    return subscription


def _check_filters(body: api.SubscriptionRequest) -> list[dict[str, Any]] | None:
    if body.filter is not None and body.filters is not None:
        raise InvalidRequest("give either filters or the older filter, not both")
    wanted = [body.filter] if body.filter is not None else body.filters
    if wanted is not None:
        filters.check_filters(wanted)
    return wanted


def _restore(sent: dict[str, Any] | None, stored: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if sent is None else restore_settings(sent, stored)


def _complete_credential(credential: dict[str, Any] | None, before: dict[str, Any] | None) -> dict[str, Any] | None:
    if credential is None:
        return None
    kind = credential.get("credentialType")
    if kind not in _CREDENTIALS:
        raise InvalidRequest(f"credentialType of a sinkCredential must be one of {', '.join(_CREDENTIALS)}")
    if not all(isinstance(value, str) for value in credential.values()):
        raise InvalidRequest("the members of a sinkCredential must be strings")
    if before is not None and before.get("credentialType") == kind:
        hidden = {name: text for name, text in before.items() if not is_harmless(name, text, _PUBLIC_CREDENTIAL)}
        credential = {**hidden, **restore_settings(credential, before)}
    missing = [name for name in _CREDENTIALS[kind] if not credential.get(name)]
    if missing:
        raise InvalidRequest(f"a sinkCredential of type {kind} needs {' and '.join(missing)}")
    return credential


def without_secrets(subscription: Subscription) -> Subscription:
    """Return a subscription as responses show it, with values that may be secret hidden or removed."""
    credential = subscription.credential
    return replace(
        subscription,
        sink=hide_url(subscription.sink),
        config=_hide(subscription.config),
        settings=_hide(subscription.settings),
        credential=None
        if credential is None
        else {name: text for name, text in credential.items() if is_harmless(name, text, _PUBLIC_CREDENTIAL)},
        begin=None,
        owner=None,
    )


def _hide(settings: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if settings is None else hide_settings(settings, _HARMLESS)


# --- where they are kept --------------------------------------------------------------------------------------------


async def list_subscriptions(registry: Registry) -> Mapping[str, Subscription]:
    """Return all subscriptions with their secrets, by id, sorted."""
    items = await collections.read_collection(registry, COLLECTION)
    return {name: _decoder.decode(text) for (name,), text in sorted(items.items())}


async def get_subscription(registry: Registry, name: str) -> Subscription:
    """Return one subscription. Raises `SubscriptionNotFound`."""
    return _decode_item(await collections.read_collection(registry, COLLECTION), name)


async def create_subscription(registry: Registry, name: str, body: api.SubscriptionRequest, root: str) -> Subscription:
    """Store a new subscription. Raises `InvalidRequest`, `TooLarge`."""
    subscription = build_subscription(name, body, root, begin=str((await registry.fresh_state()).seq))

    def change_items(items: Items) -> tuple[Changes, Subscription]:
        if len(items) >= _MAX_SUBSCRIPTIONS:
            raise TooLarge(f"there are {_MAX_SUBSCRIPTIONS} subscriptions already")
        return {(name,): msgspec.json.encode(subscription)}, subscription

    return await collections.edit_collection(registry, COLLECTION, change_items, via=DIALECT)


async def update_subscription(registry: Registry, name: str, body: api.SubscriptionRequest, root: str) -> Subscription:
    """Replace a subscription. Raises `SubscriptionNotFound`, `InvalidRequest`, `TooLarge`."""

    def change_items(items: Items) -> tuple[Changes, Subscription]:
        subscription = build_subscription(name, body, root, _decode_item(items, name))
        return {(name,): msgspec.json.encode(subscription)}, subscription

    return await collections.edit_collection(registry, COLLECTION, change_items, via=DIALECT)


async def delete_subscription(registry: Registry, name: str) -> Subscription:
    """Delete a subscription and return it. Raises `SubscriptionNotFound`."""

    def change_items(items: Items) -> tuple[Changes, Subscription]:
        return {(name,): None}, _decode_item(items, name)

    return await collections.edit_collection(registry, COLLECTION, change_items, via=DIALECT)


def _decode_item(items: Items, name: str) -> Subscription:
    text = items.get((name,))
    if text is None:
        raise SubscriptionNotFound(name)
    return _decoder.decode(text)
