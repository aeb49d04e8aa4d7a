"""What a launcher tells of ranks that do not go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lockstep.train.evidence import LONGEST, memory_kills, of_rank, stack

STACKS = b"""Thread 0x00007f060affd6c0 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap

Thread 0x00007f06e95bcb80 (most recent call first):
  File "/l/site-packages/torch/distributed/distributed_c10d.py", line 3252 in all_reduce
  File "/work/train.py", line 22 in step
  File "/work/train.py", line 30 in <module>
"""
ENTRY = {
    "process_group": ["0", "default_pg"],
    "pg_id": 0,
    "collective_seq_id": 4,
    "profiling_name": "gloo:all_reduce",
    "state": "scheduled",
    "input_sizes": [[4]],
    "input_dtypes": ["Float"],
}
TRACE = json.dumps({"entries": [ENTRY], "pg_status": {}, "pg_config": {}}).encode()


def proc(tmp_path: Path, state: str) -> Path:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/stat").write_text(f"7 (py (x)) {state} 1 1")
    return tmp_path


def asker(trace: bytes | None, stacks: bytes | None) -> Any:
    def ask(_: int, handler: str, timeout: float) -> bytes:
        found = trace if handler == "fr_trace_json" else stacks
        if found is None:
            raise TimeoutError
        return found

    return ask


@pytest.mark.parametrize(
    ("trace", "stacks", "state", "answers"),
    [
        (TRACE, STACKS, "S", "all"),
        (TRACE, None, "S", "trace"),
        (None, None, "S", "none"),
        (None, None, "D", "stopped"),
        (TRACE, STACKS, "T", "stopped"),
        (b"{", STACKS, "S", "all"),
    ],
    ids=["all", "held lock", "nothing", "waits for a device", "stopped", "no trace"],
)
def test_answers_tell_what_holds_a_rank(
    tmp_path: Path, trace: bytes | None, stacks: bytes | None, state: str, answers: str
) -> None:
    seen = of_rank(asker(trace, stacks), 1, 5, 7, proc(tmp_path, state))
    assert (seen["rank"], seen["answers"]) == (5, answers)


def test_waiting_and_place_are_told(tmp_path: Path) -> None:
    seen = of_rank(asker(TRACE, STACKS), 0, 0, 7, proc(tmp_path, "S"))
    assert [(one["group"], one["seq"], one["op"]) for one in seen["waiting"]] == [
        ("0", 4, "all_reduce")
    ]
    assert seen["at"] == "train.py:22 in step"


def test_ranks_at_the_same_place_have_the_same_hash() -> None:
    text = STACKS.decode()
    assert stack(text)["frames"] == stack(text.replace("line 22", "line 23"))["frames"]
    assert stack(text)["frames"] != stack(text.replace("in step", "in save"))["frames"]


def test_a_data_loader_is_named_before_the_program() -> None:
    text = STACKS.decode().replace("distributed/distributed_c10d.py", "utils/data/dataloader.py")
    assert stack(text)["at"] == "dataloader.py:3252 in all_reduce from train.py:22 in step"


def test_a_rank_is_told_in_four_kibibytes(tmp_path: Path) -> None:
    entries = [
        {**ENTRY, "process_group": [f"group-{n}" * 10, ""], "collective_seq_id": n}
        for n in range(300)
    ]
    config = {f"group-{n}": {"ranks": list(range(0, 4000, 2))} for n in range(50)}
    trace = json.dumps({"entries": entries, "pg_status": {}, "pg_config": config}).encode()
    seen = of_rank(asker(trace, STACKS), 0, 0, 7, proc(tmp_path, "S"))
    assert len(json.dumps(seen)) <= LONGEST
    assert seen["waiting"]


@pytest.mark.parametrize(
    ("line", "file", "text"),
    [
        ("0::/", "memory.events", "oom 3\noom_kill 2\n"),
        ("0::/pods/7", "pods/7/memory.events", "oom 3\noom_kill 2\n"),
        ("0::/not/mounted/here", "memory.events", "oom_kill 2\n"),
        ("4:memory:/p\n0::/", "memory/p/memory.oom_control", "under_oom 0\noom_kill 2\n"),
        ("5:cpu,memory:/q", "memory/memory.oom_control", "oom_kill 2\n"),
    ],
)
def test_the_kernels_kills_are_counted(tmp_path: Path, line: str, file: str, text: str) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/cgroup").write_text(line + "\n")
    place = tmp_path / "groups" / file
    place.parent.mkdir(parents=True)
    place.write_text(text)
    assert memory_kills(tmp_path, tmp_path / "groups") == 2
    place.unlink()
    assert memory_kills(tmp_path, tmp_path / "groups") == 0
