"""TLS contexts from certificates in memory."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

from lockstep.kube.errors import ConfigError


def client_context(
    *,
    ca: bytes | None,
    certificate: bytes | None,
    key: bytes | None,
    insecure: bool,
) -> ssl.SSLContext:
    """Return a context that trusts *ca* (or the system's CAs) and shows the client's certificate.

    Raises:
        ConfigError: when a certificate or key cannot be used.
    """
    try:
        context = ssl.create_default_context(cadata=ca.decode("ascii") if ca else None)
        # Clusters' own CAs often lack the extensions that Python 3.13 insists on by default.
        context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
        if insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate and key:
            load_pair(context, certificate, key)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"the certificates of the kubeconfig cannot be used: {error}") from error
    return context


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a pair from memory; OpenSSL's Python binding reads files only.

    Raises:
        ssl.SSLError: when the two do not fit each other.
    """
    data = certificate.rstrip(b"\n") + b"\n" + key
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("client-pair", os.MFD_CLOEXEC), "wb") as file:  # noqa: PTH123
            file.write(data)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pair.pem"
        path.touch(mode=0o600)
        path.write_bytes(data)
        context.load_cert_chain(path)
