"""Kubernetes' own programs beside an API server, be it the embedded one or kube-apiserver."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from tests.support import kube_binaries
from tests.support.apiserver import ApiServer

from lockstep.apiserver.auth.kubeconfig import write_kubeconfig
from lockstep.apiserver.auth.pki import Pki

ROOT = Path(__file__).parents[2]


@dataclass
class Programs:
    """Programs that end with this process; when one of them ends, so do the others."""

    commands: list[list[str]]
    log: Path
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    def start(self) -> Programs:
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.leash", json.dumps(self.commands)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                text=True,
                cwd=ROOT,
                start_new_session=True,
            )
        return self

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def require(self) -> None:
        """Fail with the end of the log unless they run."""
        assert self.running, f"ended by itself: {self.log.read_text()[-2000:]}"

    def kill(self) -> None:
        if self.process is not None:
            assert self.process.stdin is not None
            with suppress(BrokenPipeError):
                self.process.stdin.close()
            self.process.wait(20)


def controller_manager(
    server: ApiServer, controllers: Iterable[str] = ("*",), **more: object
) -> Programs:
    """Return kube-controller-manager for *server*, each controller with an account of its own."""
    pki = Pki(server.data / "pki")
    command = [str(kube_binaries.need("kube-controller-manager"))]
    command += options(
        kubeconfig=kubeconfig(server, "system:kube-controller-manager"),
        use_service_account_credentials="true",
        service_account_private_key_file=pki.signing_key(),
        root_ca_file=pki.ca,
        cluster_signing_cert_file=pki.ca,
        cluster_signing_key_file=pki.ca.with_suffix(".key"),
        controllers=",".join(controllers),
        leader_elect="false",
        secure_port=0,
        kube_api_content_type="application/json",
        kube_api_qps=500,
        kube_api_burst=1000,
        **more,
    )
    return Programs([command], server.data / "kube-controller-manager.log")


def scheduler(server: ApiServer) -> Programs:
    """Return kube-scheduler for *server*."""
    command = [str(kube_binaries.need("kube-scheduler"))]
    command += options(
        kubeconfig=kubeconfig(server, "system:kube-scheduler"),
        leader_elect="false",
        secure_port=0,
        kube_api_content_type="application/json",
        kube_api_qps=500,
        kube_api_burst=1000,
    )
    return Programs([command], server.data / "kube-scheduler.log")


def kwok(server: ApiServer) -> Programs:
    """Return kwok for *server*: every node that is created is one of its own."""
    command = [str(kube_binaries.need("kwok"))]
    command += options(
        kubeconfig=server.kubeconfig,
        config=kube_binaries.need("kwok-stages.yaml"),
        manage_all_nodes="true",
        node_lease_duration_seconds=40,
        server_address="",
    )
    return Programs([command], server.data / "kwok.log")


def kubeconfig(server: ApiServer, user: str, groups: Iterable[str] = ()) -> Path:
    """Return the kubeconfig of a user with a certificate, writing it if need be."""
    pki = Pki(server.data / "pki")
    name = user.replace(":", "-")
    path = server.data / "kubeconfigs" / f"{name}.kubeconfig"
    pair = pki.client(name, user=user, groups=groups)
    write_kubeconfig(path, server=server.url, ca=pki.ca, user=user, pair=pair)
    return path


def options(**values: Any) -> list[str]:
    """Return values as command line flags."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in values.items()]


def public_key(private: Path) -> Path:
    """Write the public half beside a private key."""
    key = serialization.load_pem_private_key(private.read_bytes(), None)
    path = private.with_suffix(".pub")
    path.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return path
