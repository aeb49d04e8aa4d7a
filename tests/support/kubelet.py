"""A real kubelet with containerd and runc, in mount and PID namespaces of its own.

Its image is made by hand from busybox. Pods use the host's network; a CNI plugin of two lines
stands in for a network, so that the node becomes ready. What kubelet writes into ``/proc/sys``
goes into files of the test's own.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support import kube_binaries
from tests.support.recorded_sys import VERBS

IMAGE = "lockstep.test/busybox:1"
SYSCTLS = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops")
UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
CONTAINERD = """
version = 2
root = "{data}/containerd"
state = "{data}/run"
[grpc]
  address = "{data}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{data}/cni/bin"
    conf_dir = "{data}/cni/conf"
"""
CNI_PLUGIN = """#!/bin/sh
echo '{"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "10.200.0.2/24"}]}'
"""
CNI_CONFIG = {"cniVersion": "0.4.0", "name": "test", "plugins": [{"type": "nothing"}]}
START = """
set -e
mount --make-rprivate /
mkdir -p /var/lib/kubelet
mount --bind "$DATA/kubelet" /var/lib/kubelet
{verbs}
for name in {sysctls}; do
  mkdir -p "$DATA/sys/$(dirname $name)"; cat "/proc/sys/$name" > "$DATA/sys/$name"
  mount --bind "$DATA/sys/$name" "/proc/sys/$name"
done
containerd --config "$DATA/containerd.toml" --log-level warn &
until ctr -a "$DATA/containerd.sock" version >/dev/null 2>&1; do
  kill -0 $!; sleep 0.1
done
ctr -a "$DATA/containerd.sock" -n k8s.io images import --snapshotter native "$DATA/image.tar"
while true; do
  "$KUBELET" --config "$DATA/kubelet.json" --kubeconfig "$KUBECONFIG" --hostname-override "$NODE" \\
    --v=2 || true
  sleep 0.5
done
"""


@dataclass
class Kubelet:
    """A node of a real cluster, for a test that runs as root."""

    kubeconfig: Path
    data: Path
    name: str = "real"
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def directory(self) -> Path:
        """Return what is ``/var/lib/kubelet`` to kubelet."""
        return self.data / "kubelet"

    @property
    def cdi(self) -> Path:
        """Return where the container runtime looks for CDI specifications."""
        return self.data / "cdi"

    @property
    def has_cdi(self) -> bool:
        """Return whether the container runtime knows CDI: containerd does from 1.7 on."""
        told = subprocess.check_output(["containerd", "--version"], text=True)
        version = re.search(r" v?(\d+)\.(\d+)", told)
        return version is not None and (int(version[1]), int(version[2])) >= (1, 7)

    @property
    def log(self) -> Path:
        return self.data / "kubelet.log"

    def start(self) -> Kubelet:
        program = kube_binaries.need("kubelet")
        missing = [one for one in ("containerd", "ctr", "runc", "busybox") if not shutil.which(one)]
        if missing or os.geteuid() != 0:
            pytest.skip(f"a real kubelet needs root and {', '.join(missing) or 'root'}")
        self._write()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*UNSHARE, "sh", "-c", self._script()],
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    "DATA": str(self.data),
                    "KUBELET": str(program),
                    "KUBECONFIG": str(self.kubeconfig),
                    "NODE": self.name,
                },
                start_new_session=True,
            )
        return self

    def _script(self) -> str:
        return START.replace("{sysctls}", " ".join(SYSCTLS)).replace("{verbs}", VERBS)

    def kill(self) -> None:
        """End everything: with its first process the PID namespace goes."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(30)
            with contextlib.suppress(OSError):
                Path("/dev/infiniband").rmdir()

    def _write(self) -> None:
        for name in ("kubelet", "cni/bin", "cni/conf", "manifests"):
            (self.data / name).mkdir(parents=True, exist_ok=True)
        text = CONTAINERD.format(data=self.data, image=IMAGE)
        if self.has_cdi:
            known = '[plugins."io.containerd.grpc.v1.cri"]\n'
            text = text.replace(
                known, f'{known}  enable_cdi = true\n  cdi_spec_dirs = ["{self.cdi}"]\n', 1
            )
        (self.data / "containerd.toml").write_text(text)
        for name in ("nothing", "loopback"):
            file = self.data / "cni/bin" / name
            file.write_text(CNI_PLUGIN)
            file.chmod(0o755)
        (self.data / "cni/conf/10-test.conflist").write_text(json.dumps(CNI_CONFIG))
        (self.data / "kubelet.json").write_text(json.dumps(self._config()))
        _image(self.data / "image.tar")

    def _config(self) -> dict[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{self.data}/containerd.sock",
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "address": "127.0.0.1",
            "port": 0,
            "readOnlyPort": 0,
            "healthzPort": 0,
            "evictionHard": {},
            "imageGCHighThresholdPercent": 100,
            "nodeStatusUpdateFrequency": "2s",
            "podLogsDir": str(self.data / "logs"),
        }


def _image(target: Path) -> None:
    """Write a docker archive with busybox alone."""
    busybox = shutil.which("busybox")
    assert busybox is not None
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for name in ("bin", "dev", "proc", "sys", "tmp", "etc"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        tar.add(busybox, "bin/busybox")
        for name in ("sh", "sleep", "env", "ls", "cat", "echo"):
            entry = tarfile.TarInfo(f"bin/{name}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(entry)
    content = layer.getvalue()
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["PATH=/bin"], "Cmd": ["sleep", "2147483647"]},
            "rootfs": {
                "type": "layers",
                "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"],
            },
        }
    ).encode()
    manifest = [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    with tarfile.open(target, "w") as tar:
        for name, data in (
            ("config.json", config),
            ("layer.tar", content),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
