"""Dumps come from anywhere: they are read without running code, and within bounds."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from tests.support.stuck_worlds import hang
from tests.support.training_programs import Layout

from lockstep.health.core.culprits import culprits
from lockstep.health.dump_child import rank_in
from lockstep.health.dumps import read


class Runs:
    """What runs a command when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.mark}",)


def test_dumps_pickled_and_in_json_say_the_same(tmp_path: Path) -> None:
    stuck = hang(4, Layout(4, 2, 1), "stands", lost=0.0)
    for rank, dump in stuck.dumps.items():
        data = pickle.dumps(dump, 2) if rank % 2 else json.dumps(dump).encode()
        (tmp_path / f"trace_{rank}").write_bytes(data)
    found = read(sorted(tmp_path.iterdir()))
    assert (len(found.seen), found.refused) == (8, {})
    assert culprits(found.seen, 8).ranks == (stuck.culprit,)


def test_hostile_dumps_run_no_code_and_the_others_are_read(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    folder = tmp_path / "dumps"
    folder.mkdir()
    good = {"entries": [], "version": "2.10"}
    hostile = {
        "rank0": pickle.dumps(Runs(mark)),
        "rank1": pickle.dumps(good, 2)[:-3],
        "rank2": b"",
        "rank3": b"\x80\x04" + b"]\x94a" * 7,
        "rank4": b"[" * 300_000,
        "rank5": b"\x80\x02" + b"(" * 300_000 + b"l" * 300_000 + b".",
        "rank6": b"\x80\x02Kr" + b"r\xff\xff\xff\x7f.",  # a place in the memo far beyond any
        "rank7": b"\x80\x05\x96\xff\xff\xff\xff\xff\x00\x00\x00.",  # a petabyte is announced
        "rank8": os.urandom(2000),
        "norank": pickle.dumps(good),
    }
    for name, data in hostile.items():
        (folder / name).write_bytes(data)
    (folder / "rank9").write_bytes(pickle.dumps(good, 2))
    found = read(sorted(folder.iterdir()), seconds=20)
    assert not mark.exists()
    assert sorted(found.seen) == [9]
    assert len(found.refused) == len(hostile)
    assert found.unread == set(range(9))
    assert "posix.system" in found.refused[str(folder / "rank0")]


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("nccl_trace_rank_3", 3),
        ("rank-12_of_64.pickle", 12),
        ("trace_00007", 7),
        ("5", 5),
        ("node-7_rank3.json", 3),
        ("notes.txt", None),
    ],
)
def test_a_name_tells_the_rank(name: str, rank: int | None) -> None:
    assert rank_in(name) == rank


@pytest.mark.parametrize("depth", [100_000])
def test_deep_lists_are_borne(tmp_path: Path, depth: int) -> None:
    deep = b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b"."
    (tmp_path / "rank0").write_bytes(deep)
    assert list(read([tmp_path / "rank0"]).refused) == [str(tmp_path / "rank0")]


def test_two_gigabytes_are_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "rank3").open("wb") as file:
        file.write(b"{")
        file.truncate(2 << 30)
    found = read([tmp_path / "rank3"], seconds=20)
    why = found.refused[str(tmp_path / "rank3")]
    assert why == "it has 2147483648 bytes; at most 268435456 are read"
