"""What a rank tells of itself without a change of its code: steps, waits for data, its threads.

Loaded by its file in the rank's own Python (``site/sitecustomize.py``), so that it imports the
standard library alone. Once the program has imported torch, the end of each optimizer step and the
data loader's waits are noted in a small file that the launcher reads; torch's worker server, which
tells the rank's stacks and its collectives, listens on a Unix socket beside it.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import math
import mmap
import os
import struct
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RING = 128
"""Steps whose times are kept."""
_HEAD = struct.Struct("<QQddQQ")
"""Sequence, steps, end of the last one, begin of the program, process, GPU memory in bytes."""
_SEQUENCE = struct.Struct("<Q")
_STEP = struct.Struct("<ddd")
"""Seconds of a step, of those what was waited for data, and the last loss that was known."""
_NO_LOSS = -math.inf
_RING_AT = 64
_BEGUN_AT = 48
_BEGUN = struct.Struct("<q")
"""Steps that the program's state held when it began."""
_SERVED_AT = 56
SIZE = _RING_AT + RING * _STEP.size
_LONGEST_SOCKET = 107
_MEMORY_EVERY = 16
"""Steps between two looks at the GPU's memory."""


def meter_path(directory: str, generation: int, local: int) -> str:
    """Return the file in which the rank *local* of *generation* notes its steps."""
    return str(Path(directory) / f"rank-{generation}-{local}.meter")


def server_path(directory: str, generation: int, local: int) -> str:
    """Return the socket of the rank's worker server."""
    return str(Path(directory) / f"rank-{generation}-{local}.sock")


