"""The local ranks as processes: started with the world's variables, watched, ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from lockstep.train.forking import Forked, fork
from lockstep.train.place import Place

Process = Union["subprocess.Popen[bytes]", Forked]

GRACE = 2.0
"""Seconds that ranks get to end by themselves before they are killed."""
_TAIL = 4096
_LONGEST_LINE = 500


@dataclass(frozen=True)
class Seat:
    """Where the pod's ranks are among all."""

    node: int
    nodes: int
    first: int
    local: int
    """Ranks of this pod."""
    size: int
    """Ranks of all pods."""


def is_seated(place: Place, world: Mapping[str, Any]) -> bool:
    """Say whether the pod at *place* holds ranks in *world*, or stands by."""
    ranks = world.get("ranks")
    if ranks:
        return place.pod in ranks
    pods: int = sum(part["pods"] for part in world.get("parts", []))
    return place.node_rank < pods


def seat(place: Place, world: Mapping[str, Any]) -> Seat:
    """Return the seat of the pod at *place* in *world*."""
    node = int(world.get("ranks", {}).get(place.pod, place.node_rank))
    each = [part["processes"] for part in world["parts"] for _ in range(part["pods"])]
    return Seat(node, len(each), sum(each[:node]), each[node], sum(each))


def node_variables(place: Place, world: Mapping[str, Any], socket: str) -> dict[str, str]:
    """Return what every process of the pod is told."""
    mine = seat(place, world)
    master, port = world["master"], str(world["port"])
    resume = world.get("resume")
    ranks = {"MASTER_ADDR": master, "MASTER_PORT": port, "WORLD_SIZE": str(mine.size)}
    return {
        **({} if place.alone else ranks),
        "PET_MASTER_ADDR": master,
        "PET_MASTER_PORT": port,
        "PET_NNODES": str(mine.nodes),
        "PET_NODE_RANK": str(mine.node),
        "PET_NPROC_PER_NODE": str(mine.local),
        "TORCHELASTIC_RESTART_COUNT": str(world.get("restarts", 0)),
        "LOCKSTEP_SOCKET": socket,
        "LOCKSTEP_GENERATION": str(world["generation"]),
        "LOCKSTEP_FIRST_RANK": str(mine.first),
        "LOCKSTEP_RESUME": "" if resume is None else str(resume),
    }


def rank_variables(env: Mapping[str, str], local: int) -> dict[str, str]:
    """Return what the rank *local* is told beyond the pod's variables in *env*, as by torchrun."""
    first, count = int(env["LOCKSTEP_FIRST_RANK"]), int(env["PET_NPROC_PER_NODE"])
    rank, size = str(first + local), env.get("WORLD_SIZE", "1")
    return {
        "MASTER_ADDR": env["PET_MASTER_ADDR"],
        "MASTER_PORT": env["PET_MASTER_PORT"],
        "WORLD_SIZE": size,
        "RANK": rank,
        "LOCAL_RANK": str(local),
        "LOCAL_WORLD_SIZE": str(count),
        "GROUP_RANK": env["PET_NODE_RANK"],
        "GROUP_WORLD_SIZE": env["PET_NNODES"],
        "ROLE_NAME": "default",
        "ROLE_RANK": rank,
        "ROLE_WORLD_SIZE": size,
        "TORCHELASTIC_RUN_ID": env.get("PET_RDZV_ID", "none"),
        "TORCHELASTIC_MAX_RESTARTS": env.get("PET_MAX_RESTARTS", "0"),
        "TORCHELASTIC_USE_AGENT_STORE": "False",
        **({"OMP_NUM_THREADS": "1"} if count > 1 and "OMP_NUM_THREADS" not in env else {}),
    }


def runs_each(command: Sequence[str]) -> bool:
    """Say whether *command* is one rank, to be started once for each, and no launcher itself."""
    name = os.path.basename(command[0])  # noqa: PTH119  a word of a command, no path of ours
    return name.startswith("python") and not _is_torchrun(command)


def _is_torchrun(command: Sequence[str]) -> bool:
    launchers = ("torch.distributed.run", "torch.distributed.launch")
    return any(
        word == "-m" and following in launchers for word, following in zip(command, command[1:])
    )


