import pytest
from tests.support.simulated_jobs import job, simulate, training_job

from lockstep.api.gang import GangReservation
from lockstep.nodes.simulated.spec import parse
from lockstep.sim.input.initial_cluster import InputError, initial_cluster_of, read_initial_cluster
from lockstep.sim.input.jobs import read_jobs

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10", "nvidia.com/gpu": "2"}},
}


def changed(obj, path, value):
    *parents, last = path
    new = dict(obj)
    inner = new
    for step in parents:
        inner[step] = dict(inner[step])
        inner = inner[step]
    inner[last] = value
    return new


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (
            changed(job("a", "1x1"), ["metadata", "annotations"], {"lockstep.dev/arrival": "soon"}),
            "Gang a: metadata.annotations[lockstep.dev/arrival] is 'soon'; "
            "write seconds, 0 or more",
        ),
        (
            changed(job("a", "1x1"), ["metadata", "annotations"], {"lockstep.dev/runtime": "-1"}),
            "Gang a: metadata.annotations[lockstep.dev/runtime] is '-1'; write seconds, 0 or more",
        ),
        (
            changed(job("a", "1x1"), ["spec", "groups"], [{"name": "w", "min": 1}]),
            "Gang a: spec.groups[0].template is missing; write a pod template: a simulation makes "
            "the group's pods from it",
        ),
        (
            changed(job("a", "1x1"), ["spec", "groups"], []),
            "Gang a: spec.groups is empty; write groups, each with a template",
        ),
        (
            job("a", "1x1", priorityClassName="high"),
            "Gang a: priorityClassName 'high' is no PriorityClass of the cluster; add the "
            "PriorityClass to it, or leave the name out",
        ),
        (
            changed(job("a", "1x1"), ["spec", "groups"], 3),
            "Gang a: Expected `array`, got `int` - at `$.spec.groups`; mend the field",
        ),
    ],
)
def test_an_unusable_object_is_named_with_field_and_remedy(obj, message):
    with pytest.raises(InputError) as caught:
        read_jobs([obj], initial_cluster_of(parse("1x1")))
    assert str(caught.value) == message


ASKED = ["spec", "containers", 0, "resources", "requests", "cpu"]
STANDING = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p1"},
    "spec": {"nodeName": "n1", "containers": [{"resources": {"requests": {"cpu": "1"}}}]},
}
HUGE = 10**30


def put(obj, path, value):
    """Return *obj* with another value at *path*."""
    step, *rest = path
    new = list(obj) if isinstance(obj, list) else dict(obj)
    new[step] = put(new[step], rest, value) if rest else value
    return new


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (put(NODE, ["metadata"], "n1"), "Node: Expected `object`, got `str` - at `$.metadata`"),
        (put(STANDING, ["metadata"], [None]), "Pod: Expected `object`, got `array`"),
        (put(NODE, ["metadata", "labels"], 3), "Node n1: Expected `object`, got `int`"),
        (
            put(NODE, ["status", "allocatable", "cpu"], "many"),
            "Node n1: status.allocatable[cpu]: 'many' is not a quantity; write a number such as",
        ),
        (
            put(NODE, ["status", "allocatable", "memory"], -1),
            "Node n1: status.allocatable[memory]: -1 is too much or too little; write 0 to 8Pi",
        ),
        (
            put(NODE, ["status", "allocatable", "pods"], HUGE),
            f"Node n1: status.allocatable[pods]: {HUGE} is too much or too little; write 0 to 8Pi",
        ),
        (
            put(NODE, ["metadata", "annotations"], {"lockstep.dev/snapshot": "noon"}),
            "Node n1: annotation lockstep.dev/snapshot is 'noon'; it must be a time such as",
        ),
        (
            put(STANDING, ASKED, "one"),
            "Pod p1: spec.containers[0].resources.requests[cpu]: 'one' is not a quantity; write",
        ),
        (
            put(STANDING, ASKED, HUGE),
            f"Pod p1: spec.containers[0].resources.requests[cpu]: {HUGE} is too much",
        ),
    ],
)
def test_a_cluster_object_is_named_with_field_and_remedy(obj, message):
    with pytest.raises(InputError) as caught:
        read_initial_cluster([NODE, obj])
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("made", [job, training_job], ids=["gang", "job"])
@pytest.mark.parametrize(("amount", "said"), [("one", "not a quantity"), (HUGE, "write 0 to 8Pi")])
def test_an_amount_that_a_job_asks_for_is_named(made, amount, said):
    asked = made("a", "1x1", runs=1)
    part = "groups" if asked["kind"] == "Gang" else "roles"
    at = ["spec", part, 0, "template", *ASKED]
    with pytest.raises(InputError) as caught:
        read_jobs([put(asked, at, amount)], initial_cluster_of(parse("1x1")))
    assert "spec.containers[0].resources.requests[cpu]" in str(caught.value)
    assert said in str(caught.value)


