"""The orders for a container's shim, put together from all that a pod says."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lockstep.nodes.process import paths
from lockstep.nodes.process.cgroups import Membership
from lockstep.nodes.process.environment import Around, Command, ConfigError
from lockstep.nodes.process.expansion import expand
from lockstep.nodes.process.fences import NOTHING
from lockstep.nodes.process.home import PodHome, RunHome
from lockstep.nodes.process.images import Entry
from lockstep.nodes.process.isolation import Isolation
from lockstep.nodes.process.spec import Container, Pod
from lockstep.nodes.process.volume_store import VolumeStore

LOG_BYTES = 10 << 20
LOG_FILES = 5
DEFAULT_MESSAGE_PATH = "/dev/termination-log"

Orders = dict[str, Any]


def identity(pod: Pod, container: Container, image: Entry | None = None) -> dict[str, Any]:
    """Return the user and the groups of *container*; none where the node's own stay.

    The user of its *image* counts where the pod names none.

    Raises:
        ConfigError: when it must not run as root and would.
    """
    own, all_ = container.security_context, pod.spec.security_context
    uid = own.run_as_user if own.run_as_user is not None else all_.run_as_user
    if uid is None and image is not None:
        uid = image.uid
    gid = own.run_as_group if own.run_as_group is not None else all_.run_as_group
    not_root = own.run_as_non_root if own.run_as_non_root is not None else all_.run_as_non_root
    root = os.geteuid() == 0
    if not_root and (uid == 0 or (uid is None and root)):
        raise ConfigError("container has runAsNonRoot and would run as root")
    if not root:
        return {"uid": None, "gid": None, "groups": None}
    extra = {*all_.supplemental_groups, *([all_.fs_group] if all_.fs_group is not None else [])}
    if uid is not None and gid is None:
        gid = _primary_group(uid)
    change = uid is not None or gid is not None or bool(extra)
    return {"uid": uid, "gid": gid, "groups": sorted(extra) if change else None}


def _primary_group(uid: int) -> int:
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return 0


def home_directory(uid: int | None) -> str:
    """Return the home directory of the user *uid*, by default the node's own."""
    try:
        return pwd.getpwuid(os.geteuid() if uid is None else uid).pw_dir
    except KeyError:
        return "/"


def message_file(container: Container, run: RunHome) -> Path | None:
    """Return the file in which *container* may leave a last message; none without a place for it.

    The usual place is only offered where the host has a file to mount it on.
    """
    path = container.termination_message_path
    if not path or (path == DEFAULT_MESSAGE_PATH and not Path(path).exists()):
        return None
    return run.path / "message"


class OrderBook:
    """Makes the orders for the containers of one pod."""

    def __init__(self, home: PodHome, isolation: Isolation, hostname: str) -> None:
        self.home, self.isolation, self.hostname = home, isolation, hostname

    def start(
        self,
        container: Container,
        run: RunHome,
        around: Around,
        command: Command,
        groups: Membership,
        *,
        shut: Sequence[str] = (),
        share: Sequence[Orders] = (),
        image: Entry | None = None,
    ) -> Orders:
        """Return the orders that start *container*; it sees nothing in place of the files *shut*.

        *share* are the mounts of its share of GPUs.

        Raises:
            ConfigError: when the pod contradicts itself.
            paths.UnsafeName: when a path would lead out of its volume.
        """
        log = self.home.log(container.name, run.attempt)
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mounts = self._mounts(container, run, around.pod, command.env)
        mounts += [_mount(Path(NOTHING), file) for file in shut] + list(share)
        if image is not None:
            mounts += [_mount(Path(path), place, read_only=True) for path, place in image.mounts]
        return {
            "state": str(run.path),
            "scratch": str(run.path / "root"),
            "log": str(log),
            "log_bytes": LOG_BYTES,
            "log_files": LOG_FILES,
            "oom": groups.oom,
            "cgroups": list(groups.procs),
            "mounts": mounts if self.isolation.mounts else [],
            "hidden": list(self.isolation.hidden) if self.isolation.mounts else [],
            "namespaces": list(self.isolation.namespaces),
            "hostname": self.hostname,
            "argv": command.argv,
            "env": command.env,
            "cwd": command.cwd,
            **identity(around.pod, container, image),
        }

    def beside(
        self, pod: Pod, container: Container, pid: int, argv: list[str], image: Entry | None = None
    ) -> Orders:
        """Return the orders for a command beside the running process *pid* of *container*.

        It gets the environment that the process was started with.

        Raises:
            OSError: when the process is gone.
        """
        process = Path("/proc") / str(pid)
        pairs = process.joinpath("environ").read_bytes().split(b"\0")
        env = dict(
            pair.decode(errors="surrogateescape").split("=", 1) for pair in pairs if b"=" in pair
        )
        groups = [
            Path(place) / container.name / "cgroup.procs" for place in self.home.record.groups
        ]
        return {
            "target": pid,
            "namespaces": list(self.isolation.namespaces),
            "cgroups": [str(one) for one in groups if one.exists()],
            "argv": argv,
            "env": env,
            "cwd": container.working_dir or "/",
            **identity(pod, container, image),
        }

    def _mounts(
        self, container: Container, run: RunHome, pod: Pod, env: Mapping[str, str]
    ) -> list[Orders]:
        store = VolumeStore(self.home.volumes)
        volumes = {one.name: one for one in pod.spec.volumes}
        found = [_mount(self.home.hosts, "/etc/hosts")]
        message = message_file(container, run)
        if message is not None:
            message.touch()
            message.chmod(0o666)
            found.append(_mount(message, paths.absolute(container.termination_message_path)))
        for one in container.volume_mounts:
            volume = volumes.get(one.name)
            if volume is None:
                raise ConfigError(
                    f"container {container.name} mounts no volume of the pod: {one.name}"
                )
            sub_path = expand(one.sub_path_expr, env) if one.sub_path_expr else one.sub_path
            source = store.path(volume, sub_path)
            read_only = one.read_only or store.read_only(volume)
            if volume.host_path is not None:
                self._require_visible(source, pod.metadata.namespace)
            found.append(_mount(source, paths.absolute(one.mount_path), read_only=read_only))
        return found

    def _require_visible(self, source: Path, namespace: str) -> None:
        place = source.resolve()
        shared = self.isolation.by_namespace
        # Pods cannot write to the part itself, so nothing in it is a link that one of them made.
        if shared and place.parent == Path(shared, namespace):
            return
        for hidden in self.isolation.hidden:
            if place.is_relative_to(hidden):
                raise ConfigError(f"hostPath {source} lies in {hidden}, which pods may not see")


def _mount(source: Path, target: str, *, read_only: bool = False) -> Orders:
    return {"source": str(source), "target": target, "read_only": read_only}
