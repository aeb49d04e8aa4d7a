"""What is kept of a pod on disk, and what is read from it after the node was away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lockstep.nodes.process.certificates import may_read
from lockstep.nodes.process.facts import Exit, Verdict
from lockstep.nodes.process.home import PodHome, Record, RunHome, rewrite, verdict_of, with_verdict

RUN = {"shim": 1, "pid": 3, "started": 100.0}


@pytest.mark.parametrize(
    ("notes", "wanted"),
    [
        ({}, None),
        ({"begin": {"waited": None}}, None),
        (
            {"run": RUN, "exit": {"exit_code": 3, "signal": 0, "started": 1, "finished": 110.0}},
            Exit(3, 0, "Error", "", 110.0),
        ),
        (
            {"run": RUN, "exit": {"exit_code": 0, "signal": 0, "started": 1, "finished": 110.0}},
            Exit(0, 0, "Completed", "", 110.0),
        ),
        (
            {"run": RUN, "exit": {"exit_code": 137, "signal": 9, "finished": 110.0, "oom": True}},
            Exit(137, 9, "OOMKilled", "", 110.0),
        ),
        (
            {"exit": {"error": "no such command", "started": 100.0, "finished": 100.0}},
            Exit(128, 0, "StartError", "no such command", 100.0),
        ),
    ],
)
def test_end_of_a_run(tmp_path: Path, notes: dict[str, Any], wanted: Exit | None) -> None:
    home = RunHome(tmp_path, 4)
    for name, content in notes.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    run = home.run()
    assert (run.exit if run else None) == wanted
    assert run is None or (run.attempt, run.started) == (4, 100.0)


def test_run_without_a_shim_is_lost_and_with_one_runs(tmp_path: Path) -> None:
    home = RunHome(tmp_path / "0", 0)
    home.begin(None)
    (home.path / "run.json").write_text(json.dumps(RUN))
    import os

    lock = home.lock()
    assert home.alive
    run = home.run()
    assert run is not None
    assert run.exit is None
    os.close(lock)
    assert not home.alive
    lost = home.run()
    assert lost is not None
    assert lost.exit is not None
    assert (lost.exit.code, lost.exit.reason) == (137, "ContainerStatusUnknown")


def test_half_written_note_is_no_note(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"shim": 1, "pi')
    assert RunHome(tmp_path, 0).run() is None


def test_record_survives(tmp_path: Path) -> None:
    record = Record(
        namespace="n", name="p", uid="u", accepted_at=5.0, address="127.1.2.3", gpus=[1]
    )
    with_verdict(record, Verdict("r", "m", admitted=False))
    PodHome.at(tmp_path, record).save()
    found = PodHome.load(tmp_path, "u")
    assert found is not None
    assert found.record == record
    assert verdict_of(found.record) == Verdict("r", "m", admitted=False)
    assert (tmp_path / "pods" / "u" / "record.json").stat().st_mode & 0o777 == 0o600
    assert PodHome.load(tmp_path, "other") is None
    assert PodHome.load(tmp_path, "../u") is None


def test_old_runs_are_dropped_with_their_logs(tmp_path: Path) -> None:
    home = PodHome.at(tmp_path, Record(namespace="n", name="p", uid="u", accepted_at=0.0))
    for number in range(4):
        home.attempt("main", number).begin(None)
        log = home.log("main", number)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
    home.forget_before("main", 2)
    assert [one.attempt for one in home.attempts("main")] == [2, 3]
    assert sorted(one.name for one in home.log("main", 2).parent.iterdir()) == ["2.log", "3.log"]


def test_rewriting_keeps_the_file_that_others_have_mounted(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    rewrite(path, "a long first text\n")
    with path.open() as mounted:
        inode = path.stat().st_ino
        rewrite(path, "short\n")
        assert path.stat().st_ino == inode
        assert mounted.read() == "short\n"


@pytest.mark.parametrize(
    ("subject", "allowed"),
    [
        ([("organizationName", "system:masters"), ("commonName", "admin")], True),
        ([("commonName", "kube-apiserver-kubelet-client")], True),
        ([("organizationName", "system:nodes"), ("commonName", "someone")], False),
        ([], False),
    ],
)
def test_who_may_read_logs(subject: list[tuple[str, str]], allowed: bool) -> None:
    assert may_read({"subject": tuple((pair,) for pair in subject)}) == allowed
