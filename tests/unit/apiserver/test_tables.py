from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from lockstep.apiserver import tables
from lockstep.apiserver.builtin import BUILTINS, Kind
from lockstep.apiserver.tables.format import human_duration, selector
from lockstep.apiserver.tables.jsonpath import find

Json = dict[str, Any]
NOW = datetime(2026, 1, 2, 0, 0, 0, tzinfo=UTC).timestamp()
BORN = "2026-01-01T23:55:00Z"


def kind(name: str, group: str = "") -> Kind:
    return next(k for k in BUILTINS if (k.group, k.kind) == (group, name))


def row(name: str, obj: Json, group: str = "") -> dict[str, Any]:
    table = tables.builtin(kind(name, group))
    obj = {"metadata": {"name": "x", "creationTimestamp": BORN}, **obj}
    return dict(zip([c["name"] for c in table.columns()], table.cells(obj, NOW), strict=True))


RUNNING = {"ready": True, "restartCount": 0, "state": {"running": {}}}
CRASHED = {
    "restartCount": 3,
    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T23:59:30Z"}},
}
DONE = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
FAILED = {"state": {"terminated": {"exitCode": 2, "reason": "Error"}}}
KILLED = {"state": {"terminated": {"exitCode": 137, "signal": 9}}}
READY = [{"type": "Ready", "status": "True"}]

# Statuses of a pod's containers, its status otherwise, and what READY, STATUS and RESTARTS show.
PODS = [
    ([], {"phase": "Pending"}, ("0/2", "Pending", "0")),
    ([RUNNING, RUNNING], {"phase": "Running"}, ("2/2", "Running", "0")),
    ([RUNNING, CRASHED], {"phase": "Running"}, ("1/2", "CrashLoopBackOff", "3 (30s ago)")),
    ([DONE, DONE], {"phase": "Succeeded"}, ("0/2", "Completed", "0")),
    ([DONE, FAILED], {"phase": "Failed"}, ("0/2", "Error", "0")),
    ([KILLED, DONE], {"phase": "Failed"}, ("0/2", "Signal:9", "0")),
    ([DONE, RUNNING], {"phase": "Running", "conditions": READY}, ("1/2", "Running", "0")),
    ([DONE, RUNNING], {"phase": "Running"}, ("1/2", "NotReady", "0")),
    ([], {"phase": "Failed", "reason": "Evicted"}, ("0/2", "Evicted", "0")),
    (
        [],
        {
            "phase": "Pending",
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
            ],
        },
        ("0/2", "SchedulingGated", "0"),
    ),
]


@pytest.mark.parametrize(("containers", "status", "shown"), PODS)
def test_pods(containers: list[Json], status: Json, shown: tuple[str, str, str]) -> None:
    spec = {"containers": [{"name": "a"}, {"name": "b"}]}
    cells = row("Pod", {"spec": spec, "status": {**status, "containerStatuses": containers}})
    assert (cells["Ready"], cells["Status"], cells["Restarts"]) == shown
    assert cells["Age"] == "5m"
    assert cells["Node"] == "<none>"


@pytest.mark.parametrize(
    ("init", "shown"),
    [
        ([], "Pending"),
        ([{"name": "i", "state": {"running": {}}}], "Init:0/2"),
        ([{**DONE, "name": "i"}, {"name": "j", "state": {"running": {}}}], "Init:1/2"),
        ([{**FAILED, "name": "i"}], "Init:Error"),
        (
            [{"name": "i", "state": {"waiting": {"reason": "ImagePullBackOff"}}}],
            "Init:ImagePullBackOff",
        ),
    ],
)
def test_pods_that_initialize(init: list[Json], shown: str) -> None:
    spec = {"containers": [{"name": "a"}], "initContainers": [{"name": "i"}, {"name": "j"}]}
    status = {"phase": "Pending", "initContainerStatuses": init}
    assert row("Pod", {"spec": spec, "status": status})["Status"] == shown


def test_a_sidecar_counts_as_a_container() -> None:
    spec = {
        "containers": [{"name": "a"}],
        "initContainers": [{"name": "s", "restartPolicy": "Always"}],
    }
    status = {
        "phase": "Running",
        "initContainerStatuses": [{**RUNNING, "name": "s", "started": True}],
        "containerStatuses": [RUNNING],
    }
    cells = row("Pod", {"spec": spec, "status": status})
    assert (cells["Ready"], cells["Status"]) == ("2/2", "Running")


def test_a_pod_that_is_deleted_terminates() -> None:
    meta = {"name": "x", "creationTimestamp": BORN, "deletionTimestamp": BORN}
    pod = {"metadata": meta, "spec": {"containers": [{}]}, "status": {"phase": "Running"}}
    assert row("Pod", pod)["Status"] == "Terminating"


