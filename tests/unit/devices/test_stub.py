"""The stub library under an unmodified nvidia-ml-py, and what is found through it."""

from __future__ import annotations

import getpass
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.stub_gpus import GIB, StubGpus, Values, a100_mig, broken, h200x8, mixed, two

Json = dict[str, Any]


def stub(tmp_path: Path, profile: Callable[[], Values]) -> StubGpus:
    found = StubGpus(tmp_path / "gpus")
    found.update(profile())
    return found


def python(gpus: StubGpus, program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **gpus.environment()},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FIND = """
from lockstep.devices.finding import find
import msgspec
print(msgspec.json.encode(find()).decode())
"""
SAMPLE = """
import json, sys
from lockstep.devices import nvml
from lockstep.devices.sampling import Sampler
with nvml.session() as (lib, why):
    sampler = Sampler(lib, int(sys.argv[1]))
    sampler.read()
    sample = sampler.read()
    print(json.dumps([sample.values, [[p.pid, p.memory, p.sm] for p in sample.processes]]))
"""


def found(gpus: StubGpus) -> list[Json]:
    cards: list[Json] = json.loads(python(gpus, FIND)).get("cards", [])
    return cards


def read(gpus: StubGpus, index: int = 0) -> tuple[Json, list[list[float]]]:
    values, processes = json.loads(python(gpus, SAMPLE, str(index)))
    return values, processes


def test_two_cards_reach_each_other_by_nvlink(tmp_path: Path) -> None:
    one, other = found(stub(tmp_path, two))
    assert (one["peers"], other["peers"]) == ([1], [0])
    assert (one["model"], one["memory"], one["compute"]) == ("NVIDIA H200", 141 * 1024, "9.0")
    assert (one["pci"], one["nodes"]) == ("0000:17:00.0", ["/dev/nvidia0"])


def test_eight_cards_behind_switches(tmp_path: Path) -> None:
    cards = found(stub(tmp_path, h200x8))
    assert [len(card["peers"]) for card in cards] == [7] * 8
    assert all(card["nvswitch"] and card["nvlinks"] == 18 for card in cards)


def test_mig_devices_are_named_by_their_profiles(tmp_path: Path) -> None:
    split, whole = found(stub(tmp_path, a100_mig))
    assert [part["profile"] for part in split["migDevices"]] == ["3g.40gb", "2g.20gb", "1g.10gb"]
    assert "mig" not in whole


TOP = """
import sys
from lockstep.cli.main import main
sys.argv[1:] = ["top", "processes", "--local", "-o", "json"]
main()
"""


def test_top_shows_each_process_with_user_and_command(tmp_path: Path) -> None:
    gpus = stub(tmp_path, broken)
    gpus.card(0, {"processes": f"{os.getpid()}:{GIB}:30,4999999:{GIB}:0"})
    mine, unseen = json.loads(python(gpus, TOP))
    assert (mine["gpu"], mine["memory"], mine["smPercent"]) == (0, GIB, 30)
    assert mine["user"] == getpass.getuser() and "python" in mine["command"]
    assert (unseen["pid"], unseen["user"], unseen["command"]) == (4999999, None, None)


LOST_MEANWHILE = """
import msgspec, pynvml
from lockstep.devices import nvml
handle, asked = pynvml.nvmlDeviceGetHandleByIndex, []
def once(index):
    asked.append(index)
    if asked.count(1) > 1 and index == 1:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
    return handle(index)
pynvml.nvmlDeviceGetHandleByIndex = once
print(msgspec.json.encode(nvml.find()[0]).decode())
"""


def test_a_card_lost_while_it_is_read_is_named(tmp_path: Path) -> None:
    one, other = json.loads(python(stub(tmp_path, two), LOST_MEANWHILE))
    assert one["uuid"] and "trouble" not in one
    assert (other.get("uuid"), other["trouble"]) == (None, "NVML: GPU is lost")


CRASHES = """
import sys
from pathlib import Path
from lockstep.devices import calls, crashes, nvml
calls.refuse(crashes.noted(Path(sys.argv[1])))
print([one.memory for one in nvml.find()[0]])
"""


def test_a_call_that_crashed_the_agent_is_not_made_again(tmp_path: Path) -> None:
    gpus = stub(tmp_path, two)
    gpus.card(1, {"crash.nvmlDeviceGetMemoryInfo": 1})
    command = [sys.executable, "-c", CRASHES, str(tmp_path / "kept")]
    environment = {**os.environ, **gpus.environment()}
    first = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    assert first.returncode == -signal.SIGABRT
    assert python(gpus, CRASHES, str(tmp_path / "kept")) == "[0, 0]\n"
    gpus.card(1, {"crash.nvmlDeviceGetMemoryInfo": None})
    (tmp_path / "kept/lockstep-crashed-calls.json").write_text('{"boot": "before", "calls": []}')
    (tmp_path / "kept/lockstep-crash.txt").unlink()
    assert python(gpus, CRASHES, str(tmp_path / "kept")) == f"[{141 * 1024}, {141 * 1024}]\n"


