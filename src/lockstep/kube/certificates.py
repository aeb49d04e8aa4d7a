"""Certificates that a process signs for itself."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID: Final = datetime.timedelta(days=3650)


def self_signed(
    name: str,
    *,
    addresses: Iterable[str] = (),
    user: str = "",
    organization: str = "lockstep",
) -> tuple[bytes, bytes]:
    """Return the PEM of a certificate for the host *name*, and of its key.

    The subject is *user*, by default the host, in *organization*. It is valid for longer than any
    process runs: each start makes a new one.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _certificate(key, name, addresses, user or name, organization)
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _certificate(
    key: ec.EllipticCurvePrivateKey,
    name: str,
    addresses: Iterable[str],
    user: str,
    organization: str,
) -> x509.Certificate:
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
            x509.NameAttribute(NameOID.COMMON_NAME, user[:64]),
        ]
    )
    now = datetime.datetime.now(datetime.UTC)
    ips = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    names = x509.SubjectAlternativeName([x509.DNSName(name), *ips])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + VALID)
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
