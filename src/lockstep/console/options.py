"""How the console is served, each field with the words of its option on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

File = Path | None
Several = list[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the console is served, and for which cluster."""

    kubeconfig: File = None
    context: str | None = None
    port: Annotated[int, range(65536), "With --serve: port; 0 chooses a free one."] = 7490
    host: Annotated[str, "With --serve: loopback address to listen on."] = "127.0.0.1"
    state: Annotated[File, "With --serve: private directory in which links are left for it."] = None
    """Also the place of the console's own audit; there are no one-time links without it."""
    origin: Annotated[
        Several, "With --serve: address at which browsers reach it, https://NAME."
    ] = None
    """Further addresses at which it is reached, as ``https://console.example.com``."""
    apps_host: Annotated[
        str, "With --serve: name below which apps are reached; apps.NAME by default."
    ] = ""
    certificate: Annotated[File, "With --serve: certificate for TLS (PEM)."] = None
    key: Annotated[File, "With --serve: its key (PEM)."] = None
    self_signed: Annotated[
        bool, "--self-signed", "With --serve: make a certificate for itself."
    ] = False
    """For a front that speaks TLS again."""
    records: Annotated[File, "With --serve: the file of usage records, for costs."] = None
    audit_log: Annotated[
        File, "With --serve: the API server's audit log (audit.k8s.io/v1, JSON)."
    ] = None
    oidc_issuer: Annotated[str, "With --serve: issuer at which users sign in, https://NAME."] = ""
    oidc_client: Annotated[str, "With --serve: the client that the console is there."] = ""
    oidc_secret_file: Annotated[File, "With --serve: file with that client's secret."] = None
    oidc_ca: Annotated[File, "With --serve: certificate authority of the issuer (PEM)."] = None
    proxy_header: Annotated[
        str, "With --serve: header in which a trusted proxy names the user."
    ] = ""
    proxy: Annotated[
        Several, "With --serve: network from which that header counts, 10.0.0.0/8."
    ] = None
