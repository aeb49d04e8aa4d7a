"""Every gang that waits says why: what the words must hold, case by case."""

import re
from pathlib import Path

import pytest
from tests.support.drawn import add, draw, draw_gang, gang, node, pod, queue

from lockstep.scheduler import core
from lockstep.scheduler.core.cycle.decider import Decider
from lockstep.scheduler.core.explain.diagnosis import explain
from lockstep.scheduler.core.explain.remedies import BY_REASON
from lockstep.scheduler.core.model.decisions import Verdict
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.placement.preconditions import passed_over, warnings
from lockstep.scheduler.core.state.cluster import Cluster

TWO_SPINES = """
    s1/l1: a1:8 a2:8
    s1/l2: b1:8 b2:8
    s2/l1: c1:8 c2:8 c3:8!maintenance
"""
SELECTS_LEAF_ZZ = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "leaf", "operator": "In", "values": ["zz"]}]}
            ]
        }
    }
}

GANGS = [
    # the cluster, gangs in order of age, the one that waits, its reason, what is said, what not
    (
        TWO_SPINES,
        ["g: 5x8 spine"],
        "NotEnoughRoom",
        [
            "needs 5 pods x 8 GPUs under one spine",
            "s1, has room for 4 of 5 now: 1 pod (8 GPUs) short",
            "even empty, that domain would not hold it",
            "without the required tier it would start now",
        ],
        [],
    ),
    (
        TWO_SPINES,
        ["h: 1x8", "g: 4x8 spine"],
        "NotEnoughRoom",
        [
            "room for 3 of 4",
            "8 of 8 GPUs in use; held by gang h (8 GPUs)",
            "without the required tier it would start now",
        ],
        ["even empty"],
    ),
    (
        TWO_SPINES,
        ["g: 7x8"],
        "NotEnoughRoom",
        [
            "the cluster has room for 6 of 7",
            "1 node is tainted maintenance:NoSchedule",
            "have room for 1 such pod, which would be enough",
        ],
        ["required tier"],
    ),
    (
        "s1/l1: a:8-4 b:8-4 c:8",
        ["g: 2x8 leaf"],
        "NotEnoughRoom",
        ["l1 (s1)", "1 pod (8 GPUs) short", "2 nodes with 8 of 16 GPUs in use"],
        ["tainted"],
    ),
    (
        TWO_SPINES,
        ["g: 2x16"],
        "TooLargeForNodes",
        ["a pod asks for 16 GPUs", "at most 8 GPUs"],
        [],
    ),
    (
        TWO_SPINES,
        ["g: 2x8 rack"],
        "UnknownTier",
        ["requires the tier rack", "spine, leaf, node"],
        [],
    ),
    (
        "s1/l1: a:8!x b:8!x c:8~ d:8?",
        ["g: 2x8"],
        "NoNodeMatches",
        [
            "none of the 4 nodes",
            "1 node is not ready",
            "1 node is cordoned",
            "2 nodes are tainted x:NoSchedule",
            "have room for 2 such pods, which would be enough",
        ],
        [],
    ),
    (
        "s1/l1: a:8 b:8",
        ["g: x=2x4 + y=2x8 spine"],
        "NotEnoughRoom",
        ["2 pods x 4 GPUs and 2 pods x 8 GPUs", "short"],
        [],
    ),
    ("", ["g: 2x8"], "NoNodes", ["no nodes"], []),
    # What a node does not execute, it does not help.
    (
        "s1/l1: a:8-8 b:8!lockstep.dev/simulated",
        ["g: 1x8"],
        "NotEnoughRoom",
        ["1 node is simulated, for jobs that say `simulated: true`", "8 of 8 GPUs in use"],
        ["which would be enough", "have room for"],
    ),
]


@pytest.mark.parametrize(("drawing", "gangs", "reason", "said", "unsaid"), GANGS)
def test_gang_says_why_it_waits(drawing, gangs, reason, said, unsaid):
    cluster = draw(Cluster(), drawing)
    for age, text in enumerate(gangs):
        add(cluster, draw_gang(text, created=f"2026-01-01T00:00:{age:02}Z"))
    failed = Decider(cluster).decide(0.0).failed
    assert failed == [WorkloadKey("Gang", "default", "g")]
    verdict = explain(cluster, cluster.workloads[failed[0]])
    assert verdict.reason == reason
    for text in said:
        assert text in verdict.message
    for text in unsaid:
        assert text not in verdict.message


