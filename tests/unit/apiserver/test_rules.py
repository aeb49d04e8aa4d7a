"""What the server says of objects other than pods, of metadata and of names."""

import copy
from typing import Any

import pytest
from tests.support.validated import KINDS, Json, said

from lockstep.apiserver.builtin import BUILTINS, Kind
from lockstep.apiserver.builtin.rules import validate_metadata
from lockstep.apiserver.builtin.rules.names import dns_1035_label, dns_label, dns_subdomain

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
    *(
        (
            ("scheduling.k8s.io", "PriorityClass"),
            {"metadata": {"name": name}, **fields},
            None,
            [
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved "
                f"for system use only. error: {wrong}"
            ],
        )
        for name, fields, wrong in (
            ("system-x", {"value": 3}, "system-x is not a known system priority class"),
            (
                "system-node-critical",
                {"value": 3},
                "value of system-node-critical PriorityClass must be 2000001000",
            ),
            (
                "system-node-critical",
                {"value": 2_000_001_000, "globalDefault": True},
                "globalDefault of system-node-critical PriorityClass must be false",
            ),
        )
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
