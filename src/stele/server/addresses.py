"""Network addresses of machines."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only; of names, only localhost counts."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
