"""Mapping of client certificates to principals."""

from __future__ import annotations

import pytest

from stele.errors import InvalidRequest, Unauthenticated
from stele.server.authentication.certificate_rules import CertificateRules
from stele.server.peer_certificates import read_peer_certificate
from stele.service.access import PeerCertificate

ANN = PeerCertificate("CN=Ann,OU=dev,O=Example", ("DNS:ann.example.org", "URI:spiffe://example.org/ann"))


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", "CN=Ann,OU=dev,O=Example"),
        ("RULE:^CN=([^,]+).*$/$1/", "Ann"),
        ("RULE:^CN=([^,]+).*$/$1/L", "ann"),
        ("RULE:CN=(.*),OU=(.*),O=.*/$1@$2/U, DEFAULT", "ANN@DEV"),
        ("RULE:CN=Bob,.*/bob/, SAN:URI:spiffe:\\/\\/example.org\\/(.+)/$1/", "ann"),
        ("SAN:DNS:([a-z]+)\\.example\\.org/$1/,DEFAULT", "ann"),
        ("RULE:CN=Ann/short/,DEFAULT", "CN=Ann,OU=dev,O=Example"),
    ],
)
def test_the_first_rule_that_fits_decides(rules: str, name: str) -> None:
    """A rule must match a whole name, and its groups make the name of the caller."""
    assert CertificateRules(rules).find_principal(ANN).name == name


def test_a_certificate_that_no_rule_is_about() -> None:
    """A certificate without a matching rule is refused, not treated as anonymous."""
    rules = CertificateRules("RULE:CN=Bob.*/bob/,RULE:CN=Ann(x?).*/$1/")
    with pytest.raises(Unauthenticated):
        rules.find_principal(ANN)
    with pytest.raises(Unauthenticated):
        CertificateRules("DEFAULT").find_principal(PeerCertificate(""))


@pytest.mark.parametrize("rules", ["", "NONE", "RULE:x", "RULE:(/x/", "RULE:x/$1/", "RULE:x/y/Z", "DEFAULT DEFAULT"])
def test_rules_that_cannot_be(rules: str) -> None:
    """Invalid rules raise an error at the start, which shows the rule."""
    with pytest.raises(InvalidRequest, match="mtls_principal_rules"):
        CertificateRules(rules)


def test_names_cannot_look_like_others() -> None:
    """A part of a name with a comma does not look like two parts, since a certificate may contain any text."""
    read = read_peer_certificate(
        {
            "subject": ((("organizationName", "Example"),), (("commonName", "eve,OU=ops"), ("userId", " #1 "))),
            "subjectAltName": (("DNS", "a.example"), ("DirName", ((("commonName", "x"),),))),
        }
    )
    assert read == PeerCertificate(r"CN=eve\,OU=ops+UID=\ #1\ ,O=Example", ("DNS:a.example",))
    assert read_peer_certificate(None) is read_peer_certificate({}) is None
