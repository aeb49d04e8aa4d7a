"""The keeper between a kernel (a fake one here) and its clients."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from lockstep.notebooks.inside import messages
from lockstep.notebooks.inside.keeper import Keeper
from lockstep.notebooks.inside.kernel import Kernel
from lockstep.notebooks.inside.session_state import META
from lockstep.notebooks.inside.shelf import Shelf

Json = dict[str, Any]


class FakeKernel:
    """Takes messages and answers what it is told to."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.info: Json = {"implementation": "fake"}
        self.obstacles: list[Json] = []
        self.while_saving: Callable[[], None] = lambda: None
        self.interrupted: Callable[[], None] = lambda: None

    async def start(self) -> None: ...

    async def interrupt(self) -> None:
        self.interrupted()

    def send(self, channel: str, message: Json) -> None:
        self.sent.append(f"{channel} {message['msg_id']}")

    async def ask(self, name: str, *arguments: Any) -> Json:
        if name == "obstacles":
            return {"done": self.obstacles}
        if name == "save":
            self.while_saving()
            (Path(arguments[0]) / META).write_text("{}")
            return {"done": {"bytes": 7, "variables": ["x"]}}
        return {"done": {"variables": ["x"], "dropped": []}}


class FakeClient:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[Json] = []

    def put(self, frame: str | bytes) -> None:
        self.told.append(json.loads(frame))

    @property
    def own(self) -> list[str]:
        return [one["lockstep"] for one in self.told if "lockstep" in one]


def frame(number: str, kind: str = "execute_request") -> str:
    return json.dumps({"channel": "shell", "header": {"msg_id": number, "msg_type": kind}})


def said(kind: str, parent: str, **content: Any) -> Json:
    return messages.make(kind, content, {"msg_id": parent})


async def made(tmp_path: Path) -> tuple[Keeper, FakeKernel, FakeClient]:
    now = [100.0]
    keeper = Keeper(Shelf(tmp_path / "k", b"key"), clock=lambda: now[0])
    kernel, client = FakeKernel(), FakeClient()
    await keeper.start(cast("Kernel", kernel))
    keeper.connect(client)
    return keeper, kernel, client


async def test_long_silent_cell_is_not_idle(tmp_path: Path) -> None:
    keeper, _, client = await made(tmp_path)
    keeper.take(client, frame("a"))
    assert keeper.state()["execution_state"] == "busy"
    assert keeper.state()["idle_for"] == 0.0
    assert await keeper.park() == {"busy": True}
    keeper.hear("shell", said("execute_reply", "a", status="ok"))
    assert keeper.state()["execution_state"] == "idle"


async def test_parked_session_gives_messages_back(tmp_path: Path) -> None:
    keeper, kernel, client = await made(tmp_path)
    assert (await keeper.park())["parked"]["generation"] == 1
    keeper.take(client, frame("a"))
    assert kernel.sent == []
    assert client.own == ["parked", "returned"]
    again = await keeper.park()
    assert again["parked"]["generation"] == 1, "asked again it writes nothing"


async def test_cell_that_comes_while_parking_undoes_it(tmp_path: Path) -> None:
    keeper, kernel, client = await made(tmp_path)
    kernel.while_saving = lambda: keeper.take(client, frame("a"))
    assert await keeper.park() == {"busy": True}
    assert kernel.sent == ["shell a"]
    assert keeper.parked is None


async def test_obstacles_keep_it_from_parking_unless_dropped(tmp_path: Path) -> None:
    keeper, kernel, _ = await made(tmp_path)
    kernel.obstacles = [{"name": "g", "type": "generator", "why": "cannot pickle"}]
    assert await keeper.park() == {"obstacles": kernel.obstacles}
    assert keeper.parked is None
    assert (await keeper.park(drop=True))["parked"]["dropped"] == ["g"]


async def test_message_sent_twice_runs_once(tmp_path: Path) -> None:
    keeper, kernel, client = await made(tmp_path)
    keeper.take(client, frame("a"))
    keeper.take(client, frame("a"))
    assert kernel.sent == ["shell a"]
    assert client.own == ["accepted", "accepted"]


async def test_output_is_kept_while_no_client_is_there(tmp_path: Path) -> None:
    keeper, _, client = await made(tmp_path)
    keeper.take(client, frame("a"))
    keeper.disconnect(client)
    keeper.hear("iopub", said("stream", "a", text="later"))
    keeper.hear("shell", said("execute_reply", "a", status="ok"))
    other = FakeClient()
    keeper.connect(other)
    assert [one["msg_type"] for one in other.told] == ["stream", "execute_reply"]


async def test_refused_state_leaves_no_usable_session(tmp_path: Path) -> None:
    partial = Shelf(tmp_path / "k", b"other").begin()
    (partial / META).write_text("{}")
    Shelf(tmp_path / "k", b"other").finish(partial)
    keeper, kernel, client = await made(tmp_path)
    assert "not signed by its owner" in keeper.state()["failure"]
    keeper.take(client, frame("a"))
    assert kernel.sent == []


async def test_pod_that_is_ended_by_others_keeps_what_it_can(tmp_path: Path) -> None:
    keeper, kernel, client = await made(tmp_path)
    kernel.obstacles = [{"name": "g", "type": "generator", "why": "cannot pickle"}]
    keeper.take(client, frame("a"))
    kernel.interrupted = lambda: keeper.hear("shell", said("execute_reply", "a", status="error"))
    await keeper.last_park()
    assert keeper.parked == {"generation": 1, "bytes": 7, "variables": 1, "dropped": ["g"]}
