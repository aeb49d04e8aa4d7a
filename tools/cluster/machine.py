"""The first process of a machine: its file system, its devices, its programs.

``python -m tools.cluster.machine FILE`` runs in new namespaces; ``spawn`` starts it there. The
file system is an overlay on the host's: a node and its pods write without a trace on the host.
With the process its PID namespace ends, and with that the mounts and the network.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from tools.cluster import cgroups
from tools.cluster.forward import forward

UNSHARE: Final = (
    "unshare",
    *("--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup"),
    *("--fork", "--kill-child", "--"),
)
GO: Final = b"go\n"
DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty", "kmsg", "fuse", "net/tun")
SYSCTLS: Final = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops")
"""What kubelet writes and no namespace holds: it writes into files of the node's own."""
_NAMESPACED: Final = {"net/ipv4/ip_forward": "1"}
_DETACH: Final = 2
_PAUSE_SECONDS: Final = 0.5


@dataclass
class Machine:
    """What a machine is made of."""

    cluster: str
    name: str
    directory: str
    """Where its files are; ``var`` in it is its /var."""
    programs: dict[str, list[str]]
    files: dict[str, str] = field(default_factory=dict)
    """Paths in its file system and the text there."""
    links: dict[str, str] = field(default_factory=dict)
    """Paths in its file system, and the host's files or directories that are bound there."""
    cards: int = 0
    forwards: dict[int, int] = field(default_factory=dict)
    """File descriptors of listening sockets, and the ports of this machine that they lead to."""


def spawn(machine: Machine, log: Path) -> tuple[int, int]:
    """Start a machine in namespaces and cgroups of its own.

    Returns:
        The process that waits for the first one, and the pipe on which that waits for ``GO``.
    """
    directory = Path(machine.directory)
    directory.mkdir(parents=True, exist_ok=True)
    cgroups.create(machine.cluster, machine.name)
    spec = directory / "machine.json"
    spec.touch(0o600)
    spec.write_text(json.dumps(asdict(machine)))
    command = [*UNSHARE, sys.executable, "-P", "-m", "tools.cluster.machine", str(spec)]
    root = str(Path(__file__).parents[2])
    theirs, ours = os.pipe()
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=output,
            stderr=output,
            cwd=root,
            env={**os.environ, "PYTHONPATH": root},
            pass_fds=tuple(machine.forwards),
            preexec_fn=lambda: cgroups.enter(machine.cluster, machine.name),  # noqa: PLW1509
            start_new_session=True,
        )
    os.close(theirs)
    return process.pid, ours


def first_process(unshare: int) -> int:
    """Return the number of the machine's first process, whose parent is *unshare*."""
    children = Path(f"/proc/{unshare}/task/{unshare}/children")
    for _ in range(500):
        with suppress(OSError, IndexError):
            return int(children.read_text().split()[0])
        time.sleep(0.01)
    raise TimeoutError(f"unshare ({unshare}) started no process within 5 s")


def main(spec: str) -> int:
    """Make the machine, wait until it is wired, and run its programs until it is ended."""
    found = json.loads(Path(spec).read_text())
    found["forwards"] = {int(fd): port for fd, port in found["forwards"].items()}
    machine = Machine(**found)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    socket.sethostname(machine.name)
    _enter(machine)
    if sys.stdin.buffer.readline() != GO:
        return 1
    cgroups.lead(Path("/sys/fs/cgroup"))
    for name, value in _NAMESPACED.items():
        Path("/proc/sys", name).write_text(value)
    if machine.forwards and os.fork() == 0:
        forward(machine.forwards)
    _supervise(machine.programs)
    return 0


def _enter(machine: Machine) -> None:
    directory = Path(machine.directory)
    root = directory / "root"
    _mount("--make-rprivate", "/")
    writes = directory / "writes"
    for path in (root, writes, directory / "var"):
        path.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(writes))
    for name in ("upper", "work"):
        (writes / name).mkdir()
    layers = f"lowerdir=/,upperdir={writes}/upper,workdir={writes}/work"
    _mount("-t", "overlay", "-o", layers, "overlay", str(root))
    _mount_system(root)
    _bind(directory / "var", root / "var")
    for name in ("lib", "log", "tmp", "cache"):
        (root / "var" / name).mkdir(exist_ok=True)
    for link, target in (("run", "/run"), ("lock", "/run/lock")):
        if not (root / "var" / link).is_symlink():
            (root / "var" / link).symlink_to(target)
    _make_devices(root / "dev", machine.cards)
    for target, source in machine.links.items():
        _bind(Path(source), root / target.lstrip("/"))
    for target, text in machine.files.items():
        file = root / target.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.write_text(text)
        file.chmod(0o755 if text.startswith("#!") else 0o600 if ".key" in target else 0o644)
    os.chdir(root)
    _pivot()
    # As systemd does: what a container mounts for its node is seen there, and by other containers.
    _mount("--make-rshared", "/")