class Meter:
    """The figures of one rank in a file that is mapped: the rank writes, the launcher reads."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    @classmethod
    def open(cls, fd: int) -> Meter:
        """Return the meter in the file *fd*, of ``SIZE`` bytes."""
        return cls(mmap.mmap(fd, SIZE))

    def start(self, now: float) -> None:
        """Note that the program has begun at *now*, on the monotonic clock."""
        _HEAD.pack_into(self._memory, 0, 0, 0, 0.0, now, os.getpid(), 0)

    def served(self) -> None:
        """Note that the worker server listens."""
        self._memory[_SERVED_AT] = 1

    def begun(self, steps: int) -> None:
        """Note how many steps the state held before the first of this program."""
        _BEGUN.pack_into(self._memory, _BEGUN_AT, steps)

    def step(
        self, now: float, seconds: float, waited: float, memory: int, loss: float = _NO_LOSS
    ) -> None:
        """Note a step that ended at *now*."""
        sequence, steps, _, began, pid, _ = _HEAD.unpack_from(self._memory, 0)
        _SEQUENCE.pack_into(self._memory, 0, sequence + 1)
        at = _RING_AT + steps % RING * _STEP.size
        _STEP.pack_into(self._memory, at, seconds, waited, loss)
        _HEAD.pack_into(self._memory, 0, sequence + 1, steps + 1, now, began, pid, memory)
        _SEQUENCE.pack_into(self._memory, 0, sequence + 2)

    def read(self) -> Reading:
        """Return what is noted; it may be that of a moment ago while a step is being noted."""
        for _ in range(100):
            raw = bytes(self._memory[:SIZE])
            after = _SEQUENCE.unpack_from(self._memory, 0)[0]
            sequence, steps, last, began, pid, memory = _HEAD.unpack_from(raw, 0)
            if sequence == after and sequence % 2 == 0:
                break
        count = min(int(steps), RING)
        begin = int(steps) - count
        places = [_RING_AT + i % RING * _STEP.size for i in range(begin, int(steps))]
        kept = [_STEP.unpack_from(raw, place) for place in places]
        # The first one has no begin.
        pairs = [(seconds, waited) for seconds, waited, _ in kept if seconds > 0]
        losses = [loss for _, _, loss in kept]
        served = bool(raw[_SERVED_AT])
        begun = int(_BEGUN.unpack_from(raw, _BEGUN_AT)[0])
        return Reading(int(steps), last, began, int(pid), int(memory), served, pairs, losses, begun)


@dataclass(frozen=True)
class Reading:
    """What a meter shows."""

    steps: int
    last: float
    """End of the last step, on the monotonic clock."""
    began: float
    pid: int
    memory: int
    served: bool
    kept: Sequence[tuple[float, float]]
    """Seconds of the last steps, and of those what was waited for data; the first is the oldest."""
    losses: Sequence[float] = ()
    """The loss of each of the last ``RING`` steps, or what was known of it by then."""
    begun: int = 0
    """Steps that the program's state held before its first."""

    @property
    def data(self) -> float:
        """Share of the last steps' time that was waited for data."""
        total = sum(seconds for seconds, _ in self.kept)
        return sum(waited for _, waited in self.kept) / total if total else 0.0

    def quantile(self, share: float) -> float:
        """Return the seconds that *share* of the last steps took at most; 0 without steps."""
        ordered = sorted(seconds for seconds, _ in self.kept)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def observe(env: Mapping[str, str]) -> None:
    """Note what this process does, if it is the rank that *env* describes and no child of it."""
    directory = env["LOCKSTEP_TELEMETRY"]
    which = directory, int(env["LOCKSTEP_GENERATION"]), int(env.get("LOCAL_RANK", "0"))
    fd = os.open(meter_path(*which), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Processes that the rank starts inherit its variables; the first that runs is the rank.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return
    os.ftruncate(fd, SIZE)
    meter = Meter.open(fd)
    meter.start(time.monotonic())
    watch = _Watch(meter, server_path(*which))
    watch.saves = _own_saves(env, watch)
    # The file stays open: with it goes the lock.
    watch.fd = fd
    if "torch" in sys.modules:
        # Of a rank that was forked.
        watch.torch_there(sys.modules["torch"])
    else:
        sys.meta_path.insert(0, _WhenImported("torch", watch.torch_there))


class _WhenImported(importlib.abc.MetaPathFinder):
    """Calls a function with a module once that has been imported."""

    def __init__(self, name: str, then: Callable[[Any], None]) -> None:
        self._name, self._then = name, then

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find nothing, but wait for the end of the module's import."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        run, then = spec.loader.exec_module, self._then

        def run_and_tell(module: Any) -> None:
            run(module)
            try:
                then(module)
            except Exception as error:
                sys.stderr.write(f"lockstep: this rank has no telemetry: {error}\n")

        spec.loader.exec_module = run_and_tell  # type: ignore[method-assign]
        return spec


class _Watch:
    """What is observed in the program."""

    def __init__(self, meter: Meter, socket: str) -> None:
        self._meter, self._socket = meter, socket
        self._optimizer: Callable[[], Any] = lambda: None
        self._last, self._waited, self._steps, self._memory = 0.0, 0.0, 0, 0
        self._torch: Any = None
        self._server: Any = None
        self._losses = _Losses()
        self._begun = 0
        self._capture: Any = None
        self.saves: Any = None
        self.fd = -1

    def torch_there(self, torch: Any) -> None:
        """Put the hooks into *torch*, which has just been imported."""
        self._torch = torch
        # By their names: torch hides some of its modules behind functions of the same name.
        optimizers = importlib.import_module("torch.optim.optimizer")
        optimizers.register_optimizer_step_post_hook(self._stepped)
        self._losses.watch(torch)
        self.saves.watch(torch)
        loaders = importlib.import_module("torch.utils.data.dataloader")
        self._time_loader(loaders._BaseDataLoaderIter)
        self._serve(torch)
        if os.environ.get("LOCKSTEP_SOCKET") and os.environ.get("LOCKSTEP_CAPTURE") != "off":
            self._capture = _capture().Capture(os.environ, lambda: int(self.saves.loaded))

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self._capture is not None:
            self._capture.any_stepped()
        first = self._optimizer()
        if first is None:
            self._optimizer = weakref.ref(optimizer)
        elif first is not optimizer:
            # A program with several optimizers steps as often as the first of them.
            return
        if self._capture is not None and self._capture.stepped(self._losses.known()):
            return
        now = time.monotonic()
        if self._steps % _MEMORY_EVERY == 1 and self._torch.cuda.is_initialized():
            self._memory = int(self._torch.cuda.max_memory_reserved())
        if not self._steps:
            self._begun = self._held(optimizer)
            self._meter.begun(self._begun)
        seconds = now - self._last if self._last else 0.0
        self._meter.step(now, seconds, self._waited, self._memory, self._losses.known())
        self._last, self._waited, self._steps = now, 0.0, self._steps + 1

    def at(self) -> int:
        """Return how many steps the program's state holds now."""
        return self._begun + self._steps if self._steps else int(self.saves.loaded)

    def _held(self, optimizer: Any) -> int:
        """Return how many steps the state held before the first, which has just been made."""
        if self._capture is not None and self._capture.begun:
            return int(self._capture.begun)
        ours = sys.modules.get("lockstep.train.checkpointer")
        if ours is not None and ours.Checkpointer.made:
            return int(os.environ.get("LOCKSTEP_RESUME") or 0)
        # Adam and its kin count their steps; of others the loaded file tells.
        kept = (one.get("step") for one in optimizer.state.values() if isinstance(one, dict))
        steps = max((int(one) for one in kept if one is not None), default=0)
        return max(steps - 1, int(self.saves.loaded))

    def _time_loader(self, iterator: Any) -> None:
        following, watch = iterator.__next__, self

        def timed(loader: Any) -> Any:
            began = time.monotonic()
            try:
                return following(loader)
            finally:
                watch._waited += time.monotonic() - began

        iterator.__next__ = timed

    def _serve(self, torch: Any) -> None:
        if not torch.distributed.is_available() or len(self._socket) > _LONGEST_SOCKET:
            return
        server = getattr(torch._C._distributed_c10d, "_WorkerServer", None)
        if server is None:
            return
        with _silent():
            self._server = server(self._socket)
        self._meter.served()
        atexit.register(self._end)

    def _end(self) -> None:
        with _silent():
            self._server.shutdown()


def _capture() -> Any:
    """Return the module that keeps programs, whether this Python has Lockstep installed or not."""
    if importlib.util.find_spec("lockstep") is None:
        home = Path(__file__).resolve().parents[1]
        spec = importlib.util.spec_from_file_location(
            "lockstep", home / "__init__.py", submodule_search_locations=[str(home)]
        )
        if spec is None or spec.loader is None:
            raise ImportError(str(home))
        package = sys.modules["lockstep"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(package)
    return importlib.import_module("lockstep.train.capture")


def _own_saves(env: Mapping[str, str], watch: _Watch) -> Any:
    """Return what marks the files that the program saves."""
    path = Path(__file__).resolve().parent / "own_saves.py"
    spec = importlib.util.spec_from_file_location("_lockstep_own_saves", path)
    if spec is None or spec.loader is None:
        raise ImportError(str(path))
    module = sys.modules["_lockstep_own_saves"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    job = f"{env.get('LOCKSTEP_NAMESPACE', '')}/{env.get('LOCKSTEP_WORLD', '')}"
    notes = Path(env["LOCKSTEP_TELEMETRY"]) / f"saves-{env.get('LOCAL_RANK', '0')}.json"
    return module.OwnSaves(job, watch.at, notes)


class _Losses:
    """The loss that the program calls ``backward`` on; never waits for a device.

    Where losses are scaled for half precision, it is the one before that.
    """

    def __init__(self) -> None:
        self._loss = _NO_LOSS
        self._scaled = False
        self._copy: Any = None
        self._copied: Any = None
        self._torch: Any = None

    def watch(self, torch: Any) -> None:
        """Take note of the losses of *torch*'s tensors and scalers."""
        self._torch, losses = torch, self
        backward = torch.Tensor.backward

        def noted(tensor: Any, *args: Any, **options: Any) -> Any:
            if not losses._scaled:
                losses.note(tensor)
            return backward(tensor, *args, **options)

        torch.Tensor.backward = noted
        scaler = getattr(getattr(torch, "amp", None), "GradScaler", None)
        if scaler is None:
            return
        scale = scaler.scale

        def scaled(one: Any, outputs: Any) -> Any:
            if one.is_enabled() and isinstance(outputs, torch.Tensor):
                losses._scaled = True
                losses.note(outputs)
            return scale(one, outputs)

        scaler.scale = scaled

    def note(self, tensor: Any) -> None:
        """Keep the value of a loss, or begin to copy it from its device."""
        # After any error here the user's step goes on; its loss is then not known.
        with contextlib.suppress(Exception):
            if tensor.numel() != 1 or tensor.device.type not in ("cpu", "cuda"):
                return
            if tensor.device.type == "cpu":
                self._loss = float(tensor.detach())
                return
            self._look()
            if self._copied is not None:
                return
            if self._copy is None:
                self._copy = self._torch.empty(1, dtype=self._torch.float32, pin_memory=True)
            self._copy.copy_(tensor.detach().reshape(1), non_blocking=True)
            self._copied = self._torch.cuda.Event()
            self._copied.record()

    def known(self) -> float:
        """Return the last loss that is known."""
        # An error of the device is the user's to meet in their own step, not in this look.
        with contextlib.suppress(Exception):
            self._look()
        return self._loss

    def _look(self) -> None:
        if self._copied is not None and self._copied.query():
            self._copied = None
            self._loss = float(self._copy[0])


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Keep what the worker server says of itself off standard error, which is the user's."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)
