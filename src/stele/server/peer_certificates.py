"""Certificates of clients, in the form of the `ssl` module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stele.service.access import PeerCertificate

_SHORT_NAMES: Final = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
"""Names of the parts of a distinguished name (RFC 4514, section 3); other parts keep their long names."""
_ESCAPED: Final = frozenset(',+"\\<>;')


def read_peer_certificate(decoded: Mapping[str, Any] | None) -> PeerCertificate | None:
    """Return the certificate in the result of `SSLSocket.getpeercert()`; None where the client sent none."""
    if not decoded:
        return None
    parts = [
        "+".join(f"{_SHORT_NAMES.get(name, name)}={_escape(value)}" for name, value in part)
        for part in decoded.get("subject", ())
    ]
    names = tuple(f"{kind}:{value}" for kind, value in decoded.get("subjectAltName", ()) if isinstance(value, str))
    return PeerCertificate(",".join(reversed(parts)), names)


def _escape(value: str) -> str:
    """Return a value escaped as in RFC 4514, so that one value cannot look like two parts."""
    escaped = "".join(f"\\{char}" if char in _ESCAPED else char for char in value)
    if escaped.startswith((" ", "#")):
        escaped = f"\\{escaped}"
    return f"{escaped[:-1]}\\ " if len(value) > 1 and value.endswith(" ") else escaped