def _mount_system(root: Path) -> None:
    _mount("-t", "proc", "proc", str(root / "proc"))
    _mount("-t", "sysfs", "sysfs", str(root / "sys"))
    for name in ("run", "tmp", "dev"):
        _mount(
            "-t",
            "tmpfs",
            "-o",
            "mode=1777" if name == "tmp" else "mode=755",
            name,
            f"{root}/{name}",
        )
    (root / "run/lock").mkdir()
    groups = root / "sys/fs/cgroup"
    if not cgroups.version_1():
        _mount("-t", "cgroup2", "cgroup2", str(groups))
    else:
        _mount("-t", "tmpfs", "-o", "mode=755", "cgroup", str(groups))
        for hierarchy, options in cgroups.hierarchies().items():
            (groups / hierarchy.name).mkdir()
            _mount("-t", "cgroup", "-o", options, "cgroup", str(groups / hierarchy.name))
    kept = root / "run/sysctl"
    for name in SYSCTLS:
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        (kept / name).write_text(Path("/proc/sys", name).read_text())
        _mount("--bind", str(kept / name), str(root / "proc/sys" / name))


def _make_devices(dev: Path, cards: int) -> None:
    for name in DEVICES:
        source, target = Path("/dev", name), dev / name
        if not source.exists():
            continue
        target.parent.mkdir(exist_ok=True)
        os.mknod(target, source.stat().st_mode, source.stat().st_rdev)
        target.chmod(source.stat().st_mode & 0o777)
    for name in ("pts", "shm", "mqueue"):
        (dev / name).mkdir()
    _mount("-t", "devpts", "-o", "newinstance,ptmxmode=0666,mode=620", "devpts", str(dev / "pts"))
    _mount("-t", "tmpfs", "shm", str(dev / "shm"))
    _mount("-t", "mqueue", "mqueue", str(dev / "mqueue"))
    for name, target in (("ptmx", "pts/ptmx"), ("fd", "/proc/self/fd")):
        (dev / name).symlink_to(target)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        (dev / name).symlink_to(f"/proc/self/fd/{number}")
    null = Path("/dev/null").stat()
    for name in (*(f"nvidia{n}" for n in range(cards)), *(["nvidiactl"] if cards else [])):
        os.mknod(dev / name, null.st_mode, null.st_rdev)
        (dev / name).chmod(0o666)


def _pivot() -> None:
    """Make the working directory the root and let go of the host's file systems."""
    libc = ctypes.CDLL(None, use_errno=True)
    for done in (libc.pivot_root(b".", b"."), libc.umount2(b".", _DETACH)):
        if done != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"pivot_root: {os.strerror(number)}")
    os.chdir("/")


def _supervise(programs: dict[str, list[str]]) -> None:
    """Run programs for good, each again when it ends, and reap what is orphaned here."""
    running = {_run(name, command): name for name, command in programs.items()}
    while True:
        pid, status = os.wait()
        name = running.pop(pid, "")
        if name:
            print(f"{name} ended ({os.waitstatus_to_exitcode(status)}); again", flush=True)
            time.sleep(_PAUSE_SECONDS)
            running[_run(name, programs[name])] = name


def _run(name: str, command: Sequence[str]) -> int:
    Path("/var/log/programs").mkdir(exist_ok=True)
    log = os.open(f"/var/log/programs/{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, log, number) for number in (1, 2)]
        return os.posix_spawn(command[0], command, _environment(), file_actions=actions)
    finally:
        os.close(log)


def _environment() -> dict[str, str]:
    paths = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/cluster/bin"
    return {"PATH": paths, "HOME": "/root"}


def _bind(source: Path, target: Path) -> None:
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    elif not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    _mount("--rbind", str(source), str(target))


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
