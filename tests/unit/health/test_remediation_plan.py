"""What findings ask for."""

import pytest

from lockstep.api.core import Node, NodeSpec, Pod, PodSpec, PodStatus, Taint
from lockstep.api.health_policy import HealthPolicySpec
from lockstep.api.meta import ObjectMeta, OwnerReference
from lockstep.api.names import GANG_LABEL, GPUS_ANNOTATION, SLOW_TAINT, UNHEALTHY_TAINT
from lockstep.api.node_health import (
    Checked,
    CheckResult,
    Finding,
    NodeHealth,
    NodeHealthSpec,
    NodeHealthStatus,
    Reset,
    ResetDone,
    slow_network,
)
from lockstep.health.remediation.plan import (
    Wanted,
    annotation,
    asked,
    leaving,
    resets,
    returning,
    slow_taints,
    taints,
    wanted,
)
from lockstep.health.returning import after_checks, after_reset


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


NOW, BEFORE = "2026-01-01T00:01:00Z", "2026-01-01T00:00:00Z"
OK = CheckResult(name="disk", state="ok")
BAD = CheckResult(name="disk", state="failed", evidence="other bytes")
LOCAL = HealthPolicySpec(return_checks=["disk"])
BOTH = HealthPolicySpec(return_checks=["disk", "network"])


def health(checked=None, findings=(), **status):
    spec = NodeHealthSpec(findings=list(findings), checked=checked)
    told = NodeHealthStatus(**{"fenced": ["gpu/3"], **status})
    return NodeHealth(metadata=ObjectMeta(name="n"), spec=spec, status=told)


CAME_BACK = [
    ("nothing was asked yet", health(), LOCAL, True),
    ("nothing is wanted", health(), HealthPolicySpec(return_checks=[]), False),
    ("the agent has not answered", health(asked=NOW), LOCAL, True),
    ("it answered what was asked before", health(Checked(BEFORE, [OK]), asked=NOW), LOCAL, True),
    ("a check failed", health(Checked(NOW, [BAD]), asked=NOW), LOCAL, True),
    ("all passed", health(Checked(NOW, [OK]), asked=NOW), LOCAL, False),
    ("the network is not measured", health(Checked(NOW, [OK]), asked=NOW), BOTH, True),
    ("the network is slow", health(Checked(NOW, [OK]), asked=NOW, network=BAD), BOTH, True),
    ("the network is well", health(Checked(NOW, [OK]), asked=NOW, network=OK), BOTH, False),
]


@pytest.mark.parametrize(
    ("rule", "one", "policy", "stays"), CAME_BACK, ids=[c[0] for c in CAME_BACK]
)
def test_a_fence_stays_until_the_checks_pass(rule, one, policy, stays):
    assert returning(one, Wanted(), policy).anything is stays


def test_checks_are_asked_anew_once_a_failure_is_taken_away():
    failed = health(Checked(BEFORE, [BAD]), asked=BEFORE)
    stays = returning(failed, Wanted(), LOCAL)
    assert asked(failed, stays, LOCAL, NOW) == NOW
    told = health(Checked(BEFORE, [BAD]), [Finding(cause="x", by="checks")], asked=BEFORE)
    assert asked(told, stays, LOCAL, NOW) == BEFORE
    assert asked(failed, Wanted(), LOCAL, NOW) is None


def test_a_failed_check_is_a_finding_that_fences():
    spec = after_checks(health(), Checked(NOW, [OK, BAD]), NOW)
    assert [one["cause"] for one in spec["findings"]] == ["the check disk failed"]


RESETS = HealthPolicySpec(reset=["reset_gpu"])


def test_an_unused_device_is_reset_once_for_a_finding():
    sick = finding(action="reset_gpu")
    sick = Finding(**{**{f: getattr(sick, f) for f in sick.__struct_fields__}, "last": BEFORE})
    there = health(findings=[sick])
    what = wanted([sick])
    user = Pod(metadata=ObjectMeta(name="p", annotations={GPUS_ANNOTATION: "3"}))
    assert resets(there, what, RESETS, [user], NOW) is None
    first = resets(there, what, RESETS, [], NOW)
    assert first == Reset(asked=NOW, devices=["gpu/3"])
    done = health(findings=[sick], reset=first)
    assert resets(done, what, RESETS, [], "2026-01-01T00:02:00Z") == first, "until it is done"
    spec = NodeHealthSpec(findings=[sick], reset=ResetDone(asked=NOW, failed=["gpu/3: x"]))
    failed = NodeHealth(metadata=ObjectMeta(name="n"), spec=spec, status=done.status)
    assert resets(failed, what, RESETS, [], "2026-01-01T00:02:00Z") == first, "not again"


def test_what_was_reset_is_found_no_more():
    old = Finding(cause="bad", device="gpu/3", last=BEFORE)
    fresh = Finding(cause="bad", device="gpu/4", last=BEFORE)
    there = health(findings=[old, fresh])
    spec = after_reset(there, Reset(asked=NOW, devices=["gpu/3", "gpu/4"]), {"gpu/4": "stuck"})
    assert [one["device"] for one in spec["findings"]] == ["gpu/4"]
    assert spec["reset"]["failed"] == ["gpu/4: stuck"]


@pytest.mark.parametrize(
    ("cause", "slow"),
    [
        ("network check: nic n2/rail1", True),
        ("the check network failed", False),
        ("a link went down", False),
    ],
)
def test_a_node_with_a_slow_network_is_chosen_last(cause, slow):
    found = Finding(cause=cause, action="observe", evidence="40 % of the rail's rate")
    health = NodeHealth(metadata=ObjectMeta(name="n"), spec=NodeHealthSpec(findings=[found]))
    assert slow_network(health) == ("40 % of the rail's rate" if slow else "")
    assert wanted([found]) == Wanted()
    other = Taint(key="mine", effect="NoSchedule")
    node = Node(metadata=ObjectMeta(name="n"), spec=NodeSpec(taints=[other]))
    ours = [Taint(key=SLOW_TAINT, effect="PreferNoSchedule")] if slow else []
    after = slow_taints(node, bool(slow_network(health)))
    assert after == [other, *ours]
    again = Node(metadata=ObjectMeta(name="n"), spec=NodeSpec(taints=after))
    assert slow_taints(again, slow) == after
    assert slow_taints(again, False) == [other]