REMEDIES = [
    # the cluster, gangs in order of age, what would let the one that waits start
    (
        TWO_SPINES,
        ["g: 5x8 spine"],
        "no required tier or fewer or smaller pods, or more nodes under s1",
    ),
    (TWO_SPINES, ["h: 1x8", "g: 4x8 spine"], "no required tier or room under s1 when others end"),
    (TWO_SPINES, ["h: 3x8", "g: 6x8"], "room in the cluster when others end"),
    ("s1/l1: a:8\n s1/l2: b:8", ["g: 3x8"], "fewer or smaller pods, or more nodes in the cluster"),
    # The roomiest leaf at the moment is too small; another one would do once it is empty.
    (
        "s1/l1: a:8 b:8\n s1/l2: c:8 d:8-8 e:8-8",
        ["g: 3x8 leaf"],
        "no required tier or room under l2 (s1) when others end",
    ),
    (
        "s1/l1: a:8 b:8!maintenance",
        ["g: 2x8"],
        "the use of the nodes tainted maintenance:NoSchedule or "
        "fewer or smaller pods, or more nodes in the cluster",
    ),
    ("s1/l1: a:4", ["g: 1x8"], BY_REASON["TooLargeForNodes"]),
    ("", ["g: 1x8"], BY_REASON["NoNodes"]),
]


@pytest.mark.parametrize(("drawing", "gangs", "remedy"), REMEDIES)
def test_what_would_change_it_agrees_with_why(drawing, gangs, remedy):
    cluster = draw(Cluster(), drawing)
    for age, text in enumerate(gangs):
        add(cluster, draw_gang(text, created=f"2026-01-01T00:00:{age:02}Z"))
    Decider(cluster).decide(0.0)
    verdict = explain(cluster, cluster.workloads[WorkloadKey("Gang", "default", "g")])
    assert verdict.remedy == remedy
    # A gang that waits for room that will not come is told so in both places, or in neither.
    if "others end" not in remedy and verdict.reason == "NotEnoughRoom":
        assert "even empty, " in verdict.message


def test_every_advised_reason_is_one_that_is_given():
    text = "".join(path.read_text() for path in Path(core.__path__[0]).rglob("*.py"))
    assert BY_REASON.keys() <= set(re.findall(r'Verdict\(\s*"(\w+)"', text))


PODS = [
    ({"gpus": 1, "nodeSelector": {"gpu": "h100"}}, "NoNodeMatches", "without the label gpu=h100"),
    ({"gpus": 1, "gates": ["team/budget"]}, "Gated", "scheduling gates: team/budget"),
    ({"gang": "nobody"}, "GangMissing", "Gang default/nobody does not exist"),
    ({"affinity": SELECTS_LEAF_ZZ}, "NoNodeMatches", "node affinity (leaf In zz)"),
    ({"cpu": 200}, "TooLargeForNodes", "asks for 200 CPUs"),
    ({"requests": {"example.com/fpga": 1}}, "TooLargeForNodes", "1 example.com/fpga"),
]


@pytest.mark.parametrize(("fields", "reason", "said"), PODS)
def test_pod_says_why_it_waits(fields, reason, said):
    cluster = draw(Cluster(), TWO_SPINES)
    cluster.set_pod(pod("p", **fields))
    (key,) = Decider(cluster).decide(0.0).failed
    verdict = explain(cluster, cluster.workloads[key])
    assert (verdict.reason, said in verdict.message) == (reason, True), verdict.message


@pytest.mark.parametrize(
    ("pods", "reason", "said"),
    [
        ([pod(f"g-{i}", gang="g") for i in range(3)], "MembersMissing", "has 3 of 4 pods"),
        (
            [pod(f"g-{i}", gang="g", gates=["x/y"] if i else []) for i in range(4)],
            "Gated",
            "has 4 of 4 pods (3 of them gated); scheduling gates hold pods back: x/y",
        ),
    ],
)
def test_gang_says_which_members_are_missing(pods, reason, said):
    cluster = draw(Cluster(), TWO_SPINES)
    cluster.set_gang(gang("g", minMember=4))
    for one in pods:
        cluster.set_pod(one)
    workload = cluster.workloads[WorkloadKey("Gang", "default", "g")]
    assert Decider(cluster).decide(0.0).failed == [workload.key]
    verdict = explain(cluster, workload)
    assert (verdict.reason, verdict.message) == (reason, said)