def test_the_row_of_a_pod_that_has_ended_says_so() -> None:
    table = tables.builtin(kind("Pod"))
    assert [c["reason"] for c in table.conditions({"status": {"phase": "Failed"}})] == ["Failed"]
    assert table.conditions({"status": {"phase": "Running"}}) == []


# Kind, object, and some of its cells.
ROWS = [
    (
        ("Node", ""),
        {
            "metadata": {
                "name": "n",
                "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"},
            },
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "False"}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"kernelVersion": "6.1", "architecture": "amd64"},
            },
        },
        {
            "Status": "NotReady,SchedulingDisabled",
            "Roles": "gpu,worker",
            "Internal-IP": "10.0.0.1",
            "Kernel-Version": "6.1 (amd64)",
            "OS-Image": "<unknown>",
        },
    ),
    (
        ("Service", ""),
        {
            "spec": {
                "type": "NodePort",
                "clusterIP": "10.0.0.5",
                "ports": [
                    {"port": 80, "nodePort": 30080, "protocol": "TCP"},
                    {"port": 53, "protocol": "UDP"},
                ],
                "selector": {"b": "2", "a": "1"},
            }
        },
        {
            "Type": "NodePort",
            "Cluster-IP": "10.0.0.5",
            "External-IP": "<none>",
            "Port(s)": "80:30080/TCP,53/UDP",
            "Selector": "a=1,b=2",
        },
    ),
    (
        ("Deployment", "apps"),
        {
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
            },
            "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2},
        },
        {"Ready": "2/3", "Up-to-date": 3, "Available": 2, "Containers": "c", "Selector": "a=b"},
    ),
    (
        ("Job", "batch"),
        {
            "spec": {"completions": 2},
            "status": {"succeeded": 1, "startTime": "2026-01-01T23:58:00Z"},
        },
        {"Status": "Running", "Completions": "1/2", "Duration": "2m"},
    ),
    (
        ("Job", "batch"),
        {
            "spec": {"parallelism": 3},
            "status": {
                "startTime": "2026-01-01T23:58:00Z",
                "completionTime": "2026-01-01T23:58:30Z",
                "conditions": [{"type": "Complete", "status": "True"}],
            },
        },
        {"Status": "Complete", "Completions": "0/1 of 3", "Duration": "30s"},
    ),
    (
        ("Event", ""),
        {
            "type": "Warning",
            "reason": "Unschedulable",
            "message": " none fits \n",
            "involvedObject": {"kind": "Pod", "name": "p"},
            "source": {"component": "lockstep", "host": "h"},
            "lastTimestamp": "2026-01-01T23:59:59Z",
        },
        {
            "Last Seen": "1s",
            "Object": "pod/p",
            "Message": "none fits",
            "Source": "lockstep, h",
            "Count": 1,
        },
    ),
    (("ConfigMap", ""), {"data": {"a": "1"}, "binaryData": {"b": ""}}, {"Data": 2}),
    (("Lease", "coordination.k8s.io"), {"spec": {"holderIdentity": "me"}}, {"Holder": "me"}),
    (
        ("PriorityClass", "scheduling.k8s.io"),
        {"value": 5, "globalDefault": True, "preemptionPolicy": "Never"},
        {"Value": 5, "Global-Default": True, "PreemptionPolicy": "Never"},
    ),
    (
        ("RoleBinding", "rbac.authorization.k8s.io"),
        {
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [
                {"kind": "User", "name": "u"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            ],
        },
        {"Role": "Role/r", "Users": "u", "Groups": "", "ServiceAccounts": "n/s"},
    ),
    (
        ("ResourceQuota", ""),
        {"status": {"hard": {"limits.cpu": "2", "pods": "3"}, "used": {"pods": "1"}}},
        {"Request": "pods: 1/3", "Limit": "limits.cpu: 0/2"},
    ),
    (("Role", "rbac.authorization.k8s.io"), {}, {"Name": "x", "Created At": BORN}),
]


@pytest.mark.parametrize(("which", "obj", "shown"), ROWS)
def test_rows(which: tuple[str, str], obj: Json, shown: Json) -> None:
    cells = row(which[0], obj, which[1])
    assert {name: cells[name] for name in shown} == shown


@pytest.mark.parametrize("each", BUILTINS, ids=lambda k: f"{k.group}/{k.kind}")
def test_every_column_has_a_cell_and_a_description(each: Kind) -> None:
    table = tables.builtin(each)
    columns = table.columns()
    assert len(columns) == len(table.cells({"metadata": {"name": "x"}}, NOW))
    assert all(c["description"] for c in columns)


