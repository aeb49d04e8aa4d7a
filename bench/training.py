"""Training that survives: what a snapshot costs, how soon a killed rank is back, the launcher."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from bench.figure import Figure, NotMeasured

STATE_BYTES = 512 << 20
TENSORS = 64
KILLS = 3
IDLE_SECONDS = 15.0
AWAY_SECONDS = 10.0
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


BUSY = """
import io, os, statistics, sys, time, torch
from lockstep.train import Checkpointer

modes, total, tensors = sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)
params = [torch.nn.Parameter(torch.ones(total // tensors // 4)) for _ in range(tensors)]
optimizer = torch.optim.SGD(params, lr=0.1)
class Model:
    def state_dict(self): return {str(i): p.detach() for i, p in enumerate(params)}
    def load_state_dict(self, state): raise NotImplementedError
model = Model()
ckpt = Checkpointer(model=model, optimizer=optimizer)
left = torch.randn(512, 512)
def passes(count):
    for _ in range(count):
        left @ left
begin = time.perf_counter()
passes(20)
count = max(1, int(20 / (time.perf_counter() - begin)))
number, kept = 0, None
def keep(mode):
    global number, kept
    number += 1
    if mode == "ours":
        ckpt.step(number)
    elif mode == "async_save":
        import torch.distributed.checkpoint as dcp
        if kept is not None:
            kept.result()
        state = {"model": model.state_dict()}
        kept = dcp.async_save(state, checkpoint_id=f"{os.environ['OUT']}/{number % 2}")
    elif mode == "save":
        torch.save(model.state_dict(), io.BytesIO())
for mode in (*modes, *modes):
    keep(mode)
took = {mode: [] for mode in modes}
for _ in range(5):
    # In turn, so that what else the machine does falls on all alike.
    for mode in modes:
        begin = time.perf_counter()
        keep(mode)
        passes(count)
        optimizer.step()
        if mode == "async_save":
            kept.result()
        took[mode].append(time.perf_counter() - begin)
copies = [torch.empty_like(p) for p in params]
rates = []
for _ in range(3):
    begin = time.perf_counter()
    for copy, p in zip(copies, params):
        copy.copy_(p.detach())
    rates.append(time.perf_counter() - begin)
whole = []
for _ in range(3):
    begin = time.perf_counter()
    keep("ours")
    ckpt._copier.wait()
    whole.append(time.perf_counter() - begin)
told = [*(statistics.median(took[mode]) for mode in modes)]
print(*told, statistics.median(whole), statistics.median(rates))
"""


def _snapshot() -> list[Figure]:
    """Compare steps of about a second with and without a copy of the state after each."""
    one = _busy(["nothing", "ours", "async_save", "save"], 1)
    two = _busy(["nothing", "ours"], 2)
    limit = 100 * two["memcpy"] / two["nothing"] + 1
    what = f"training: snapshot of {STATE_BYTES >> 20} MB each step of 1 s"
    longer = {mode: 100 * (took / one["nothing"] - 1) for mode, took in one.items()}
    return [
        Figure(f"{what}: it is longer by", longer["ours"], "%", "lower", 3.0).beside(
            "dcp.async_save", longer["async_save"]
        ),
        Figure(f"{what}: torch.save to memory", longer["save"], "%", "lower"),
        Figure(f"{what}: one memcpy", 100 * one["memcpy"] / one["nothing"], "%", "lower"),
        Figure(f"{what}: share of memcpy's rate", one["memcpy"] / one["copy"], "", limit=0.7),
        Figure(
            f"{what}, 2 busy ranks (bar: a memcpy of both + 1 %)",
            100 * (two["ours"] / two["nothing"] - 1),
            "%",
            "lower",
            limit,
        ),
    ]


def _busy(modes: list[str], ranks: int) -> dict[str, float]:
    """Return the seconds of a step in each mode, of one copy and of one memcpy, ranks at once."""
    from lockstep.train.memory import Counter, Memory

    found = []
    with tempfile.TemporaryDirectory() as directory:
        counter = Counter(Path(directory), Memory())
        threading.Thread(target=counter.serve, daemon=True).start()
        running = []
        for rank in range(ranks):
            out = Path(directory) / f"out-{rank}"
            out.mkdir()
            env = {**os.environ, "LOCKSTEP_SOCKET": counter.path, "LOCAL_RANK": str(rank)}
            env |= {"OUT": str(out), "OMP_NUM_THREADS": "1"}
            command = [sys.executable, "-c", BUSY, ",".join(modes), str(STATE_BYTES), str(TENSORS)]
            running.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
        for process in running:
            said, _ = process.communicate()
            assert process.returncode == 0
            found.append([float(word) for word in said.split()[-len(modes) - 2 :]])
    mean = [statistics.mean(one) for one in zip(*found, strict=True)]
    return dict(zip([*modes, "copy", "memcpy"], mean, strict=True))


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


def _recovery() -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory)
        (out / "train.py").write_text(SCRIPT)
        with _control_plane(out) as up:
            _lockstep(
                out,
                *("submit", "pytorch", "--name", "bench", "--workers", "2", "--max-restarts", "99"),
                *("--env", f"OUT={out}", "--env", "OMP_NUM_THREADS=1"),
                *("--", "python", str(out / "train.py")),
            )
            figures = [_killed(out), *_launcher(out), *_alone(out, up), _pod_lost(out, 15.0)]
            figures.append(_frozen(out))
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


def _frozen(out: Path) -> Figure:
    """Freeze the launcher of rank 1 and all that it has started; measure to the next step."""
    before = _step(out, beyond=_step(out, beyond=0).number + 100)
    launcher = _step(out, beyond=before.number - 1, rank=1).launcher
    began = time.time()
    for pid in (launcher, *_below(launcher)):
        os.kill(pid, signal.SIGSTOP)
    at = _goes_on(out, before, lost=1)
    what = "training: pod frozen to next step, from the peer's memory"
    return Figure(what, at - began, "s", "lower", 30.0)


def _alone(out: Path, up: int) -> list[Figure]:
    """Kill the controllers and hold the API server for 10 s; look at the steps meanwhile."""
    parts = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in _below(up)}
    servers = [pid for pid, line in parts.items() if b"\0apiserver\0" in line]
    controllers = [pid for pid, line in parts.items() if b"\0controllers\0" in line]
    assert servers, parts
    first = _step(out, beyond=0)
    usual = _pace(out, AWAY_SECONDS)
    for pid in controllers:
        os.kill(pid, signal.SIGKILL)
    for pid in servers:
        os.kill(pid, signal.SIGSTOP)
    try:
        away = _pace(out, AWAY_SECONDS)
    finally:
        for pid in servers:
            os.kill(pid, signal.SIGCONT)
    _pace(out, AWAY_SECONDS)
    last = _step(out, beyond=0)
    what = "training: controllers killed, API server away 10 s"
    lost = 0.0 if (last.pid, last.start) == (first.pid, first.start) else float(last.number)
    return [
        Figure(f"{what}: steps done again", lost, "", "lower", 0.0),
        Figure(f"{what}: a step is longer by", 100 * (away / usual - 1), "%", "lower"),
    ]


def _pace(out: Path, seconds: float) -> float:
    """Return the seconds of a step of rank 0 in the next *seconds*."""
    before = _step(out, beyond=0)
    time.sleep(seconds)
    after = _step(out, beyond=before.number)
    return (after.at - before.at) / (after.number - before.number)


def _below(pid: int) -> list[int]:
    """Return the processes that *pid* has started, and theirs."""
    own = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(one) for path in own for one in path.read_text().split()]
    return [*children, *(one for child in children for one in _below(child))]


@contextmanager
def _control_plane(out: Path) -> Iterator[int]:
    command = [sys.executable, "-m", "lockstep", "up", "--data", str(out / "data"), "--port", "0"]
    with (out / "up.log").open("w") as log:
        up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert up.stdout is not None
        assert up.stdout.readline().startswith("ready"), (out / "up.log").read_text()
        yield up.pid
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


def _goes_on(out: Path, before: _Step, lost: int = 0) -> float:
    """Return when rank 0 did its first step beyond *before* in another process.

    Of a step under way *lost* may be done by one rank and not by the other.

    Raises:
        AssertionError: where steps were done again, which the time would then hold.
    """
    after = _step(out, beyond=0, other_than=before.pid)
    if after.start < before.number - lost:
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
