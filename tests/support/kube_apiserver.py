"""A real kube-apiserver with etcd behind it, set up as envtest does."""

from __future__ import annotations

import http.client
import os
import socket
import ssl
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

from tests.support import installed, kube_binaries
from tests.support.apiserver import ApiServer
from tests.support.kube_programs import Programs, options, public_key
from tests.support.waiting import eventually_sync

from lockstep.api import names
from lockstep.apiserver.addresses import NETWORK
from lockstep.apiserver.auth.pki import Pki
from lockstep.apiserver.main import write_kubeconfigs

READY_SECONDS = 60.0
MORE_OPTIONS = "KUBE_APISERVER_OPTIONS"
"""Environment variable with more options for kube-apiserver; {port} in them is its port."""
DEFAULT = "namespaces/default"
LOCKSTEP = f"/apis/{names.GROUP}/v1alpha1"
_OF_LAUNCHERS = (
    f"/apis/coordination.k8s.io/v1/{DEFAULT}/leases",
    f"/apis/rbac.authorization.k8s.io/v1/{DEFAULT}/roles",
    f"/apis/rbac.authorization.k8s.io/v1/{DEFAULT}/rolebindings",
)
CLAIMS = f"/apis/resource.k8s.io/v1/{DEFAULT}/resourceclaims"
LEFT_BEHIND = (
    *(
        f"{LOCKSTEP}/{DEFAULT}/{plural}"
        for plural in (
            "pipelinetriggers",
            "pipelineruns",
            "modelversions",
            "trainingjobs",
            "gangs",
        )
    ),
    *(
        f"{LOCKSTEP}/{plural}"
        for plural in (
            *("healthpolicies", "networkchecks", "nodehealths", "nodepolicies", "nodepools"),
            *("pricelists", "teams", "queues", "topologies"),
        )
    ),
    *(f"/api/v1/{DEFAULT}/{plural}" for plural in ("pods", "configmaps", "secrets", "events")),
    CLAIMS,
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/resource.k8s.io/v1/deviceclasses",
    f"/api/v1/{DEFAULT}/services?labelSelector={names.JOB_LABEL}",
    *(f"{group}?labelSelector={names.JOB_LABEL}" for group in _OF_LAUNCHERS),
    "/api/v1/nodes",
    "/apis/coordination.k8s.io/v1/namespaces/lockstep-system/leases",
    "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
)
"""What the tests make, in the order in which it can go."""
NOW = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}


@dataclass
class KubeApiServer(ApiServer):
    """Used like the embedded server, with Lockstep installed by its manifest."""

    # A node would keep its taint for good, and no namespace would get its service account: both
    # are the work of kube-controller-manager.
    without_plugins: ClassVar[str] = "ServiceAccount,TaintNodesByCondition"
    left_behind: ClassVar[tuple[str, ...]] = LEFT_BEHIND

    installs: bool = True
    """Whether Lockstep is installed from the first start on."""
    etcd_port: int = 0
    etcd_peer_port: int = 0
    log: Path = field(init=False)
    programs: Programs | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.log = self.data / "kube-apiserver.log"

    def start(self) -> KubeApiServer:
        programs = [kube_binaries.need(name) for name in ("etcd", "kube-apiserver")]
        fresh = not self.port
        if fresh:
            self.port, self.etcd_port, self.etcd_peer_port = free_ports(3)
        pki = Pki(self.data / "pki")
        write_kubeconfigs(pki, self.data, self.kubeconfig, self.url)
        etcd, apiserver = map(str, programs)
        commands = [[etcd, *self._etcd_options()], [apiserver, *self._options(pki)]]
        self.programs = Programs(commands, self.log).start()
        self.process = self.programs.process
        eventually_sync(self._ready, READY_SECONDS, f"kube-apiserver ready ({self.log})")
        if self.installs:
            if fresh:
                installed.install(self)
            installed.write_tokens(self)
        return self

    def stop(self) -> int:
        """End it; kube-apiserver itself would take its time."""
        self.kill()
        assert self.process is not None
        return self.process.returncode

    def kill(self) -> None:
        if self.programs is not None:
            self.programs.kill()

    def empty(self) -> None:
        """Delete what tests leave behind, pods at once, and start again if one killed it."""
        if self.process is None or self.process.poll() is not None:
            self.start()
        for path in self.left_behind:
            gone = self.request("DELETE", path, NOW)
            assert gone.status == 200, gone.body
        self._free_claims()
        for path in self.left_behind:
            if not path.endswith("/events"):  # the cluster's own parts tell some at any time
                eventually_sync(partial(self._is_empty, path), what=f"{path} is empty")

    def _free_claims(self) -> None:
        """Take the finalizers off claims, as kube-controller-manager does once no pod uses them."""
        for name in self._left(CLAIMS):
            self.request(
                "PATCH",
                f"{CLAIMS}/{name}",
                b'{"metadata": {"finalizers": null}}',
                content_type="application/merge-patch+json",
            )

    def _is_empty(self, path: str) -> bool:
        return not self._left(path)

    def _left(self, path: str) -> list[str]:
        """Return the names of what is there, but for what the cluster itself makes again."""
        found = [item["metadata"]["name"] for item in self.request("GET", path).json["items"]]
        return [name for name in found if name != "kube-root-ca.crt"]

    def _ready(self) -> bool:
        assert self.programs is not None
        self.programs.require()
        try:
            healthy = self.request("GET", "/readyz").status == 200
            return healthy and self.request("GET", "/api/v1/namespaces/default").status == 200
        except (OSError, ssl.SSLError, http.client.HTTPException):
            return False

    def _etcd_options(self) -> list[str]:
        client, peer = (f"http://127.0.0.1:{p}" for p in (self.etcd_port, self.etcd_peer_port))
        return options(
            data_dir=self.data / "etcd",
            listen_client_urls=client,
            advertise_client_urls=client,
            listen_peer_urls=peer,
            initial_advertise_peer_urls=peer,
            initial_cluster=f"default={peer}",
            log_level="error",
            unsafe_no_fsync="true",
        )

    def _options(self, pki: Pki) -> list[str]:
        serving = pki.serving(["127.0.0.1", "localhost"])
        kubelet = pki.kubelet_client()
        signing = pki.signing_key()
        more = os.environ.get(MORE_OPTIONS, "").format(port=self.port).split()
        return more + options(
            etcd_servers=f"http://127.0.0.1:{self.etcd_port}",
            cert_dir=self.data / "certs",
            bind_address="127.0.0.1",
            secure_port=self.port,
            tls_cert_file=serving.certificate,
            tls_private_key_file=serving.key,
            client_ca_file=pki.ca,
            kubelet_client_certificate=kubelet.certificate,
            kubelet_client_key=kubelet.key,
            service_cluster_ip_range=NETWORK,
            allow_privileged="true",
            authorization_mode="RBAC",
            disable_admission_plugins=self.without_plugins,
            service_account_issuer=f"{self.url}/",
            service_account_key_file=public_key(signing),
            service_account_signing_key_file=signing,
            enable_priority_and_fairness="false",
            max_requests_inflight=0,
            max_mutating_requests_inflight=0,
        )


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
