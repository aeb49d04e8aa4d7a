"""What a launcher tells at once, and what of its ranks' states it has stored for all."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import stretched

from lockstep.train import run
from lockstep.train.place import Place
from lockstep.train.telemetry import Reading


def test_the_first_step_of_each_generation_is_reported_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = Place("default", "w-0", "u", "", "w-world", 0, 1, "s:1", tmp_path)
    monkeypatch.setattr(run, "runtime_directory", lambda: tmp_path)
    monkeypatch.setattr(run, "LOOK_EVERY", 0.001)
    launcher = run.Launcher(place, ["python", "train.py"])
    steps, looks, told = [0], threading.Semaphore(0), []

    def read(_: int) -> dict[int, Any]:
        looks.release()
        return {0: Reading(steps[0], 0.0, 0.0, 1, 0, False, ())}

    monkeypatch.setattr(launcher.meters, "read", read)
    monkeypatch.setattr(launcher, "_import_ahead", lambda: None)
    monkeypatch.setattr(launcher, "_tell", lambda: told.append(launcher.member.generation))

    def look() -> None:
        # One that had begun, and a whole one.
        for _ in range(3):
            assert looks.acquire(timeout=stretched(20))

    threading.Thread(target=launcher._look, daemon=True).start()
    look()
    assert told == []
    for generation in (1, 2):
        steps[0] = 0
        launcher.member.generation, launcher.member.state = generation, "Running"
        look()
        assert told == list(range(1, generation))
        steps[0] = 1
        look()
        assert told == list(range(1, generation + 1))
        launcher.member.state = "Ready"


@pytest.mark.parametrize("alike", [True, False])
def test_own_parts_that_differ_are_stored_for_each_rank(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, alike: bool
) -> None:
    place = Place("default", "w-0", "u", "", "w-world", 0, 1, "s:1", tmp_path)
    monkeypatch.setattr(run, "runtime_directory", lambda: tmp_path)
    launcher = run.Launcher(place, ["python", "train.py"])
    monkeypatch.setattr(launcher, "_act", lambda _: None)
    world = {"generation": 1, "phase": "Gather", "replicated": True, "alike": alike}
    world |= {"parts": [{"role": "w", "pods": 1, "processes": 1}]}
    launcher._on_world({"data": {"world": json.dumps(world)}})
    assert launcher.saving.replicated == alike
