"""Drawn stories of queues, and what holds after each step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from tests.support.running import PRIORITIES, Running

from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.quota.ledger import Ledger
from lockstep.scheduler.core.state.cluster import Cluster
from lockstep.scheduler.core.util.bitmask import indices_of

GPU = "nvidia.com/gpu"
NODES = "s/x: a:4 b:4\n s/y: c:4 d:4"
TREES: tuple[dict[str, str | None], ...] = (
    {"q": None, "r": None},
    {"org": None, "q": "org", "r": "org", "t": None},
    {"org": None, "q": "org", "firm": None, "r": "firm", "t": "firm"},
)


@dataclass
class Submit:
    text: str
    queue: str
    priority: str


@dataclass
class End:
    which: int


@st.composite
def stories(draw: st.DrawFn) -> tuple[dict[str, dict[str, Any]], list[Submit | End]]:
    tree = draw(st.sampled_from(TREES))
    queues: dict[str, dict[str, Any]] = {}
    for name, parent in tree.items():
        spec: dict[str, Any] = {"parent": parent} if parent else {}
        promised, most = draw(st.sampled_from([0, 0, 4, 8])), draw(st.sampled_from([None, 8, 12]))
        if promised:
            spec["guaranteed"] = {GPU: promised}
            spec["lending"] = draw(st.sampled_from(["Always", "Always", "Never"]))
        if most is not None:
            spec["limit"] = {GPU: most}
        queues[name] = spec
    events: list[Submit | End] = []
    for number in range(draw(st.integers(2, 9))):
        if draw(st.integers(0, 4)) == 0:
            events.append(End(draw(st.integers(0, 8))))
            continue
        least, extra = draw(st.integers(1, 3)), draw(st.sampled_from([0, 0, 0, 2]))
        size = draw(st.sampled_from([1, 2, 4]))
        many = f"{least}..{least + extra}" if extra else f"{least}"
        tier = draw(st.sampled_from(["", "", " leaf"]))
        priority = draw(st.sampled_from(["low", "", "high"]))
        queue = draw(st.sampled_from(sorted(tree)))
        events.append(Submit(f"g{number}: {many}x{size}{tier}", queue, priority))
    return queues, events


def standing(world: Running) -> dict[str, list[tuple[int, float, str, int]]]:
    """By queue: priority, age, name and GPUs (of the members it needs) of what runs there."""
    found: dict[str, list[tuple[int, float, str, int]]] = {}
    for name, drawn in world.gangs.items():
        places = world.places(name)
        if places:
            workload = world.cluster.workloads[WorkloadKey("Gang", "default", name)]
            members = [world.cluster.pods["default", pod] for pod in places]
            least = drawn.gang.spec.groups[0].min
            gpus = members[0].shape.gpus * least
            priority = PRIORITIES.get(drawn.gang.spec.priority_class_name, 0)
            since = min(m.since or 0.0 for m in members)
            entry = (-priority, since, name, gpus)
            found.setdefault(workload.queue, []).append(entry)
    return found


def rank(world: Running, queues: dict[str, dict[str, Any]]) -> list[int]:
    """The list that every step raises: secured workloads, deepest queues first, then what runs."""
    there = standing(world)
    depths: dict[str, int] = {}
    inside: dict[str, list[tuple[int, float, str, int]]] = {name: [] for name in queues}
    for name in queues:
        above, depth = name, 0
        while above:
            inside[above] += there.get(name, [])
            above, depth = queues[above].get("parent") or "", depth + 1
        depths[name] = depth
    levels = [-value for value in (*PRIORITIES.values(), 0)]
    result = []
    for depth in sorted(set(depths.values()), reverse=True):
        counts: Counter[int] = Counter()
        for name in (n for n in queues if depths[n] == depth):
            left = queues[name].get("guaranteed", {}).get(GPU, 0) - idle(world, queues, name)
            for priority, _, _, gpus in sorted(inside[name]):
                if 0 < gpus <= left:
                    left -= gpus
                    counts[priority] += 1
        result += [counts[level] for level in sorted(levels)]
    running = Counter(entry[0] for entries in there.values() for entry in entries)
    return result + [running[level] for level in sorted(levels)]


def idle(world: Running, queues: dict[str, dict[str, Any]], name: str) -> int:
    """The GPUs that parts of a queue keep for themselves without using them."""
    found, total = 0, used(world, queues)
    for part in (one for one in queues if queues[one].get("parent") == name):
        below, kept = idle(world, queues, part), 0
        if queues[part].get("lending") == "Never":
            kept = queues[part]["guaranteed"][GPU]
        found += max(total[part] + below, kept) - total[part]
    return found


def used(world: Running, queues: dict[str, dict[str, Any]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for name, drawn in world.gangs.items():
        gpus = sum(world.cluster.pods["default", pod].shape.gpus for pod in world.places(name))
        above = drawn.gang.spec.queue
        while above:
            total[above] += gpus
            above = queues[above].get("parent") or ""
    return total


def check_state(world: Running, queues: dict[str, dict[str, Any]]) -> None:
    held: Counter[tuple[str, int]] = Counter()
    for member in world.cluster.pods.values():
        if member.node:
            held.update((member.node, card) for card in indices_of(member.gpus))
            assert len(indices_of(member.gpus)) == member.shape.gpus
    assert all(number == 1 and card < 4 for (_, card), number in held.items())
    for name, amount in used(world, queues).items():
        assert amount <= queues[name].get("limit", {}).get(GPU, amount), f"{name} over its limit"
    for name, drawn in world.gangs.items():
        assert len(world.places(name)) in (0, *range(drawn.gang.spec.groups[0].min, 9))
        wish = drawn.gang.spec.topology
        if wish is not None:
            leaves = {"ab".find(n) >= 0 for n in world.places(name).values()}
            assert len(leaves) <= 1
    check_ledger(world.cluster)


def check_ledger(cluster: Cluster) -> None:
    """The accounts kept by events are those that the pods alone would give."""

    def shown(ledger: Ledger) -> dict[str, tuple[dict[str, int], set[WorkloadKey]]]:
        return {
            name: ({r: n for r, n in account.used.items() if n}, set(account.holding))
            for name, account in ledger.accounts.items()
            if any(account.used.values()) or account.holding
        }

    before = shown(cluster.ledger)
    cluster.ledger.stale = cluster.ledger.active
    cluster.settle()
    assert shown(cluster.ledger) == before
