"""What a gang's status shows at each step of its life."""

import pytest
from tests.support.drawn import draw, gang, pod

from lockstep.api.gang import Gang, GangStatus
from lockstep.api.wire import convert
from lockstep.scheduler.core.model.decisions import Estimate, Verdict
from lockstep.scheduler.core.model.workload import WorkloadKey
from lockstep.scheduler.core.resources.device_allocation import Grant, Spot
from lockstep.scheduler.core.runtime.gang_status import (
    SeenEstimate,
    difference,
    gang_status,
    says_the_same,
    unscheduled_condition,
)
from lockstep.scheduler.core.state.cluster import Cluster

KEY = WorkloadKey("Gang", "default", "g")
NOW, EARLIER = "2026-01-01T00:01:00Z", "2026-01-01T00:00:00Z"
LATER = "2026-01-01T00:00:30Z"
SHORT = Verdict("NotEnoughRoom", "1 pod short")

CASES = [
    # what is shown, the pods as (node, phase), phase, bound, running
    ("no pods yet", [], "Pending", 0, 0),
    ("none placed", [("", "Pending"), ("", "Pending")], "Pending", 0, 0),
    ("half placed", [("a1", "Pending"), ("", "Pending")], "Placing", 1, 0),
    ("all placed", [("a1", "Pending"), ("a2", "Pending")], "Placed", 2, 0),
    ("one runs", [("a1", "Running"), ("a2", "Pending")], "Placed", 2, 1),
    ("all run", [("a1", "Running"), ("a2", "Running")], "Running", 2, 2),
    ("one is done", [("a1", "Running"), ("a2", "Succeeded")], "Running", 1, 1),
    ("all are done", [("a1", "Succeeded"), ("a2", "Succeeded")], "Finished", 0, 0),
    ("all failed", [("a1", "Failed"), ("a2", "Failed")], "Finished", 0, 0),
    ("one failed and is not replaced yet", [("a1", "Running"), ("a2", "Failed")], "Placing", 1, 1),
]


def loaded(pods, **status):
    cluster = draw(Cluster(), "s/a: a1:8 a2:8\n s/b: b1:8")
    plain = gang("g", minMember=2)
    shown = type(plain)(metadata=plain.metadata, spec=plain.spec, status=GangStatus(**status))
    cluster.set_gang(shown)
    for i, (where, phase) in enumerate(pods):
        cluster.set_pod(pod(f"g-{i}", gpus=8, gang="g", on=where, phase=phase))
    return cluster, cluster.workloads[KEY]


@pytest.mark.parametrize(
    ("what", "pods", "phase", "bound", "running"), CASES, ids=[c[0] for c in CASES]
)
def test_phase(what, pods, phase, bound, running):
    cluster, workload = loaded(pods)
    verdict = SHORT if phase == "Pending" else None
    status = gang_status(cluster, workload, verdict, 3, NOW)
    assert (status["phase"], status["bound"], status["running"]) == (phase, bound, running)
    assert status["position"] == (3 if phase == "Pending" else None)
    assert bool(status["placedAt"]) == (phase in ("Placed", "Running", "Finished"))
    assert bool(status["waitingSince"]) == (phase == "Pending")


def test_a_binding_that_is_not_confirmed_is_placing():
    cluster, workload = loaded([("a1", "Pending"), ("", "Pending")])
    cluster.assume([(("default", "g-1"), Spot("a2", Grant(0xFF)))])
    status = gang_status(cluster, workload, None, None, NOW)
    assert (status["phase"], status["bound"]) == ("Placing", 2)
    assert status["domain"] == {"spine": "s", "leaf": "a"}


def test_times_are_kept_and_cleared():
    pods = [("a1", "Running"), ("a2", "Running")]
    cluster, workload = loaded(pods, phase="Running", placed_at=EARLIER, waiting_since=EARLIER)
    status = gang_status(cluster, workload, None, None, NOW)
    assert (status["placedAt"], status["waitingSince"]) == (EARLIER, None)
    cluster, workload = loaded([("", "Pending")] * 2, placed_at=EARLIER, waiting_since=EARLIER)
    status = gang_status(cluster, workload, SHORT, 1, NOW)
    assert (status["placedAt"], status["waitingSince"]) == (None, EARLIER)


@pytest.mark.parametrize(
    ("made", "since"),
    [((LATER, LATER), NOW), ((EARLIER, LATER), EARLIER), ((EARLIER, EARLIER), EARLIER)],
)
def test_a_place_is_new_when_all_pods_are_newer(made, since):
    cluster, workload = loaded([("a1", "Running")] * 2, phase="Running", placed_at=EARLIER)
    for member, created in zip(workload.bound, made, strict=True):
        member.created = created
    assert gang_status(cluster, workload, None, None, NOW)["placedAt"] == since


def test_the_queue_time_is_creation_unless_the_job_says_otherwise():
    cluster, workload = loaded([("", "Pending")] * 2)
    created = workload.gang.metadata.creation_timestamp
    assert gang_status(cluster, workload, SHORT, 1, NOW)["queuedAt"] == created
    cluster, workload = loaded([("", "Pending")] * 2, queued_at=EARLIER)
    assert gang_status(cluster, workload, SHORT, 1, NOW)["queuedAt"] == EARLIER


def test_the_next_leader_knows_a_standing_gang_was_once_whole():
    cluster, workload = loaded([("a1", "Running")], phase="Placing", placed_at=EARLIER)
    assert gang_status(cluster, workload, SHORT, None, NOW)["placedAt"] == EARLIER
    assert not workload.half_placed
    cluster, workload = loaded([("a1", "Running")], phase="Placing")
    assert gang_status(cluster, workload, SHORT, None, NOW)["placedAt"] is None
    assert workload.half_placed


