"""Our answers against those of Kubernetes' own code, recorded by ``tools/schemas/record.py``."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from lockstep.apiserver.builtin import BUILTINS
from lockstep.apiserver.schema import Schema

Json = dict[str, Any]

RECORD = Path(__file__).parent / "recorded" / "answers.json.gz"
CASES: list[Json] = json.loads(gzip.decompress(RECORD.read_bytes()))
AGREED = [case for case in CASES if case["agrees"]]
KINDS = {(kind.api_version, kind.kind): kind for kind in BUILTINS}


def answer(given: Json) -> Json:
    obj = copy.deepcopy(given)
    kind = KINDS[obj["apiVersion"], obj["kind"]]
    schema = Schema.builtin(kind.schema_name)
    if error := schema.decoding_error(obj):
        return {"error": error}
    schema.prune(obj)
    kind.prepare(obj, None)
    if causes := kind.validate(obj, None):
        return {"errors": sorted(str(cause) for cause in causes)}
    obj.pop("status", None)
    return {"object": obj}


@pytest.mark.parametrize(
    "case", AGREED, ids=[f"{i}-{case['given']['kind']}" for i, case in enumerate(AGREED)]
)
def test_we_answer_as_kubernetes_does(case: Json) -> None:
    assert answer(case["given"]) == case["answer"]


def test_the_record_does_not_shrink() -> None:
    # Recording again may only lower this number knowingly.
    assert len(AGREED) >= 300
    assert len(AGREED) / len(CASES) > 0.8


def test_what_kubernetes_would_store_passes_our_checks_again() -> None:
    stored = [case["answer"]["object"] for case in AGREED if "object" in case["answer"]]
    assert stored
    for obj in stored:
        kind = KINDS[obj["apiVersion"], obj["kind"]]
        assert Schema.builtin(kind.schema_name).unknown_fields(obj) == []
        again = copy.deepcopy(obj)
        kind.prepare(again, obj)
        again.pop("status", None)
        assert again == obj
        assert kind.validate(again, obj) == []
