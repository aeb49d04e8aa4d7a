"""Training that survives: what a snapshot costs, how soon a killed rank is back, the launcher."""

from __future__ import annotations

import io
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from bench.figure import Figure, NotMeasured

STATE_BYTES = 512 << 20
TENSORS = 64
TIMES = 7
KILLS = 3
IDLE_SECONDS = 15.0
SCRIPT = """
import os, socket, struct, time, torch, torch.distributed as dist
from lockstep.train import Checkpointer
dist.init_process_group("gloo")
# As data parallelism has it: all ranks hold the same, so that one's copy serves all.
torch.manual_seed(0)
model = torch.nn.Linear(8, 8)
ckpt = Checkpointer(model=model)
start = step = ckpt.restore()
# A rank may be a fork: its launcher is the process that listens.
with socket.socket(socket.AF_UNIX) as one:
    one.connect(os.environ["LOCKSTEP_SOCKET"])
    launcher = struct.unpack("3i", one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
while not os.path.exists(os.environ["OUT"] + "/stop"):
    dist.all_reduce(torch.ones(1))
    step += 1
    ckpt.step(step)
    with open(f"{os.environ['OUT']}/step-{dist.get_rank()}", "w") as file:
        file.write(f"{step} {os.getpid()} {time.time()} {launcher} {start}")
    time.sleep(0.05)
dist.barrier()
"""


def run() -> list[Figure]:
    if find_spec("torch") is None:
        raise NotMeasured("needs torch (the train extra)")
    return [*_snapshot(), _telemetry(), *_recovery()]


def _snapshot() -> list[Figure]:
    import torch

    from lockstep.train.checkpointer import Checkpointer
    from lockstep.train.memory import Counter, Memory

    torch.set_num_threads(1)
    size = STATE_BYTES // TENSORS // 4
    state = {f"weight{i}": torch.ones(size) for i in range(TENSORS)}
    target = {name: torch.empty_like(tensor) for name, tensor in state.items()}

    def copy_all() -> None:
        for name, tensor in state.items():
            target[name].copy_(tensor)

    with tempfile.TemporaryDirectory() as directory:
        counter = Counter(Path(directory), Memory())
        threading.Thread(target=counter.serve, daemon=True).start()
        os.environ["LOCKSTEP_SOCKET"] = counter.path
        try:
            ckpt = Checkpointer(model=_Held(state))
            numbers: Iterator[int] = iter(range(1, 1000))
            # The first two lay the memory out and touch it.
            for _ in range(2):
                ckpt.step(next(numbers))
            ours = _median(lambda: ckpt.step(next(numbers)))
        finally:
            del os.environ["LOCKSTEP_SOCKET"]
    memcpy = _median(copy_all)
    pickled = _median(lambda: torch.save(state, io.BytesIO()))
    what = "training: snapshot of 512 MB, 1 thread"
    return [
        Figure(f"{what}: share of memcpy's rate", memcpy / ours, "", limit=0.7),
        Figure(f"{what}: a step of 1 s is longer by", 100 * ours, "%", "lower", 3.0).beside(
            "torch.save to memory", 100 * pickled
        ),
    ]


STEPS = """
import sys, time, torch
m = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
m(torch.ones(4)).sum().backward()
for _ in range(200):
    optimizer.step()
begin = time.perf_counter()
for _ in range(5000):
    optimizer.step()
print((time.perf_counter() - begin) / 5000)
"""


def _telemetry() -> Figure:
    """Compare optimizer steps with telemetry and without."""
    from lockstep.train.meters import Meters

    with tempfile.TemporaryDirectory() as directory:
        rank = {"RANK": "0", "LOCAL_RANK": "0", "LOCKSTEP_GENERATION": "1", "OMP_NUM_THREADS": "1"}
        told = {**rank, **Meters(Path(directory)).variables(dict(os.environ))}
        # In turn, so that what else the machine does falls on both.
        pairs = [(_seconds_a_step({}), _seconds_a_step(told)) for _ in range(KILLS)]
    added = statistics.median(with_it - without for without, with_it in pairs)
    what = "training: telemetry's part of a step of 100 ms"
    return Figure(what, 100 * added / 0.1, "%", "lower", 0.5).beside("xpu_timer", 0.43, "published")


def _seconds_a_step(variables: dict[str, str]) -> float:
    command = [sys.executable, "-c", STEPS]
    env = {**os.environ, **variables}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return float(done.stdout)


