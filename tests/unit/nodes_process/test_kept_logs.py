"""Logs of pods that are gone are kept within bounds, and given to nobody but their namespace."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.nodes.process import kept_logs
from lockstep.nodes.process.home import PodHome, Record
from lockstep.nodes.process.kept_logs import KeptLogs

LABELS = {"lockstep.dev/job": "j", "lockstep.dev/attempt": "1", "lockstep.dev/role": "worker"}


def home(data: Path, uid: str, logs: dict[str, str], namespace: str = "default") -> PodHome:
    record = Record(namespace=namespace, name="p", uid=uid, accepted_at=1.0, labels=LABELS)
    found = PodHome.at(data, record)
    found.save()
    for name, text in logs.items():
        target = found.logs / "main" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return found


class Time:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("bound", "value", "left"),
    [
        ("MAX_AGE", 1e9, ["a", "b", "c"]),
        ("MAX_AGE", 9.0, ["c"]),
        ("MAX_BYTES", 250, ["b", "c"]),
        ("MAX_BYTES", 10, []),
        ("MAX_PODS", 1, ["c"]),
    ],
)
def test_the_oldest_go_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: float, left: list[str]
) -> None:
    monkeypatch.setattr(kept_logs, bound, value)
    clock = Time()
    kept = KeptLogs(tmp_path / "kept", clock=clock)
    for number, uid in enumerate(("a", "b", "c")):
        clock.now = 10.0 * number
        kept.keep(home(tmp_path, uid, {"0.log": "x" * 100}))
    assert sorted(one.uid for one in kept.of_job("default", "j")) == left
    assert sorted(one.name for one in (tmp_path / "kept").iterdir()) == left


def test_what_is_kept_is_found_again_after_a_start(tmp_path: Path) -> None:
    KeptLogs(tmp_path / "kept").keep(home(tmp_path, "a", {"0.log": "0", "1.log": "1"}))
    again = KeptLogs(tmp_path / "kept")
    (entry,) = again.of_job("default", "j")
    assert (entry.pod, entry.attempt, entry.role) == ("p", "1", "worker")
    last = again.find("default", "p", "a", "main", previous=False)
    before = again.find("default", "p", "a", "main", previous=True)
    assert last is not None
    assert before is not None
    assert (last.read_text(), before.read_text()) == ("1", "0")


@pytest.mark.parametrize(
    "asked", [("other", "p", "a"), ("default", "q", "a"), ("default", "p", "../a")]
)
def test_another_namespace_or_name_finds_nothing(
    tmp_path: Path, asked: tuple[str, str, str]
) -> None:
    kept = KeptLogs(tmp_path / "kept")
    kept.keep(home(tmp_path, "a", {"0.log": "secret"}))
    assert kept.find(*asked, "main", previous=False) is None


def test_pod_of_a_namespace_before_is_not_found(tmp_path: Path) -> None:
    kept = KeptLogs(tmp_path / "kept")
    kept.keep(home(tmp_path, "a", {"0.log": "secret"}))
    (entry,) = kept.of_job("default", "j")
    assert kept.find("default", "p", "a", "main", after=entry.started) is not None
    assert kept.find("default", "p", "a", "main", after=entry.started + 1) is None


def test_a_pod_that_wrote_nothing_leaves_nothing(tmp_path: Path) -> None:
    kept = KeptLogs(tmp_path / "kept")
    kept.keep(home(tmp_path, "a", {}))
    assert kept.of_job("default", "j") == []


def test_half_kept_logs_are_removed_at_the_next_start(tmp_path: Path) -> None:
    (tmp_path / "kept" / "torn" / "main").mkdir(parents=True)
    KeptLogs(tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir()) == []
