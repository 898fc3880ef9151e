"""Addresses of machines."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address; names other than localhost may mean anything."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
