"""Which nodes a pod may stand on, and how many of its kind fit there."""

from typing import Any

import pytest
from tests.support.drawn import node, pod

from lockstep.api.core import Node, Pod
from lockstep.api.wire import convert
from lockstep.scheduler.core.resources.columns import pod_request
from lockstep.scheduler.core.state.cluster import Cluster


def fit(one: Pod, *nodes: Node) -> dict[str, int]:
    cluster = Cluster()
    for there in nodes:
        cluster.set_node(there)
    count = cluster.fits.of(cluster.shapes.of(one.spec)).count
    return {name: int(count[row]) for name, row in cluster.table.rows.items() if count[row]}


LABELLED = (
    node("a", gpus=1, cpu=1, labels={"gpu": "h100", "gen": "9"}),
    node("b", gpus=1, cpu=1, labels={"gpu": "a100", "gen": "8"}),
    node("c", gpus=1, cpu=1),
)


def terms(*requirements: list[Any], fields: list[Any] = ()) -> dict[str, Any]:
    """Node affinity of one term a list of (key, operator, values)."""

    def plain(requirement: list[Any]) -> dict[str, Any]:
        key, operator, values = requirement
        return {"key": key, "operator": operator, "values": values}

    found = [{"matchExpressions": [plain(r) for r in term]} for term in requirements]
    if fields:
        found.append({"matchFields": [plain(r) for r in fields]})
    required = {"nodeSelectorTerms": found}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


SELECTION = [
    ({}, "abc"),
    ({"nodeSelector": {"gpu": "h100"}}, "a"),
    ({"nodeSelector": {"gpu": "h100", "gen": "8"}}, ""),
    (terms([("gpu", "In", ["h100", "a100"])]), "ab"),
    (terms([("gpu", "In", ["never-seen"])]), ""),
    (terms([("gpu", "NotIn", ["h100"])]), "bc"),
    (terms([("gpu", "Exists", [])]), "ab"),
    (terms([("gpu", "DoesNotExist", [])]), "c"),
    (terms([("gen", "Gt", ["8"])]), "a"),
    (terms([("gen", "Lt", ["9"])]), "b"),
    (terms([("gpu", "Gt", ["1"])]), ""),
    (terms([("gen", "Gt", ["x"])]), ""),
    (terms([("gpu", "In", ["h100"])], [("gpu", "DoesNotExist", [])]), "ac"),
    (terms([("gpu", "Exists", []), ("gen", "In", ["8"])]), "b"),
    (terms([]), ""),
    (terms(fields=[("metadata.name", "In", ["c"])]), "c"),
    (terms(fields=[("metadata.name", "NotIn", ["c"])]), "ab"),
    (terms(fields=[("spec.other", "In", ["c"])]), ""),
]


@pytest.mark.parametrize(("spec", "expected"), SELECTION)
def test_selector_and_affinity(spec, expected):
    assert "".join(sorted(fit(pod("p", gpus=1, **spec), *LABELLED))) == expected


def tainted(name: str, key: str, value: str, effect: str) -> Node:
    plain = node(name, gpus=1)
    taint = {"key": key, "value": value, "effect": effect}
    return convert(
        {"metadata": {"name": name}, "spec": {"taints": [taint]}, "status": plain.status}, Node
    )


def tolerate(key: str = "", operator: str = "Equal", value: str = "", effect: str = "") -> dict:
    return {"key": key, "operator": operator, "value": value, "effect": effect}


TAINTS = [
    # the taint, tolerations, whether the pod may stand there
    (("team", "x", "NoSchedule"), [], False),
    (("team", "x", "NoExecute"), [], False),
    (("team", "x", "PreferNoSchedule"), [], True),
    (("team", "x", "NoSchedule"), [tolerate("team", value="x")], True),
    (("team", "x", "NoSchedule"), [tolerate("team", value="y")], False),
    (("team", "x", "NoSchedule"), [tolerate("team", "Exists")], True),
    (("team", "x", "NoSchedule"), [tolerate("team", "Exists", effect="NoExecute")], False),
    (("team", "x", "NoSchedule"), [tolerate("", "Exists")], True),
    (("team", "x", "NoSchedule"), [tolerate("other", "Exists")], False),
    (("level", "960", "NoSchedule"), [tolerate("level", "Gt", "950")], True),
    (("level", "940", "NoSchedule"), [tolerate("level", "Gt", "950")], False),
    (("level", "940", "NoSchedule"), [tolerate("level", "Lt", "950")], True),
]


@pytest.mark.parametrize(("taint", "tolerations", "expected"), TAINTS)
def test_taints(taint, tolerations, expected):
    one = pod("p", gpus=1, tolerations=tolerations)
    assert bool(fit(one, tainted("n", *taint))) == expected


