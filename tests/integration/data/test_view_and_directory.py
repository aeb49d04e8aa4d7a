"""The view of a dataset held against a plain directory of the same files, by random steps."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from tests.support.cache_nodes import drawn
from tests.support.data_caches import ask, bind, needs_views, until
from tests.support.examples import examples
from tests.support.range_store import RangeStore

from lockstep.kube.client import Client

pytest.importorskip("obstore", reason="needs the data extra")

FILES = {
    "empty": b"",
    "one": drawn(1, 1),
    "page": drawn(4096, 2),
    "odd": drawn(12_345, 3),
    "a/deep/er": drawn(70_000, 4),
    "a/b": drawn(9 << 20, 5),
    "ä ö/ü": drawn(100, 6),
}
PATHS = ("", *FILES, "a", "a/deep", "ä ö", "none", "a/none", "one/below", "..x")
FLAGS = (os.O_RDONLY, os.O_RDONLY | os.O_DIRECTORY, os.O_RDONLY | os.O_NOFOLLOW)


def outcome(step: Callable[[], Any]) -> Any:
    """Return what a step gives, or the error's number."""
    try:
        return step()
    except OSError as error:
        return errno.errorcode[error.errno or 0]


class Held(RuleBasedStateMachine):
    """Each step is done in both places, and must give the same."""

    view: Path
    plain: Path

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[int, int]] = []

    def teardown(self) -> None:
        for pair in self.open:
            for fd in pair:
                os.close(fd)

    def both(self, step: Callable[[Path], Any]) -> None:
        assert outcome(lambda: step(self.view)) == outcome(lambda: step(self.plain))

    @rule(path=st.sampled_from(PATHS))
    def look(self, path: str) -> None:
        def seen(root: Path) -> Any:
            found = (root / path).stat()
            directory = stat.S_ISDIR(found.st_mode)
            return directory, 0 if directory else found.st_size

        self.both(seen)

    @rule(path=st.sampled_from(PATHS))
    def names(self, path: str) -> None:
        self.both(lambda root: sorted(one.name for one in (root / path).iterdir()))

    @rule(path=st.sampled_from(PATHS), flags=st.sampled_from(FLAGS))
    def begin(self, path: str, flags: int) -> None:
        ends = [outcome(lambda r=r: os.open(r / path, flags)) for r in (self.view, self.plain)]
        if all(isinstance(one, int) for one in ends):
            self.open.append((ends[0], ends[1]))
        else:
            assert ends[0] == ends[1]

    @rule(data=st.data(), size=st.integers(0, 200_000), start=st.integers(0, 10 << 20))
    def part(self, data: st.DataObject, size: int, start: int) -> None:
        if self.open:
            view, plain = data.draw(st.sampled_from(self.open))
            ends = [outcome(lambda fd=fd: os.pread(fd, size, start)) for fd in (view, plain)]
            assert ends[0] == ends[1]

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        if self.open:
            pair = data.draw(st.sampled_from(self.open))
            self.open.remove(pair)
            for fd in pair:
                os.close(fd)

    @rule(path=st.sampled_from(PATHS))
    def change(self, path: str) -> None:
        steps: tuple[Callable[[], Any], ...] = (
            (self.view / f"{path}x").touch,
            (self.view / f"{path}x").mkdir,
            (self.view / path).unlink,
        )
        for step in steps:
            assert outcome(step) in ("EROFS", "ENOENT", "ENOTDIR", "EISDIR", "EPERM", "EACCES")


@needs_views
async def test_the_view_is_as_a_directory_of_the_same_files(
    client: Client,
    nodes: Any,
    tmp_path: Path,
) -> None:
    for name, data in FILES.items():
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    store = RangeStore(FILES)
    [node] = nodes("held")
    await ask(client, "held", node.name, "s3://bucket", store.url)
    # Nothing is fetched ahead: the view shows what is here, and what comes as it is read.
    await bind(client, "held", node.name, reading=True)
    told = await until(client, "held", node.name, lambda one: one.view)

    class Machine(Held):
        view, plain = Path(told.view), tmp_path

    few = settings(
        max_examples=examples(10),
        stateful_step_count=30,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    await asyncio.to_thread(run_state_machine_as_test, Machine, settings=few)
    store.close()