def test_pods_in_no_group_are_named():
    cluster = draw(Cluster(), TWO_SPINES)
    groups = [{"name": "head", "min": 1}, {"name": "worker", "min": 1}]
    cluster.set_gang(gang("g", groups=groups))
    cluster.set_pod(pod("g-head", gang="g", group="head"))
    cluster.set_pod(pod("g-lost", gang="g", group="wroker"))
    verdict = explain(cluster, cluster.workloads[WorkloadKey("Gang", "default", "g")])
    assert verdict.reason == "MembersMissing"
    assert "group worker has 0 of 1 pod" in verdict.message
    assert "1 pod of the gang in none of its groups (g-lost)" in verdict.message


def test_an_unreadable_selector_is_named_and_stops_no_other_gang():
    cluster = draw(Cluster(), TWO_SPINES)
    bad = {"matchExpressions": [{"key": "role", "operator": "In", "values": []}]}
    cluster.set_gang(gang("bad", groups=[{"name": "worker", "min": 1, "selector": bad}]))
    cluster.set_pod(pod("bad-0", gang="bad"))
    add(cluster, draw_gang("good: 1x8"))
    result = Decider(cluster).decide(0.0)
    assert [p.workload.name for p in result.placements] == ["good"]
    verdict = explain(cluster, cluster.workloads[WorkloadKey("Gang", "default", "bad")])
    assert verdict.reason == "BadSelector"
    assert verdict.message.startswith("the selector of group worker: ")


def test_groups_by_selector():
    cluster = draw(Cluster(), TWO_SPINES)
    groups = [
        {"name": kind, "min": 1, "selector": {"matchLabels": {"role": kind}}} for kind in ("a", "b")
    ]
    cluster.set_gang(gang("g", groups=groups))
    for kind in ("a", "b"):
        cluster.set_pod(pod(f"g-{kind}", gpus=8, gang="g", labels={"role": kind}))
    assert len(Decider(cluster).decide(0.0).placements[0].assignments) == 2


def test_pods_beyond_what_a_group_wants_are_told_so():
    cluster = draw(Cluster(), TWO_SPINES)
    cluster.set_gang(gang("g", groups=[{"name": "worker", "min": 1, "desired": 2}]))
    for i in range(3):
        where = "a1" if i < 2 else ""
        cluster.set_pod(pod(f"g-{i}", gpus=1, gang="g", group="worker", on=where))
    workload = cluster.workloads[WorkloadKey("Gang", "default", "g")]
    verdicts = [passed_over(workload, workload.members[f"g-{i}"]) for i in range(3)]
    assert verdicts[:2] == [None, None]
    assert verdicts[2] == Verdict("Surplus", "group worker wants 2 pods and has them")
    assert not workload.open


def test_members_that_stand_apart_already_are_named():
    cluster = draw(Cluster(), TWO_SPINES)
    cluster.set_gang(gang("g", minMember=3, topology={"required": "spine"}))
    for i, where in enumerate(("a1", "c1", "")):
        cluster.set_pod(pod(f"g-{i}", gpus=8, gang="g", on=where))
    verdict = explain(cluster, cluster.workloads[WorkloadKey("Gang", "default", "g")])
    assert verdict.reason == "MembersApart"
    assert "s1 and s2" in verdict.message


def test_a_replaced_member_learns_where_its_gang_stands():
    cluster = draw(Cluster(), "s1/l1: a1:8 a2:8-8\n s1/l2: b1:8")
    cluster.set_gang(gang("g", minMember=2, topology={"required": "leaf"}))
    cluster.set_pod(pod("g-0", gpus=8, gang="g", on="a1", held="0,1,2,3,4,5,6,7"))
    cluster.set_pod(pod("g-1", gpus=8, gang="g"))
    verdict = explain(cluster, cluster.workloads[WorkloadKey("Gang", "default", "g")])
    assert verdict.reason == "NotEnoughRoom"
    assert "needs 1 more pod x 8 GPUs under one leaf" in verdict.message
    assert "l1 (s1), where its other members stand, has room for 0 of 1 now" in verdict.message
    assert "without the required tier" not in verdict.message