def test_a_gang_whose_pods_are_cleaned_up_stays_finished():
    for pods in ([], [("a1", "Succeeded")]):
        cluster, workload = loaded(pods, phase="Finished", placed_at=EARLIER)
        assert gang_status(cluster, workload, None, None, NOW)["phase"] == "Finished"
        assert not workload.open


def test_only_what_differs_is_written():
    cluster, workload = loaded([("", "Pending")] * 2)
    first = gang_status(cluster, workload, SHORT, 1, EARLIER)
    plain = gang("g", minMember=2)
    shown = convert({k: v for k, v in first.items() if v is not None}, GangStatus)
    cluster.set_gang(Gang(metadata=plain.metadata, spec=plain.spec, status=shown))
    assert difference(shown, gang_status(cluster, workload, SHORT, 1, NOW)) == {}
    assert difference(shown, gang_status(cluster, workload, SHORT, 2, NOW)) == {"position": 2}


def test_devices_a_gang_has_left_are_removed_from_its_domain():
    pods = [("a1", "Running"), ("b1", "Running")]
    cluster, workload = loaded(pods, phase="Running", domain={"spine": "s", "leaf": "a"})
    status = gang_status(cluster, workload, None, None, NOW)
    assert difference(workload.gang.status, status)["domain"] == {"spine": "s", "leaf": None}


def test_who_was_preempted_is_told_until_another_has_its_name():
    uid = pod("g-1").metadata.uid
    shown = {"g-0": "before", "g-1": uid, "g-7": "gone"}
    cluster, workload = loaded([("", "Pending")] * 2, preempted=shown)
    status = gang_status(cluster, workload, SHORT, 1, NOW)
    assert status["preempted"] == {"g-0": None, "g-1": uid, "g-7": "gone"}


@pytest.mark.parametrize(
    ("gates", "reason"), [((), "Unschedulable"), (("x/y",), "SchedulingGated")]
)
def test_pod_condition_speaks_the_words_that_autoscalers_know(gates, reason):
    cluster = Cluster()
    cluster.set_pod(pod("p", gates=gates))
    condition = unscheduled_condition(cluster.pods["default", "p"], SHORT, NOW)
    assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
    assert (condition["reason"], condition["message"]) == (reason, "1 pod short")


@pytest.mark.parametrize(
    ("shown", "at", "written"),
    [
        ({}, 1000.0, True),
        ({"estimated_start": "1970-01-01T00:16:40Z"}, 1001.5, False),  # a moment apart
        ({"estimated_start": "1970-01-01T00:16:40Z"}, 1010.0, False),  # 1 % of the wait
        ({"estimated_start": "1970-01-01T00:16:40Z"}, 1100.0, True),
        ({"estimated_start": "1970-01-01T00:16:40Z"}, None, True),
        ({"no_estimate": "gang x has no expected run time"}, None, False),
        ({"no_estimate": "gang z has no expected run time"}, None, True),
        ({"no_estimate": "gang x has no expected run time"}, 1000.0, True),
        (
            {
                "no_estimate": "gang x has no expected run time",
                "not_before": "1970-01-01T00:16:40Z",
            },
            None,
            True,
        ),
    ],
)
def test_an_estimate_is_written_when_it_says_something_new(shown, at, written):
    status = GangStatus(estimated_at="1970-01-01T00:00:01Z", **shown)
    why = "" if at is not None else "gang x has no expected run time"
    foreseen = SeenEstimate(Estimate(at, why), 60.0)
    cluster, workload = loaded([("", "Pending")] * 2, estimated_at="1970-01-01T00:00:01Z", **shown)
    assert says_the_same(status, foreseen) != written
    new = gang_status(cluster, workload, SHORT, 1, NOW, foreseen=foreseen)
    assert (new["estimatedAt"] == "1970-01-01T00:01:00Z") == written
    assert new["noEstimate"] == why
    assert (new["estimatedStart"] is None) == (at is None)


def test_the_looked_distance_is_written_once_and_taken_back():
    too_far = SeenEstimate(Estimate(None, "too far", not_before=1000.0), 60.0)
    shown = {"no_estimate": "too far", "not_before": "1970-01-01T00:16:40Z"}
    cluster, workload = loaded([("", "Pending")] * 2)
    new = gang_status(cluster, workload, SHORT, 1, NOW, foreseen=too_far)
    assert (new["noEstimate"], new["notBefore"]) == ("too far", "1970-01-01T00:16:40Z")
    assert says_the_same(GangStatus(**shown), too_far)
    further = SeenEstimate(Estimate(None, "too far", not_before=4600.0), 60.0)
    assert not says_the_same(GangStatus(**shown), further)
    cluster, workload = loaded([("", "Pending")] * 2, **shown)
    new = gang_status(
        cluster, workload, SHORT, 1, NOW, foreseen=SeenEstimate(Estimate(1000.0), 60.0)
    )
    assert (new["noEstimate"], new["notBefore"]) == ("", None)


def test_what_is_placed_has_no_estimate():
    cluster, workload = loaded([("a1", "Running"), ("a2", "Running")])
    foreseen = SeenEstimate(Estimate(1000.0), 60.0)
    status = gang_status(cluster, workload, None, None, NOW, foreseen=foreseen)
    assert (status["estimatedStart"], status["estimatedAt"]) == (None, None)
