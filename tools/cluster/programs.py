"""The programs of a cluster that Kubernetes itself does not bring, from pinned Go modules."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.go_program import GoProgram
from tools.kube import build as kube

HERE: Final = Path(__file__).parent
_CONTAINERD: Final = "github.com/containerd/containerd/v2/cmd"
_PLUGINS: Final = "github.com/containernetworking/plugins/plugins"
_TAGS: Final = "no_btrfs,no_devmapper,no_zfs"
CONTAINERD: Final = tuple(
    GoProgram(HERE / "containerd", f"{_CONTAINERD}/{name}", name, _TAGS)
    for name in ("containerd", "containerd-shim-runc-v2", "ctr")
)
CNI: Final = tuple(
    GoProgram(HERE / "cni", f"{_PLUGINS}/{package}", package.rpartition("/")[2])
    for package in ("main/bridge", "main/loopback", "ipam/host-local", "meta/portmap")
)
COREDNS: Final = GoProgram(HERE / "coredns", ".", "coredns")
REGISTRY: Final = GoProgram(HERE / "registry", ".", "registry")
ALL: Final = (*CONTAINERD, *CNI, COREDNS, REGISTRY)
_PAUSE_SOURCE: Final = "build/pause/linux/pause.c"


def kubernetes(name: str) -> Path:
    """Return where a program of ``make kube`` is."""
    return kube.directory() / name


def pause() -> Path:
    """Return where Kubernetes' pause program is; it holds the namespaces of each pod."""
    return COREDNS.path().parent.parent / f"pause-{kube.directory().name}"


def missing() -> list[str]:
    """Return the names of the programs that are not built yet."""
    absent = [program.name for program in ALL if program.find() is None]
    absent += [name for _, _, name in kube.programs() if not kubernetes(name).exists()]
    return absent if pause().exists() else [*absent, "pause"]


def build() -> int:
    """Build what is missing and return the exit status."""
    status = kube.main()
    for program in ALL:
        if program.find() is None:
            status = status or program.build()
    return status or _build_pause()


def _build_pause() -> int:
    if pause().exists():
        return 0
    found = subprocess.run(
        ["go", "mod", "download", "-json", "k8s.io/kubernetes"],
        cwd=kube.HERE / "kubernetes",
        stdout=subprocess.PIPE,
        check=False,
    )
    compiler = shutil.which("cc")
    if found.returncode != 0 or compiler is None:
        print("cluster: pause needs a C compiler: apt-get install gcc libc6-dev", file=sys.stderr)
        return 1
    source = Path(json.loads(found.stdout)["Dir"]) / _PAUSE_SOURCE
    pause().parent.mkdir(parents=True, exist_ok=True)
    command = [compiler, "-Os", "-static", "-DVERSION=lockstep", "-o", str(pause()), str(source)]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(build())
