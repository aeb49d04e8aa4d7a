"""A cut of the power at any moment: what was promised is there, and every part starts."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import power_cut
from tests.support.power_cut import Disk, writers
from tests.support.power_cut.files import content, manifest

from lockstep.apiserver.store import Key, Store
from lockstep.data.cache.shelf import Shelf as DatasetShelf
from lockstep.data.cache.stock import Stock
from lockstep.insight.history.store import Store as History
from lockstep.notebooks.inside.shelf import Shelf
from lockstep.train.catalogue import Catalogue

Promises = list[Any]


def _latest(promises: Promises) -> dict[Any, int]:
    return dict(promises)


async def api(disk: Path, promises: Promises, _: random.Random) -> None:
    store = Store(disk / "db")
    for name, turn in _latest(promises).items():
        record = store.get(Key("things", "space", name))
        # A write that was not promised yet may be there, too; then the one before is not.
        found = record.object()["turn"] if record else None
        assert found in {None if one % 5 == 4 else one for one in (turn, turn + 1)}
    await store.put(Key("things", "space", "after"), {"metadata": {"name": "after", "uid": "a"}})
    await store.close()


async def history(disk: Path, promises: Promises, _: random.Random) -> None:
    store = History(disk / "usage.db")
    found = {one.uid: int(one.body) for one in store.jobs("space", "", 100)}
    for number, turn in _latest(promises).items():
        assert found[f"u{number}"] in {turn, turn + 1}


async def session(disk: Path, promises: Promises, _: random.Random) -> None:
    shelf = Shelf(disk / "kernel", b"key")
    newest = shelf.newest()
    assert (int(newest.name) if newest else 0) >= max(promises, default=0)
    shelf.begin()


async def dataset(disk: Path, promises: Promises, draw: random.Random) -> None:
    shelf = DatasetShelf(disk, "u")
    told = shelf.manifest(manifest().version)
    assert told in (None, manifest())
    base = disk / "files" / "u"
    base.mkdir(parents=True, exist_ok=True)
    marks = base / f".state-{manifest().version}"
    # The marks are mapped memory: the system may have written them down at any moment.
    if promises and draw.random() < 0.8:
        marks.write_bytes(bytes.fromhex(draw.choice(promises)))
    (disk / "boot_id").write_text("another")
    stock = Stock(base, manifest(), disk / "boot_id")
    stock.recover()
    for index, entry in enumerate(manifest().entries):
        if stock.whole(index):
            assert stock.path(index).read_bytes() == content(index, 0, entry.size), entry.path
        for chunk in stock.chunks.all_of(index):
            span = stock.chunks.span(index, chunk)
            assert stock.read(index, *span) in (None, content(index, *span)), entry.path


async def files(disk: Path, promises: Promises, _: random.Random) -> None:
    if promises:
        found = (disk / "keys" / "ca.pem").read_bytes().split()
        assert set(found) <= {b"%d" % (promises[-1] + more) for more in (0, 1)}
        assert len(found) == 3000


async def checkpoints(disk: Path, promises: Promises, _: random.Random) -> None:
    from lockstep.train.loading import Stored

    if not promises:
        return
    books = Catalogue(disk / "job-1")
    newest = books.entries()[0].step
    assert newest >= promises[-1]
    weight = Stored(books.find(newest), newest, 0, 1).tensor("model.weight")
    assert bool((weight == newest).all())


PARTS: dict[str, Callable[..., Any]] = {
    one.__name__: one for one in (api, history, session, dataset, files, checkpoints)
}


LONG = pytest.mark.soak
CASES = [
    pytest.param(
        part, cuts, id=f"{part}-{cuts}", marks=LONG if cuts > 30 or part == "checkpoints" else ()
    )
    for part in PARTS
    for cuts in (30, 1000)
]


@pytest.mark.parametrize(("part", "cuts"), CASES)
async def test_no_promise_is_lost_and_every_part_starts(
    part: str, cuts: int, tmp_path: Path
) -> None:
    if part == "checkpoints":
        pytest.importorskip("torch")
    program = Path(writers.__file__)
    disk = Disk(power_cut.logged(program, tmp_path, part))
    draw = random.Random(7)  # noqa: S311  moments, not secrets
    moments = sorted(draw.choices(range(1, len(disk.changes) + 1), k=cuts))
    for number, moment in enumerate(moments):
        disk.play(moment)
        disk.cut(tmp_path / f"cut-{number}", draw)
        try:
            await PARTS[part](tmp_path / f"cut-{number}", disk.acks, draw)
        except BaseException as error:
            error.add_note(f"cut {number}, after change {moment} of {len(disk.changes)}")
            raise
        shutil.rmtree(tmp_path / f"cut-{number}")