def test_cordoned_node_takes_only_those_that_bear_it():
    cordoned = node("n", gpus=1, cordoned=True)
    assert not fit(pod("p", gpus=1), cordoned)
    bears = [tolerate("node.kubernetes.io/unschedulable", "Exists")]
    assert fit(pod("p", gpus=1, tolerations=bears), cordoned)


AMOUNTS = [
    # what is shown, the pod, the node, how many fit
    ("GPUs bind", {"gpus": 3}, {"gpus": 8}, 2),
    ("CPUs bind", {"cpu": "1500m"}, {"cpu": 4}, 2),
    ("memory binds", {"requests": {"memory": "400Gi"}}, {}, 2),
    ("the number of pods binds", {}, {"pods": 3}, 3),
    ("an extended resource binds", {"requests": {"x.io/a": 2}}, {"extended": {"x.io/a": 5}}, 2),
    ("a resource the node does not have", {"requests": {"x.io/a": 1}}, {}, 0),
    (
        "ephemeral storage binds",
        {"requests": {"ephemeral-storage": "10Gi"}},
        {"extended": {"ephemeral-storage": "25Gi"}},
        2,
    ),
    ("a host port is there once", {"ports": [{"containerPort": 1, "hostPort": 80}]}, {}, 1),
    (
        "ill devices do not count",
        {"gpus": 1},
        {"gpus": 4, "devices": [{"index": i, "healthy": i > 0} for i in range(4)]},
        3,
    ),
]


@pytest.mark.parametrize(
    ("what", "fields", "offer", "expected"), AMOUNTS, ids=[a[0] for a in AMOUNTS]
)
def test_how_many_fit(what, fields, offer, expected):
    assert fit(pod("p", **fields), node("n", **offer)).get("n", 0) == expected


def test_the_same_port_by_another_protocol_is_another_port():
    cluster = Cluster()
    cluster.set_node(node("n"))
    tcp, udp = ({"containerPort": 1, "hostPort": 53, "protocol": p} for p in ("TCP", "UDP"))
    cluster.set_pod(pod("dns", on="n", ports=[tcp]))
    for port, expected in ((tcp, 0), (udp, 1)):
        shape = cluster.shapes.of(pod("p", ports=[port]).spec)
        assert int(cluster.fits.of(shape).count.max()) == expected


def containers(*cpus: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"name": f"c{i}", "resources": {"requests": {"cpu": c}}, **more} for i, c in enumerate(cpus)
    ]


REQUESTS = [
    ("containers add up", {"containers": containers(1, 2)}, 3000),
    (
        "an init container larger than all",
        {"initContainers": containers(5), "containers": containers(1, 2)},
        5000,
    ),
    (
        "init containers run one after the other",
        {"initContainers": containers(2, 2), "containers": containers(1)},
        2000,
    ),
    (
        "a sidecar stays",
        {"initContainers": containers(2, restartPolicy="Always"), "containers": containers(1)},
        3000,
    ),
    (
        "an init container beside a sidecar before it",
        {
            "initContainers": [*containers(2, restartPolicy="Always"), *containers(4)],
            "containers": containers(1),
        },
        6000,
    ),
    (
        "an init container before the sidecar runs alone",
        {
            "initContainers": [*containers(4), *containers(2, restartPolicy="Always")],
            "containers": containers(1),
        },
        4000,
    ),
    ("overhead comes on top", {"containers": containers(1), "overhead": {"cpu": "250m"}}, 1250),
    ("a limit alone is the request", {"containers": [{"resources": {"limits": {"cpu": 2}}}]}, 2000),
]


@pytest.mark.parametrize(("what", "spec", "cpu"), REQUESTS, ids=[r[0] for r in REQUESTS])
def test_what_a_pod_asks_for(what, spec, cpu):
    found = convert({"metadata": {"name": "p"}, "spec": spec}, Pod)
    assert pod_request(found.spec)["cpu"] == cpu


def test_preferred_affinity_and_soft_taints_order_nodes():
    cluster = Cluster()
    cluster.set_node(tainted("soft", "t", "", "PreferNoSchedule"))
    for there in LABELLED:
        cluster.set_node(there)
    wish = {
        "weight": 10,
        "preference": {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["8"]}]},
    }
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    shape = cluster.shapes.of(pod("p", gpus=1, affinity=affinity).spec)
    liking = cluster.fits.of(shape).liking
    order = sorted(cluster.table.rows, key=lambda n: -liking[cluster.table.rows[n]])
    assert (order[0], order[-1]) == ("a", "soft")


def test_alike_pods_share_a_shape():
    cluster = Cluster()
    plain = cluster.shapes.of(pod("a", cpu="1").spec)
    assert cluster.shapes.of(pod("b", cpu="1000m").spec) is plain
    assert cluster.shapes.of(pod("c", cpu="1", nodeSelector={"x": "y"}).spec) is not plain
