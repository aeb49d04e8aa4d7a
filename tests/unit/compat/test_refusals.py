"""What other systems' objects ask for that cannot be honoured is named, and nothing is made."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from lockstep.api.core import AnyObject
from lockstep.api.wire import convert
from lockstep.compat.registry import sources

Json = dict[str, Any]
SAMPLES = Path(__file__).parent / "samples"
BY_KIND = {(s.kind.group, s.kind.kind): s for s in sources()}

VOLCANO: dict[str, Json] = {
    "spec.plugins": {"plugins": {"hcclrank": []}},
    "spec.plugins[pytorch]": {"plugins": {"pytorch": ["--master=boss"]}},
    "spec.plugins[svc]": {"plugins": {"svc": ["--no-such"]}},
    "spec.plugins[ssh]": {"plugins": {"ssh": ["--ssh-port=2222"]}},
    "spec.schedulerName": {"schedulerName": "yunikorn"},
    "spec.minAvailable": {"minAvailable": 9},
    "spec.policies[0].action": {"policies": [{"event": "PodFailed", "action": "Dance"}]},
    "spec.policies[0].event": {"policies": [{"event": "TaskCompleted", "action": "RestartJob"}]},
    "spec.policies[0].exitCode": {
        "policies": [{"exitCode": 3, "event": "PodFailed", "action": "RestartJob"}]
    },
    "spec.volumes[0].volumeClaim": {"volumes": [{"mountPath": "/x"}]},
    "spec.tasks[0].dependsOn.name": {
        "tasks": [
            {
                "template": {"spec": {"containers": [{"name": "a"}]}},
                "dependsOn": {"name": ["ps"]},
            }
        ],
        "minAvailable": None,
        "plugins": {},
        "policies": [],
    },
    "spec.tasks[0].template.spec.containers": {"tasks": [{"template": {}}], "minAvailable": None},
}
JOB: dict[str, Json] = {
    "spec.completions": {"completions": 9},
    "spec.podFailurePolicy.rules[0].action": {
        "podFailurePolicy": {"rules": [{"action": "FailJob", "onPodConditions": [{}]}]}
    },
    "spec.manualSelector": {"manualSelector": True},
}
JOBSET: dict[str, Json] = {
    "spec.startupPolicy.startupPolicyOrder": {"startupPolicy": {"startupPolicyOrder": "Any"}},
    "spec.network.subdomain": {"network": {"subdomain": "Else_where"}},
    "spec.successPolicy.targetReplicatedJobs": {
        "successPolicy": {"operator": "Any", "targetReplicatedJobs": ["nobody"]}
    },
    "spec.failurePolicy.rules[0].targetReplicatedJobs": {
        "failurePolicy": {"rules": [{"action": "FailJobSet", "targetReplicatedJobs": ["none"]}]}
    },
    "spec.coordinator.replicatedJob": {"coordinator": {"replicatedJob": "nobody"}},
}
ET: dict[str, Json] = {
    "spec.launcherAttachMode": {"launcherAttachMode": "kubexec"},
    "spec.slotsPerWorker": {"slotsPerWorker": 0},
}
CLUSTER_QUEUE: dict[str, Json] = {
    "spec.admissionChecksStrategy.admissionChecks[0].name": {"admissionChecks": ["budget"]},
    "spec.stopPolicy": {"stopPolicy": "Later"},
    "spec.fairSharing.weight": {"fairSharing": {"weight": "half"}},
    "spec.namespaceSelector.matchExpressions[0].operator": {
        "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    },
    "spec.preemption.borrowWithinCohort.policy": {
        "preemption": {"borrowWithinCohort": {"policy": "Any"}}
    },
    "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota": {
        "resourceGroups": [
            {"flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": "many"}]}]}
        ]
    },
}
FLAVOR: dict[str, Json] = {
    "spec.nodeLabels[gpu]": {"nodeLabels": {"gpu": "h 100"}},
}
VOLCANO_QUEUE: dict[str, Json] = {
    "spec.affinity": {"affinity": {}},
    "spec.weight": {"weight": 0},
    "spec.guarantee.resource[cpu]": {"guarantee": {"resource": {"cpu": 17}}},
}
KAI_QUEUE: dict[str, Json] = {
    "spec.priority": {"priority": "high"},
    "spec.resources.gpu.quota": {"resources": {"gpu": {"quota": -2}}},
    "spec.resources.cpu.limit": {"resources": {"cpu": {"limit": -5}}},
    "spec.resources.*.overQuotaWeight": {"resources": {"cpu": {"overQuotaWeight": 3}}},
}
CASES = [
    (sample, field, change)
    for sample, table in (
        ("volcano-job", VOLCANO),
        ("job", JOB),
        ("jobset", JOBSET),
        ("et-trainingjob", ET),
        ("kueue-clusterqueue", CLUSTER_QUEUE),
        ("kueue-resourceflavor", FLAVOR),
        ("volcano-queue", VOLCANO_QUEUE),
        ("kai-queue", KAI_QUEUE),
    )
    for field, change in table.items()
]


def load(sample: str, change: Json) -> tuple[Any, AnyObject]:
    body = yaml.safe_load((SAMPLES / f"{sample}.yaml").read_text())
    body["spec"] = {**copy.deepcopy(body.get("spec") or {}), **change}
    source = BY_KIND[body["apiVersion"].partition("/")[0], body["kind"]]
    return source, convert(body, AnyObject)


@pytest.mark.parametrize(("sample", "field", "change"), CASES)
def test_the_field_is_named(sample: str, field: str, change: Json) -> None:
    source, obj = load(sample, change)
    found = source.to_native(obj)
    assert found.objects == ()
    assert [problem.field for problem in found.refusals] == [field]
    assert all(problem.allowed for problem in found.refusals)


@pytest.mark.parametrize(("sample", "field", "change"), CASES)
def test_its_status_tells_it(sample: str, field: str, change: Json) -> None:
    source, obj = load(sample, change)
    status = source.status_of(obj, [], source.to_native(obj).refusals)
    assert field in str(status)
    assert not source.ended(
        convert({**yaml.safe_load("{metadata: {}}"), "status": status}, AnyObject)
    )
