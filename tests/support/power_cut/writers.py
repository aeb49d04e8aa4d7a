"""Programs that write what a part trusts, and promise what is written: ``writers.py PART``.

Each promise is a line of JSON. The parts are used as their own processes use them.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(os.environ.get("POWER_ROOT", "."))
OBJECTS, TURNS = 6, 25


def promise(told: Any) -> None:
    """Tell that something is on the disk."""
    handle = os.open(os.environ["POWER_ACKS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, json.dumps(told).encode() + b"\n")
    os.close(handle)


def api() -> None:
    """The embedded server's store: writers at once, removals, and a compaction now and then."""
    from lockstep.apiserver.store import Key, Store

    async def write(store: Store, name: str) -> None:
        for turn in range(TURNS):
            thing = {"metadata": {"name": name, "uid": name}, "turn": turn, "pad": "x" * 3000}
            key = Key("things", "space", name)
            await (store.remove if turn % 5 == 4 else store.put)(key, thing)
            promise([name, turn])

    async def all_of_them() -> None:
        store = Store(ROOT / "db", max_events=40)
        await asyncio.gather(*(write(store, f"n{one}") for one in range(OBJECTS)))
        await store.close()

    asyncio.run(all_of_them())


def history() -> None:
    """The recorder's jobs."""
    from lockstep.insight.history.records import KeptJob
    from lockstep.insight.history.store import Store

    store = Store(ROOT / "usage.db")
    for turn in range(TURNS):
        for number in range(OBJECTS):
            store.put_job(KeptJob(f"u{number}", "space", f"j{number}", "2026", None, b"%d" % turn))
            promise([number, turn])


def session() -> None:
    """A notebook's state, kept five times."""
    from IPython.core.interactiveshell import InteractiveShell

    from lockstep.notebooks.inside import session_state
    from lockstep.notebooks.inside.shelf import Shelf

    shelf, shell = Shelf(ROOT / "kernel", b"key"), InteractiveShell.instance()
    session_state.begin()
    for turn in range(1, 6):
        shell.user_ns["turn"] = turn
        place = shelf.begin()
        session_state.save(str(place), [])
        promise(shelf.finish(place))


def dataset() -> None:
    """The files of a dataset on a node: some of several chunks, one let go of, and its manifest."""
    from tests.support.power_cut.files import content, manifest

    from lockstep.data.cache.shelf import Shelf
    from lockstep.data.cache.stock import Stock

    shelf, told = Shelf(ROOT, "u"), manifest()
    shelf.keep(told)
    base = ROOT / "files" / "u"
    base.mkdir(parents=True)
    stock = Stock(base, told)
    stock.recover()
    for index in range(len(told.entries)):
        for chunk in stock.chunks.all_of(index):
            start, end = stock.chunks.span(index, chunk)
            stock.put(index, chunk, content(index, start, end))
            promise((base / f".state-{told.version}").read_bytes().hex())


def files() -> None:
    """What parts write as whole files: secrets of the server, and the notes of a node's pods."""
    from lockstep.keys.files import private_directory, write_private

    private_directory(ROOT / "keys")
    for turn in range(TURNS):
        write_private(ROOT / "keys" / "ca.pem", b"%d\n" % turn * 3000)
        promise(turn)


SCRIPT = """
import sys, torch
from lockstep.train import Checkpointer
model = torch.nn.Linear(300, 30)
ckpt = Checkpointer(model=model)
for step in range(ckpt.restore(), int(sys.argv[1])):
    with torch.no_grad():
        model.weight.fill_(step + 1)
    ckpt.step(step + 1)
"""


def checkpoints() -> None:
    """A job's checkpoints: of a few lives, each saved at its end."""
    from tests.support.rank_pod import RankPod

    from lockstep.train.catalogue import Catalogue

    work, newest = Path(os.environ["POWER_ACKS"]).parent, 0
    (work / "script.py").write_text(SCRIPT)
    for life in range(1, 5):
        pod = RankPod(work / f"life-{life}", ROOT / "job-1")
        pod.run(work / "script.py", 1, str(newest + 3), resume=str(newest or ""))
        pod.saving.save_all()
        newest = Catalogue(ROOT / "job-1").entries()[0].step
        promise(newest)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
