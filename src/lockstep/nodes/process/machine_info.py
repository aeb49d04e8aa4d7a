"""What this machine is and has."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lockstep import __version__

MOST_PODS = 250
_NOT_IN_NAMES = re.compile(r"[^a-z0-9.-]+")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def node_name(wanted: str | None) -> str:
    """Return the node's name: *wanted*, else the host's, as far as it can be one."""
    name = wanted or socket.gethostname()
    return _NOT_IN_NAMES.sub("-", name.lower()).strip("-.") or "process-node"


def architecture() -> str:
    """Return the machine's architecture as Kubernetes calls it."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def cpus() -> int:
    """Return how many CPUs the node may use."""
    return len(os.sched_getaffinity(0))


def memory() -> int:
    """Return the bytes of memory the node may use: the machine's, or less by its own limit."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([total, *_limits()])


def _limits() -> Iterator[int]:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            file = Path("/sys/fs/cgroup/memory") / path.lstrip("/") / "memory.limit_in_bytes"
        elif number == "0":
            file = Path("/sys/fs/cgroup") / path.lstrip("/") / "memory.max"
        else:
            continue
        with contextlib.suppress(OSError, ValueError):
            yield int(file.read_text())


def info() -> dict[str, Any]:
    """Return what a Node's ``nodeInfo`` says."""
    kernel = platform.uname()
    return {
        "machineID": _line("/etc/machine-id"),
        "systemUUID": _line("/sys/class/dmi/id/product_uuid"),
        "bootID": _line("/proc/sys/kernel/random/boot_id"),
        "kernelVersion": kernel.release,
        "osImage": _release(),
        "containerRuntimeVersion": f"process://{__version__}",
        "kubeletVersion": f"v0.0.0-lockstep-{__version__}",
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": architecture(),
    }


def _line(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text().strip()
    return ""


def _release() -> str:
    with contextlib.suppress(OSError):
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    return "Linux"
