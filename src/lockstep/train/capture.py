"""A program without a line of ours is kept at each step, and goes on where it was.

Its modules, optimizers and scalers are found among the objects of the process (``found``) and kept
by a :class:`Checkpointer`, with a tape of what the program read out of its tensors (``winding``).
After a fault the program is wound forward to its step, and takes on what was kept. That this is all
that it had is proved: it takes on the step before, makes one step, and must come to the same bits.
Where it does not, the program begins anew and says what stood in the way.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from lockstep.train.checkpointer import Checkpointer, CheckpointLost
from lockstep.train.copying import address
from lockstep.train.found import Attributes, Loose, parts
from lockstep.train.memory import ask, free_memory
from lockstep.train.state import NotPlain, take_apart
from lockstep.train.tape import LONGEST, Diverged, Numbers, Tape, put
from lockstep.train.winding import Reels

LINES = """from lockstep.train import Checkpointer
    ckpt = Checkpointer(model=model, optimizer=optimizer)
    for step in range(ckpt.restore(), steps): ...; ckpt.step(step + 1)"""
_BESIDE = ("tape", "loose", "numbers", "attributes")
_COPIES = 2
"""How often the state lies in memory: a whole copy, and the one that is being written."""
_LOOKS = (1, 2, 16, 256, 4096)
"""Steps at which objects are looked for that were made meanwhile."""


class Capture:
    """Keeps and restores the program of this rank."""

    def __init__(self, env: Mapping[str, str], loaded: Callable[[], int]) -> None:
        """Begin with the program; *loaded* tells the step of a file that it has loaded itself."""
        self._socket, self._local = env["LOCKSTEP_SOCKET"], int(env.get("LOCAL_RANK", "0"))
        self._whose = [int(env.get("RANK", "0")), int(env.get("WORLD_SIZE", "1"))]
        self._resume = int(env.get("LOCKSTEP_RESUME") or 0)
        self._loaded = loaded
        losses = json.loads(env.get("LOCKSTEP_LOSSES") or "{}")
        self._losses: dict[str, float] = losses.get(str(self._local), {})
        """By step, the loss of those that ended last before this program began."""
        self._steps = 0
        self.begun = 0
        """The step that the program went on from."""
        self._tape = Tape()
        self._tape.begin["whose"] = self._whose
        self._reels = Reels(self._tape)
        self._loose = Loose(None, set())
        self._keeper: _Keeper | None = None
        self._quiet = _Quiet()
        if self._resume:
            self._wind()

    @property
    def live(self) -> bool:
        """Whether the program is kept, or being restored."""
        return self._reels.live

    def stepped(self, loss: float) -> bool:
        """Follow a step of the optimizer; say whether it was made before and only wound.

        *loss* is that of the step.
        """
        if not self.live:
            return False
        self._steps += 1
        self._loose.frame = sys._getframe(1)
        try:
            if self._reels.winding:
                self._wound()
                return True
            if self._steps == self.begun + 1 > 1:
                self._prove(loss)
            self._keep()
        except (NotPlain, MemoryError, OSError) as error:
            self._stop(str(error))
        except (Diverged, CheckpointLost, KeyError, RuntimeError, ValueError) as error:
            self._give_up(f"{type(error).__name__}: {error}")
        finally:
            self._loose.frame = None
        return False

    def any_stepped(self) -> None:
        """Note that some optimizer has stepped."""
        self._reels.stepped()

    def _stop(self, why: str = "") -> None:
        """Keep nothing from now on; without a *why* there is nothing to say of it."""
        self._reels.live = False
        self._keeper = None
        if why:
            _say(f"nothing is kept of this program: {why}; to have it kept, add\n    {LINES}")

    def _keep(self) -> None:
        if Checkpointer.made:
            self._stop()
            return
        if self._tape.count * 8 > LONGEST:
            self._stop("it reads too many numbers out of its tensors")
            return
        if self._keeper is None or self._steps in _LOOKS:
            self._look()
        if self._steps == 1:
            self._tape.begin["loaded"] = self._loaded()
        if self._keeper is not None:
            self._keeper.step(self._steps)

    def _look(self) -> None:
        """Find what the program consists of, and say it at first."""
        found = parts()
        if self._keeper is not None and self._keeper.keeps(found):
            return
        first = self._keeper is None and not self._resume
        beside: dict[str, Any] = {"tape": self._tape, "loose": self._loose}
        beside |= {"numbers": Numbers(), "attributes": Attributes(found)}
        self._keeper = _Keeper(**found, **beside)
        state = {name: part.state_dict() for name, part in found.items()}
        kept = take_apart(state, torch.is_tensor)[1]
        self._loose._taken = {address(one) for one in kept.values()}
        if first:
            _spared(_COPIES * sum(one.nbytes for one in kept.values()))
        if first and self._whose[0] == 0:
            names = ", ".join(name.partition("-")[2] for name in found)
            _say(f"keeps {names} of this program at each step (off: --no-capture)")

    def _wind(self) -> None:
        """Have the program run up to its step without its tensors."""
        try:
            state = _Keeper().peek("tape")
        except (CheckpointLost, KeyError, OSError):
            return
        rank, size = state["begin"]["whose"]
        if [rank, size] != self._whose:
            _say(f"rank {rank} of {size} was kept, and this is {self._whose}: it begins anew")
            return
        self._tape.load_state_dict(state)
        self._tape.at = 0
        put(self._tape.begin)
        self._reels.near = lambda: self._steps + 8 >= self._resume
        self._reels.winding = True
        self._quiet.begin(self._failed)

    def _failed(self, why: str) -> None:
        if self._reels.winding:
            self._give_up(why)

    def _wound(self) -> None:
        last = self._steps == self._resume
        before = self._steps + 1 == self._resume
        if self._steps == 1 and self._loaded() != self._tape.begin.get("loaded"):
            raise Diverged(f"it has loaded its own checkpoint of step {self._loaded()}")
        if last or (before and self._agreed(_Keeper().has(self._steps), True)[0]):
            self._land()

    def _land(self) -> None:
        """Take on what was kept after this step."""
        wound = self._tape.at
        found = parts()
        schedules = _schedules(found)
        self._reels.winding = False
        self._look()
        if self._keeper is not None:
            self._keeper.restore(self._steps)
        self._tape.at = self._tape.count
        if wound != self._tape.count:
            raise Diverged(f"it read {wound} numbers, and {self._tape.count} the first time")
        if (now := _schedules(found)) != schedules:
            raise Diverged(f"it came to {schedules}, and to {now} the first time")
        self.begun = self._steps
        self._quiet.end()
        if self._whose[0] == 0:
            _say(
                f"this program was run again up to step {self._steps} without its tensors, in "
                f"{self._quiet.seconds:.1f} s, and goes on from there"
            )

    def _prove(self, loss: float) -> None:
        """Compare the first step that is made again with what is known of it."""
        differs, by = None, ""
        if self._keeper is not None and self._steps == self._resume:
            differs, by = self._keeper.differs(self._steps), "the same bits"
        elif (known := self._losses.get(str(self._steps))) is not None:
            differs, by = (None if known == loss else "its loss"), "the same loss"
        same, proved = self._agreed(differs is None, bool(by))
        if not proved:
            raise Diverged(f"nothing tells whether step {self._steps}, made again, is the same")
        if not same:
            where = f"{differs} differs" if differs else "another rank's state differs"
            raise Diverged(f"step {self._steps}, made again, does not give the same: {where}")
        if self._whose[0] == 0:
            _say(f"step {self._steps}, made again, gave {by or 'the same'}: the copy is whole")

    def _agreed(self, mine: bool, known: bool) -> tuple[bool, bool]:
        """Return whether all ranks say *mine*, and whether one says *known*."""
        dist = torch.distributed
        if self._whose[1] == 1:
            return mine, known
        if not dist.is_initialized():
            return False, False
        device = "cuda" if "nccl" in dist.get_backend() else "cpu"
        said = torch.tensor([int(mine), -int(known)], device=device)
        dist.all_reduce(said, dist.ReduceOp.MIN)
        every, some = self._reels.inside(said.tolist)
        return bool(every), bool(some)

    def _give_up(self, why: str) -> None:
        """End this process; the next one begins anew, and is not kept."""
        self._quiet.end()
        try:
            ask(self._socket, {"do": "forget", "local": self._local})
        finally:
            _say(
                f"this program cannot go on without a line of its own ({why}): it begins anew, or "
                f"from its own checkpoint. To go on from each step, add\n    {LINES}"
            )
            sys.stdout.flush()
            os._exit(1)


class _Keeper(Checkpointer):
    """The checkpointer of a program that has none."""

    def keeps(self, found: Mapping[str, Any]) -> bool:
        """Say whether just the objects *found* are kept."""
        mine = {name: part for name, part in self._parts.items() if name not in _BESIDE}
        return mine.keys() == found.keys() and all(mine[name] is found[name] for name in mine)

    def has(self, step: int) -> bool:
        """Say whether this rank's memory holds *step*."""
        return self._kept(step) is not None

    def differs(self, step: int) -> str | None:
        """Return the first name in which the state is not that kept after *step*."""
        return self.compare(step, ("tape", "loose", "numbers"))


