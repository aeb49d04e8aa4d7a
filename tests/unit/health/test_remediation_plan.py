"""What findings ask for."""

import pytest

from lockstep.api.core import Node, NodeSpec, Pod, PodSpec, PodStatus, Taint
from lockstep.api.meta import ObjectMeta, OwnerReference
from lockstep.api.names import GANG_LABEL, GPUS_ANNOTATION, UNHEALTHY_TAINT
from lockstep.api.node_health import Finding
from lockstep.health.remediation.plan import annotation, leaving, taints, wanted


def finding(device="gpu/3", action="isolate_node", confidence=0.9):
    return Finding(cause="bad", device=device, action=action, confidence=confidence)


CASES = [
    ("a device that is sick is fenced", finding(), "gpu/3", False),
    ("a device that needs a reset is fenced", finding(action="reset_gpu"), "gpu/3", False),
    ("a node that is sick is tainted", finding(device=""), None, True),
    ("an unknown address taints the node", finding(device="0000:17:00"), None, True),
    ("what is not sure is on record alone", finding(confidence=0.7), None, False),
    ("what is observed is on record alone", finding(action="observe"), None, False),
    ("a user's error fences nothing", finding(action="stop_and_tell_user"), None, False),
]


@pytest.mark.parametrize(("rule", "one", "fenced", "tainted"), CASES, ids=[c[0] for c in CASES])
def test_findings(rule, one, fenced, tainted):
    what = wanted([one])
    assert annotation(what) == fenced
    assert bool(what.tainted) is tainted


def test_taints_of_others_stay():
    other = Taint(key="theirs", effect="NoExecute")
    node = Node(metadata=ObjectMeta(name="n"), spec=NodeSpec(taints=[other]))
    ours = taints(node, wanted([finding(device="")]))
    assert [t.key for t in ours] == ["theirs", UNHEALTHY_TAINT]
    assert {t.effect for t in ours if t.key == UNHEALTHY_TAINT} == {"NoSchedule"}
    healed = Node(metadata=ObjectMeta(name="n"), spec=NodeSpec(taints=ours))
    assert taints(healed, wanted([])) == [other]


def pod(gpus="", phase="Running", owned=True, gang=True, deleted=None):
    owner = OwnerReference(api_version="v1", kind="X", name="x", uid="u", controller=True)
    meta = ObjectMeta(
        name="p",
        annotations={GPUS_ANNOTATION: gpus},
        labels={GANG_LABEL: "g"} if gang else {},
        owner_references=[owner] if owned else [],
        deletion_timestamp=deleted,
    )
    return Pod(metadata=meta, spec=PodSpec(node_name="n"), status=PodStatus(phase=phase))


PODS = [
    ("one that holds the device goes", pod("2,3"), "gpu/3", 1),
    ("one with other devices stays", pod("0,1"), "gpu/3", 0),
    ("one with index 13 does not hold 3", pod("13"), "gpu/3", 0),
    ("one that has ended stays", pod("3", phase="Failed"), "gpu/3", 0),
    ("one that is ending is not ended again", pod("3", deleted="2026-01-01T00:00:00Z"), "gpu/3", 0),
    ("one that nothing makes again stays", pod("3", owned=False), "gpu/3", 0),
    ("a gang's pod leaves an ill node", pod(), "", 1),
    ("other pods stay on an ill node", pod(gang=False), "", 0),
]


@pytest.mark.parametrize(("rule", "one", "device", "count"), PODS, ids=[p[0] for p in PODS])
def test_which_pods_go(rule, one, device, count):
    assert len(leaving([one], wanted([finding(device=device)]))) == count
