"""A real job that is slow for one seeded cause: on record, priced, shown, advised, mended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.support.control_plane import ControlPlane
from tests.support.process_node import needs_mounts
from tests.support.prometheus import Prometheus
from tests.support.stub_gpus import StubGpus, h200x8
from tests.support.waiting import eventually_sync

from lockstep.cli.up.parts import RECORDS

pytestmark = [pytest.mark.torch, pytest.mark.timeout(600)]

EXAMPLES = Path(__file__).parents[3] / "examples/insight"
JOB = (EXAMPLES / "slow.yaml").read_text()


@pytest.fixture
def plane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ControlPlane]:
    if find_spec("torch") is None:
        pytest.skip("needs torch (the train extra)")
    needs_mounts()
    gpus = StubGpus(tmp_path / "gpus")
    gpus.update(h200x8())
    for name, value in gpus.environment().items():
        monkeypatch.setenv(name, value)
    running = ControlPlane(tmp_path / "cluster").start()
    yield running
    running.stop()


def slow(*arguments: str) -> str:
    command = json.dumps(["torchrun", str(EXAMPLES / "slow.py"), *arguments])
    return JOB.replace("[torchrun, examples/insight/slow.py]", command)


def port(plane: ControlPlane, part: str) -> str:
    """Return where a part serves its metrics."""
    log = (plane.data / f"log/{part}.log").read_text()
    return re.findall(r"health and metrics on http://(\S+)", log)[-1]


def advised(plane: ControlPlane, *arguments: str) -> dict[str, Any]:
    done = plane.run("advise", "slow", "-o", "json", *arguments, timeout=280)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def cost(plane: ControlPlane) -> dict[str, Any]:
    records = str(plane.data / RECORDS)
    found: dict[str, Any] = json.loads(plane.ok("cost", "--records", records, "-o", "json"))
    return found


@pytest.mark.soak  # what it compares are times, which a busy machine changes
def test_a_slow_jobs_cause_is_proved_priced_and_mended(plane: ControlPlane, tmp_path: Path) -> None:
    plane.ok("submit", "-f", str(EXAMPLES / "prices.yaml"))
    plane.ok("submit", "-f", "-", stdin=slow())
    first = advised(plane, "--prove", "--experiments", "1", "--steps", "25", "--patience", "120")
    verdict = first["verdicts"][0]
    assert verdict["cause"] == "few-workers"
    assert verdict["proved"] is True
    assert verdict["line"].endswith("time.sleep(0.02)")
    assert verdict["moneyPerDay"]["amount"] > 0
    assert verdict["gainOfClone"] == pytest.approx(verdict["gain"], abs=0.2)

    scraping = Prometheus(tmp_path / "prometheus", port(plane, "agent"), port(plane, "controllers"))
    try:
        gain = 'lockstep_job_advice_gain_ratio{lockstep_job="slow",cause="few-workers"} > 0.5'
        eventually_sync(lambda: scraping.query(gain), 60, "the advice is in Prometheus")
        cards = 'DCGM_FI_DEV_GPU_UTIL{lockstep_job="slow"}'
        eventually_sync(lambda: len(scraping.query(cards)) == 2, 60, "the job's cards, too")
    finally:
        scraping.stop()

    lines = {one["job"]: one for one in cost(plane)["lines"]}
    assert lines["slow"]["gpuHours"] > 0
    assert lines["slow"]["cost"] == pytest.approx(lines["slow"]["gpuHours"] * 2.5, rel=0.01)

    plane.ok("submit", "-f", "-", "--replace", stdin=slow("--workers", "16"))
    after = advised(plane, "--patience", "120")
    assert after["since"]["cause"] == "few-workers"
    assert after["since"]["measured"] == pytest.approx(verdict["gainOfClone"], abs=0.25)
    assert after["stepSeconds"] < first["stepSeconds"] / 2
