"""A job that names a queue is admitted as Kueue admits it: flavors, suspension, Workload."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.core import AnyObject
from lockstep.api.gang import Gang
from lockstep.api.training import TrainingJob
from lockstep.api.wire import convert
from lockstep.compat.foreign_kinds import ForeignKind
from lockstep.compat.kueue import contract
from lockstep.compat.kueue.workload import status, workload
from lockstep.compat.registry import sources
from lockstep.compat.translation import Look, Refused

Json = dict[str, Any]
JOBS = next(s for s in sources() if (s.kind.group, s.kind.kind) == ("batch", "Job"))
NOW = "2026-11-26T12:00:00Z"


def job(
    *, suspend: bool = True, pod: Json | None = None, labels: dict[str, str] | None = None
) -> AnyObject:
    resources = {"requests": {"cpu": "1"}}
    spec = {"containers": [{"name": "m", "image": "i", "resources": resources}], **(pod or {})}
    named = {
        "kueue.x-k8s.io/queue-name": "lq",
        **{f"kueue.x-k8s.io/{k}": v for k, v in (labels or {}).items()},
    }
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "ns", "uid": "u", "labels": named},
        "spec": {"suspend": suspend, "template": {"spec": spec}},
    }
    return convert(body, AnyObject)


def world(**flavors: Json) -> Look:
    """Return a look at a queue with these flavors of CPUs."""
    rows = [
        {"name": name, "resources": [{"name": "cpu", "nominalQuota": 1}]}
        for name, spec in flavors.items()
    ]
    groups = [{"coveredResources": ["cpu"], "flavors": rows}]
    specs = {
        ("LocalQueue", "lq"): {"clusterQueue": "cq"},
        ("ClusterQueue", "cq"): {"resourceGroups": groups},
        **{("ResourceFlavor", name): spec for name, spec in flavors.items() if "gone" not in spec},
    }

    def look(kind: ForeignKind, namespace: str, name: str) -> AnyObject | None:
        spec = specs.get((kind.kind, name))
        return (
            None if spec is None else convert({"metadata": {"name": name}, "spec": spec}, AnyObject)
        )

    return look


def under(obj: AnyObject, look: Look) -> tuple[Json, contract.Terms | None]:
    made, terms = contract.under(obj, JOBS.to_native(obj), look, lambda _: False)
    return made.objects[0]["spec"], terms


def pod_of(spec: Json) -> Json:
    found: Json = spec["roles"][0]["template"]["spec"]
    return found


H100 = {"nodeLabels": {"gpu": "h100"}}
SPOT = {
    "nodeLabels": {"gpu": "a100"},
    "nodeTaints": [{"key": "spot", "effect": "NoSchedule", "value": "true"}],
}
TOLERANT = {**SPOT, "tolerations": [{"key": "spot", "operator": "Exists"}]}


def test_one_flavor_gives_its_labels_and_tolerations() -> None:
    spec, terms = under(job(), world(t=TOLERANT))
    assert spec["suspend"] is False
    assert pod_of(spec)["nodeSelector"] == {"gpu": "a100"}
    assert pod_of(spec)["tolerations"][0] == {"key": "spot", "operator": "Exists"}
    assert terms == contract.Terms("lq", "cq", {"cpu": "t"})


def test_a_flavor_that_a_pod_cannot_tolerate_is_left() -> None:
    assert pod_of(under(job(), world(a=H100, b=SPOT))[0])["nodeSelector"] == {"gpu": "h100"}


def test_several_flavors_that_fit_are_alternatives() -> None:
    pod = pod_of(under(job(), world(a=H100, b=TOLERANT))[0])
    (wanted,) = pod["affinity"]["nodeAffinity"].values()
    values = [term["matchExpressions"][0]["values"] for term in wanted["nodeSelectorTerms"]]
    assert values == [["h100"], ["a100"]]


def test_the_pods_own_selector_chooses_the_flavor() -> None:
    obj = job(pod={"nodeSelector": {"gpu": "a100"}})
    assert "affinity" not in pod_of(under(obj, world(a=H100, b=TOLERANT))[0])


@pytest.mark.parametrize(
    ("look", "told"),
    [
        (world(a=H100, b={"gone": True}), "ResourceFlavor b"),
        (world(b=SPOT), "none of them fits"),
        (lambda *_: None, "LocalQueue lq"),
    ],
)
def test_what_is_missing_is_named(look: Look, told: str) -> None:
    with pytest.raises(Refused) as refused:
        under(job(), look)
    assert told in refused.value.problem.allowed


def test_labels_give_priority_and_time() -> None:
    obj = job(labels={"priority-class": "high", "max-exec-time-seconds": "90"})
    spec, _ = under(obj, world(a=H100))
    assert spec["priorityClassName"] == "high"
    assert spec["runPolicy"]["activeDeadline"] == "90s"


@pytest.mark.parametrize(
    ("policy", "placed", "held"),
    [
        ("Hold", False, True),
        ("Hold", True, False),
        ("HoldAndDrain", True, True),
        ("", False, False),
    ],
)
def test_a_stop_policy_keeps_jobs_out(policy: str, placed: bool, held: bool) -> None:
    look = world(a=H100)

    def stopped(kind: ForeignKind, namespace: str, name: str) -> AnyObject | None:
        found = look(kind, namespace, name)
        if found is not None and kind.kind == "LocalQueue":
            found.spec["stopPolicy"] = policy
        return found

    body, terms = contract.under(
        job(), JOBS.to_native(job()), stopped, lambda _: False, placed=placed
    )
    assert body.objects[0]["spec"]["suspend"] is held
    assert terms is not None and terms.held is held


def test_a_level_of_the_network_is_a_tier() -> None:
    obj = job()
    notes = {"kueue.x-k8s.io/podset-required-topology": "kubernetes.io/hostname"}
    obj.spec["template"]["metadata"] = {"annotations": notes}
    spec, _ = under(obj, world(a=H100))
    assert spec["roles"][0]["topology"] == {"required": "node"}


def test_a_level_that_is_no_tier_is_named() -> None:
    obj = job()
    notes = {"kueue.x-k8s.io/podset-preferred-topology": "example.com/rack"}
    obj.spec["template"]["metadata"] = {"annotations": notes}
    with pytest.raises(Refused, match="podset-preferred-topology"):
        under(obj, world(a=H100))


def test_part_of_the_pods_is_enough_where_asked() -> None:
    obj = job()
    obj.spec["parallelism"] = 4
    obj.metadata.annotations["kueue.x-k8s.io/job-min-parallelism"] = "2"
    (role,) = under(obj, world(a=H100))[0]["roles"]
    assert (role["replicas"], role["min"]) == (4, 2)


def test_a_workload_priority_class_becomes_a_priority_class() -> None:
    source = next(s for s in sources() if s.kind.kind == "WorkloadPriorityClass")
    body = {"metadata": {"name": "high"}, "value": 1000, "kind": "WorkloadPriorityClass"}
    (made_,) = source.to_native(convert(body, source.resource.type)).objects
    assert (made_["kind"], made_["metadata"]["name"], made_["value"]) == (
        "PriorityClass",
        "high",
        1000,
    )


def made(phase: str, start: str | None = None) -> TrainingJob:
    spec = JOBS.to_native(job()).objects[0]["spec"]
    told = {"phase": phase, **({"startTime": start} if start else {})}
    return convert({"metadata": {"name": "j"}, "spec": spec, "status": told}, TrainingJob)


def gang(phase: str) -> Gang:
    spec = {"minMember": 1, "queue": "ns.lq"}
    return convert({"metadata": {"name": "j"}, "spec": spec, "status": {"phase": phase}}, Gang)


@pytest.mark.parametrize(
    ("suspended", "phase", "place", "wanted"),
    [
        (True, "Pending", "Pending", None),
        (True, "Starting", "Placed", False),
        (False, "Running", "Running", None),
        (False, "Pending", "Pending", True),
    ],
)
def test_admission_lifts_suspension_and_preemption_restores_it(
    suspended: bool, phase: str, place: str, wanted: bool | None
) -> None:
    found = contract.suspension(job(suspend=suspended), made(phase, NOW), gang(place))
    assert found == (None if wanted is None else {"spec": {"suspend": wanted}})


def test_a_waiting_job_that_never_ran_is_not_suspended() -> None:
    assert contract.suspension(job(suspend=False), made("Pending"), gang("Pending")) is None


@pytest.mark.parametrize(
    ("phase", "place", "known"),
    [
        ("Pending", "Pending", {"QuotaReserved": "False", "Admitted": "False"}),
        ("Running", "Running", {"QuotaReserved": "True", "Admitted": "True"}),
        (
            "Succeeded",
            "Finished",
            {"QuotaReserved": "True", "Admitted": "True", "Finished": "True"},
        ),
    ],
)
def test_the_workload_tells_where_the_job_stands(
    phase: str, place: str, known: dict[str, str]
) -> None:
    terms = contract.Terms("lq", "cq", {"cpu": "a"})
    there = convert(workload(job(), made(phase), terms), AnyObject)
    told = status(there, made(phase), gang(place), terms, NOW)
    assert {c["type"]: c["status"] for c in told["conditions"]} == known
    again = convert({**workload(job(), made(phase), terms), "status": told}, AnyObject)
    assert status(again, made(phase), gang(place), terms, "2027-01-01T00:00:00Z") == told
