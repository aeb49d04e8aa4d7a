"""The certificate with which the node serves logs, and whom it serves them to."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockstep.keys.authority import self_signed
from lockstep.keys.files import private_directory, write_private

ADMINISTRATORS = "system:masters"
API_SERVERS = ("kube-apiserver-kubelet-client", "kube-apiserver")


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


def serving_context(pair: Pair, clients: bytes) -> ssl.SSLContext:
    """Return a TLS context that serves with *pair* and demands a certificate of *clients*.

    Raises:
        OSError: when a file cannot be read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(pair.certificate, pair.key)
    context.load_verify_locations(cadata=clients.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def own_pair(directory: Path, name: str, address: str) -> Pair:
    """Return a pair made anew and signed by its own key, as a kubelet's is."""
    private_directory(directory)
    certificate, key = self_signed(
        name, addresses=[address], user=f"system:node:{name}", organization="system:nodes"
    )
    pair = Pair(directory / "node.crt", directory / "node.key")
    write_private(pair.certificate, certificate)
    write_private(pair.key, key)
    return pair


def may_read(peer: Mapping[str, Any]) -> bool:
    """Tell whether the holder of a certificate is the API server or an administrator."""
    subject = [pair for part in peer.get("subject", ()) for pair in part]
    groups = [value for key, value in subject if key == "organizationName"]
    users = [value for key, value in subject if key == "commonName"]
    return ADMINISTRATORS in groups or any(user in API_SERVERS for user in users)
