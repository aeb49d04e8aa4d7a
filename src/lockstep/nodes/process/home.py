"""What is kept on disk of a pod, so that it survives the node's own restart.

``DATA/pods/UID/record.json`` says whose directory it is and what was decided; below
``containers/NAME/ATTEMPT`` the node notes that it began a run, and the run's shim how it went. A
shim holds the lock of its run while it lives.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from lockstep.keys.files import replace_file
from lockstep.nodes.process import backoff, paths
from lockstep.nodes.process.facts import Exit, Run, Verdict


class Record(msgspec.Struct, kw_only=True):
    """What the node decided about a pod."""

    namespace: str
    name: str
    uid: str
    accepted_at: float
    labels: dict[str, str] = {}
    owner: str = ""
    """The uid of the controller that made the pod."""
    containers: list[str] = []
    disrupted: str = ""
    """Why the node stopped the pod's containers on its own account."""
    address: str = ""
    gpus: list[int] = []
    nics: list[int] = []
    groups: list[str] = []
    """Its control groups; they depend on those of the node that started it."""
    verdict: dict[str, Any] | None = None
    released: bool = False
    reported: str = ""
    """Digest of the status that the server has."""
    told: list[str] = []
    """Remarks already made as events."""


@dataclass(frozen=True, slots=True)
class RunHome:
    """The directory of one run of a container."""

    path: Path
    attempt: int

    def lock(self) -> int:
        """Return a descriptor that holds the run's lock.

        Raises:
            BlockingIOError: when the run's shim is alive.
        """
        fd = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise
        return fd

    @property
    def alive(self) -> bool:
        """Tell whether the run's shim lives."""
        try:
            os.close(self.lock())
        except BlockingIOError:
            return True
        return False

    def read(self, name: str) -> dict[str, Any] | None:
        """Return a note, or none when there is none."""
        try:
            content = json.loads((self.path / f"{name}.json").read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return content if isinstance(content, dict) else None

    def begin(self, waited: float | None) -> None:
        """Note that the run begins, after a back-off of *waited* seconds."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)
        _note(self.path / "begin.json", json.dumps({"waited": waited}).encode())

    @property
    def waited(self) -> float | None:
        """Return the back-off before this run; none for the first."""
        begun = self.read("begin")
        return begun["waited"] if begun else None

    def run(self) -> Run | None:
        """Return the run as the notes tell it; none when its process never started."""
        started, ended = self.read("run"), self.read("exit")
        if ended is not None and "error" in ended:
            failure = Exit(128, 0, "StartError", ended["error"], ended["finished"])
            return Run(self.attempt, ended["started"], 0, failure)
        if started is None:
            return None
        run = Run(self.attempt, started["started"], started["pid"])
        if ended is None and self.alive:
            return run
        ended = ended or self.read("exit")
        return Run(run.attempt, run.started, run.pid, _exit(ended))

    def backoff(self, run: Run) -> float:
        """Return the wait before the run after *run*."""
        end = run.exit.finished if run.exit else run.started
        return backoff.after(self.waited, end - run.started)


LOST = Exit(
    137,
    9,
    "ContainerStatusUnknown",
    "the process that watched the container was killed, and the container with it",
)


def _exit(ended: dict[str, Any] | None) -> Exit:
    if ended is None:
        return Exit(LOST.code, LOST.signal, LOST.reason, LOST.message, time.time())
    code = ended["exit_code"]
    reason = "Completed" if code == 0 else "Error"
    if ended.get("oom") and code != 0:
        reason = "OOMKilled"
    return Exit(code, ended["signal"], reason, "", ended["finished"])


@dataclass(frozen=True, slots=True)
class PodHome:
    """The directory of one pod."""

    path: Path
    logs: Path
    record: Record = field(repr=False)

    @classmethod
    def at(cls, data: Path, record: Record) -> PodHome:
        """Return the home of a pod below the node's *data*.

        Raises:
            paths.UnsafeName: when the pod's names cannot be paths.
        """
        folder = "_".join(
            (paths.label(record.namespace), paths.pod_name(record.name), paths.uid(record.uid))
        )
        return cls(data / "pods" / record.uid, data / "logs" / folder, record)

    @classmethod
    def load(cls, data: Path, uid: str) -> PodHome | None:
        """Return the home of the pod *uid* as it was left, or none."""
        try:
            content = (data / "pods" / paths.uid(uid) / "record.json").read_bytes()
            return cls.at(data, msgspec.json.decode(content, type=Record))
        except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError, paths.UnsafeName):
            return None

    def save(self) -> None:
        """Write the record down."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o711)
        _note(self.path / "record.json", msgspec.json.encode(self.record))

    def first_time(self, event: str) -> bool:
        """Write down that an event was made; return False where it was before."""
        if event in self.record.told:
            return False
        self.record.told.append(event)
        self.save()
        return True

    def note_groups(self, places: Collection[str]) -> None:
        """Write down which control groups the pod has."""
        if not set(places) <= set(self.record.groups):
            self.record.groups = sorted({*self.record.groups, *places})
            self.save()

    def disrupt(self, why: str) -> str:
        """Write down why the node stops the pod, and return it.

        Where the API server ends at the same time, the next start tells it.
        """
        self.record.disrupted = why
        self.save()
        return why

    def forget_disruption(self) -> bool:
        """Forget a stop of the node; return whether there was one."""
        if not self.record.disrupted:
            return False
        self.record.disrupted = ""
        self.save()
        return True

    @property
    def hosts(self) -> Path:
        """Return where the pod's hosts file is."""
        return self.path / "hosts"

    @property
    def volumes(self) -> Path:
        """Return where the pod's volumes are."""
        return self.path / "volumes"

    def containers(self) -> list[str]:
        """Return the names of the containers that ever began."""
        root = self.path / "containers"
        return sorted(one.name for one in root.iterdir()) if root.exists() else []

    def attempts(self, container: str) -> list[RunHome]:
        """Return the runs of *container* that are still on record, oldest first."""
        root = self.path / "containers" / paths.label(container)
        if not root.exists():
            return []
        numbers = sorted(int(one.name) for one in root.iterdir() if one.name.isdigit())
        return [RunHome(root / str(number), number) for number in numbers]

    def attempt(self, container: str, number: int) -> RunHome:
        """Return the directory of one run of *container*."""
        return RunHome(self.path / "containers" / paths.label(container) / str(number), number)

    def log(self, container: str, attempt: int) -> Path:
        """Return the log of one run of *container*."""
        return self.logs / paths.label(container) / f"{attempt}.log"

    def forget_before(self, container: str, attempt: int) -> None:
        """Drop the runs older than *attempt*, with their logs."""
        for old in self.attempts(container):
            if old.attempt < attempt:
                shutil.rmtree(old.path, ignore_errors=True)
                for log in self.logs.glob(f"{paths.label(container)}/{old.attempt}.log*"):
                    log.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove everything that is kept of the pod, logs too."""
        shutil.rmtree(self.logs, ignore_errors=True)
        shutil.rmtree(self.path, ignore_errors=True)


def _note(path: Path, data: bytes) -> None:
    # No pod outlives a power cut, so its notes need not either.
    replace_file(path, data, mode=0o600, durable=False)


def verdict_of(record: Record) -> Verdict | None:
    """Return the verdict on record."""
    return Verdict(**record.verdict) if record.verdict else None


def with_verdict(record: Record, verdict: Verdict) -> None:
    """Put *verdict* on record."""
    record.verdict = asdict(verdict)


def rewrite(path: Path, text: str) -> None:
    """Change a file in place, so that containers that have it mounted see the new content."""
    data = text.encode()
    fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        if os.fstat(fd).st_size == len(data) and os.pread(fd, len(data), 0) == data:
            return
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))
        os.fchmod(fd, 0o644)
    finally:
        os.close(fd)
