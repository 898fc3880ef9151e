"""A certificate authority for one test, with a server certificate for `localhost` and a client certificate."""

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
    """Write `ca.pem`, `server.pem`, `server.key`, and the same two files of `client`.

    Only the user that runs the databases can read the key of the server.
    """
    now = dt.datetime.now(dt.UTC)
    authority, own, client = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of a test")])
    for name, subject, key, is_authority in (
        ("ca", issuer, authority, True),
        ("server", x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]), own, False),
        ("client", x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "carl")]), client, False),
    ):
        builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=1))
        builder = builder.add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        builder = builder.add_extension(_describe_usage(is_authority=is_authority), critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
        builder = builder.add_extension(by, critical=False)
        signed = builder.sign(authority, hashes.SHA256())
        (folder / f"{name}.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    for name, key in (("server", own), ("client", client)):
        key_file = folder / f"{name}.key"
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        key_file.chmod(0o600)
    if os.geteuid() == 0:
        shutil.chown(folder / "server.key", "nobody")


def _describe_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )
