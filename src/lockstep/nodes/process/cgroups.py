"""CPU and memory limits, through either version of the kernel's control groups.

Groups are made below the node's own, or the nearest one above it where that is allowed.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lockstep.api import quantity
from lockstep.nodes.process.spec import Container

PERIOD = 100_000
GROUP = "lockstep"
TOP = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a container may use: thousandths of a CPU and bytes; none is no limit."""

    cpu: int | None = None
    memory: int | None = None
    shares: int | None = None
    """Thousandths of a CPU that it asked for, its weight when CPUs are short."""
    denied: tuple[str, ...] = ()
    """Device files that it must not open, as ``c 195:0``."""

    @property
    def hard(self) -> tuple[str, ...]:
        """Return the names of the limits that are set."""
        names = (("cpu", self.cpu), ("memory", self.memory), ("devices", self.denied or None))
        return tuple(name for name, value in names if value is not None)


def limits_of(container: Container, denied: tuple[str, ...] = ()) -> Limits:
    """Return the limits that *container* states, and the device files that it must not open."""
    limits, requests = container.resources.limits, container.resources.requests
    cpu, memory = limits.get("cpu"), limits.get("memory")
    asked = requests.get("cpu", cpu)
    return Limits(
        None if cpu is None else quantity.to_milli(cpu),
        None if memory is None else quantity.to_int(memory),
        None if asked is None else quantity.to_milli(asked),
        denied,
    )


@dataclass(frozen=True, slots=True)
class Membership:
    """How a process joins its groups, and where the kernel counts kills for want of memory."""

    procs: tuple[str, ...] = ()
    oom: str = ""
    unenforced: tuple[str, ...] = ()


def settings(version: int, controller: str, limits: Limits) -> dict[str, str]:
    """Return what to write into which file of a group of *controller*."""
    found: dict[str, str] = {}
    if controller == "memory" and limits.memory is not None:
        name = "memory.max" if version == 2 else "memory.limit_in_bytes"
        found[name] = str(limits.memory)
    if controller == "cpu" and limits.cpu is not None:
        quota = max(1000, limits.cpu * PERIOD // 1000)
        if version == 2:
            found["cpu.max"] = f"{quota} {PERIOD}"
        else:
            found |= {"cpu.cfs_period_us": str(PERIOD), "cpu.cfs_quota_us": str(quota)}
    if controller == "cpu" and limits.shares is not None:
        shares = max(2, limits.shares * 1024 // 1000)
        if version == 2:
            found["cpu.weight"] = str(max(1, min(10000, 1 + (shares - 2) * 9999 // 262142)))
        else:
            found["cpu.shares"] = str(shares)
    return found


class Groups:
    """The control groups of one node; with *fence*, also those that keep device files shut."""

    def __init__(self, name: str, *, fence: bool = False, top: Path = TOP, own: Path = OWN) -> None:
        self.version = 1
        self.roots: dict[str, Path] = {}
        self.problems: dict[str, str] = {}
        for controller in ("cpu", "memory", *(("devices",) if fence else ())):
            try:
                self.version, self.roots[controller] = _find(
                    controller, f"{GROUP}-{name}", top, own.read_text().splitlines()
                )
            except OSError as error:
                self.problems[controller] = error.strerror or str(error)

    def enter(self, pod: str, container: str, limits: Limits) -> Membership:
        """Make the groups of a container with its *limits*; say which could not be enforced."""
        procs: list[str] = []
        oom = ""
        failed: list[str] = [
            f"{one}: {self.problems[one]}" for one in limits.hard if one in self.problems
        ]
        for controller, root in self.roots.items():
            place = root / pod / container
            try:
                _make(place, controller, self.version)
                for file, value in settings(self.version, controller, limits).items():
                    (place / file).write_text(value)
                for one in limits.denied if controller == "devices" else ():
                    (place / "devices.deny").write_text(f"{one} rwm")
            except OSError as error:
                if controller in limits.hard:
                    failed.append(f"{controller}: {error.strerror}")
                continue
            procs.append(str(place / "cgroup.procs"))
            if controller == "memory":
                oom = str(place / ("memory.events" if self.version == 2 else "memory.oom_control"))
        return Membership(tuple(dict.fromkeys(procs)), oom, tuple(failed))

    def places(self, pod: str) -> list[str]:
        """Return the directories of the groups of *pod*."""
        return [str(root / pod) for root in dict.fromkeys(self.roots.values())]

    def close(self) -> None:
        """Remove the node's own groups, when nothing is in them."""
        for root in set(self.roots.values()):
            with contextlib.suppress(OSError):
                root.rmdir()


def members(places: Iterable[str], container: str = "*") -> set[int]:
    """Return the processes in a pod's groups at *places*, or in those of one container."""
    found: set[int] = set()
    for place in places:
        for file in Path(place).glob(f"{container}/cgroup.procs"):
            with contextlib.suppress(OSError):
                found.update(int(line) for line in file.read_text().split())
    return found


def kill(places: Iterable[str], container: str = "*") -> None:
    """Kill each process still in a pod's groups at *places*, or in those of one container."""
    for pid in members(places, container):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def remove(places: Iterable[str]) -> None:
    """Remove a pod's groups at *places*, as far as nothing is in them."""
    for place in map(Path, places):
        for directory in [*place.glob("*/"), place]:
            with contextlib.suppress(OSError):
                directory.rmdir()


def _find(controller: str, name: str, top: Path, own: list[str]) -> tuple[int, Path]:
    """Return the version and the directory in which groups of *controller* can be made.

    The second version has no controller for devices.
    """
    for line in own:
        number, controllers, path = line.split(":", 2)
        if number != "0" and controller in controllers.split(","):
            mounted = [one for one in (controllers, controller) if (top / one).is_dir()]
            if not mounted:
                break
            root = top / mounted[0] / path.lstrip("/") / name
            root.mkdir(exist_ok=True)
            return 1, root
    for line in own:
        number, _, path = line.split(":", 2)
        if number == "0":
            return 2, _find_unified(top, path.lstrip("/"), controller, name)
    raise OSError(0, "no control groups on this machine")


def _find_unified(top: Path, own: str, controller: str, name: str) -> Path:
    """Return a group beside or above our own (which has processes, and so no children of use)."""
    here = top / own
    last: OSError = OSError(0, f"the controller {controller} is not available")
    for parent in [here, *here.parents]:
        if not parent.is_relative_to(top):
            break
        try:
            (parent / "cgroup.subtree_control").write_text(f"+{controller}")
            (parent / name).mkdir(exist_ok=True)
            (parent / name / "cgroup.subtree_control").write_text(f"+{controller}")
        except OSError as error:
            last = error
            continue
        return parent / name
    raise last


def _make(place: Path, controller: str, version: int) -> None:
    place.parent.mkdir(exist_ok=True)
    if version == 2:
        (place.parent / "cgroup.subtree_control").write_text(f"+{controller}")
    place.mkdir(exist_ok=True)
