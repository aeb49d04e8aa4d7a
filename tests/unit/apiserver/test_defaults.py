from __future__ import annotations

import copy
from typing import Any

import pytest

from lockstep.apiserver.builtin import BUILTINS, Kind
from lockstep.apiserver.builtin.quantities import canonical

Json = dict[str, Any]
KINDS = {(k.group, k.kind): k for k in BUILTINS}


def prepared(kind: str, obj: Json, group: str = "") -> Json:
    KINDS[group, kind].prepare(obj, None)
    KINDS[group, kind].begin(obj)
    return obj


def pod(**spec: Any) -> Json:
    return prepared("Pod", {"metadata": {"name": "p"}, "spec": spec})


def container(**fields: Any) -> Json:
    return pod(containers=[{"name": "c", "image": "i", **fields}])["spec"]["containers"][0]


def test_a_minimal_pod() -> None:
    assert pod(containers=[{"name": "c", "image": "nginx:1.27"}]) == {
        "metadata": {"name": "p"},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "nginx:1.27",
                    "imagePullPolicy": "IfNotPresent",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                }
            ],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": True,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        },
        "status": {"phase": "Pending", "qosClass": "BestEffort"},
    }


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1", "IfNotPresent"),
        ("host:5000/nginx", "Always"),
        ("host:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:" + "0" * 64, "IfNotPresent"),
        ("nginx:latest@sha256:" + "0" * 64, "Always"),
    ],
)
def test_only_the_latest_image_is_always_pulled(image: str, policy: str) -> None:
    assert container(image=image)["imagePullPolicy"] == policy


# A container's field, and what of it must be there afterwards.
CONTAINERS = [
    ({"ports": [{"containerPort": 80}]}, {"ports": [{"containerPort": 80, "protocol": "TCP"}]}),
    (
        {"readinessProbe": {"httpGet": {"port": 80}}},
        {
            "readinessProbe": {
                "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
                "timeoutSeconds": 1,
                "periodSeconds": 10,
                "successThreshold": 1,
                "failureThreshold": 3,
            }
        },
    ),
    (
        {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
        {
            "env": [
                {
                    "name": "A",
                    "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}},
                }
            ]
        },
    ),
    (
        {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]},
        {
            "env": [
                {
                    "name": "A",
                    "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}},
                }
            ]
        },
    ),
    (
        {"resources": {"limits": {"cpu": 1, "memory": "1024Mi"}, "requests": {"cpu": "0.5"}}},
        {
            "resources": {
                "limits": {"cpu": "1", "memory": "1Gi"},
                "requests": {"cpu": "500m", "memory": "1Gi"},
            }
        },
    ),
]


@pytest.mark.parametrize(("given", "expected"), CONTAINERS)
def test_containers(given: Json, expected: Json) -> None:
    shown = container(**copy.deepcopy(given))
    assert {name: shown[name] for name in expected} == expected


def test_empty_optional_lists_and_maps_vanish_but_empty_structs_stay() -> None:
    obj = prepared(
        "Pod",
        {
            "metadata": {"name": "p", "labels": {}, "finalizers": []},
            "spec": {"containers": [], "nodeSelector": {}, "affinity": {}, "tolerations": []},
        },
    )
    assert obj["metadata"] == {"name": "p"}
    assert "nodeSelector" not in obj["spec"]
    assert "tolerations" not in obj["spec"]
    assert obj["spec"]["affinity"] == {}
    assert obj["spec"]["containers"] == []


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        ({}, {"emptyDir": {}}),
        ({"emptyDir": {"sizeLimit": "2048Ki"}}, {"emptyDir": {"sizeLimit": "2Mi"}}),
        (
            {"configMap": {"name": "m"}},
            {"configMap": {"name": "m", "defaultMode": 0o644}},
        ),
        (
            {"secret": {"secretName": "s"}},
            {"secret": {"secretName": "s", "defaultMode": 0o644}},
        ),
        ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                    "defaultMode": 0o644,
                }
            },
        ),
    ],
)
def test_volumes(volume: Json, expected: Json) -> None:
    assert pod(volumes=[{"name": "v", **volume}])["spec"]["volumes"] == [{"name": "v", **expected}]


def amounts(requests: Json | None = None, limits: Json | None = None) -> Json:
    resources: Json = {}
    if requests:
        resources["requests"] = requests
    if limits:
        resources["limits"] = limits
    return {"name": "c", "image": "i", "resources": resources}


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("containers", "quality"),
    [
        ([amounts()], "BestEffort"),
        ([amounts(limits={"nvidia.com/gpu": 1})], "BestEffort"),
        ([amounts(requests={"cpu": "1"})], "Burstable"),
        ([amounts(limits=BOTH)], "Guaranteed"),
        ([amounts(limits=BOTH), amounts()], "Burstable"),
        ([amounts({"cpu": "1000m", "memory": "1024Mi"}, BOTH)], "Guaranteed"),
        ([amounts({"cpu": "500m"}, BOTH)], "Burstable"),
        ([amounts(limits={"cpu": "1"})], "Burstable"),
    ],
)
def test_quality_of_service(containers: list[Json], quality: str) -> None:
    assert pod(containers=containers)["status"]["qosClass"] == quality


