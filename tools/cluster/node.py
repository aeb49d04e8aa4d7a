"""The machine of one node: containerd, kubelet, kube-proxy and the CNI plugins."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any, Final

from tools.cluster import control, layout, programs
from tools.cluster.layout import Node, Record
from tools.cluster.machine import Machine

DRIVER: Final = ("libnvidia-ml.so.1", "libcuda.so.1")
_SOCKET: Final = "unix:///run/containerd/containerd.sock"
_CONTAINERD: Final = """\
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  discard_unpacked_layers = true
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{pause}"
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = "/etc/containerd/certs.d"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  enable_cdi = true
  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/opt/cni/bin"]
    conf_dir = "/etc/cni/net.d"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      SystemdCgroup = false
"""
_HOSTS: Final = """\
server = "http://{registry}"
[host."http://{registry}"]
  capabilities = ["pull", "resolve"]
"""


def machine(record: Record, node: Node) -> Machine:
    """Return the machine with everything that it needs in its files."""
    pki = control.keys(record)
    serving = pki.node(node.name, node.address)
    user = f"system:node:{node.name}"
    own = pki.client(f"kubelet-{node.name}", user=user, groups=["system:nodes"])
    proxy = pki.client("kube-proxy", user="system:kube-proxy")
    kubernetes = "/etc/kubernetes"
    record.shared.mkdir(exist_ok=True)
    return Machine(
        cluster=record.name,
        name=node.name,
        directory=str(record.machine(node.name)),
        programs={
            "containerd": [str(programs.CONTAINERD[0].path()), "--log-level", "info"],
            "kubelet": [
                str(programs.kubernetes("kubelet")),
                *control.options(
                    config=f"{kubernetes}/kubelet.json",
                    kubeconfig=f"{kubernetes}/kubelet.key.conf",
                    hostname_override=node.name,
                    node_ip=node.address,
                ),
            ],
            "kube-proxy": [
                str(programs.kubernetes("kube-proxy")),
                f"--config={kubernetes}/kube-proxy.json",
            ],
        },
        files={
            "/etc/hosts": control.hosts(record),
            "/etc/resolv.conf": "",
            "/etc/machine-id": f"{record.name}-{node.name}",
            "/etc/containerd/config.toml": _CONTAINERD.format(pause=record.pause),
            f"/etc/containerd/certs.d/{layout.REGISTRY}/hosts.toml": _HOSTS.format(
                registry=layout.REGISTRY
            ),
            "/etc/cni/net.d/10-bridge.conflist": json.dumps(_network(node)),
            f"{kubernetes}/ca.crt": pki.ca.read_text(),
            f"{kubernetes}/kubelet.crt": serving.certificate.read_text(),
            f"{kubernetes}/kubelet.key": serving.key.read_text(),
            f"{kubernetes}/kubelet.key.conf": control.kubeconfig(record, user, own),
            f"{kubernetes}/kubelet.json": json.dumps(_kubelet(node)),
            f"{kubernetes}/proxy.key.conf": control.kubeconfig(record, "system:kube-proxy", proxy),
            f"{kubernetes}/kube-proxy.json": json.dumps(_proxy(node)),
        },
        links={
            "/opt/cni/bin": str(programs.CNI[0].path().parent),
            "/opt/cluster/bin": str(programs.CONTAINERD[0].path().parent),
            **(_stub_driver() if node.gpus else {}),
            layout.SHARED: str(record.shared),
            **control.shared(),
        },
        cards=node.gpus,
    )


def _stub_driver() -> dict[str, str]:
    """Return the stub libraries in place of NVIDIA's, where the driver would install them."""
    place = f"/usr/lib/{platform.machine()}-linux-gnu"
    built = layout.ROOT / "native/build"
    return {f"{place}/{name}": str(built / name) for name in DRIVER}


def _network(node: Node) -> dict[str, Any]:
    """Return the pods' network: a bridge on the node, and routes to the other nodes' pods."""
    bridge = {
        "type": "bridge",
        "bridge": "pods0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/cni",
            "ranges": [[{"subnet": node.pods}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}, "backend": "nftables"}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]}


def _kubelet(node: Node) -> dict[str, Any]:
    kubernetes = Path("/etc/kubernetes")
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "readOnlyPort": 0,
        "tlsCertFile": str(kubernetes / "kubelet.crt"),
        "tlsPrivateKeyFile": str(kubernetes / "kubelet.key"),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(kubernetes / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": _SOCKET,
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "clusterDNS": [layout.DNS_ADDRESS],
        "clusterDomain": layout.DOMAIN,
        "resolvConf": "/etc/resolv.conf",
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "serializeImagePulls": False,
    }


def _proxy(node: Node) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": "/etc/kubernetes/proxy.key.conf"},
        "hostnameOverride": node.name,
        "mode": "nftables",
        "clusterCIDR": layout.POD_NETWORK,
        "healthzBindAddress": "127.0.0.1:10256",
        # The kernel keeps these for all namespaces together.
        "conntrack": {"maxPerCore": 0, "min": 0},
    }
