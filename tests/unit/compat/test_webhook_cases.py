"""What the projects' own webhook tests deny is refused; what they allow runs, or is named here.

``webhook_cases.jsonl`` holds the objects of the tests of Volcano's, Kueue's, JobSet's and KAI's
admission webhooks (all under the Apache License 2.0), each with its case's name, and whether the
webhook denies it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support.dialect_samples import finder, lines, refusals

from lockstep.compat.kueue.translate import PROVISIONING

Json = dict[str, Any]
CASES = lines(Path(__file__).with_name("webhook_cases.jsonl"))
ELSEWHERE = {
    "Abnormal Case Wrong State Configured During Creating": "a status is not taken at creation",
    "Abnormal Case Hierarchy Is In Sub Path of Another Queue": "is about two queues",
    "volumeClaimPolicy retention policy must be retain for existing PVC": "is about a claim",
    "volumeClaimPolicy is invalid when existing PVC does not match template spec": "the same",
}
"""Cases that one object's spec does not show."""
POD: Json = {"spec": {"containers": [{"name": "main", "image": "one"}], "restartPolicy": "Never"}}
LOOK = finder(
    [
        {"kind": "JobTemplate", "metadata": {"name": name}, "spec": {"tasks": [{"template": POD}]}}
        for name in "abcde"
    ]
    + [
        {
            "kind": "AdmissionCheck",
            "metadata": {"name": "ac1"},
            "spec": {"controllerName": PROVISIONING},
        }
    ]
)
"""What the cases name and leave out."""
ALLOWED = {
    "runs": 38,
    "spec.concurrentAdmissionPolicy": 2,
    "spec.failurePolicy.rules[0]": 1,  # without an action, which the CRD requires
    "spec.flows": 2,  # two steps of one name
    "spec.replicatedJobs": 1,  # none
    "spec.replicatedJobs[0].template.spec": 2,  # no pod template, which the CRD requires
    "spec.replicatedJobs[1].template.spec.template.spec.containers": 1,  # none
    "spec.tasks[0].partitionPolicy": 5,
}
"""How many of the objects that webhooks allow run, and for which field others are refused."""

DENIED = [case for case in CASES if case["denied"] and case["case"] not in ELSEWHERE]


@pytest.mark.parametrize("case", DENIED, ids=lambda c: f"{c['project']} {c['case']}")
def test_denied_by_the_projects_webhook_is_refused(case: Json) -> None:
    assert refusals(case["object"], LOOK)


def test_allowed_cases_run_but_for_these_fields() -> None:
    why = Counter(
        wrong[0] if (wrong := refusals(case["object"], LOOK)) else "runs"
        for case in CASES
        if not case["denied"]
    )
    assert why == ALLOWED
