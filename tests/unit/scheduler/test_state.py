"""The state kept by events is the one that the present objects alone would give."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.drawn import gang, node, pod
from tests.support.examples import examples

from lockstep.api.core import Node, Pod
from lockstep.api.gang import Gang
from lockstep.api.meta import ObjectMeta
from lockstep.api.topology import Tier, Topology, TopologySpec
from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.workload import Workload
from lockstep.scheduler.core.resources.device_allocation import Grant, Spot
from lockstep.scheduler.core.state.cluster import Cluster

NODES = ["n1", "n2", "n3"]
PODS = ["p1", "p2", "p3", "p4"]
GANGS = ["g1", "g2"]
TIERS = [
    [Tier(name="spine", label="spine"), Tier(name="leaf", label="leaf")],
    [Tier(name="leaf", label="leaf")],
]


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    gpus = draw(st.sampled_from([0, 2, 8]))
    more: dict[str, Any] = {
        "labels": {"spine": draw(st.sampled_from("ab")), "leaf": draw(st.sampled_from("xy"))},
        "taints": draw(st.sampled_from([[], ["maintenance"]])),
        "cordoned": draw(st.booleans()),
        "ready": draw(st.booleans()),
    }
    if draw(st.booleans()):
        more["extended"] = {"example.com/fpga": 2}
    if gpus and draw(st.booleans()):
        ill = draw(st.integers(0, gpus))
        more["devices"] = [{"index": i, "nvlink": i // 4, "healthy": i != ill} for i in range(gpus)]
    return node(draw(st.sampled_from(NODES)), gpus=gpus, **more)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    name = draw(st.sampled_from(PODS))
    gpus = draw(st.integers(0, 2))
    on = draw(st.sampled_from(["", *NODES]))
    held = ",".join(str(draw(st.integers(0, 7))) for _ in range(gpus)) if on else ""
    ports = [{"containerPort": 80, "hostPort": 80}] if draw(st.booleans()) else []
    return pod(
        name,
        gpus=gpus,
        cpu=draw(st.sampled_from([0, "500m", 4])),
        on=on,
        held=held,
        gang=draw(st.sampled_from(["", *GANGS])),
        ports=ports,
        uid=draw(st.sampled_from(["u1", "u2"])),
        phase=draw(st.sampled_from(["Pending", "Running", "Succeeded", "Failed"])),
        terminating=draw(st.booleans()),
        nodeSelector=draw(st.sampled_from([{}, {"leaf": "x"}])),
        requests=draw(st.sampled_from([{}, {"example.com/fpga": 1}])),
    )


EVENTS = st.one_of(
    st.tuples(st.just("set_node"), nodes()),
    st.tuples(st.just("remove_node"), st.sampled_from(NODES)),
    st.tuples(st.just("set_pod"), pods()),
    st.tuples(st.just("remove_pod"), st.sampled_from(PODS)),
    st.tuples(st.just("assume"), st.sampled_from(PODS), st.sampled_from(NODES)),
    st.tuples(st.just("forget"), st.sampled_from(PODS)),
    st.tuples(st.just("set_gang"), st.sampled_from(GANGS), st.integers(1, 3)),
    st.tuples(st.just("remove_gang"), st.sampled_from(GANGS)),
    st.tuples(st.just("set_topology"), st.sampled_from(TIERS)),
    st.tuples(st.just("look"), st.none()),
)


class Truth:
    """The objects that exist, and the assumptions made and not confirmed."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.gangs: dict[str, Gang] = {}
        self.assumed: dict[str, tuple[str, Spot]] = {}
        self.topology: Topology | None = None

    def apply(self, cluster: Cluster, event: tuple[Any, ...]) -> None:
        match event:
            case "set_node", found:
                self.nodes[found.metadata.name] = found
                cluster.set_node(found)
            case "remove_node", name:
                self.nodes.pop(name, None)
                cluster.remove_node(name)
            case "set_pod", found:
                name = found.metadata.name
                same = self.assumed.get(name, ("", None))[0] == found.metadata.uid
                if not same or found.spec.node_name:
                    self.assumed.pop(name, None)
                self.pods[name] = found
                cluster.set_pod(found)
            case "remove_pod", name:
                self.pods.pop(name, None)
                self.assumed.pop(name, None)
                cluster.remove_pod("default", name)
            case "assume", name, where:
                self._assume(cluster, name, where)
            case "forget", name:
                found = self.pods.get(name)
                self.assumed.pop(name, None)
                cluster.forget(("default", name), found.metadata.uid if found else "")
            case "set_gang", name, members:
                self.gangs[name] = gang(name, minMember=members)
                cluster.set_gang(self.gangs[name])
            case "remove_gang", name:
                self.gangs.pop(name, None)
                cluster.remove_gang("default", name)
            case "set_topology", tiers:
                meta = ObjectMeta(name="default")
                self.topology = Topology(metadata=meta, spec=TopologySpec(tiers=tiers))
                cluster.set_topology(self.topology)
            case "look", _:
                observe(cluster)

    def _assume(self, cluster: Cluster, name: str, where: str) -> None:
        found = self.pods.get(name)
        if found is None or found.spec.node_name or found.status.phase != "Pending":
            return
        spot = Spot(where, Grant(1))
        self.assumed[name] = (found.metadata.uid, spot)
        cluster.assume([(("default", name), spot)])

    def rebuilt(self) -> Cluster:
        cluster = Cluster()
        if self.topology:
            cluster.set_topology(self.topology)
        for found in self.gangs.values():
            cluster.set_gang(found)
        for one in self.pods.values():
            cluster.set_pod(one)
        for name, (_, spot) in self.assumed.items():
            cluster.assume([(("default", name), spot)])
        for there in self.nodes.values():
            cluster.set_node(there)
        return cluster