class Ranks:
    """The processes of one generation."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        ended: Callable[[int, int, str], None],
        gone: Callable[[], None],
    ) -> None:
        """Start them; *ended* is told local rank, wait code and last line of each that fails."""
        self._ended, self._gone = ended, gone
        self._lock = threading.Lock()
        self._alive: dict[int, Process] = {}
        self._stopping = False
        self._note = env.get("LOCKSTEP_NOTE", "")
        count = int(env["PET_NPROC_PER_NODE"])
        each = runs_each(command)
        if _is_torchrun(command):
            command = ["torchrun", *_after_torchrun(command)]
        for local in range(count if each else 1):
            # A process that is alone is no rank; torchrun, where it is called, makes it one.
            distributed = "WORLD_SIZE" in env and (each or count == 1)
            own = rank_variables(env, local) if distributed else {}
            self._start(list(command), {**env, **own}, local)

    def _start(self, command: list[str], env: dict[str, str], local: int) -> None:
        try:
            # A group of its own: what a rank starts ends with it.
            process = fork(command, env, piped=True) or subprocess.Popen(  # noqa: S603  the user's
                command, env=env, stderr=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            code = 127 if isinstance(error, FileNotFoundError) else 126
            print(f"lockstep-run: {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
            self._ended(local, code, f"{command[0]}: {error.strerror}")
            self._alive.pop(local, None)
            if not self._alive:
                self._gone()
            return
        with self._lock:
            self._alive[local] = process
        threading.Thread(target=self._watch, args=(local, process), daemon=True).start()

    def _watch(self, local: int, process: Process) -> None:
        tail = Tail()
        pump = threading.Thread(target=tail.copy, args=(process.stderr,), daemon=True)
        pump.start()
        code = process.wait()
        # Its children may hold the pipe: what it wrote itself is there by now.
        pump.join(0.5)
        _kill_group(process, signal.SIGKILL)
        with self._lock:
            self._alive.pop(local, None)
            last, stopping = not self._alive, self._stopping
        if code != 0 and not stopping:
            self._ended(*self._which(local, code), tail.last_line())
        if last:
            self._gone()

    def _which(self, local: int, code: int) -> tuple[int, int]:
        """Return which rank failed and how, as a torchrun of ours has noted it, if one ran."""
        with contextlib.suppress(OSError, ValueError):
            noted = Path(self._note).read_text().split()
            return int(noted[0]), int(noted[1])
        return local, code

    def stop(self, grace: float = GRACE) -> None:
        """End them: first asked, then killed; returns at once."""
        with self._lock:
            self._stopping = True
            alive = list(self._alive.values())
        for process in alive:
            _kill_group(process, signal.SIGTERM)
        threading.Thread(target=self._kill_later, args=(alive, grace), daemon=True).start()

    def _kill_later(self, alive: list[Process], grace: float) -> None:
        end = time.monotonic() + grace
        for process in alive:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, end - time.monotonic()))
            _kill_group(process, signal.SIGKILL)


def _after_torchrun(command: Sequence[str]) -> list[str]:
    at = list(command).index("-m")
    return list(command[at + 2 :])


def _kill_group(process: Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


class Tail:
    """Passes on a process' standard error, and keeps the end of it."""

    def __init__(self) -> None:
        self._kept = b""

    def copy(self, source: Any) -> None:
        """Pass on all of *source* until it ends."""
        fd = source.fileno()
        while data := os.read(fd, 65536):
            self._kept = (self._kept + data)[-_TAIL:]
            with contextlib.suppress(OSError):
                os.write(2, data)
        source.close()

    def last_line(self) -> str:
        """Return the last line with words in it."""
        lines = [one.strip() for one in self._kept.decode(errors="replace").splitlines()]
        return next((one for one in reversed(lines) if one), "")[:_LONGEST_LINE]


def torchrun_directory(directory: Path) -> Path:
    """Return a folder with a ``torchrun`` of ours, to stand first on PATH."""
    made = directory / "bin"
    made.mkdir()
    script = made / "torchrun"
    home = str(Path(__file__).resolve().parents[2])
    script.write_text(
        # Without site: it is no rank, though it may have a rank's variables.
        f"#!{sys.executable} -SE\nimport sys\nsys.path.insert(0, {home!r})\n"
        "from lockstep.train.torchrun import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    script.chmod(0o700)
    return made