@pytest.mark.parametrize(("tier", "starts"), [("leaf", False), ("spine", False), (None, True)])
def test_a_groups_tier_is_named_with_its_start_without_it(tier: str | None, starts: bool):
    cluster = draw(Cluster(), "s1/l1: a:8 a2:8-8\n s2/l1: b:8 b2:8-8\n s2/l2: c:4")
    wish = {"topology": {"required": tier}} if tier else {}
    cluster.set_gang(gang("g", groups=[{"name": "x", "min": 2, **wish}, {"name": "y", "min": 1}]))
    for name, group, asked in (("g-0", "x", 8), ("g-1", "x", 8), ("g-2", "y", 1)):
        labels = {"lockstep.dev/gang-group": group}
        cluster.set_pod(pod(name, gpus=asked, gang="g", labels=labels))
    assert bool(Decider(cluster).decide(0.0).placements) == starts
    if not starts:
        verdict = explain(cluster, cluster.workloads[WorkloadKey("Gang", "default", "g")])
        assert f"needs 2 pods x 8 GPUs under one {tier} and 1 pod x 1 GPU;" in verdict.message
        assert "without the required tier it would start now" in verdict.message
        assert verdict.remedy.startswith("no required tier or ")


def test_what_is_odd_but_does_not_block_is_a_warning():
    cluster = draw(Cluster(), TWO_SPINES)
    wish = {"preferred": "rack"}
    odd = gang("g", minMember=1, priorityClassName="vip", topology=wish)
    odd.metadata.annotations["lockstep.dev/checkpoint"] = "soon"
    cluster.set_gang(odd)
    cluster.set_pod(pod("g-0", gpus=8, gang="g"))
    workload = cluster.workloads[WorkloadKey("Gang", "default", "g")]
    assert [w.reason for w in warnings(cluster, workload)] == [
        "PriorityClassMissing",
        "CheckpointUnreadable",
        "UnknownTier",
    ]
    assert len(Decider(cluster).decide(0.0).placements) == 1


@pytest.mark.parametrize(
    ("named", "question"),
    [
        ("nosuch", ""),
        ("reserch", "; did you mean research?"),
        ("defalt", "; did you mean default?"),
    ],
)
def test_what_names_a_missing_queue_waits_until_the_queue_exists(named: str, question: str):
    cluster = draw(Cluster(), TWO_SPINES)
    cluster.set_queue(queue("research"))
    cluster.set_gang(gang("g", minMember=1, queue=named))
    cluster.set_pod(pod("g-0", gpus=8, gang="g"))
    decider = Decider(cluster)
    (key,) = decider.decide(0.0).failed
    verdict = explain(cluster, cluster.workloads[key])
    assert verdict.reason == "QueueMissing"
    assert verdict.message == f"queue {named} does not exist{question}"
    assert f"lockstep queue create {named}" in verdict.remedy
    cluster.set_queue(queue(named))
    assert len(decider.decide(1.0).placements) == 1
    cluster.remove_queue(named)
    assert not decider.decide(2.0).evictions  # what runs goes on


def test_adding_what_is_short_lets_the_gang_start():
    cluster = draw(Cluster(), TWO_SPINES)
    add(cluster, draw_gang("g: 4x8 leaf"))
    decider = Decider(cluster)
    (key,) = decider.decide(0.0).failed
    message = explain(cluster, cluster.workloads[key]).message
    assert "the best, l1 (s1), has room for 2 of 4 now: 2 pods (16 GPUs) short" in message
    for name in ("new-0", "new-1"):
        cluster.set_node(node(name, labels={"spine": "s1", "leaf": "l1"}))
    assert len(decider.decide(1.0).placements) == 1


def test_a_held_gang_states_why_and_a_running_one_continues():
    cluster = draw(Cluster(), TWO_SPINES)
    cluster.set_gang(gang("g", minMember=1, held="budget: it is spent"))
    cluster.set_pod(pod("g-0", gpus=8, gang="g"))
    decider = Decider(cluster)
    (key,) = decider.decide(0.0).failed
    verdict = explain(cluster, cluster.workloads[key])
    assert (verdict.reason, verdict.message) == ("Held", "budget: it is spent")
    cluster.set_gang(gang("g", minMember=1))
    assert len(decider.decide(1.0).placements) == 1
    cluster.set_gang(gang("g", minMember=1, held="budget: it is spent"))
    assert not decider.decide(2.0).evictions


@pytest.mark.parametrize("text", BY_REASON.values(), ids=BY_REASON)
def test_what_a_reason_calls_for_is_a_whole_sentence(text: str) -> None:
    verb = text.split(maxsplit=1)[0]
    assert verb in {"Add", "Ask", "Change", "Create", "Delete", "Drop", "Label"} | {
        "Remove",
        "Require",
        "Write",
    }
    assert text.endswith(".")
    assert text.count("`") % 2 == 0