def test_columns_of_pods() -> None:
    columns = tables.builtin(kind("Pod")).columns()
    assert [(c["name"], c["priority"]) for c in columns] == [
        ("Name", 0),
        ("Ready", 0),
        ("Status", 0),
        ("Restarts", 0),
        ("Age", 0),
        ("IP", 1),
        ("Node", 1),
        ("Nominated Node", 1),
        ("Readiness Gates", 1),
    ]
    assert columns[0]["format"] == "name"


def column(type_: str, path: str, **more: Any) -> Json:
    return {"name": "C", "type": type_, "jsonPath": path, **more}


OBJ = {
    "metadata": {"name": "x", "creationTimestamp": BORN, "annotations": {"a.b/c": "v"}},
    "spec": {
        "n": 3,
        "f": 1.5,
        "on": True,
        "list": [{"name": "p"}, {"name": "q"}],
        "unset": None,
        "rows": [{"n": 1, "deep": {"on": True}}, {"n": 2}],
    },
    "status": {"conditions": [{"type": "A", "status": "No"}, {"type": "B", "status": "Yes"}]},
}


@pytest.mark.parametrize(
    ("type_", "path", "cell"),
    [
        ("integer", ".spec.n", 3),
        ("string", ".spec.n", "3"),
        ("number", ".spec.f", 1.5),
        ("integer", ".spec.f", 1),
        ("boolean", ".spec.on", True),
        ("boolean", ".spec.n", None),
        ("string", ".spec.list[*].name", "p"),
        ("string", ".spec.list[-1].name", "q"),
        ("string", ".spec.list", '[{"name":"p"},{"name":"q"}]'),
        ("string", '.status.conditions[?(@.type=="B")].status', "Yes"),
        ("string", ".status.conditions[?(@.type!='A')].status", "Yes"),
        ("string", r".metadata.annotations.a\.b/c", "v"),
        ("string", r".metadata.annotations['a\.b/c']", "v"),
        ("string", ".metadata.annotations['a.b/c']", None),
        ("string", ".status.conditions[-1:].type", "B"),
        ("string", ".status.conditions[:1].type", "A"),
        ("string", ".status.conditions[0:2:2].type", "A"),
        ("string", ".status.conditions[1,0].type", "B"),
        ("string", ".status.conditions[2].type", None),
        ("string", ".status.conditions[-3:].type", None),
        ("string", ".spec.none[-1:].type", None),
        ("string", ".spec.n[0]", None),
        ("string", "..type", "A"),
        ("string", ".status['conditions'][?(@.status=~\"^Y\")].type", "B"),
        ("string", ".spec.list[?(@.name)].name", "p"),
        ("integer", ".spec.rows[?(@.n>=2)].n", 2),
        ("string", ".spec.rows[?(@.n>1.5)].n", None),
        ("string", ".spec.rows[?(@.n==1)].deep.on", "true"),
        ("string", ".spec.unset", "<no value>"),
        ("string", ".spec.f", "1.5"),
        ("string", ".spec.*.nothing", None),
        ("string", ".spec.list[?(", None),
        ("string", ".spec.nothing", None),
        ("date", ".metadata.creationTimestamp", "5m"),
        ("date", ".metadata.name", "<invalid>"),
    ],
)
def test_cells_of_custom_resources(type_: str, path: str, cell: Any) -> None:
    assert tables.custom([column(type_, path)]).cells(OBJ, NOW) == ["x", cell]


def test_columns_of_custom_resources() -> None:
    plain, described = (
        tables.custom([column("string", ".spec.n", **more)]).columns()[1]
        for more in ({}, {"description": "d", "priority": 1, "format": "int32"})
    )
    assert plain["description"] == (
        "Custom resource definition column (in JSONPath format): .spec.n"
    )
    assert (described["description"], described["priority"], described["format"]) == (
        "d",
        1,
        "int32",
    )


def test_a_custom_resource_without_columns_shows_its_age() -> None:
    table = tables.custom([])
    assert [c["name"] for c in table.columns()] == ["Name", "Age"]
    assert table.cells(OBJ, NOW) == ["x", "5m"]


@pytest.mark.parametrize("path", ["spec", ".a[", ".a[x]", ".a[?(@.b<>1)]", ".a[?(@.b==1", "{.a}"])
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        find(path, {})


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (800 * 86400, "2y70d"),
        (3000 * 86400, "8y"),
    ],
)
def test_durations(length: float, shown: str) -> None:
    assert human_duration(length) == shown


def test_selectors() -> None:
    given = {
        "matchLabels": {"b": "1"},
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["y", "x"]},
            {"key": "c", "operator": "DoesNotExist"},
        ],
    }
    assert selector(given) == "a in (x,y),b=1,!c"
    assert selector({}) == "<none>"