def test_a_cluster_without_nodes_is_refused():
    with pytest.raises(InputError, match="the cluster has no Node; add Node objects"):
        read_initial_cluster([job("a", "1x1")])


def test_two_jobs_of_one_name_are_refused():
    with pytest.raises(InputError, match="Gang a is there twice; give one another name"):
        read_jobs([job("a", "1x1"), job("a", "1x1")], initial_cluster_of(parse("1x1")))


def test_priorities_come_from_the_clusters_classes():
    classes = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "globalDefault": default,
        }
        for name, value, default in (("high", 100, False), ("usual", 10, True))
    ]
    world = read_initial_cluster([NODE, *classes])
    works = read_jobs([job("a", "1x1", priorityClassName="high"), job("b", "1x1")], world)
    assert [work.pods[0].spec.priority for work in works] == [100, 10]


def test_jobs_come_in_the_order_of_their_arrival():
    world = initial_cluster_of(parse("1x1"))
    works = read_jobs([job("a", "1x1", at=9), job("b", "1x1"), job("c", "1x1", at=4)], world)
    assert [work.name for work in works] == ["b", "c", "a"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Suspended"])
def test_what_is_over_or_suspended_asks_for_nothing(phase):
    ended = training_job("a", "1x1", runs=1) | {"status": {"phase": phase}}
    assert read_jobs([ended], initial_cluster_of(parse("1x1"))) == []


def test_the_gang_of_a_training_job_is_not_counted_twice():
    owned = job("a", "1x1")
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "lockstep.dev/v1alpha1", "kind": "TrainingJob", "name": "a", "uid": "u"}
    ]
    works = read_jobs([training_job("a", "2x1", runs=5), owned], initial_cluster_of(parse("1x1")))
    assert [len(work.pods) for work in works] == [2]


def of_a_snapshot(obj, queued_at, made):
    meta = {**obj["metadata"], "annotations": {}, "creationTimestamp": made}
    status = {"queuedAt": queued_at, "lastCheckpoint": "2026-01-01T05:00:00Z"}
    return {**obj, "metadata": meta, "status": status}


@pytest.mark.parametrize("kind", [training_job, job], ids=["TrainingJob", "Gang"])
def test_a_snapshot_states_when_jobs_were_queued_and_saved(kind):
    resumed = of_a_snapshot(
        kind("a", "1x1", runs=5), "2026-01-01T00:00:00Z", "2026-01-01T04:00:00Z"
    )
    (work,) = read_jobs([resumed], initial_cluster_of(parse("1x1")))
    assert work.gang.metadata.creation_timestamp == "2026-01-01T00:00:00Z"
    assert work.gang.status.last_checkpoint == "2026-01-01T05:00:00Z"


@pytest.mark.parametrize("owned", [True, False], ids=["TrainingJob", "Gang"])
def test_a_snapshot_carries_the_promise_that_a_gang_was_given(owned):
    promise = {"time": "2026-01-01T05:00:00Z", "place": {"a-worker-0": "n1"}}
    waiting = job("a", "1x1", runs=5) | {"status": {"reservation": promise}}
    objs = [waiting]
    if owned:
        owner = {
            "apiVersion": "lockstep.dev/v1alpha1",
            "kind": "TrainingJob",
            "name": "a",
            "uid": "1",
        }
        waiting["metadata"]["ownerReferences"] = [owner]
        objs = [waiting, training_job("a", "1x1", runs=5)]
    (work,) = read_jobs(objs, initial_cluster_of(parse("1x1")))
    assert work.gang.status.reservation == GangReservation(**promise)


def hypernode(name, tier, *selectors, kind="Node", tier_name=""):
    members = [{"type": kind, "selector": selector} for selector in selectors]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "tierName": tier_name, "members": members},
    }


def test_hypernodes_are_tiers_of_the_cluster():
    nodes = [{**NODE, "metadata": {"name": f"n{i}"}} for i in range(1, 5)]
    exact = [{"exactMatch": {"name": name}} for name in ("n1", "n3")]
    world = read_initial_cluster(
        [
            *nodes,
            hypernode("odd", 1, *exact, tier_name="rack"),
            hypernode("even", 1, {"regexMatch": {"pattern": "n[24]"}}, tier_name="rack"),
            hypernode("all", 2, {"regexMatch": {"pattern": "."}}, kind="HyperNode"),
        ]
    )
    result = simulate(
        world,
        job("first", "1x2"),
        job("pair", "2x2", at=1, topology={"required": "rack"}),
        job("wide", "2x2", at=1, topology={"required": "rack"}),
    )
    pair = sorted(stay.node for stay in result.stays if stay.job == "pair")
    assert pair == ["n2", "n4"]
    assert [life.name for life in result.lives if life.waiting] == ["wide"]


def test_a_hypernode_whose_members_cannot_be_told_is_named():
    broken = hypernode("odd", 1, {"regexMatch": {"pattern": "n["}})
    with pytest.raises(InputError, match=r"HyperNode odd: .*; mend its members"):
        read_initial_cluster([NODE, broken])