def columns_of(table: NodeTable, row: int) -> dict[str, tuple[int, int, int]]:
    """What one node offers, what is used and what is free, by resource."""
    found = {}
    for i, column in enumerate(table.columns.names):
        offer, used = int(table.allocatable[i, row]), int(table.used[i, row])
        # A port's column that nobody uses exists in one history and not in another.
        if used or (offer and not column.startswith("hostport/")):
            found[column] = (offer, used, int(table.free[i, row]))
    return found


def node_of(table: NodeTable, row: int) -> tuple[Any, ...]:
    return (
        columns_of(table, row),
        int(table.gpu_healthy[row]),
        int(table.gpu_used[row]),
        bool(table.ready[row]),
        bool(table.schedulable[row]),
        table.taint_sets.sets[table.taints[row]],
        [t.paths[t.ids[row]] if t.ids[row] >= 0 else None for t in table.tiers.indices],
    )


def unit_of(workload: Workload) -> tuple[Any, ...]:
    groups = [
        (m.need, m.want, m.finished, [x.name for x in m.bound], [x.name for x in m.pending])
        for m in workload.pod_groups
    ]
    return workload.gang is not None, groups


def observe(cluster: Cluster) -> dict[str, Any]:
    """Everything that decisions are made from, by name rather than by row."""
    table = cluster.table
    table.widen()
    order = sorted(table.rows, key=lambda name: table.rank()[table.rows[name]])
    rows = [table.rows[name] for name in order]
    fits = {}
    for member in cluster.pods.values():
        fit = cluster.fits.of(member.shape)
        fits[member.name] = [(int(fit.count[row]), float(fit.liking[row])) for row in rows]
        assert not fit.count[~table.live].any()
    return {
        "nodes": {name: node_of(table, row) for name, row in zip(order, rows, strict=True)},
        "order": order,
        "fits": fits,
        "units": {key: unit_of(workload) for key, workload in cluster.workloads.items()},
    }


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(EVENTS, max_size=30))
def test_incremental_state_equals_a_rebuild(events):
    cluster, truth = Cluster(), Truth()
    for event in events:
        truth.apply(cluster, event)
    assert observe(cluster) == observe(truth.rebuilt())


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(EVENTS, max_size=15))
def test_repeating_an_event_changes_nothing(events):
    once, twice = Cluster(), Cluster()
    truth, again = Truth(), Truth()
    for event in events:
        truth.apply(once, event)
        again.apply(twice, event)
        again.apply(twice, event)
    assert observe(once) == observe(twice)


def test_nothing_is_left_when_everything_is_removed():
    cluster, truth = Cluster(), Truth()
    for i, name in enumerate(NODES):
        truth.apply(cluster, ("set_node", node(name)))
        held = ",".join(str(x) for x in range(i + 1))
        truth.apply(cluster, ("set_pod", pod(f"p{i}", gpus=i + 1, on=name, held=held)))
    for i, name in enumerate(NODES):
        truth.apply(cluster, ("remove_pod", f"p{i}"))
        assert int(cluster.table.gpu_used[cluster.table.rows[name]]) == 0
    assert not np.any(cluster.table.used)
    for name in NODES:
        truth.apply(cluster, ("remove_node", name))
    assert not np.any(cluster.table.free)
    assert not cluster.workloads


def test_an_older_view_of_a_pod_undoes_no_newer_one():
    cluster = Cluster()
    cluster.set_node(node("n1"))
    new, old = pod("p", gpus=1, on="n1", held="0"), pod("p", gpus=1)
    for version, view in ((7, new), (5, old)):
        meta = ObjectMeta(name="p", namespace="default", uid="u", resource_version=str(version))
        cluster.set_pod(Pod(metadata=meta, spec=view.spec, status=view.status))
    assert cluster.pods["default", "p"].node == "n1"


def test_rows_are_reused_and_the_table_grows():
    cluster = Cluster()
    for i in range(200):
        cluster.set_node(node(f"n{i}"))
    for i in range(0, 200, 2):
        cluster.remove_node(f"n{i}")
    capacity = cluster.table.capacity
    for i in range(0, 200, 2):
        cluster.set_node(node(f"m{i}"))
    assert cluster.table.capacity == capacity
    assert len(cluster.table) == 200


def test_names_of_nodes_long_gone_do_not_pile_up():
    cluster = Cluster()
    shape = cluster.shapes.of(pod("p", nodeSelector={"kubernetes.io/hostname": "n1999"}).spec)
    for i in range(2000):
        cluster.set_node(node(f"n{i}"))
        cluster.fits.of(shape)
        cluster.remove_node(f"n{i - 1}")
    assert cluster.fits.of(shape).count.sum() > 0
    assert max(len(tier) for tier in cluster.table.tiers.indices) < 500
    assert len(cluster.table.label("kubernetes.io/hostname").values) < 500
