"""Samples of the projects themselves: how many run, and what the others ask for.

``upstream.jsonl`` holds every object of a served kind among the examples of JobSet, Kueue, Volcano,
mpi-operator and et-operator (all under the Apache License 2.0), each with its path there; long
texts are cut. ``documented.jsonl`` holds those in the docs of Kueue, Volcano, JobSet, KAI and
the Trainer (all under the same license), as far as they are not examples as well, and marks those
which others name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.support.dialect_samples import finder, lines, refusals

Json = dict[str, Any]
DOCS = Path(__file__).parents[3] / "docs" / "dialects.md"
HERE = Path(__file__)
DOCUMENTED = lines(HERE.with_name("documented.jsonl"))
SAMPLES = [
    *lines(HERE.with_name("upstream.jsonl")),
    *(sample for sample in DOCUMENTED if not sample.get("named")),
]
LOOK = finder([sample["object"] for sample in DOCUMENTED if sample.get("named")])

DENIED = {
    "spec.policies[1].event": "Volcano's webhook: two policies for one event",
    "spec.tasks[1].name": "Volcano's webhook: two tasks of one name",
    "spec.minAvailable": "Volcano's webhook: more than there are replicas",
    "spec.volumes[0].volumeClaim": "Volcano's webhook: no claim, and a claim beside a name",
    "spec.tasks[0].policies[0].events": "Volcano's CRD: a text for a list",
    "spec.admissionChecksStrategy.admissionChecks[0].onFlavors": "Kueue's webhook: no such flavor",
    "spec.resourceGroups[0].flavors[0].resources": "Kueue's CRD: not all that is covered",
    "spec.template.spec.containers": "the API server: no containers",
    "metadata.name": "the API server: a name with capitals, to be filled in",
    "spec.resources": "KAI's webhook: no resources; resourceQuota is no field",
    "spec.resources.cpu": "KAI's CRD: the name of a type for a value",
    "spec.subgroups": "kubectl: no such field, it is subGroups",
    "spec": "the API server: a Job without a template",
    "spec.runtimeRef.name": "the Trainer's webhook: no such runtime",
}
"""Why a sample that is refused for a field cannot run on its own project either."""


@cache
def table() -> tuple[str, ...]:
    """Return the rows of the table in the docs."""
    found: dict[tuple[str, str], list[list[str]]] = {}
    for sample in SAMPLES:
        body = sample["object"]
        group = body["apiVersion"].partition("/")[0]
        kind = body["kind"] if group != "batch" else "Job (Kubernetes)"
        found.setdefault((sample["project"], kind), []).append(refusals(body, LOOK))
    return tuple(_rows(found))


def _rows(found: dict[tuple[str, str], list[list[str]]]) -> Iterator[str]:
    for (project, kind), all_ in sorted(found.items()):
        why = Counter(wrong[0] for wrong in all_ if wrong)
        told = ", ".join(f"`{field}` ({n})" for field, n in sorted(why.items()))
        run = sum(not wrong for wrong in all_)
        yield f"| {project} | `{kind}` | {len(all_)} | {run} | {told} |"


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s["path"])
def test_a_sample_runs_or_is_refused_by_a_fields_name(sample: Json) -> None:
    assert all(field.startswith(("spec", "metadata")) for field in refusals(sample["object"], LOOK))


def test_the_table_in_the_docs_is_what_the_samples_say() -> None:
    written = [line for line in DOCS.read_text().splitlines() if line in table()]
    assert written == list(table()), "write into docs/dialects.md:\n" + "\n".join(table())


def test_nine_of_ten_samples_that_can_run_do() -> None:
    wrong = [refusals(sample["object"], LOOK) for sample in SAMPLES]
    possible = [fields for fields in wrong if not fields or fields[0] not in DENIED]
    assert sum(not fields for fields in possible) / len(possible) > 0.89
