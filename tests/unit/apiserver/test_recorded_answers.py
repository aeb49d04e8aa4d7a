"""Our answers against those of Kubernetes' own code, recorded by ``tools/schemas/record.py``."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.recorded_answers import KINDS, OURS

from lockstep.apiserver.schema import Schema

Json = dict[str, Any]

FOLDER = Path(__file__).parent / "recorded"
CASES: dict[str, list[Json]] = {
    sort: json.loads(gzip.decompress((FOLDER / f"{sort}.json.gz").read_bytes())) for sort in OURS
}
AGREED = [
    pytest.param(sort, case, id=f"{sort}-{position}")
    for sort, cases in CASES.items()
    for position, case in enumerate(cases)
    if case["agrees"]
]


@pytest.mark.parametrize(("sort", "case"), AGREED)
def test_we_answer_as_kubernetes_does(sort: str, case: Json) -> None:
    assert OURS[sort](case["given"]) == case["answer"]


@pytest.mark.parametrize(("sort", "least"), [("builtin", 310), ("custom", 120)])
def test_the_record_does_not_shrink(sort: str, least: int) -> None:
    # Recording again may only lower these numbers knowingly.
    agreed = [case for case in CASES[sort] if case["agrees"]]
    assert len(agreed) >= least
    assert len(agreed) / len(CASES[sort]) > 0.85


def test_what_kubernetes_would_store_passes_our_checks_again() -> None:
    answers = [case["answer"] for case in CASES["builtin"] if case["agrees"]]
    stored = [answer["object"] for answer in answers if "object" in answer]
    assert stored
    for obj in stored:
        kind = KINDS[obj["apiVersion"], obj["kind"]]
        assert Schema.builtin(kind.schema_name).unknown_fields(obj) == []
        again = copy.deepcopy(obj)
        kind.prepare(again, obj)
        again.pop("status", None)
        assert again == obj
        assert kind.validate(again, obj) == []