def test_host_network_opens_the_container_ports_on_the_host() -> None:
    obj = pod(hostNetwork=True, containers=[{"name": "c", "ports": [{"containerPort": 80}]}])
    assert obj["spec"]["containers"][0]["ports"][0]["hostPort"] == 80


def test_only_pods_themselves_copy_limits_to_requests() -> None:
    template = {"spec": {"containers": [amounts(limits=BOTH)]}}
    obj = prepared("Deployment", {"metadata": {}, "spec": {"template": template}}, "apps")
    assert obj["spec"]["template"]["spec"]["containers"][0]["resources"] == {"limits": BOTH}
    assert obj["spec"]["template"]["spec"]["restartPolicy"] == "Always"


# Kind, its spec, and what its spec must hold afterwards.
SPECS = [
    (
        ("apps", "Deployment"),
        {},
        {
            "replicas": 1,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
            },
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
        },
    ),
    (
        ("apps", "Deployment"),
        {"strategy": {"type": "Recreate"}},
        {"strategy": {"type": "Recreate"}},
    ),
    (("apps", "Deployment"), {"replicas": 0}, {"replicas": 0}),
    (
        ("apps", "StatefulSet"),
        {},
        {
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "persistentVolumeClaimRetentionPolicy": {
                "whenDeleted": "Retain",
                "whenScaled": "Retain",
            },
            "replicas": 1,
        },
    ),
    (
        ("apps", "DaemonSet"),
        {},
        {
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
            }
        },
    ),
    (
        ("batch", "Job"),
        {},
        {"completions": 1, "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed"},
    ),
    (("batch", "Job"), {"parallelism": 3}, {"parallelism": 3}),
    (
        ("batch", "CronJob"),
        {},
        {"concurrencyPolicy": "Allow", "suspend": False, "failedJobsHistoryLimit": 1},
    ),
    (
        ("", "Service"),
        {"ports": [{"port": 80}]},
        {
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster",
        },
    ),
    (("", "Service"), {"type": "NodePort"}, {"externalTrafficPolicy": "Cluster"}),
    (("", "PersistentVolumeClaim"), {}, {"volumeMode": "Filesystem"}),
    (
        ("networking.k8s.io", "NetworkPolicy"),
        {"egress": [{}]},
        {"policyTypes": ["Ingress", "Egress"]},
    ),
]


@pytest.mark.parametrize(("kind", "given", "expected"), SPECS)
def test_specs(kind: tuple[str, str], given: Json, expected: Json) -> None:
    obj = {"metadata": {"name": "x"}, "spec": copy.deepcopy(given)}
    spec = prepared(kind[1], obj, kind[0])["spec"]
    assert {name: spec[name] for name in expected} == expected


def test_a_parallel_job_without_completions_keeps_them_open() -> None:
    obj = prepared("Job", {"metadata": {}, "spec": {"parallelism": 3}}, "batch")
    assert "completions" not in obj["spec"]


def test_a_new_job_selects_its_own_pods() -> None:
    obj = prepared("Job", {"metadata": {"name": "j", "uid": "u"}, "spec": {}}, "batch")
    labels = {
        "job-name": "j",
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": "u",
        "batch.kubernetes.io/controller-uid": "u",
    }
    assert obj["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    assert obj["spec"]["template"]["metadata"]["labels"] == labels
    assert obj["metadata"]["labels"] == labels


def test_plain_texts_of_a_secret_become_data() -> None:
    obj = prepared("Secret", {"metadata": {}, "data": {"a": "eA=="}, "stringData": {"b": "y"}})
    assert obj == {"metadata": {}, "type": "Opaque", "data": {"a": "eA==", "b": "eQ=="}}


def test_a_namespace_is_labelled_active_and_held() -> None:
    assert prepared("Namespace", {"metadata": {"name": "n"}}) == {
        "metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "n"}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def test_a_finalized_namespace_does_not_regain_its_finalizer() -> None:
    old = prepared("Namespace", {"metadata": {"name": "n"}})
    new = {**old, "spec": {}}
    KINDS["", "Namespace"].prepare(new, old)
    assert new["spec"] == {}


@pytest.mark.parametrize("kind", BUILTINS, ids=lambda k: f"{k.group}/{k.kind}")
def test_preparing_twice_changes_nothing_more(kind: Kind) -> None:
    once: Json = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "x", "uid": "u"},
    }
    kind.prepare(once, None)
    twice = copy.deepcopy(once)
    kind.prepare(twice, once)
    assert twice == once


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("0", "0"),
        ("0.0", "0"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("100000", "100k"),
        ("1e3", "1e3"),
        ("12e4", "120e3"),
        ("1E", "1E"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1025Ki", "1025Ki"),
        ("0.5Gi", "512Mi"),
        (".001Ki", "1024m"),
        (".000000000001Ki", "2n"),
        ("-1000m", "-1"),
    ],
)
def test_canonical_quantities(text: str, form: str) -> None:
    assert canonical(text) == form
    assert canonical(form) == form
