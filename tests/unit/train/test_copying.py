"""What an optimizer owns is copied beside the next step's passes, and never torn."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from lockstep.train.memory import Counter, Memory

if find_spec("torch") is None:
    pytest.skip("needs torch (the train extra)", allow_module_level=True)

import torch

from lockstep.train import copying
from lockstep.train.checkpointer import Checkpointer
from lockstep.train.copying import Copier

SIZE = 64


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """A launcher's memory for a rank in this process; its copies are all worth a thread."""
    kept = Memory()
    counter = Counter(tmp_path, kept)
    threading.Thread(target=counter.serve, daemon=True).start()
    monkeypatch.setenv("LOCKSTEP_SOCKET", counter.path)
    monkeypatch.setattr(copying, "LEAST_BYTES", 1)
    yield kept
    counter.close()


class Held:
    """Holds the thread of a copy until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.begun = threading.Event()
        real = threading.Thread.run

        def run(thread: Any) -> None:
            if thread.name == "lockstep-copy":
                self.begun.set()
                self.go.wait(60)
            real(thread)

        monkeypatch.setattr(threading.Thread, "run", run)


def weights(memory: Memory, step: int) -> set[float]:
    """Return the values of all floats of a copy that are no state of random numbers."""
    found = memory.find(step)
    assert found is not None
    segment, whole = found
    start = segment.start(whole.slot) + whole.data + whole.size - segment.split.shared
    values = torch.frombuffer(bytearray(segment.read(start, 4 * SIZE)), dtype=torch.float32)
    return set(values.tolist())


def trained() -> tuple[torch.nn.Parameter, torch.optim.Optimizer, Checkpointer]:
    param = torch.nn.Parameter(torch.ones(SIZE))
    optimizer = torch.optim.SGD([param], lr=1.0)

    class Model:
        def state_dict(self) -> Any:
            return {"weight": param.detach()}

        def load_state_dict(self, state: Any) -> None: ...

    return param, optimizer, Checkpointer(a=Model(), optimizer=optimizer)


def test_the_next_optimizer_step_waits_for_the_copy(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    param, optimizer, ckpt = trained()
    held = Held(monkeypatch)
    ckpt.step(1)
    assert memory.find(1) is None, "it goes on beside the program"
    param.grad = torch.ones(SIZE)
    stepping = threading.Thread(target=optimizer.step)
    stepping.start()
    assert held.begun.wait(60)
    assert param[0].item() == 1.0
    held.go.set()
    stepping.join()
    assert param[0].item() == 0.0
    assert weights(memory, 1) == {1.0}
    ckpt.step(2)
    optimizer.step()
    assert weights(memory, 2) == {0.0}


def test_a_parameter_changed_by_hand_invalidates_the_copy(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    param, optimizer, ckpt = trained()
    held = Held(monkeypatch)
    ckpt.step(1)
    with torch.no_grad():
        param.clamp_(max=0.5)
    held.go.set()
    optimizer.step()
    assert memory.find(1) is None
    assert "changed outside of optimizer.step" in capsys.readouterr().err
    ckpt.step(2)
    assert weights(memory, 2) == {0.5}, "at once from now on"


def test_what_no_optimizer_owns_is_copied_at_once() -> None:
    param, optimizer, _ = trained()
    other = torch.ones(SIZE)
    free = copying.owned([optimizer])
    pairs = [(torch.empty(SIZE), param.detach()), (torch.empty(SIZE), other)]
    copier = Copier()
    small, none = copier.split(pairs, free)
    assert (len(small), len(none)) == (2, 0), "too little for a thread"
