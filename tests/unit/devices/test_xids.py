"""Xids of cards: kept over restarts, shown with their series, ended by a reset or a check."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.stub_gpus import StubGpus, two

from lockstep.api.node_health import CheckResult
from lockstep.devices.core.model import Card
from lockstep.devices.watching import _with
from lockstep.devices.xids import FATAL, Told, Xids
from lockstep.health.returning import sound


def xids(tmp_path: Path, boot: str = "b1") -> Xids:
    (tmp_path / "boot_id").write_text(f"{boot}\n")
    return Xids(tmp_path / "kept/xids.json", tmp_path / "boot_id")


@pytest.mark.parametrize(
    ("codes", "told"),
    [
        ([], Told()),
        ([43], Told(43, 1)),
        ([94], Told(94, 1, 94)),
        ([94, 43], Told(43, 2, 94)),
        ([94, 79], Told(79, 2, 79)),
    ],
)
def test_a_restart_keeps_what_a_card_told(tmp_path: Path, codes: list[int], told: Told) -> None:
    before = xids(tmp_path)
    for code in codes:
        before.add("GPU-1", code)
    assert before.of("GPU-1") == xids(tmp_path).of("GPU-1") == told
    assert xids(tmp_path).of("GPU-2") == Told()
    assert bool(told.trouble) == bool(FATAL & set(codes))


def test_a_boot_resets_all_cards(tmp_path: Path) -> None:
    xids(tmp_path).add("GPU-1", 94)
    assert xids(tmp_path, "b2").of("GPU-1") == Told()


def test_a_cleared_card_is_free_and_its_count_stays(tmp_path: Path) -> None:
    before = xids(tmp_path)
    before.add("GPU-1", 94)
    before.add("GPU-2", 79)
    before.clear(["GPU-1", "GPU-9"])
    after = xids(tmp_path)
    assert (after.of("GPU-1"), after.of("GPU-2").trouble) == (Told(94, 1), "Xid 79")


@pytest.mark.parametrize("text", ["", "{", '{"cards": {"GPU-1": 94}}', '{"boot": 7}'])
def test_a_file_that_cannot_be_read_is_said(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/xids.json").write_text(text)
    found = xids(tmp_path)
    assert "xids.json is not used" in caplog.text
    found.add("GPU-1", 94)
    assert xids(tmp_path).of("GPU-1").trouble == "Xid 94"


def test_a_file_that_cannot_be_written_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "kept").write_text("a file in the way")
    found = xids(tmp_path)
    found.add("GPU-1", 94)
    assert found.of("GPU-1").trouble == "Xid 94"
    assert "xids.json cannot be written" in caplog.text


@pytest.mark.parametrize(
    ("results", "devices"),
    [
        ([], set()),
        ([("matmul", "ok", "gpu/0"), ("memory", "ok", "gpu/0")], {"gpu/0"}),
        ([("matmul", "ok", "gpu/0"), ("memory", "failed", "gpu/0")], set()),
        ([("matmul", "skipped", "gpu/0"), ("disk", "ok", "")], set()),
    ],
)
def test_a_device_is_sound_that_passed_and_failed_none(
    results: list[tuple[str, str, str]], devices: set[str]
) -> None:
    assert sound([CheckResult(*one) for one in results]) == devices  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cards", "left"),
    [
        ([Card(0, "GPU-0"), Card(1, trouble="lost")], ["GPU-0", "GPU-1"]),
        ([Card(0, "GPU-0")], ["GPU-0", "GPU-1"]),
        ([Card(0, "GPU-0"), Card(1, "GPU-2")], ["GPU-0", "GPU-2"]),
        ([Card(1, vendor="amd")], ["", "GPU-1"]),
    ],
    ids=["nameless", "gone", "another at its index", "another vendor"],
)
def test_a_lost_card_keeps_its_identity(cards: list[Card], left: list[str]) -> None:
    assert [one.uuid for one in _with(cards, Card(1, "GPU-1"))] == left


WATCH = """
import asyncio, contextlib, json, sys
from pathlib import Path
from lockstep.devices.watching import Watch
from lockstep.devices.xids import Xids

def shown(watch):
    return [[c.trouble, s.values.get("xid"), s.values.get("xid_count"), "power" in s.values]
            for c, s in watch.samples()]

async def main(kept, steps):
    watch = Watch(xids=Xids(Path(kept)))
    changed = asyncio.Event()
    watch.subscribe(changed.set)
    await watch.start()
    running = asyncio.ensure_future(watch.run())
    await watch.sampled.wait()
    for step in steps:
        if step == "await":
            # An Xid from before NVML was asked for events is told to no program: it comes again.
            while not any(card.trouble for card in watch.inventory.cards):
                changed.clear()
                print("ready", flush=True)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), 3)
        elif step == "clear":
            watch.cleared({"gpu/0"})
        print(json.dumps(shown(watch)), flush=True)
    running.cancel()

asyncio.run(main(sys.argv[1], sys.argv[2:]))
"""


def watched(gpus: StubGpus, kept: Path, *steps: str, xid: int = 0) -> list[list[list[object]]]:
    with subprocess.Popen(
        [sys.executable, "-c", WATCH, str(kept), *steps],
        env={**os.environ, **gpus.environment()},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            if line == "ready\n":
                gpus.xid(0, xid)
            else:
                lines.append(json.loads(line))
    assert process.returncode == 0
    return lines


def test_series_of_a_card_stay_with_its_last_error(tmp_path: Path) -> None:
    gpus = StubGpus(tmp_path / "gpus")
    gpus.update(two())
    kept, sound_card = tmp_path / "xids.json", ["", 0, 0, True]
    before, after = watched(gpus, kept, "look", "await", xid=94)
    assert before == [sound_card, sound_card]
    count = after[0][2]
    assert count
    assert after == [["Xid 94", 94, count, True], sound_card]
    gpus.update({key: None for key in gpus.values if key.startswith("event.")})
    again, cleared = watched(gpus, kept, "look", "clear")
    assert again == after
    assert cleared == [["", 94, count, True], sound_card]
    assert watched(gpus, kept, "look") == [cleared]
