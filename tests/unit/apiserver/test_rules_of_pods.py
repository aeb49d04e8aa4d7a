"""What the server says of pods that are wrong, and of their changes."""

from typing import Any

import pytest
from tests.support.validated import KINDS, Json, said

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