class _Held:
    """A state as a module or an optimizer has one."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state

    def state_dict(self) -> dict[str, Any]:
        return self._state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._state = state


def _median(action: Callable[[], object]) -> float:
    seconds = []
    for _ in range(TIMES):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _recovery() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory)
        (out / "train.py").write_text(SCRIPT)
        with _control_plane(out):
            _lockstep(
                out,
                *("submit", "pytorch", "--name", "bench", "--workers", "2", "--max-restarts", "99"),
                *("--env", f"OUT={out}", "--env", "OMP_NUM_THREADS=1"),
                *("--", "python", str(out / "train.py")),
            )
            figures = [_killed(out), *_launcher(out), _pod_lost(out, 15.0)]
            (out / "stop").touch()
            _lockstep(out, "wait", "bench")
            figures.append(_spared(out))
    return figures


def _spared(out: Path) -> Figure:
    other = out / "spared"
    other.mkdir()
    _lockstep(
        out,
        *("submit", "pytorch", "--name", "spared", "--workers", "2", "--spares", "1"),
        *("--env", f"OUT={other}", "--env", "OMP_NUM_THREADS=1"),
        *("--", "python", str(out / "train.py")),
    )
    # The spare stands by once it is placed, like the two.
    _step(other, beyond=100)
    figure = _pod_lost(other, 10.0, "a spare in its place")
    (other / "stop").touch()
    _lockstep(out, "wait", "spared")
    return figure


def _pod_lost(out: Path, limit: float, how: str = "from the peer's memory") -> Figure:
    """Kill the launcher of rank 1, its memory with it; measure how long the next step takes."""
    before = _step(out, beyond=100)
    launcher = _step(out, beyond=before.number - 1, rank=1).launcher
    killed = time.time()
    os.kill(launcher, signal.SIGKILL)
    at = _goes_on(out, before)
    what = f"training: launcher and memory killed to next step, {how}"
    return Figure(what, at - killed, "s", "lower", limit)


@contextmanager
def _control_plane(out: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "lockstep", "up", "--data", str(out / "data"), "--port", "0"]
    with (out / "up.log").open("w") as log:
        up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert up.stdout is not None
        assert up.stdout.readline().startswith("ready"), (out / "up.log").read_text()
        yield
    finally:
        up.terminate()
        up.wait(60)


def _lockstep(out: Path, *arguments: str) -> None:
    env = {**os.environ, "KUBECONFIG": str(out / "data" / "kubeconfig")}
    command = [sys.executable, "-m", "lockstep", *arguments]
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL, timeout=60)


def _killed(out: Path) -> Figure:
    """Kill rank 0 and measure how long it takes to its next step, beside torch's import."""
    took = []
    for _ in range(KILLS):
        before = _step(out, beyond=0)
        # A step is finished once both have finished it.
        _step(out, beyond=before.number - 1, rank=1)
        killed = time.time()
        os.kill(before.pid, signal.SIGKILL)
        took.append(_goes_on(out, before) - killed)
    imports = _median_of_imports()
    return Figure(
        "training: rank killed to next step (bar: torch's import + 2 s)",
        statistics.median(took),
        "s",
        "lower",
        limit=imports + 2.0,
    ).beside("torch's import", imports)


def _median_of_imports() -> float:
    command = [sys.executable, "-c", "import torch.distributed"]
    seconds = []
    for _ in range(KILLS):
        start = time.perf_counter()
        subprocess.run(command, check=True)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


class _Step(NamedTuple):
    """What a rank writes after each step."""

    number: int
    pid: int
    at: float
    launcher: int
    start: int
    """The step that the process went on from."""


def _goes_on(out: Path, before: _Step) -> float:
    """Return when rank 0 did its first step beyond *before* in another process.

    Raises:
        AssertionError: where steps were done again, which the time would then hold.
    """
    after = _step(out, beyond=0, other_than=before.pid)
    if after.start < before.number:
        raise AssertionError(f"went on from step {after.start}, {before.number} were done")
    return _step(out, beyond=before.number, other_than=before.pid).at


def _step(out: Path, *, beyond: int, other_than: int = 0, rank: int = 0) -> _Step:
    """Return what a rank wrote once it is *beyond* a step."""
    there = out / f"step-{rank}"
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        words = there.read_text().split() if there.exists() else []
        if len(words) == len(_Step._fields):
            number, pid, at, launcher, start = words
            found = _Step(int(number), int(pid), float(at), int(launcher), int(start))
            if found.number > beyond and found.pid != other_than:
                return found
        time.sleep(0.01)
    raise AssertionError(f"no step after {beyond} in {out}")


def _launcher(out: Path) -> list[Figure]:
    """Look at the launcher of rank 0 while its ranks run."""
    pid = _step(out, beyond=0).launcher
    before = _ticks(pid)
    time.sleep(IDLE_SECONDS)
    busy = (_ticks(pid) - before) / os.sysconf("SC_CLK_TCK") / IDLE_SECONDS
    status = Path(f"/proc/{pid}/status").read_text()
    resident = int(status.split("VmRSS:")[1].split()[0]) / 1024
    shared = int(status.split("RssShmem:")[1].split()[0]) / 1024
    return [
        Figure("training: a launcher's own memory", resident - shared, "MB", "lower", 30.0),
        Figure("training: a launcher's share of a core", 100 * busy, "%", "lower", 0.5),
    ]


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
