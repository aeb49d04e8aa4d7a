"""The alarms, held against a real promtool."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lockstep.devices.core.exposition import Shown, exposition
from lockstep.devices.core.fields import FIELDS
from lockstep.devices.core.model import Card
from lockstep.devices.core.rules import ALARMS, rules

LABELS = '{gpu="0",hostname="n",namespace="team",pod="p"}'
CASES: dict[str, dict[str, str]] = {
    "GPUXid": {"DCGM_EXP_XID_ERRORS_COUNT": "0x30 1x30"},
    "GPUMemoryErrors": {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "0x30 2x30"},
    "GPURowRemapFailure": {"DCGM_FI_DEV_ROW_REMAP_FAILURE": "0x30 1x30"},
    "GPURowRemapPending": {"DCGM_FI_DEV_ROW_REMAP_PENDING": "0x30 1x30"},
    "GPUThrottled": {"DCGM_FI_DEV_THERMAL_VIOLATION": "0x30 0+30000000000x30"},
    "GPUNarrowPCIe": {
        "DCGM_FI_DEV_PCIE_LINK_WIDTH": "16x30 8x30",
        "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH": "16x60",
    },
    "GPULostNVLink": {
        "DCGM_FI_DEV_NVLINK_LINKS_UP": "18x30 17x30",
        "DCGM_FI_DEV_NVLINK_LINKS": "18x60",
    },
    "GPUMemoryNearlyFull": {
        "DCGM_FI_DEV_FB_USED": "10x30 99x30",
        "DCGM_FI_DEV_FB_FREE": "90x30 1x30",
    },
    "GPUHeldButIdle": {"DCGM_FI_DEV_GPU_UTIL": "50x2 0x60"},
}
BEFORE = {"GPUHeldButIdle": "20m"}


def _test_of(name: str, series: dict[str, str]) -> dict[str, Any]:
    """Return promtool's test: silent at first, and firing in the end."""
    inputs = [
        {"series": f"{metric}{LABELS}", "values": values} for metric, values in series.items()
    ]
    silent = {"eval_time": BEFORE.get(name, "29m"), "alertname": name, "exp_alerts": []}
    return {"interval": "1m", "input_series": inputs, "alert_rule_test": [silent]}


def _promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool (Debian: prometheus) is not installed")
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "rules.yaml"
    found.write_text(json.dumps(rules()))
    return found


def test_promtool_takes_the_rules(file: Path) -> None:
    done = _promtool("check", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", [alarm.name for alarm in ALARMS])
def test_an_alarm_fires_for_its_fault_and_not_before(file: Path, name: str) -> None:
    test = _test_of(name, CASES[name])
    # What fires has all labels and words; only that it fires is asked, by a rule's own series.
    fires = {
        "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing",gpu="0"}})',
        "eval_time": "38m",
        "exp_samples": [{"labels": "{}", "value": 1}],
    }
    if name in ("GPUXid", "GPUMemoryErrors"):
        fires["eval_time"] = "32m"
    test["promql_expr_test"] = [fires]
    suite = file.with_name("test.yaml")
    suite.write_text(
        json.dumps({"rule_files": [file.name], "evaluation_interval": "1m", "tests": [test]})
    )
    done = _promtool("test", "rules", str(suite))
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_takes_the_metrics(tmp_path: Path) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool (Debian: prometheus) is not installed")
    text = exposition([Shown(Card(index=0, uuid="u"), {f.key: 1.0 for f in FIELDS})], "n")
    done = subprocess.run(
        [program, "check", "metrics"], input=text, capture_output=True, timeout=60, check=False
    )
    # Its advice about names is about names that are DCGM's; a fault in the text is status 1.
    assert done.returncode in (0, 3), done.stderr
