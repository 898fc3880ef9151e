"""A certificate authority of one test, and a certificate for this machine by the name `localhost`."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["write_certificates"]


def write_certificates(folder: Path) -> None:
    """Write `ca.pem`, `server.pem` and `server.key`, which the user of databases may read alone, into a folder."""
    now = dt.datetime.now(dt.UTC)
    authority, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of a test")])
    for name, subject, key, is_authority in (
        ("ca", issuer, authority, True),
        ("server", x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]), own, False),
    ):
        made = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        made = made.not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=1))
        made = made.add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        signed = made.sign(authority, hashes.SHA256())
        (folder / f"{name}.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key_file = folder / "server.key"
    key_file.write_bytes(
        own.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    key_file.chmod(0o600)
    if os.geteuid() == 0:
        shutil.chown(key_file, "nobody")
