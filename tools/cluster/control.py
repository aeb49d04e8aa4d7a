"""The machine of the control plane: etcd, Kubernetes' own programs, and the registry."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives import serialization
from tools.cluster import layout, programs
from tools.cluster.layout import Record
from tools.cluster.machine import Machine

from lockstep.apiserver.auth.kubeconfig import write_kubeconfig
from lockstep.apiserver.auth.pki import KeyPair, Pki

KEYS: Final = "/etc/kubernetes/pki"
_ETCD: Final = "http://127.0.0.1:2379"
_STORE: Final = "/var/lib/registry"
_AUDIT: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "None", "userGroups": ["system:nodes"]},
        {"level": "Metadata"},
    ],
}
_REGISTRY: Final = {
    "version": "0.1",
    "log": {"level": "warn"},
    "storage": {"filesystem": {"rootdirectory": _STORE}, "delete": {"enabled": True}},
    "http": {"addr": f"0.0.0.0:{layout.REGISTRY_PORT}"},
}
_NAMES: Final = (
    *("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"),
    f"kubernetes.default.svc.{layout.DOMAIN}",
    *("127.0.0.1", layout.CONTROL_ADDRESS, layout.API_ADDRESS),
)
USERS: Final = ("kube-controller-manager", "kube-scheduler", "kube-proxy")


def store() -> Path:
    """Return where images are kept: in the user's cache, for all clusters."""
    return layout.cache() / "cluster-registry"


def keys(record: Record) -> Pki:
    """Return the cluster's authority."""
    return Pki(record.directory / "pki")


def admin(record: Record) -> None:
    """Write the administrator's kubeconfig, for the loopback port."""
    person(record, "kubernetes-admin", ["system:masters"], record.kubeconfig)


def person(record: Record, user: str, groups: Sequence[str], path: Path) -> None:
    """Write the kubeconfig of a user with a certificate of its own, for the loopback port."""
    pki = keys(record)
    pair = pki.client(f"person-{user}", user=user, groups=list(groups))
    server = f"https://127.0.0.1:{record.api_port}"
    write_kubeconfig(path, server=server, ca=pki.ca, user=user, pair=pair)


def kubeconfig(record: Record, user: str, pair: KeyPair) -> str:
    """Return a kubeconfig for use inside of the cluster's network."""
    path = record.directory / "kubeconfigs" / f"{pair.certificate.stem}.kubeconfig"
    server = f"https://{layout.CONTROL_ADDRESS}:{layout.API_PORT}"
    write_kubeconfig(path, server=server, ca=keys(record).ca, user=user, pair=pair)
    return path.read_text()


def machine(record: Record, forwards: dict[int, int]) -> Machine:
    """Return the machine with everything that it needs in its files."""
    pki = keys(record)
    pki.serving(_NAMES)
    pki.client("kubelet-client", user="kube-apiserver-kubelet-client", groups=["system:masters"])
    pki.client("front-proxy", user="front-proxy-client")
    _write_public(pki.signing_key())
    store().mkdir(parents=True, exist_ok=True)
    files = {
        "/etc/kubernetes/audit.yaml": json.dumps(_AUDIT),
        "/etc/registry.yaml": json.dumps(_REGISTRY),
        "/etc/hosts": hosts(record),
    }
    for name in USERS[:2]:
        user = f"system:{name}"
        files[f"/etc/kubernetes/{name}.key.conf"] = kubeconfig(
            record, user, pki.client(name, user=user)
        )
    return Machine(
        cluster=record.name,
        name=layout.CONTROL,
        directory=str(record.machine(layout.CONTROL)),
        programs={
            "etcd": _etcd(),
            "registry": [str(programs.REGISTRY.path()), "serve", "/etc/registry.yaml"],
            "kube-apiserver": _apiserver(),
            "kube-controller-manager": _controller_manager(),
            "kube-scheduler": _scheduler(),
        },
        files=files,
        links={
            KEYS: str(record.directory / "pki"),
            _STORE: str(store()),
            **shared(),
        },
        forwards=forwards,
    )


