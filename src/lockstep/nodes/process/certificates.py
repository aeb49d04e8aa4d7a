"""The certificate with which the node serves logs, and whom it serves them to."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lockstep.kube.certificates import self_signed

ADMINISTRATORS = "system:masters"
API_SERVERS = ("kube-apiserver-kubelet-client", "kube-apiserver")


def serving_context(directory: Path, name: str, address: str, clients: bytes) -> ssl.SSLContext:
    """Return a TLS context that serves with an own certificate and demands one of *clients*.

    The certificate is made anew at each start and signed by its own key, as a kubelet's is.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    certificate, key = self_signed(
        name, addresses=[address], user=f"system:node:{name}", organization="system:nodes"
    )
    files = directory / "node.crt", directory / "node.key"
    _write(files[0], certificate)
    _write(files[1], key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(*files)
    context.load_verify_locations(cadata=clients.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    return context


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
