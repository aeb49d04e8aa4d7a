"""A cgroup for each machine, under one for each cluster, in version 1 and in version 2.

All processes of a cluster are in its cgroup, so that they are found whatever became of the process
that started them.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_MOUNTS: Final = Path("/proc/self/mounts")
_PREFIX: Final = "lockstep-cluster-"
_FROM_PARENT: Final = ("cpuset.cpus", "cpuset.mems")
"""Without these no process may enter a cpuset of version 1."""
_COMMON: Final = ("rw", "ro", "relatime", "nosuid", "nodev", "noexec", "xattr")
_GONE_SECONDS: Final = 30.0


def hierarchies() -> dict[Path, str]:
    """Return where version 1's hierarchies are mounted with which options, or else version 2's.

    The one of version 2 has no options here.
    """
    first: dict[Path, str] = {}
    second: dict[Path, str] = {}
    for line in _MOUNTS.read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup":
            first[Path(where)] = ",".join(o for o in options.split(",") if o not in _COMMON)
        elif kind == "cgroup2":
            second[Path(where)] = ""
    return first or second


def version_1() -> bool:
    """Return whether the controllers are in version 1, whether or not version 2 is beside it."""
    return any(hierarchies().values())


def create(cluster: str, machine: str) -> None:
    """Make the cgroups of a machine."""
    for root, options in hierarchies().items():
        top = root / (_PREFIX + cluster)
        for directory in (top, top / machine):
            directory.mkdir(exist_ok=True)
            for name in _FROM_PARENT if "cpuset" in options.split(",") else ():
                (directory / name).write_text((directory.parent / name).read_text())
        if not options:
            hand_down(root)
            hand_down(top)


def enter(cluster: str, machine: str) -> None:
    """Move this process there."""
    for root in hierarchies():
        (root / (_PREFIX + cluster) / machine / "cgroup.procs").write_text(str(os.getpid()))


def set_aside(cluster: str, process: int) -> None:
    """Move the process that waits for a machine out of its cgroup, in version 2.

    A cgroup of version 2 has processes or gives controllers to its children, not both.
    """
    for root, options in hierarchies().items():
        if not options:
            directory = root / (_PREFIX + cluster) / "waiting"
            directory.mkdir(exist_ok=True)
            (directory / "cgroup.procs").write_text(str(process))


def lead(root: Path) -> None:
    """Let a machine's first process leave its root cgroup, mounted at *root*, to its children."""
    if not version_1():
        (root / "init").mkdir(exist_ok=True)
        (root / "init/cgroup.procs").write_text(str(os.getpid()))
        hand_down(root)


def sweep(cluster: str) -> None:
    """Kill every process of a cluster and remove its cgroups.

    Raises:
        TimeoutError: Processes do not end.
    """
    tops = [root / (_PREFIX + cluster) for root in hierarchies()]
    until = time.monotonic() + _GONE_SECONDS
    while left := [top for top in tops if top.exists() and not _removed(top)]:
        if time.monotonic() > until:
            raise TimeoutError(f"processes in {', '.join(map(str, left))} do not end")
        time.sleep(0.05)


def _removed(top: Path) -> bool:
    for directory, _, _ in os.walk(top, topdown=False):
        _thaw(Path(directory))
        with suppress(OSError):
            for pid in (Path(directory) / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        with suppress(OSError):
            Path(directory).rmdir()
    return not top.exists()


def freeze(cluster: str, machine: str, frozen: bool) -> None:
    """Stop or go on with all processes of a machine, as a hypervisor does."""
    for root, options in hierarchies().items():
        directory = root / (_PREFIX + cluster) / machine
        if "freezer" in options.split(","):
            (directory / "freezer.state").write_text("FROZEN" if frozen else "THAWED")
        elif not options:
            (directory / "cgroup.freeze").write_text(str(int(frozen)))


def _thaw(directory: Path) -> None:
    for name, value in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
        with suppress(OSError):
            if (directory / name).exists():
                (directory / name).write_text(value)


def hand_down(directory: Path) -> None:
    """Give the children of a cgroup of version 2 all controllers that it has."""
    controllers = (directory / "cgroup.controllers").read_text().split()
    for controller in controllers:
        with suppress(OSError):
            (directory / "cgroup.subtree_control").write_text(f"+{controller}")
