"""The controller of kernels, ended at each of its calls: a kernel is parked once and comes back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.kernels import played
from tests.support.lives import in_process

from lockstep.api.core import NAMESPACES, PODS
from lockstep.api.names import SYSTEM_NAMESPACE
from lockstep.api.notebooks import ENVIRONMENTS, KERNELS
from lockstep.kube.client import Client
from lockstep.kube.errors import AlreadyExists, NotFound
from lockstep.notebooks.core import kernel_pod
from lockstep.notebooks.main import add_notebooks
from lockstep.runtime.manager import Manager

NAME = "session"


@pytest.fixture(autouse=True)
def hurried_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SOON", "OFTEN", "SELDOM"):
        monkeypatch.setattr(f"lockstep.notebooks.core.kernels.{name}", 0.03)


async def notebooks(client: Client, ready: Callable[[str], None]) -> None:
    """Control notebooks and kernels, without an election."""
    manager = Manager(client, name="controllers", leader_elect=False)
    add_notebooks(manager)
    await manager.run(ready)


async def told(stage: Stage) -> None:
    """A kernel starts, idles and is parked, is woken, and is parked again."""
    with contextlib.suppress(AlreadyExists):
        await stage.client.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
    with contextlib.suppress(NotFound):
        await stage.client.delete(KERNELS, NAME, "default")
    stage.start()
    spec = {"idle": {"after": "1h"}}
    environment = {"metadata": {"name": "plain"}, "spec": spec}
    with contextlib.suppress(AlreadyExists):
        await stage.client.create(ENVIRONMENTS, environment, "default")
    async with played(stage.client) as kernels:
        body = {"metadata": {"name": NAME}, "spec": {"environment": "plain", "owner": "ana"}}
        await stage.client.create(KERNELS, body, "default")
        for wake in ("", "cell"):
            if wake:
                await stage.client.patch(KERNELS, NAME, {"spec": {"wake": wake}}, "default")
            await _is(stage, "Running")
            kernels.idle_for = 7200.0
            await _is(stage, "Parked")
        assert kernels.writes == 2, "each time it was parked its state was written once"
        assert len(kernels.pods) == 2, "it never had two pods at a time, and none in vain"


async def _is(stage: Stage, phase: str) -> None:
    async def look() -> bool:
        kernel = await stage.client.get(KERNELS, NAME, "default")
        pods = (
            await stage.client.list(PODS, "default", label_selector=kernel_pod.KERNEL_LABEL)
        ).items
        return kernel.status.phase == phase and len(pods) == (phase == "Running")

    await stage.until(look, f"the kernel is {phase}")


async def outcome(stage: Stage) -> object:
    """Return how the kernel is, and its pods; one whose creation came late goes again."""
    kernel = await stage.client.get(KERNELS, NAME, "default")
    status = kernel.status
    parked = status.parked.generation if status.parked else 0
    pods = (await stage.client.list(PODS, "default")).items
    return status.phase, parked, status.woken, [one.metadata.name for one in pods]


def story() -> Scenario:
    return Scenario(in_process(notebooks), told, outcome)


async def test_a_kernel_is_parked_once_wherever_its_controller_ends(arena: Arena) -> None:
    await arena.endures(story())


@pytest.mark.real_sample()
async def test_a_kernel_is_parked_once_in_any_weather(arena: Arena) -> None:
    await arena.weathers(story(), range(arena.seeds))
