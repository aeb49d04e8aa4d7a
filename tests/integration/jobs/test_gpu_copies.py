"""A GPU's state is copied into pinned memory beside the next step, whole and within its bars."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from lockstep.train.memory import Counter, Memory

pytestmark = [pytest.mark.gpu, pytest.mark.torch, pytest.mark.timeout(600)]

SIZE, TENSORS, STEPS = 8 << 30, 64, 20
HELD, PINNING, RATE, SLOWER = 0.005, 5.0, 0.85, 0.02


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    kept = Memory()
    counter = Counter(tmp_path, kept)
    threading.Thread(target=counter.serve, daemon=True).start()
    monkeypatch.setenv("LOCKSTEP_SOCKET", counter.path)
    yield kept
    counter.close()


def trained() -> tuple[Any, Any, Any]:
    """Return parameters on the GPU, what steps them, and what keeps them."""
    import torch

    from lockstep.train.checkpointer import Checkpointer

    count = SIZE // TENSORS // 4
    params = [torch.nn.Parameter(torch.ones(count, device="cuda")) for _ in range(TENSORS)]
    optimizer = torch.optim.SGD(params, lr=1.0)

    class Model:
        def state_dict(self) -> Any:
            return {str(number): param.detach() for number, param in enumerate(params)}

        def load_state_dict(self, state: Any) -> None: ...

    return params, optimizer, Checkpointer(model=Model(), optimizer=optimizer)


def busy(seconds: float) -> None:
    """Keep the GPU busy for about so long, as passes do."""
    import torch

    left = torch.randn(4096, 4096, device="cuda")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        left @ left
        torch.cuda.synchronize()


def test_the_copy_predates_the_next_step_and_keeps_its_bars(memory: Memory) -> None:
    import torch

    params, optimizer, ckpt = trained()
    began = time.perf_counter()
    ckpt.step(1)
    ckpt._copier.wait()
    first = time.perf_counter() - began
    for param in params:
        param.grad = torch.ones_like(param)
    held, usual, kept = [], [], []
    for number in range(2, 2 + 2 * STEPS):
        torch.cuda.synchronize()
        began = time.perf_counter()
        if number % 2:
            ckpt.step(number)
            held.append(time.perf_counter() - began)
        busy(1.0)
        optimizer.step()
        torch.cuda.synchronize()
        (kept if number % 2 else usual).append(time.perf_counter() - began)
    ckpt._copier.wait()
    last = 2 * STEPS + 1
    found = memory.find(last)
    assert found is not None
    segment, whole = found
    at = segment.start(whole.slot) + whole.data
    values = torch.frombuffer(segment.map, dtype=torch.float32, count=1 << 20, offset=at)
    # Before its step every parameter had been stepped so often.
    assert torch.equal(values, torch.full_like(values, 1.0 - (last - 2)))
    assert first < PINNING + SIZE / 1e9, f"first copy with pinning: {first:.1f} s"
    assert max(held) < HELD, f"held for {1000 * max(held):.1f} ms"
    slower = statistics.median(kept) / statistics.median(usual) - 1
    assert slower < SLOWER, f"{100 * slower:.1f} % slower"


def test_the_copy_is_nearly_as_fast_as_cuda_copies(memory: Memory) -> None:
    import torch

    params, _, ckpt = trained()
    ckpt.step(1)
    ckpt._copier.wait()
    began = time.perf_counter()
    ckpt.step(2)
    ckpt._copier.wait()
    ours = time.perf_counter() - began
    target = torch.empty(params[0].numel(), pin_memory=True)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for param in params:
        target.copy_(param.detach(), non_blocking=True)
    torch.cuda.synchronize()
    assert (time.perf_counter() - began) / ours > RATE
