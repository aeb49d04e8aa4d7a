"""The shim alone: starting, watching, mounting, and leaving nothing behind."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.support.process_node import needs_mounts, running
from tests.support.waiting import eventually, eventually_sync

from lockstep.nodes.process.facts import Exit
from lockstep.nodes.process.home import RunHome
from lockstep.nodes.process.isolation import Isolation, find
from lockstep.nodes.process.logs import Query, files_of, last, shown
from lockstep.nodes.process.supervision import StartError, Supervised, run_beside


@dataclass
class Bench:
    """A place for one container."""

    root: Path
    isolation: Isolation

    def orders(self, script: str, **changes: Any) -> dict[str, Any]:
        return {
            "state": str(self.home.path),
            "scratch": str(self.home.path / "root"),
            "log": str(self.root / "0.log"),
            "log_bytes": 1 << 20,
            "log_files": 2,
            "oom": "",
            "cgroups": [],
            "mounts": [],
            "namespaces": list(self.isolation.namespaces),
            "hostname": "inside",
            "argv": ["sh", "-c", script],
            "env": {"PATH": os.environ["PATH"]},
            "cwd": "/",
            "uid": None,
            "gid": None,
            "groups": None,
            **changes,
        }

    @property
    def home(self) -> RunHome:
        return RunHome(self.root / "0", 0)

    def start(self, script: str, **changes: Any) -> Supervised:
        self.home.begin(None)
        return Supervised.launch(self.home, self.orders(script, **changes))

    def end(self) -> Exit:
        eventually_sync(lambda: not self.home.alive, what="the end of the shim")
        run = self.home.run()
        assert run is not None
        assert run.exit is not None
        return run.exit

    def log(self) -> str:
        lines = last(files_of(self.root / "0.log"), 1000)
        return b"".join(shown(iter(lines), Query())).decode()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, find())


@pytest.mark.parametrize(
    ("script", "code", "number"),
    [("true", 0, 0), ("exit 3", 3, 0), ("kill -TERM $$", 143, 15), ("kill -KILL $$", 137, 9)],
)
def test_end_is_written_down(bench: Bench, script: str, code: int, number: int) -> None:
    began = time.time()
    bench.start(script)
    end = bench.end()
    assert (end.code, end.signal) == (code, number)
    assert began - 1 < end.finished < time.time() + 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"argv": ["no-such-command"]}, "cannot run 'no-such-command': No such file"),
        ({"argv": ["/etc"]}, "cannot run '/etc': Permission denied"),
        ({"cwd": "/no/such"}, "working directory /no/such: No such file"),
        ({"cgroups": ["/sys/fs/cgroup/none/cgroup.procs"]}, "No such file"),
    ],
)
def test_what_cannot_start_says_why(bench: Bench, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(StartError, match=message):
        bench.start("", **changes)
    end = bench.end()
    assert (end.code, end.reason) == (128, "StartError")


def test_nothing_survives_its_container(bench: Bench) -> None:
    script = "(setsid sh -c 'echo $$; exec sleep 1000' &) ; sleep 0.2; echo done"
    bench.start(script)
    assert bench.end().code == 0
    daemon, word = bench.log().split()
    assert word == "done"
    assert not running(int(daemon))


def test_stop_reaches_the_group_and_kill_everything(bench: Bench) -> None:
    script = "trap 'echo told' TERM; echo up; sleep 1000 & while :; do wait; done"
    supervised = bench.start(script)
    eventually_sync(lambda: "up" in bench.log(), what="the container's word")
    supervised.stop()
    eventually_sync(lambda: "told" in bench.log(), what="the signal")
    assert bench.home.alive
    supervised.kill()
    assert bench.end().signal == signal.SIGKILL


def test_killed_shim_takes_the_container_along(bench: Bench) -> None:
    supervised = bench.start("exec sleep 1000")
    os.kill(bench.home.read("run")["shim"], signal.SIGKILL)  # type: ignore[index]
    assert bench.end().reason == "ContainerStatusUnknown"
    eventually_sync(lambda: not running(supervised.pid), what="the end of the container")


def test_output_is_complete_and_apart(bench: Bench) -> None:
    bench.start("for i in $(seq 2000); do echo line $i; done; printf tail; echo err >&2")
    bench.end()
    raw = (bench.root / "0.log").read_text().splitlines()
    streams = {line.split()[1] for line in raw}
    assert streams == {"stdout", "stderr"}
    out = [line.split(" ", 3)[3] for line in raw if line.split()[1] == "stdout"]
    assert out == [*(f"line {number}" for number in range(1, 2001)), "tail"]


KINDS = [("mount", "uts"), ("user", "mount", "uts")]


@pytest.mark.parametrize("namespaces", KINDS, ids="-".join)
async def test_mounts_are_private_and_nothing_is_made_on_the_host(
    bench: Bench, namespaces: tuple[str, ...]
) -> None:
    needs_mounts()
    if namespaces[0] == "mount" and "user" in bench.isolation.namespaces:
        pytest.skip("needs root for namespaces without a user namespace")
    volume = bench.root / "volume"
    (volume / "sub").mkdir(parents=True)
    (volume / "file").write_text("content")
    places = {"/new/deep": volume, "/usr/share/new": volume, "/new/deep/sub": volume / "sub"}
    mounts = [{"source": str(v), "target": k, "read_only": False} for k, v in places.items()]
    mounts += [{"source": str(volume / "file"), "target": "/new/one", "read_only": True}]
    script = (
        "hostname; cat /new/deep/file /usr/share/new/file /new/one; echo; echo x > /new/deep/made;"
        " echo x > /new/one || echo fixed; ls /usr/share | wc -l; read x < /proc/version;"
        " echo $x | cut -c1-5; echo up; sleep 1000"
    )
    orders = {"mounts": mounts, "namespaces": list(namespaces)}
    supervised = bench.start(script, **orders)
    await eventually(lambda: "up\n" in bench.log(), what="the container's word")
    lines = bench.log().splitlines()
    assert lines[:2] == ["inside", "contentcontentcontent"]
    assert {"fixed", "Linux"} <= set(lines)
    assert str(len(list(Path("/usr/share").iterdir())) + 1) in lines
    assert (volume / "made").read_text() == "x\n"
    beside = {**bench.orders("", **orders), "target": supervised.pid}
    beside["argv"] = ["sh", "-c", "hostname; ls /new; exit 4"]
    assert await run_beside(beside, 10) == (4, "inside\ndeep\none\n")
    supervised.kill()
    bench.end()
    assert not Path("/new").exists()
    assert not Path("/usr/share/new").exists()


@pytest.mark.parametrize("namespaces", KINDS, ids="-".join)
async def test_a_volume_over_the_data_leaves_the_others_in_reach(
    bench: Bench, namespaces: tuple[str, ...]
) -> None:
    """A pod mounts /tmp, and its volumes and the node's scratch lie below /tmp."""
    needs_mounts()
    if namespaces[0] == "mount" and "user" in bench.isolation.namespaces:
        pytest.skip("needs root for namespaces without a user namespace")
    above = "/" + bench.root.parts[1]
    for name in ("over", "other"):
        (bench.root / name).mkdir()
        (bench.root / name / "file").write_text(name)
    places = {above: "over", f"{above}/in/side": "other", "/new/place": "other"}
    mounts = [
        {"source": str(bench.root / name), "target": target, "read_only": name == "other"}
        for target, name in places.items()
    ]
    script = f"cat {above}/file {above}/in/side/file /new/place/file; echo; echo up; sleep 1000"
    supervised = bench.start(script, mounts=mounts, namespaces=list(namespaces), cwd="/")
    await eventually(lambda: "up\n" in bench.log(), what="the container's word")
    assert bench.log().splitlines()[0] == "overotherother"
    supervised.kill()
    bench.end()


async def test_command_beside_is_killed_when_it_takes_too_long(bench: Bench) -> None:
    supervised = bench.start("exec sleep 1000")
    beside = {**bench.orders(""), "target": supervised.pid}
    beside["argv"] = ["sh", "-c", f"echo $$ > {bench.root}/pid; exec sleep 1000"]
    with pytest.raises(TimeoutError):
        await run_beside(beside, 0.5)
    pid = int((bench.root / "pid").read_text())
    await eventually(lambda: not running(pid), what="the end of the command")
    supervised.kill()
    bench.end()
