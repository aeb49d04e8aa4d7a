from __future__ import annotations

import copy
from typing import Any

import pytest

from lockstep.apiserver.builtin import BUILTINS, Kind
from lockstep.apiserver.builtin.rules import validate_metadata
from lockstep.apiserver.builtin.rules.names import dns_1035_label, dns_label, dns_subdomain

Json = dict[str, Any]
KINDS = {(k.group, k.kind): k for k in BUILTINS}

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def said(kind: Kind, new: Json, old: Json | None = None) -> list[str]:
    """Return what is said of *new* once it has its defaults."""
    new, before = copy.deepcopy(new), copy.deepcopy(old)
    meta = {"name": "x", **({"namespace": "n"} if kind.namespaced else {})}
    for obj in (new, before):
        if obj is not None:
            obj["metadata"] = {**meta, **obj.get("metadata", {})}
            obj.setdefault("kind", kind.kind)
            kind.prepare(obj, None)
            if old is None:
                kind.begin(obj)
    return [str(cause) for cause in kind.validate(new, before)]


def pod(**spec: Any) -> Json:
    return {"spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def with_container(**fields: Any) -> Json:
    return pod(containers=[{"name": "c", "image": "i", **fields}])


C = "spec.containers[0]"
PODS = [
    (pod(), []),
    (pod(containers=[]), ["spec.containers: Required value"]),
    (
        pod(containers=[{}]),
        [f"{C}.name: Required value", f"{C}.image: Required value"],
    ),
    (with_container(name="A"), [f'{C}.name: Invalid value: "A": {LABEL}']),
    (with_container(name="a.b"), [f'{C}.name: Invalid value: "a.b": must not contain dots']),
    (
        pod(containers=[{"name": "c", "image": "i"}] * 2),
        ['spec.containers[1].name: Duplicate value: "c"'],
    ),
    (
        with_container(ports=[{"containerPort": 70000}]),
        [
            f"{C}.ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, "
            "inclusive"
        ],
    ),
    (with_container(ports=[{}]), [f"{C}.ports[0].containerPort: Required value"]),
    (
        with_container(ports=[{"containerPort": 1, "protocol": "X"}]),
        [f'{C}.ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"'],
    ),
    (
        with_container(
            ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]
        ),
        [f'{C}.ports[1].name: Duplicate value: "a"'],
    ),
    (with_container(env=[{"value": "x"}]), [f"{C}.env[0].name: Required value"]),
    (
        with_container(env=[{"name": "A=B"}]),
        [
            f'{C}.env[0].name: Invalid value: "A=B": a valid environment variable name must '
            "consist only of printable ASCII characters other than '='"
        ],
    ),
    (
        with_container(
            env=[
                {
                    "name": "A",
                    "value": "1",
                    "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
                }
            ]
        ),
        [
            f'{C}.env[0].valueFrom: Invalid value: "": may not be specified when `value` is not '
            "empty"
        ],
    ),
    (
        with_container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]),
        [
            f'{C}.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.x": error converting '
            "fieldPath: field label not supported: spec.x"
        ],
    ),
    (
        with_container(volumeMounts=[{"name": "v", "mountPath": "/x"}]),
        [f'{C}.volumeMounts[0].name: Not found: "v"'],
    ),
    (
        pod(
            volumes=[{"name": "v", "emptyDir": {}}],
            containers=[
                {
                    "name": "c",
                    "image": "i",
                    "volumeMounts": [{"name": "v", "mountPath": "/x"}] * 2,
                }
            ],
        ),
        [f'{C}.volumeMounts[1].mountPath: Invalid value: "/x": must be unique'],
    ),
    (
        pod(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]),
        ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
    ),
    (
        pod(volumes=[{"name": "v", "hostPath": {}}]),
        ["spec.volumes[0].hostPath.path: Required value"],
    ),
    (
        with_container(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
        [
            f'{C}.resources.requests: Invalid value: "2": must be less than or equal to cpu limit '
            "of 1"
        ],
    ),
    (
        with_container(resources={"requests": {"nvidia.com/gpu": 1}}),
        [
            f"{C}.resources.limits: Required value: Limit must be set for non overcommitable "
            "resources"
        ],
    ),
    (
        with_container(resources={"limits": {"nvidia.com/gpu": "500m"}}),
        [
            f'{C}.resources.limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
            f'{C}.resources.requests[nvidia.com/gpu]: Invalid value: "500m": must be an integer',
        ],
    ),
    (
        with_container(resources={"requests": {"cpu": "-1"}}),
        [f'{C}.resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
    ),
    (
        with_container(resources={"requests": {"gpu": "1"}}),
        [
            f'{C}.resources.requests[gpu]: Invalid value: "gpu": must be a standard resource type '
            "or fully qualified",
            f'{C}.resources.requests[gpu]: Invalid value: "gpu": must be a standard resource for '
            "containers",
        ],
    ),
    (
        with_container(livenessProbe={}),
        [f"{C}.livenessProbe: Required value: must specify a handler type"],
    ),
    (
        pod(
            initContainers=[
                {"name": "i", "image": "i", "livenessProbe": {"exec": {"command": ["x"]}}}
            ]
        ),
        [
            "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers "
            "without restartPolicy=Always"
        ],
    ),
    (
        pod(restartPolicy="Sometimes"),
        [
            'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", '
            '"OnFailure", "Never"'
        ],
    ),
    (pod(hostname="a.b"), ['spec.hostname: Invalid value: "a.b": must not contain dots']),
    (
        pod(activeDeadlineSeconds=0),
        [
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, "
            "inclusive"
        ],
    ),
    (
        pod(tolerations=[{"operator": "Equal"}]),
        [
            'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when '
            '`key` is empty, which means "match all values and all keys"'
        ],
    ),
    (
        {**pod(), "metadata": {"name": "Bad_Name"}},
        [f'metadata.name: Invalid value: "Bad_Name": {SUBDOMAIN}'],
    ),
    (
        {**pod(), "metadata": {"labels": {"a": "not ok"}}},
        [f'metadata.labels: Invalid value: "not ok": {VALUE}'],
    ),
]


@pytest.mark.parametrize(("obj", "expected"), PODS)
def test_pods(obj: Json, expected: list[str]) -> None:
    assert said(KINDS["", "Pod"], obj) == expected


CHANGEABLE = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
)
CHANGES = [
    (pod(), pod(), []),
    (with_container(image="a"), with_container(image="b"), []),
    (pod(), pod(tolerations=[{"operator": "Exists"}]), []),
    (
        pod(tolerations=[{"key": "a", "operator": "Exists"}]),
        pod(),
        [
            "spec.tolerations: Forbidden: existing toleration can not be modified except its "
            "tolerationSeconds"
        ],
    ),
    (
        pod(),
        pod(containers=[]),
        [
            "spec.containers: Required value",
            "spec.containers: Forbidden: pod updates may not add or remove containers",
        ],
    ),
    (
        pod(activeDeadlineSeconds=5),
        pod(activeDeadlineSeconds=9),
        [
            "spec.activeDeadlineSeconds: Invalid value: 9: must be less than or equal to previous "
            "value"
        ],
    ),
    (pod(activeDeadlineSeconds=9), pod(activeDeadlineSeconds=5), []),
    (pod(schedulingGates=[{"name": "g"}]), pod(), []),
    (
        pod(),
        pod(schedulingGates=[{"name": "g"}]),
        [
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new "
            "scheduling gate 'g'"
        ],
    ),
    (pod(), pod(nodeName="n"), [CHANGEABLE]),
    (with_container(), with_container(command=["x"]), [CHANGEABLE]),
    (
        pod(schedulingGates=[{"name": "g"}]),
        pod(schedulingGates=[{"name": "g"}], nodeSelector={"a": "b"}),
        [],
    ),
]


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_of_pods(old: Json, new: Json, expected: list[str]) -> None:
    found = said(KINDS["", "Pod"], new, old)
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))


TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
ONCE = {
    "spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"},
}
SELECTS = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
PORT = {"port": 80}

# Kind, object, what it replaces, and what is said.
OTHERS: list[tuple[tuple[str, str], Json, Json | None, list[str]]] = [
    (("apps", "Deployment"), {"spec": SELECTS}, None, []),
    (
        ("apps", "Deployment"),
        {"spec": {"template": TEMPLATE}},
        None,
        [
            "spec.selector: Required value",
            'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match '
            "template `labels`",
        ],
    ),
    (
        ("apps", "Deployment"),
        {"spec": {**SELECTS, "selector": {"matchLabels": {"x": "y"}}}},
        None,
        [
            'spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match '
            "template `labels`"
        ],
    ),
    (
        ("apps", "Deployment"),
        {"spec": {**SELECTS, "selector": {}}},
        None,
        ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
    ),
    (
        ("apps", "Deployment"),
        {"spec": {**SELECTS, "replicas": -1}},
        None,
        ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
    ),
    (
        ("apps", "Deployment"),
        {
            "spec": {
                "selector": {"matchLabels": {"a": "c"}},
                "template": {**TEMPLATE, "metadata": {"labels": {"a": "c"}}},
            }
        },
        {"spec": SELECTS},
        ['spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable'],
    ),
    (
        ("apps", "StatefulSet"),
        {"spec": {**SELECTS, "serviceName": "b"}},
        {"spec": {**SELECTS, "serviceName": "a"}},
        [
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', "
            "'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
            "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        ],
    ),
    (
        ("batch", "Job"),
        {"spec": {"template": TEMPLATE}},
        None,
        ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    ),
    (("batch", "Job"), {"spec": {"template": ONCE}}, None, []),
    (
        ("batch", "Job"),
        {"spec": {"template": ONCE, "completionMode": "Indexed", "parallelism": 2}},
        None,
        ["spec.completions: Required value: when completion mode is Indexed"],
    ),
    (
        ("batch", "CronJob"),
        {"spec": {"schedule": "* * *", "jobTemplate": {"spec": {"template": ONCE}}}},
        None,
        ['spec.schedule: Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]'],
    ),
    (("", "Service"), {"spec": {"ports": [PORT]}}, None, []),
    (("", "Service"), {"spec": {}}, None, ["spec.ports: Required value"]),
    (("", "Service"), {"spec": {"clusterIP": "None"}}, None, []),
    (
        ("", "Service"),
        {"spec": {"ports": [PORT, {"port": 81, "name": "b"}]}},
        None,
        ["spec.ports[0].name: Required value"],
    ),
    (
        ("", "Service"),
        {"spec": {"clusterIP": "10.0.0.2", "ports": [PORT]}},
        {"spec": {"clusterIP": "10.0.0.1", "ports": [PORT]}},
        ['spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set'],
    ),
    (
        ("", "ConfigMap"),
        {"data": {"a/b": ""}},
        None,
        [
            'data[a/b]: Invalid value: "a/b": a valid config key must consist of alphanumeric '
            "characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex "
            "used for validation is '[-._a-zA-Z0-9]+')"
        ],
    ),
    (
        ("", "ConfigMap"),
        {"data": {"a": "2"}, "immutable": True},
        {"data": {"a": "1"}, "immutable": True},
        ["data: Forbidden: field is immutable when `immutable` is set"],
    ),
    (
        ("", "Secret"),
        {"type": "kubernetes.io/tls", "data": {"tls.crt": ""}},
        None,
        ["data[tls.key]: Required value"],
    ),
    (
        ("", "Secret"),
        {"type": "b"},
        {"type": "a"},
        ['type: Invalid value: "b": field is immutable'],
    ),
    (
        ("", "Namespace"),
        {"metadata": {"name": "a.b"}},
        None,
        ['metadata.name: Invalid value: "a.b": must not contain dots'],
    ),
    (
        ("", "Node"),
        {"spec": {"taints": [{"key": "a", "effect": "Never"}]}},
        None,
        [
            'metadata.taints[0].effect: Unsupported value: "Never": supported values: '
            '"NoSchedule", "PreferNoSchedule", "NoExecute"'
        ],
    ),
    (
        ("", "PersistentVolumeClaim"),
        {"spec": {}},
        None,
        [
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value",
        ],
    ),
    (
        ("coordination.k8s.io", "Lease"),
        {"spec": {"leaseDurationSeconds": 0}},
        None,
        ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
    ),
    (
        ("scheduling.k8s.io", "PriorityClass"),
        {"value": 2},
        {"value": 1},
        ["value: Forbidden: may not be changed in an update."],
    ),
    (
        ("scheduling.k8s.io", "PriorityClass"),
        {"value": 2_000_000_000},
        None,
        ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
    ),
    (
        ("rbac.authorization.k8s.io", "Role"),
        {"rules": [{"resources": ["pods"]}]},
        None,
        [
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        ],
    ),
    (
        ("rbac.authorization.k8s.io", "RoleBinding"),
        {"roleRef": {"kind": "Role", "name": "b"}},
        {"roleRef": {"kind": "Role", "name": "a"}},
        [
            'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role",'
            '"Name":"b"}: cannot change roleRef'
        ],
    ),
    (
        ("policy", "PodDisruptionBudget"),
        {"spec": {"minAvailable": "x"}},
        None,
        [
            'spec.minAvailable: Invalid value: "x": a valid percent string must be a numeric '
            "string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is "
            "'[0-9]+%')"
        ],
    ),
]


@pytest.mark.parametrize(("which", "new", "old", "expected"), OTHERS)
def test_other_kinds(
    which: tuple[str, str], new: Json, old: Json | None, expected: list[str]
) -> None:
    assert said(KINDS[which], new, old) == expected


META = {"name": "x", "namespace": "n"}


@pytest.mark.parametrize(
    ("meta", "old", "expected"),
    [
        (META, None, []),
        (
            {"namespace": "n"},
            None,
            ["metadata.name: Required value: name or generateName is required"],
        ),
        ({"name": "x"}, None, ["metadata.namespace: Required value"]),
        ({**META, "annotations": {"Upper.case/Key": "v"}}, None, []),
        (
            {**META, "finalizers": ["orphan", "foregroundDeletion"]},
            None,
            [
                'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer '
                "orphan and foregroundDeletion cannot be both set"
            ],
        ),
        (
            {**META, "finalizers": ["a.b/c"]},
            {**META, "deletionTimestamp": "2026-01-01T00:00:00Z"},
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is "
                'being deleted, found new finalizers []string{"a.b/c"}'
            ],
        ),
        ({**META, "labels": {"a": "!"}}, {**META, "labels": {"a": "!"}}, []),
        (
            {**META, "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]},
            None,
            ['metadata.ownerReferences.uid: Invalid value: "": must not be empty'],
        ),
    ],
)
def test_metadata(meta: Json, old: Json | None, expected: list[str]) -> None:
    causes = validate_metadata(meta, old, namespaced=True, name=dns_subdomain)
    assert [str(cause) for cause in causes] == expected


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (dns_label, ["a", "a-b", "0"], ["", "-a", "a-", "A", "a.b", "a" * 64]),
        (dns_subdomain, ["a.b", "a-b.c"], ["", "a..b", ".a", "a_b", "a" * 254]),
        (dns_1035_label, ["a", "a-0"], ["0", "a.b", "A"]),
    ],
)
def test_names(check: Any, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if check(text)] == []
    assert [text for text in bad if not check(text)] == []


@pytest.mark.parametrize("kind", BUILTINS, ids=lambda k: f"{k.group}/{k.kind}")
def test_an_unchanged_object_may_always_be_written_again(kind: Kind) -> None:
    obj: Json = {"kind": kind.kind, "metadata": {"name": "x", "uid": "u"}}
    kind.prepare(obj, None)
    wrong = kind.validate(obj, copy.deepcopy(obj))
    assert [c for c in wrong if "immutable" in c.message or c.reason == "FieldValueForbidden"] == []
