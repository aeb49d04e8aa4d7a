"""The certificate with which the node serves logs, and whom it serves them to."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

ADMINISTRATORS = "system:masters"
API_SERVERS = ("kube-apiserver-kubelet-client", "kube-apiserver")
_VALID = datetime.timedelta(days=365)


def serving_context(directory: Path, name: str, address: str, clients: bytes) -> ssl.SSLContext:
    """Return a TLS context that serves with an own certificate and demands one of *clients*.

    The certificate is made anew at each start and signed by its own key, as a kubelet's is.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _certificate(key, name, address)
    files = directory / "node.crt", directory / "node.key"
    _write(files[0], certificate.public_bytes(serialization.Encoding.PEM))
    _write(
        files[1],
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(*files)
    context.load_verify_locations(cadata=clients.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _certificate(key: ec.EllipticCurvePrivateKey, name: str, address: str) -> x509.Certificate:
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{name}"[:64]),
        ]
    )
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName(
        [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address(address))]
    )
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + _VALID)
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )


def _write(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as out:
        out.write(data)


def may_read(peer: Mapping[str, Any]) -> bool:
    """Tell whether the holder of a certificate is the API server or an administrator."""
    subject = [pair for part in peer.get("subject", ()) for pair in part]
    groups = [value for key, value in subject if key == "organizationName"]
    users = [value for key, value in subject if key == "commonName"]
    return ADMINISTRATORS in groups or any(user in API_SERVERS for user in users)
