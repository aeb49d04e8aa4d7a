"""Who may reach the router: clients with TLS and a token, and pods at an address of their own."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit


class NotSafe(ValueError):
    """The router was told to listen beyond loopback without tokens, or half of what TLS needs."""


@dataclass(frozen=True, slots=True)
class Guard:
    """What clients must show, and what the router shows them."""

    certificate: Path | None = None
    key: Path | None = None
    tokens: Path | None = None
    behind_tls: bool = False
    """Whether what stands in front of it speaks TLS, so that tokens alone will do."""

    def check(self, host: str) -> None:
        """Check that it fits the address *host*.

        Raises:
            NotSafe: when it does not; the message names the options that would.
        """
        if (self.certificate is None) != (self.key is None):
            raise NotSafe("--certificate, --key: give both")
        if ip_address(host).is_loopback:
            return
        if not self.outside_tls or self.tokens is None:
            raise NotSafe(
                f"--host {host}: beyond loopback requests need TLS and a token; give "
                "--certificate, --key and --tokens, --insecure in place of the first two behind "
                "what speaks TLS, or use a loopback address with what asks for them in front"
            )

    @property
    def outside_tls(self) -> bool:
        """Whether clients speak TLS, to the router or to what stands in front of it."""
        return self.certificate is not None or self.behind_tls

    def context(self) -> ssl.SSLContext | None:
        """Return the context of TLS; none where there is none."""
        if self.certificate is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate, self.key)
        context.set_alpn_protocols(["http/1.1"])
        return context

    def pair(self) -> tuple[bytes, bytes] | None:
        """Return key and certificate; none where there is no TLS."""
        if self.certificate is None or self.key is None:
            return None
        return self.key.read_bytes(), self.certificate.read_bytes()


@dataclass(frozen=True, slots=True)
class Inside:
    """Where pods of a cluster come, and the Service that leads them there."""

    host: str
    port: int
    url: str

    @classmethod
    def of(cls, address: str, url: str) -> Self:
        """Return what the options state.

        Raises:
            NotSafe: when one of them is malformed.
        """
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise NotSafe(f"--inside {address}: an address and a port, such as 0.0.0.0:7480")
        if urlsplit(url).scheme != "http":
            raise NotSafe(
                f"--url {url!r}: --inside needs the Service's URL, http://NAME.NAMESPACE.svc"
            )
        return cls(host, int(port), url.rstrip("/"))

    @property
    def name(self) -> str:
        """Return the host of the Service."""
        return urlsplit(self.url).hostname or ""
