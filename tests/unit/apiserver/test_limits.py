"""Quotas and limit ranges: what is counted, filled in and refused, and in which words."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.resource_requests import Json, pod, resources

from lockstep.apiserver.limits.quota import concerns, usage
from lockstep.apiserver.limits.ranges import ANNOTATION, fill_in, violations


def first(name: str, requests: Json, *, stays: bool = False) -> Json:
    more = {"restartPolicy": "Always"} if stays else {}
    return {"name": name, "image": "x", "resources": {"requests": requests}, **more}


USAGE: list[tuple[str, str, Json, dict[str, str]]] = [
    (
        "a pod counts by requests and limits",
        "pods",
        pod(
            resources({"cpu": "500m", "memory": "1Gi"}, {"memory": "1Gi", "nvidia.com/gpu": "2"}),
            resources({"cpu": "1", "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"}),
        ),
        {
            "count/pods": "1",
            "pods": "1",
            "cpu": "1500m",
            "requests.cpu": "1500m",
            "memory": "1Gi",
            "requests.memory": "1Gi",
            "limits.memory": "1Gi",
            "requests.nvidia.com/gpu": "2",
            "hugepages-2Mi": "4Mi",
            "requests.hugepages-2Mi": "4Mi",
        },
    ),
    (
        "init containers count by the largest, those that stay with the rest",
        "pods",
        pod(
            resources({"cpu": "1"}),
            initContainers=[first("a", {"cpu": "1"}, stays=True), first("b", {"cpu": "4"})],
        ),
        {"count/pods": "1", "pods": "1", "cpu": "5", "requests.cpu": "5"},
    ),
    (
        "overhead counts with what is requested",
        "pods",
        pod(resources({"cpu": "1"}), overhead={"cpu": "250m"}),
        {"count/pods": "1", "pods": "1", "cpu": "1250m", "requests.cpu": "1250m"},
    ),
    (
        "a pod that has ended counts as an object only",
        "pods",
        {**pod(resources({"cpu": "1"})), "status": {"phase": "Failed"}},
        {"count/pods": "1"},
    ),
    ("a config map", "configmaps", {}, {"count/configmaps": "1", "configmaps": "1"}),
    ("any kind", "deployments.apps", {}, {"count/deployments.apps": "1"}),
    (
        "a service with ports on nodes",
        "services",
        {"spec": {"type": "NodePort", "ports": [{"port": 1}, {"port": 2}]}},
        {"count/services": "1", "services": "1", "services.nodeports": "2"},
    ),
    (
        "a load balancer without them",
        "services",
        {
            "spec": {
                "type": "LoadBalancer",
                "allocateLoadBalancerNodePorts": False,
                "ports": [{"port": 1}, {"port": 2, "nodePort": 30000}],
            }
        },
        {
            "count/services": "1",
            "services": "1",
            "services.loadbalancers": "1",
            "services.nodeports": "1",
        },
    ),
    (
        "a claim, by its class too",
        "persistentvolumeclaims",
        {"spec": {"storageClassName": "fast", "resources": {"requests": {"storage": "5Gi"}}}},
        {
            "count/persistentvolumeclaims": "1",
            "persistentvolumeclaims": "1",
            "requests.storage": "5Gi",
            "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
            "fast.storageclass.storage.k8s.io/requests.storage": "5Gi",
        },
    ),
]


@pytest.mark.parametrize(
    ("storage", "obj", "expected"), [c[1:] for c in USAGE], ids=[c[0] for c in USAGE]
)
def test_usage(storage: str, obj: Json, expected: dict[str, str]) -> None:
    assert {name: str(amount) for name, amount in usage(storage, obj).items()} == expected


def priority(operator: str, *values: str) -> Json:
    wanted = {"scopeName": "PriorityClass", "operator": operator, "values": list(values)}
    return {"scopeSelector": {"matchExpressions": [wanted]}}


@pytest.mark.parametrize(
    ("spec", "pod_spec", "expected"),
    [
        ({"scopes": ["BestEffort"]}, {}, True),
        ({"scopes": ["NotBestEffort"]}, {}, False),
        ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 5}, True),
        ({"scopes": ["Terminating", "NotBestEffort"]}, {"activeDeadlineSeconds": 5}, False),
        ({"scopes": ["NotTerminating"]}, {"activeDeadlineSeconds": 5}, False),
        (priority("In", "high"), {"priorityClassName": "high"}, True),
        (priority("In", "high"), {"priorityClassName": "low"}, False),
        (priority("NotIn", "high"), {"priorityClassName": "low"}, True),
        (priority("Exists"), {}, False),
        (priority("DoesNotExist"), {}, True),
    ],
)
def test_scopes(spec: Json, pod_spec: Json, expected: bool) -> None:
    assert concerns({"spec": spec}, "pods", pod({}, **pod_spec)) is expected
    assert not concerns({"spec": spec}, "configmaps", {})


def limits(sort: str, **item: Any) -> list[Json]:
    return [{"spec": {"limits": [{"type": sort, **item}]}}]


DEFAULTS = limits(
    "Container",
    default={"cpu": "500m", "memory": "512Mi"},
    defaultRequest={"cpu": "250m", "memory": "512Mi"},
)


@pytest.mark.parametrize(
    ("own", "expected", "said"),
    [
        (
            {},
            resources({"cpu": "250m", "memory": "512Mi"}, {"cpu": "500m", "memory": "512Mi"}),
            "cpu, memory request for container c0; cpu, memory limit for container c0",
        ),
        (
            resources({"cpu": "400m"}),
            resources({"cpu": "400m", "memory": "512Mi"}, {"cpu": "500m", "memory": "512Mi"}),
            "memory request for container c0; cpu, memory limit for container c0",
        ),
        (
            resources(limits={"cpu": "1"}),
            resources({"cpu": "1", "memory": "512Mi"}, {"cpu": "1", "memory": "512Mi"}),
            "memory request for container c0; memory limit for container c0",
        ),
    ],
)
def test_what_a_container_does_not_name_is_filled_in(own: Json, expected: Json, said: str) -> None:
    one = pod(own)
    fill_in(one, DEFAULTS)
    assert one["spec"]["containers"][0]["resources"] == expected
    assert one["metadata"]["annotations"] == {ANNOTATION: f"LimitRanger plugin set: {said}"}


def test_what_names_everything_is_left_alone() -> None:
    full = resources({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"})
    one = pod(full)
    fill_in(one, DEFAULTS)
    assert one == pod(full)


CLAIM = {"spec": {"resources": {"requests": {"storage": "8Gi"}}}}


@pytest.mark.parametrize(
    ("ranges", "storage", "obj", "expected"),
    [
        (
            limits("Container", max={"cpu": "2"}),
            "pods",
            pod(resources({"cpu": "1"}, {"cpu": "5"}), resources(limits={"cpu": "2"})),
            ["maximum cpu usage per Container is 2, but limit is 5"],
        ),
        (
            limits("Container", max={"cpu": "2"}),
            "pods",
            pod({}),
            ["maximum cpu usage per Container is 2.  No limit is specified"],
        ),
        (
            limits("Container", min={"memory": "1Gi"}),
            "pods",
            pod(resources({"memory": "1Mi"})),
            ["minimum memory usage per Container is 1Gi, but request is 1Mi"],
        ),
        (
            limits("Container", maxLimitRequestRatio={"cpu": "4"}),
            "pods",
            pod(resources({"cpu": "100m"}, {"cpu": "2"})),
            ["cpu max limit to request ratio per Container is 4, but provided ratio is 20.000000"],
        ),
        (
            limits("Pod", max={"cpu": "3"}),
            "pods",
            pod(resources(limits={"cpu": "2"}), resources(limits={"cpu": "2"})),
            ["maximum cpu usage per Pod is 3, but limit is 4"],
        ),
        (
            limits("PersistentVolumeClaim", max={"storage": "5Gi"}, min={"storage": "1Gi"}),
            "persistentvolumeclaims",
            CLAIM,
            ["maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 8Gi"],
        ),
        (limits("PersistentVolumeClaim", max={"storage": "5Gi"}), "pods", pod({}), []),
        (limits("Pod", max={"cpu": "3"}), "configmaps", {}, []),
    ],
)
def test_what_is_not_within_its_limits_is_said(
    ranges: list[Json], storage: str, obj: Json, expected: list[str]
) -> None:
    assert violations(storage, obj, ranges) == expected
