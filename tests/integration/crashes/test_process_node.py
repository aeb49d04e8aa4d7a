"""The process node, killed for real at each call: every container runs once and none is left over.

The pods are real processes. They outlive the node that started them, and the next one adopts them.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.support.crashing import Arena, Scenario, Stage
from tests.support.doomed_node import DoomedNode
from tests.support.process_node import ProcessNode, pod, shims_of

from lockstep.api.names import GPU
from lockstep.kube.errors import NotFound
from lockstep.nodes.process.spec import POD_RUNS

GOES_ON = "while :; do sleep 0.05; done"
SEEN = "$NAME $NVIDIA_VISIBLE_DEVICES"


class Day:
    """What pods do on the node, and the file in which each container says that it runs."""

    def __init__(self, place: Path) -> None:
        self.runs = place / "runs"
        self.node = place / "node"

    def pod(self, name: str, script: str, *, gpus: int = 0, **spec: Any) -> dict[str, Any]:
        env = [{"name": "NAME", "value": name}]
        resources = {"limits": {GPU: str(gpus)}} if gpus else {}
        whole = f"echo {SEEN} >> {self.runs}; {script}"
        container = {"env": env, "resources": resources}
        spec = {"terminationGracePeriodSeconds": 1, **spec}
        return pod(name, whole, container=container, **spec)

    async def play(self, stage: Stage) -> None:
        """Some end, one is restarted, one deleted; a GPU goes from one pod to the next."""
        self.runs.unlink(missing_ok=True)
        client = stage.client
        stage.start()
        again = f'test $(grep -c "^again" {self.runs}) -gt 1'
        await client.create(POD_RUNS, self.pod("stays", GOES_ON, gpus=1))
        await client.create(POD_RUNS, self.pod("leaves", GOES_ON, gpus=1))
        await client.create(POD_RUNS, self.pod("fails", "exit 3"))
        await client.create(POD_RUNS, self.pod("again", again, restartPolicy="OnFailure"))
        await phases(stage, stays="Running", leaves="Running", fails="Failed", again="Succeeded")
        await client.create(POD_RUNS, self.pod("refused", GOES_ON, gpus=1))
        await phases(stage, refused="Failed")
        await client.delete(POD_RUNS, "leaves", "default")
        await phases(stage, leaves="")
        await client.create(POD_RUNS, self.pod("follows", GOES_ON, gpus=1))
        await phases(stage, follows="Running")

    async def outcome(self, stage: Stage) -> object:
        """Return how the pods are, what ran, and what of it there still is."""
        found = (await stage.client.list(POD_RUNS, "default")).items
        lines = self.runs.read_text().splitlines() if self.runs.exists() else []
        cards = dict(line.split(" ", 1) for line in lines)
        return {
            "pods": {
                p.metadata.name: (
                    p.status.phase,
                    p.status.reason,
                    [(c.restart_count, bool(c.state.running)) for c in p.status.container_statuses],
                )
                for p in found
            },
            "runs": dict(Counter(line.split()[0] for line in lines)),
            "cards": sorted((cards.get("stays"), cards.get("follows"))),
            "freed": cards.get("leaves") == cards.get("follows"),
            "shims": len(shims_of(self.node)),
            "homes": len(list(self.node.glob("pods/*"))),
        }


async def phases(stage: Stage, **wanted: str) -> None:
    """Wait until pods are in these phases; one without is gone."""

    async def look() -> bool:
        return {name: await phase(stage, name) for name in wanted} == wanted

    await stage.until(look, f"{wanted}")


async def phase(stage: Stage, name: str) -> str:
    try:
        return (await stage.client.get(POD_RUNS, name, "default")).status.phase
    except NotFound:
        return ""


@pytest.fixture
def day(tmp_path: Path) -> Day:
    return Day(tmp_path)


async def test_it_ends_the_same_wherever_the_node_is_killed(arena: Arena, day: Day) -> None:
    begin = partial(DoomedNode, arena.server.kubeconfig, day.node)
    try:
        await arena.endures(Scenario(begin, day.play, day.outcome))
    finally:
        # What the last one left is adopted, or is an orphan; either way it ends with its node.
        last = ProcessNode(arena.server, day.node).start()
        last.stop()
    assert not last.shims()
    assert not last.groups()