def hosts(record: Record) -> str:
    """Return /etc/hosts of every machine."""
    lines = ["127.0.0.1 localhost", f"{layout.CONTROL_ADDRESS} control {_registry_host()}"]
    lines += [f"{node.address} {node.name}" for node in record.all_nodes]
    return "\n".join(lines) + "\n"


def shared() -> dict[str, str]:
    """Return what every machine sees of the host beside its root: the built programs."""
    return {str(layout.cache()): str(layout.cache())}


def options(**values: Any) -> list[str]:
    """Return values as command line flags."""
    return [f"--{name.replace('_', '-')}={value}" for name, value in values.items()]


def _registry_host() -> str:
    return layout.REGISTRY.partition(":")[0]


def _etcd() -> list[str]:
    return [
        str(programs.kubernetes("etcd")),
        *options(
            data_dir="/var/lib/etcd",
            listen_client_urls=_ETCD,
            advertise_client_urls=_ETCD,
            log_level="error",
            unsafe_no_fsync="true",
        ),
    ]


def _apiserver() -> list[str]:
    return [
        str(programs.kubernetes("kube-apiserver")),
        *options(
            etcd_servers=_ETCD,
            advertise_address=layout.CONTROL_ADDRESS,
            secure_port=layout.API_PORT,
            service_cluster_ip_range=layout.SERVICE_NETWORK,
            authorization_mode="Node,RBAC",
            enable_admission_plugins="NodeRestriction",
            allow_privileged="true",
            enable_aggregator_routing="true",
            tls_cert_file=f"{KEYS}/apiserver.crt",
            tls_private_key_file=f"{KEYS}/apiserver.key",
            client_ca_file=f"{KEYS}/ca.crt",
            kubelet_client_certificate=f"{KEYS}/kubelet-client.crt",
            kubelet_client_key=f"{KEYS}/kubelet-client.key",
            kubelet_certificate_authority=f"{KEYS}/ca.crt",
            kubelet_preferred_address_types="InternalIP",
            proxy_client_cert_file=f"{KEYS}/front-proxy.crt",
            proxy_client_key_file=f"{KEYS}/front-proxy.key",
            requestheader_client_ca_file=f"{KEYS}/ca.crt",
            requestheader_allowed_names="front-proxy-client",
            requestheader_extra_headers_prefix="X-Remote-Extra-",
            requestheader_group_headers="X-Remote-Group",
            requestheader_username_headers="X-Remote-User",
            service_account_issuer=f"https://kubernetes.default.svc.{layout.DOMAIN}",
            service_account_key_file=f"{KEYS}/service-account.pub",
            service_account_signing_key_file=f"{KEYS}/service-account.key",
            audit_policy_file="/etc/kubernetes/audit.yaml",
            audit_log_path="/var/log/audit.jsonl",
            audit_log_maxsize=200,
        ),
    ]


def _controller_manager() -> list[str]:
    conf = "/etc/kubernetes/kube-controller-manager.key.conf"
    return [
        str(programs.kubernetes("kube-controller-manager")),
        *options(
            kubeconfig=conf,
            authentication_kubeconfig=conf,
            authorization_kubeconfig=conf,
            use_service_account_credentials="true",
            service_account_private_key_file=f"{KEYS}/service-account.key",
            root_ca_file=f"{KEYS}/ca.crt",
            cluster_signing_cert_file=f"{KEYS}/ca.crt",
            cluster_signing_key_file=f"{KEYS}/ca.key",
            controllers="*,bootstrapsigner,tokencleaner",
            leader_elect="false",
            bind_address="127.0.0.1",
        ),
    ]


def _scheduler() -> list[str]:
    conf = "/etc/kubernetes/kube-scheduler.key.conf"
    return [
        str(programs.kubernetes("kube-scheduler")),
        *options(kubeconfig=conf, leader_elect="false", bind_address="127.0.0.1"),
    ]


def _write_public(private: Path) -> None:
    key = serialization.load_pem_private_key(private.read_bytes(), None)
    encoded = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    private.with_suffix(".pub").write_bytes(encoded)
