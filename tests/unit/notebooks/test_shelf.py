"""States on a volume: the newest whole one of its owner counts, and no other is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.notebooks.inside.session_state import META
from lockstep.notebooks.inside.shelf import SIGNATURE, Refused, Shelf

KEY = b"ana's"


def put(shelf: Shelf, text: str) -> int:
    partial = shelf.begin()
    (partial / META).write_text(text)
    return shelf.finish(partial)


def test_newest_state_counts_and_older_ones_go(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "k", KEY)
    assert shelf.newest() is None
    assert [put(shelf, "first"), put(shelf, "second")] == [1, 2]
    newest = shelf.newest()
    assert newest is not None
    assert (newest / META).read_text() == "second"
    assert sorted(one.name for one in shelf.root.iterdir()) == ["2", "current"]


def test_state_that_was_never_finished_leaves_the_older_one(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "k", KEY)
    put(shelf, "first")
    (shelf.begin() / META).write_text("half")
    newest = Shelf(tmp_path / "k", KEY).newest()
    assert newest is not None
    assert (newest / META).read_text() == "first"
    assert put(shelf, "second") == 2


def test_state_before_a_restart_is_not_loaded(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "k", KEY)
    put(shelf, "first")
    assert shelf.newest(since=2) is None


@pytest.mark.parametrize(
    ("name", "says"), [(META, "not signed"), (SIGNATURE, "not signed"), ("gone", "not whole")]
)
def test_changed_state_is_refused(tmp_path: Path, name: str, says: str) -> None:
    shelf = Shelf(tmp_path / "k", KEY)
    put(shelf, "first")
    if name == "gone":
        (shelf.root / "1" / META).unlink()
    else:
        (shelf.root / "1" / name).write_bytes(b"other")
    with pytest.raises(Refused, match=says):
        shelf.newest()


def test_state_of_another_owner_is_refused(tmp_path: Path) -> None:
    put(Shelf(tmp_path / "k", b"ben's"), "first")
    with pytest.raises(Refused, match="not signed by its owner"):
        Shelf(tmp_path / "k", KEY).newest()


def test_link_out_of_the_shelf_is_refused(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "k", KEY)
    put(shelf, "first")
    (shelf.root / "current").unlink()
    (shelf.root / "current").symlink_to("../elsewhere")
    with pytest.raises(Refused, match="no kernel has written"):
        shelf.newest()
