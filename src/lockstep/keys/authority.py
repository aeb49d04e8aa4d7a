"""Making keys and certificates; the one place that needs the cryptography library's X.509."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_CLOCK_SKEW = 300.0
_LONGEST_NAME = 64
"""Characters of a common name, as X.509 allows."""
SELF_SIGNED_LIFETIME = 3650 * 86400.0
_Extension = tuple[x509.ExtensionType, bool]


def new_key() -> bytes:
    """Return a new EC P-256 private key as PEM."""
    return _private_pem(ec.generate_private_key(ec.SECP256R1()))


class Authority:
    """A certificate authority in memory."""

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key

    @classmethod
    def create(cls, name: str, start: float, end: float) -> Self:
        """Make a self-signed authority that is valid between two moments (Unix time)."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = _builder(subject, subject, key.public_key(), start, end)
        extensions: list[_Extension] = [
            (x509.BasicConstraints(ca=True, path_length=0), True),
            (_usage(signs_certificates=True), True),
        ]
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical)
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def load(cls, certificate: bytes, key: bytes) -> Self:
        """Read an authority back from its PEM files.

        Raises:
            ValueError: The key is not an EC key, or the two do not belong together.
        """
        loaded = serialization.load_pem_private_key(key, None)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey):
            raise ValueError("the authority's key is not an EC key")
        parsed = x509.load_pem_x509_certificate(certificate)
        if parsed.public_key() != loaded.public_key():
            raise ValueError("the authority's key does not belong to its certificate")
        return cls(parsed, loaded)

    def certificate_pem(self) -> bytes:
        """Return the authority's certificate."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def key_pem(self) -> bytes:
        """Return the authority's private key."""
        return _private_pem(self._key)

    def serving(self, name: str, hosts: Sequence[str], end: float) -> tuple[bytes, bytes]:
        """Issue a server's certificate for host names and addresses; return it and its key."""
        extensions: list[_Extension] = [
            (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False),
            (x509.SubjectAlternativeName([_alternative_name(host) for host in hosts]), False),
        ]
        return self._issue(_subject(name, ()), extensions, end)

    def client(self, user: str, groups: Iterable[str], end: float) -> tuple[bytes, bytes]:
        """Issue a client's certificate for a user in groups; return it and its key."""
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        return self._issue(_subject(user, groups), [(usage, False)], end)

    def _issue(
        self, subject: x509.Name, extensions: list[_Extension], end: float
    ) -> tuple[bytes, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        start = min(datetime.now(UTC).timestamp(), end - 1)
        issuer = self._certificate.subject
        builder = _builder(subject, issuer, key.public_key(), start, end)
        authority_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        common: list[_Extension] = [
            (x509.BasicConstraints(ca=False, path_length=None), True),
            (_usage(signs_certificates=False), True),
            (authority_key, False),
        ]
        for extension, critical in common + extensions:
            builder = builder.add_extension(extension, critical)
        certificate = builder.sign(self._key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM), _private_pem(key)


def self_signed(
    name: str,
    *,
    addresses: Iterable[str] = (),
    user: str = "",
    organization: str = "lockstep",
    lifetime: float = SELF_SIGNED_LIFETIME,
) -> tuple[bytes, bytes]:
    """Return the PEM of a certificate for the host *name*, and of its key.

    The subject is *user*, by default the host, in *organization*. By default it is valid for longer
    than any process runs, and each start makes a new one; else for *lifetime* seconds.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject((user or name)[:_LONGEST_NAME], (organization,))
    now = datetime.now(UTC).timestamp()
    hosts = x509.SubjectAlternativeName(
        [x509.DNSName(name), *(x509.IPAddress(ipaddress.ip_address(one)) for one in addresses)]
    )
    certificate = (
        _builder(subject, subject, key.public_key(), now, now + lifetime)
        .add_extension(hosts, critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), _private_pem(key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey,
    start: float,
    end: float,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.fromtimestamp(start - _CLOCK_SKEW, UTC))
        .not_valid_after(datetime.fromtimestamp(end, UTC))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _subject(name: str, groups: Iterable[str]) -> x509.Name:
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def time_left(certificate: bytes, now: float) -> float:
    """Return for how many seconds from *now* on a certificate (PEM) is still valid."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp() - now