def test_a_card_that_hangs_or_is_lost_hides_no_other(tmp_path: Path) -> None:
    troubles = [card.get("trouble", "") for card in found(stub(tmp_path, broken))]
    assert troubles[0] == troubles[3] == ""
    assert troubles[1] == "NVML: GPU is lost"
    assert troubles[2] == "NVML has not answered for 5 s"


@pytest.mark.parametrize(
    ("state", "clique"),
    [
        ({}, ""),
        ({"fabric.state": 0}, ""),
        ({"fabric.state": 1}, ""),
        ({"fabric.state": 2, "fabric.cluster": "ab" * 16}, ""),
        ({"fabric.state": 3, "fabric.cluster": "ab" * 16, "fabric.clique": 7}, f"{'ab' * 16}.7"),
        ({"fabric.state": 3, "fabric.cluster": "00" * 16, "fabric.clique": 7}, ""),
    ],
    ids=["not known", "none", "not started", "in progress", "of a rack", "of one node"],
)
def test_a_card_names_its_fabric(tmp_path: Path, state: Json, clique: str) -> None:
    gpus = stub(tmp_path, two)
    gpus.card(1, state)
    assert [card.get("fabric", "") for card in found(gpus)] == ["", clique]


def test_no_driver_is_no_fault(tmp_path: Path) -> None:
    assert found(StubGpus(tmp_path / "none")) == []


def test_readings_have_dcgm_units(tmp_path: Path) -> None:
    gpus = stub(tmp_path, two)
    gpus.card(0, {"power": 431_250, "memory_used": 10 * GIB, "gpm.2": 87.5, "gpm.20": 3})
    values, _ = read(gpus)
    assert values["power"] == 431.25
    assert (values["memory_used"], values["memory_reserved"]) == (10 * 1024, 512)
    assert (values["prof_sm"], values["prof_pcie_tx"]) == (0.875, 3 << 20)
    assert values["nvlink"] == 3000


def test_the_fabric_state_is_read_where_a_card_has_one(tmp_path: Path) -> None:
    gpus = stub(tmp_path, two)
    gpus.card(0, {"fabric.state": 2})
    assert [read(gpus, index)[0].get("fabric_state") for index in (0, 1)] == [2, None]


def test_a_card_without_gpm_has_the_rest(tmp_path: Path) -> None:
    values, _ = read(stub(tmp_path, mixed), 1)
    assert "prof_sm" not in values
    assert "energy" not in values
    assert values["temperature"] == 35


def test_processes_are_read_with_memory_and_use(tmp_path: Path) -> None:
    gpus = stub(tmp_path, two)
    gpus.card(0, {"processes": f"17:{GIB}:30,18:{2 * GIB}:10"})
    _, processes = read(gpus)
    assert processes == [[17, 1024, 30], [18, 2048, 10]]


CHANGES = """
import pynvml, sys
pynvml.nvmlInit()
card = pynvml.nvmlDeviceGetHandleByIndex(0)
events = pynvml.nvmlEventSetCreate()
pynvml.nvmlDeviceRegisterEvents(card, pynvml.nvmlEventTypeXidCriticalError, events)
print("ready", flush=True)
for line in sys.stdin:
    try:
        if line.strip() == "event":
            event = pynvml.nvmlEventSetWait_v2(events, 5000)
            print(event.eventType, event.eventData, flush=True)
        else:
            print(pynvml.nvmlDeviceGetTemperature(card, 0), flush=True)
    except pynvml.NVMLError as error:
        print(error, flush=True)
"""


def test_values_errors_and_events_change_while_it_runs(tmp_path: Path) -> None:
    gpus = stub(tmp_path, two)
    with subprocess.Popen(
        [sys.executable, "-c", CHANGES],
        env={**os.environ, **gpus.environment()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(question: str) -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{question}\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        assert process.stdout.readline() == "ready\n"
        assert ask("temperature") == "34"
        gpus.card(0, {"temperature.0": 91})
        assert ask("temperature") == "91"
        gpus.card(0, {"error.nvmlDeviceGetTemperature": 3})
        assert ask("temperature") == "Not Supported"
        gpus.card(0, {"error.nvmlDeviceGetTemperature": None, "lost": 1})
        assert ask("temperature") == "GPU is lost"
        gpus.card(0, {"lost": 0})
        gpus.xid(0, 79)
        assert ask("event") == "8 79"


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_agent_once_prints_the_inventory(tmp_path: Path, output: str) -> None:
    gpus = stub(tmp_path, two)
    done = subprocess.run(
        [sys.executable, "-m", "lockstep", "agent", "--once", "-o", output],
        env={**os.environ, **gpus.environment()},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    import yaml

    cards = yaml.safe_load(done.stdout)["cards"]
    assert [card["uuid"][-1] for card in cards] == ["0", "1"]
