"""Our patches against a record of what Kubernetes' own code makes of the same ones.

``tools/patches`` made the record: random histories of server-side applies and updates by several
managers, and random strategic merge patches.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from lockstep.apiserver.patch import (
    PatchError,
    Writer,
    apply,
    builtin,
    strategic_merge,
    track,
)
from lockstep.apiserver.patch.types import Catalog
from lockstep.apiserver.schema.components import components

Json = dict[str, Any]
POD = "io.k8s.api.core.v1.Pod"
RECORD = Path(__file__).parent / "recorded" / "patches.jsonl.gz"


def recorded() -> list[Json]:
    with gzip.open(RECORD, "rt") as file:
        return [json.loads(line) for line in file]


HISTORIES = [r for r in recorded() if isinstance(r["question"], list)]
MERGES = [r for r in recorded() if isinstance(r["question"], dict)]


def without_empty(value: Any) -> Any:
    """Drop what is empty: in the record null, in ours absent or empty, to a client the same."""
    if isinstance(value, dict):
        # The reference leaves directives in what is new as a whole; no field is called so.
        members = {k: without_empty(child) for k, child in value.items() if k[0] != "$"}
        return {key: child for key, child in members.items() if child not in ({}, [], None)}
    if isinstance(value, list):
        return [without_empty(item) for item in value]
    return value


def seen(obj: Json) -> tuple[Json, dict[tuple[str, str], Json]]:
    """Return an object without what the server writes, and the fields of each manager."""
    metadata = {k: v for k, v in obj["metadata"].items() if k not in ("uid", "managedFields")}
    managers = {
        (entry["manager"], entry["operation"]): entry["fieldsV1"]
        for entry in obj["metadata"].get("managedFields") or ()
    }
    return without_empty({**obj, "metadata": metadata}), managers


def lines_of(message: str) -> list[str]:
    """Return the lines of an error in an order of their own: the reference has none."""
    return sorted(message.replace(": conflicts with", ":\nconflicts with").splitlines())


@pytest.mark.parametrize("record", HISTORIES)
def test_histories_of_applies_and_updates(record: Json) -> None:
    # The reference knows the pod as a plain tree, in which nothing is there unless written.
    kind = Catalog(components()).type_of(POD)
    live: Json | None = None
    for step, answer in zip(record["question"], record["answer"], strict=True):
        by = Writer(step["Manager"], "v1", 1e9)
        try:
            if step["Op"] == "apply":
                new = apply(live, step["Object"], kind, by, force=step["Force"])
            else:
                new = json.loads(json.dumps(step["Object"]))
                track(live, new, kind, by)
        except PatchError as error:
            assert lines_of(error.message) == lines_of(answer.get("error", ""))
            continue
        assert "error" not in answer
        assert seen(new) == seen(answer)
        live = new


@pytest.mark.parametrize("record", MERGES)
def test_strategic_merge_patches(record: Json) -> None:
    question, answer = record["question"], record["answer"]
    if "error" in answer:
        with pytest.raises(PatchError):
            strategic_merge(question["Original"], question["Patch"], builtin(POD))
        return
    merged = strategic_merge(question["Original"], question["Patch"], builtin(POD))
    assert without_empty(merged) == without_empty(answer)


def test_the_record_has_conflicts_and_all_kinds_of_steps() -> None:
    steps = [step for record in HISTORIES for step in record["question"]]
    answers = [answer for record in HISTORIES for answer in record["answer"]]
    assert {step["Op"] for step in steps} == {"apply", "update"}
    assert sum("error" in answer for answer in answers) > 20
    assert any("$setElementOrder/containers" in json.dumps(m["question"]) for m in MERGES)
