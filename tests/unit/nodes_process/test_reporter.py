"""What the server shows of a pod is brought back to what is true, whoever wrote over it."""

from __future__ import annotations

import asyncio
import dataclasses
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace
from tests.support.pods import make, running
from tests.support.waiting import eventually

from lockstep.api.meta import Condition
from lockstep.api.wire import convert, to_builtins
from lockstep.nodes.process.facts import PodFacts
from lockstep.nodes.process.home import Record
from lockstep.nodes.process.reporter import Reporter
from lockstep.nodes.process.spec import Pod


class World:
    """A server with one pod, and the pod as its node knows it; all see a write at once."""

    def __init__(self) -> None:
        self.pod = make()
        self.facts = PodFacts(accepted_at=90.0, prepared=True, ip="127.0.0.9")
        record = Record(namespace="n", name="p", uid="u-1", accepted_at=90.0)
        self.home: Any = SimpleNamespace(record=record, save=lambda: None)
        self.gone = False
        self.written: list[Any] = []
        node = SimpleNamespace(client=self, host_ip="127.0.0.1")
        self.reporter = Reporter(cast(Any, node), cast(Any, self))

    async def patch(self, _res: Any, _name: str, body: Any, _space: str, **_: Any) -> Pod:
        await asyncio.sleep(0)
        self.written.append(body["status"])
        self.show(body["status"])
        return self.pod

    def show(self, status: Any) -> None:
        """Let the server have this status, and tell of it."""
        version = str(int(self.pod.metadata.resource_version or "0") + 1)
        meta = replace(self.pod.metadata, resource_version=version)
        merged = {**to_builtins(self.pod.status), **status}
        shown = {name: value for name, value in merged.items() if value is not None}
        self.pod = replace(self.pod, metadata=meta, status=convert(shown, type(self.pod.status)))
        self.reporter.look()

    def object_gone(self) -> None:
        raise AssertionError("it is there")

    def changed(self) -> None:
        """Nothing follows."""

    def say(self, *_: Any) -> None:
        """Nobody listens."""


@pytest.fixture
async def world() -> Any:
    """A pod whose container runs, as the server has been told."""
    made = World()
    task = asyncio.create_task(made.reporter.run())
    try:
        made.reporter.look()
        await eventually(lambda: len(made.written) == 1)
        made.facts = dataclasses.replace(made.facts, containers={"main": running()})
        made.reporter.look()
        await eventually(lambda: made.pod.status.phase == "Running")
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_status_that_comes_late_is_written_over(world: World) -> None:
    world.show(world.written[0])
    assert world.pod.status.phase == "Pending"
    await eventually(lambda: world.pod.status.phase == "Running")
    assert len(world.written) == 3


async def test_what_others_say_of_the_pod_stays(world: World) -> None:
    other = to_builtins(Condition(type="DisruptionTarget", status="True"))
    world.show({"conditions": [*to_builtins(world.pod.status)["conditions"], other]})
    await world.reporter.told()
    assert "DisruptionTarget" in {one.type for one in world.pod.status.conditions}
    written = len(world.written)
    world.show({})
    await world.reporter.told()
    assert len(world.written) == written, "nothing is said twice"