class _Quiet:
    """Keeps what the program prints once more off its output, and hears of its end."""

    seconds = 0.0

    def __init__(self) -> None:
        self._kept = -1

    def begin(self, failed: Callable[[str], None]) -> None:
        """Be quiet; tell *failed* when the program ends meanwhile."""
        self._began = time.monotonic()
        sys.stdout.flush()
        self._kept = os.dup(1)
        with open(os.devnull, "w") as nothing:  # noqa: PTH123  a descriptor is wanted
            os.dup2(nothing.fileno(), 1)
        shown = sys.excepthook

        def ended(kind: Any, error: Any, trace: Any) -> None:
            shown(kind, error, trace)
            failed(f"{kind.__name__}: {error}")

        sys.excepthook = ended
        atexit.register(lambda: failed("it ended before it came to its step"))

    def end(self) -> None:
        """Let the program print."""
        if self._kept < 0:
            return
        sys.stdout.flush()
        os.dup2(self._kept, 1)
        os.close(self._kept)
        self._kept = -1
        self.seconds = time.monotonic() - self._began


def _schedules(found: Mapping[str, Any]) -> list[Any]:
    """Return what optimizers are told beside their parameters, such as the learning rate."""
    return [
        {key: value for key, value in group.items() if isinstance(value, (int, float, tuple))}
        for part in found.values()
        if isinstance(part, torch.optim.Optimizer)
        for group in part.param_groups
    ]


def _spared(size: int) -> None:
    """Leave programs that did not ask for copies at least half of the memory that is free.

    The ranks of a pod share it.

    Raises:
        MemoryError: when the copies would take more.
    """
    free = free_memory()
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if free is not None and ranks * size > free // 2:
        raise MemoryError(
            f"{_COPIES} copies of the state of {ranks} ranks take {ranks * size >> 20} MiB, more "
            f"than half of the {free >> 20} MiB that are free"
        )


def _say(text: str) -> None:
    sys.stderr.write(f"lockstep: {text}\n")
