"""Quotas and limit ranges: what is counted, filled in, refused, and in which words."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.apiserver.bootstrap import create_missing
from lockstep.apiserver.catalog import Catalog
from lockstep.apiserver.deletion import Deletion
from lockstep.apiserver.limits.quota import concerns, usage
from lockstep.apiserver.limits.ranges import ANNOTATION, fill_in, violations
from lockstep.apiserver.objects import Objects, WriteOptions
from lockstep.apiserver.status import StatusError
from lockstep.apiserver.store import Store

Json = dict[str, Any]
OPTIONS = WriteOptions()


def resources(requests: Json | None = None, limits: Json | None = None) -> Json:
    return {k: v for k, v in (("requests", requests), ("limits", limits)) if v}


def pod(*containers: Json, **spec: Any) -> Json:
    named = [{"name": f"c{i}", "image": "x", "resources": one} for i, one in enumerate(containers)]
    return {"metadata": {"name": "p"}, "spec": {"containers": named, **spec}}


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


class Namespace:
    """The namespace default of a server's store."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects

    async def create(self, plural: str, name: str, group: str = "", **fields: Any) -> None:
        served = self.objects.catalog.find(group, "v1", plural)
        assert served is not None
        kind = {"apiVersion": served.kind.api_version, "kind": served.kind.kind}
        obj = {**kind, "metadata": {"name": name}, **fields}
        await self.objects.create(served, "default", obj, OPTIONS)

    async def pod(self, name: str, *containers: Json, **spec: Any) -> None:
        await self.create("pods", name, spec=pod(*containers, **spec)["spec"])

    async def quota(self, name: str = "q", **hard: str) -> None:
        names = {key.replace("__", "."): value for key, value in hard.items()}
        await self.create("resourcequotas", name, spec={"hard": names})

    async def delete(self, plural: str, name: str) -> None:
        served = self.objects.catalog.find("", "v1", plural)
        assert served is not None
        await self.objects.delete(served, "default", name, Deletion(grace=0))

    async def phase(self, name: str, phase: str) -> None:
        served = self.objects.catalog.find("", "v1", "pods")
        assert served is not None

        def ended(one: Json) -> Json:
            return {**one, "status": {**one["status"], "phase": phase}}

        await self.objects.change(served, "default", name, ended, OPTIONS, subresource="status")

    def used(self, quota: str = "q") -> dict[str, str]:
        for account in self.objects.limits.ledger.accounts("default"):
            if account.record.key.name == quota:
                return {name: str(amount) for name, amount in account.used.items()}
        raise KeyError(quota)


@pytest.fixture
async def namespace(tmp_path: Path) -> AsyncIterator[Namespace]:
    store = Store(tmp_path / "store.db", synchronous="OFF")
    objects = Objects(store, Catalog())
    await create_missing(objects)
    yield Namespace(objects)
    await store.close()


async def test_what_does_not_fit_is_refused_with_the_numbers(namespace: Namespace) -> None:
    await namespace.quota(requests__cpu="2", limits__memory="2Gi")
    await namespace.pod("half", resources({"cpu": "500m"}, {"memory": "1Gi"}))
    with pytest.raises(StatusError) as refused:
        await namespace.pod("both", resources({"cpu": "1800m"}, {"memory": "1500Mi"}))
    assert refused.value.code == 403
    assert str(refused.value) == (
        'pods "both" is forbidden: exceeded quota: q, '
        "requested: limits.memory=1500Mi,requests.cpu=1800m, "
        "used: limits.memory=1Gi,requests.cpu=500m, limited: limits.memory=2Gi,requests.cpu=2"
    )


async def test_what_a_quota_limits_must_be_named(namespace: Namespace) -> None:
    await namespace.quota(requests__cpu="2", limits__memory="2Gi", pods="5")
    with pytest.raises(StatusError) as refused:
        await namespace.pod("silent", {}, resources({"cpu": "1"}))
    assert str(refused.value).endswith(
        "failed quota: q: must specify limits.memory for: c0,c1; requests.cpu for: c0"
    )


async def test_many_at_the_same_time_cannot_take_more_than_there_is(namespace: Namespace) -> None:
    await namespace.quota(pods="3")
    done = await asyncio.gather(
        *(namespace.pod(f"p{i}", {}) for i in range(10)), return_exceptions=True
    )
    assert sum(one is None for one in done) == 3
    assert namespace.used() == {"pods": "3"}


async def test_what_ends_or_goes_is_free_again(namespace: Namespace) -> None:
    await namespace.quota(pods="2")
    await namespace.pod("ends", {})
    await namespace.pod("goes", {})
    with pytest.raises(StatusError, match="exceeded quota"):
        await namespace.pod("third", {})
    await namespace.phase("ends", "Succeeded")
    await namespace.delete("pods", "goes")
    assert namespace.used() == {"pods": "0"}
    await namespace.pod("third", {})


async def test_a_quota_counts_what_was_there_before_it(namespace: Namespace) -> None:
    for name in ("a", "b"):
        await namespace.create("configmaps", name)
    await namespace.quota(configmaps="3", **{"count/configmaps": "9"})
    await namespace.create("configmaps", "c")
    assert namespace.used() == {"configmaps": "3", "count/configmaps": "3"}
    with pytest.raises(StatusError, match="used: configmaps=3, limited: configmaps=3"):
        await namespace.create("configmaps", "d")


async def test_a_quota_and_what_it_counts_may_come_together(namespace: Namespace) -> None:
    await asyncio.gather(
        namespace.create("configmaps", "before"),
        namespace.quota(configmaps="9"),
        namespace.create("configmaps", "after"),
    )
    assert namespace.used() == {"configmaps": "2"}


async def test_limits_of_the_namespace_are_filled_in_and_held(namespace: Namespace) -> None:
    item = {"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}
    await namespace.create("limitranges", "lr", spec={"limits": [item]})
    await namespace.quota(requests__cpu="10")
    await namespace.pod("plain", {})
    assert namespace.used() == {"requests.cpu": "1"}
    with pytest.raises(StatusError, match="maximum cpu usage per Container is 2, but limit is 3"):
        await namespace.pod("large", resources(limits={"cpu": "3"}))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(["create", "delete", "end", "quota"]), max_size=25))
def test_the_books_agree_with_a_count(steps: list[str]) -> None:
    async def play(path: Path) -> None:
        store = Store(path / "store.db", synchronous="OFF")
        objects = Objects(store, Catalog())
        await create_missing(objects)
        here = Namespace(objects)
        await here.quota("first", pods="100", requests__cpu="100")
        there: list[str] = []
        for number, step in enumerate(steps):
            if step == "create":
                await here.pod(f"p{number}", resources({"cpu": f"{number + 1}00m"}))
                there.append(f"p{number}")
            elif step == "quota":
                await here.quota(f"q{number}", pods="100", requests__cpu="100")
            elif there and step == "delete":
                await here.delete("pods", there.pop())
            elif there:
                await here.phase(there[0], "Failed")
        for account in objects.limits.ledger.accounts("default"):
            wanted: dict[str, Any] = {}
            for record in store.objects("pods"):
                for name, amount in account.usage_of("pods", record.object()).items():
                    wanted[name] = wanted.get(name, 0) + amount.value
            assert {n: a.value for n, a in account.used.items() if a.value} == wanted
        await store.close()

    with tempfile.TemporaryDirectory() as place:
        asyncio.run(play(Path(place)))
