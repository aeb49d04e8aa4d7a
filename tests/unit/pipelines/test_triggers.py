"""Which versions of models and datasets start which runs."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api import timestamp
from lockstep.api.dataset_cache import DatasetCache
from lockstep.api.model_version import ModelVersion
from lockstep.api.pipeline import PipelineRun
from lockstep.api.pipeline_trigger import CHAIN_ANNOTATION, PipelineTrigger
from lockstep.api.wire import convert
from lockstep.pipelines.core.makers import Wish
from lockstep.pipelines.core.triggers import events, wish

Json = dict[str, Any]
NOW = timestamp.parse("2026-03-10T12:00:00Z")
RUN = {"spec": {"templates": {}, "arguments": {"uri": "${{ event.uri }}", "n": 3}}}


def at(minute: int) -> str:
    return f"2026-03-10T10:{minute:02}:00Z"


def trigger(status: Json | None = None, **spec: Any) -> PipelineTrigger:
    meta = {"name": "t", "namespace": "n", "uid": "u", "creationTimestamp": at(10)}
    what = {} if "dataset" in spec else {"modelVersion": {"model": "m"}}
    body = {"metadata": meta, "spec": {"run": RUN, **what, **spec}, "status": status or {}}
    return convert(body, PipelineTrigger)


def version(name: str, minute: int = 20, stage: str = "Candidate", **more: Any) -> ModelVersion:
    meta = {"name": name, "namespace": "n", "uid": name, "creationTimestamp": at(minute), **more}
    spec = {"model": "m", "version": name, "uri": f"s3://b/{name}", "stage": stage, "run": "from"}
    return convert({"metadata": meta, "spec": spec}, ModelVersion)


def cache(version: str, minute: int) -> DatasetCache:
    meta = {"name": "d.node", "namespace": "n", "creationTimestamp": at(minute)}
    spec = {"node": "node", "dataset": "d", "version": version, "mounts": [{"uri": "s3://b/d"}]}
    return convert({"metadata": meta, "spec": spec}, DatasetCache)


def run(phase: str = "Running", chain: str = "") -> PipelineRun:
    meta = {"name": "from", "annotations": {CHAIN_ANNOTATION: chain} if chain else {}}
    body = {"metadata": meta, "spec": {"templates": {}}, "status": {"phase": phase}}
    return convert(body, PipelineRun)


def look(
    one: PipelineTrigger,
    *there: ModelVersion | DatasetCache,
    made: tuple[PipelineRun, ...] = (),
    origin: PipelineRun | None = None,
) -> Wish:
    versions = [v for v in there if isinstance(v, ModelVersion)]
    caches = [c for c in there if isinstance(c, DatasetCache)]
    return wish(one, events(one, versions, caches, lambda _: origin), made, NOW)


def played(one: PipelineTrigger, *there: ModelVersion | DatasetCache) -> list[str]:
    """Return what starts a run, in order, until nothing more does."""
    found: list[str] = []
    for _ in range(20):
        wanted = look(one, *there)
        if wanted.make is not None:
            found.append(wanted.make["metadata"]["annotations"]["lockstep.dev/triggered-by"])
        one = trigger(wanted.status, **spec_of(one))
        if wanted.again is None:
            return found
    raise AssertionError("it never rests")


def spec_of(one: PipelineTrigger) -> Json:
    return {"dataset": one.spec.dataset} if one.spec.dataset else {}


def test_each_version_made_since_starts_one_run_oldest_first() -> None:
    there = [version("c", 30), version("a", 40), version("old", 5), version("b", 10)]
    assert played(trigger(), *there) == [f"ModelVersion/{one}" for one in "bca"]


def test_the_run_is_told_what_is_new() -> None:
    made = look(trigger(), version("a")).make
    assert made is not None
    assert made["spec"]["arguments"] == {"uri": "s3://b/a", "n": 3}
    assert made["metadata"]["annotations"][CHAIN_ANNOTATION] == "1"


def test_an_unrecorded_creation_is_repeated_under_the_same_name() -> None:
    first, again = (look(trigger(), version("a")).make for _ in range(2))
    assert first is not None
    assert again is not None
    assert first["metadata"]["name"] == again["metadata"]["name"]


def test_a_stage_is_waited_for() -> None:
    one = trigger(modelVersion={"model": "m", "stage": "Production"})
    assert look(one, version("a")).make is None
    assert look(one, version("a", stage="Production")).make is not None


def test_a_version_that_is_gone_is_forgotten() -> None:
    noted = look(trigger(), version("a"), version("b")).status["handled"]
    assert look(trigger({"handled": noted}), version("b")).status["handled"] != noted


@pytest.mark.parametrize("chain", ["3", "7"])
@pytest.mark.parametrize("by_run", [True, False])
def test_a_chain_of_triggers_ends_and_says_so(chain: str, *, by_run: bool) -> None:
    notes = {} if by_run else {"annotations": {CHAIN_ANNOTATION: chain}}
    found = look(trigger(), version("a", **notes), origin=run(chain=chain) if by_run else None)
    assert found.make is None
    assert f"{chain} triggers led to it" in found.status["message"]
    assert found.status["passedOver"] == 1


def test_further_versions_wait_while_the_allowed_runs_go_on() -> None:
    found = look(trigger(), version("a"), made=(run(),))
    assert (found.make, found.status["handled"]) == (None, [])
    assert found.status["message"] == (
        "waits: ModelVersion/a: 1 runs go on, spec.maxConcurrency is 1"
    )
    assert look(trigger(), version("a"), made=(run("Failed"),)).make is not None


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"enabled": False}, "spec.enabled is false"),
        ({"dataset": "d", "modelVersion": {"model": "m"}}, "one of modelVersion and dataset"),
        ({"run": {"spec": {"arguments": {"x": "${{ event.nope }}"}}}}, "spec.arguments: "),
    ],
)
def test_what_starts_nothing_says_why(spec: Json, words: str) -> None:
    found = look(trigger(**spec), version("a"))
    assert found.make is None
    assert words in found.status["message"]


def test_what_the_server_refuses_is_said_and_not_tried_again() -> None:
    found = look(trigger(), version("a"))
    assert found.refused is not None
    status = found.refused("refused by the server: no such field")
    assert status["message"] == (
        "ModelVersion/a started nothing: refused by the server: no such field"
    )
    assert look(trigger(status), version("a")).make is None


@pytest.mark.parametrize(
    ("there", "starts"),
    [
        ([cache("v1", 5)], False),  # it was bound before the trigger came
        ([cache("v1", 20)], True),
        ([cache("", 20)], False),
        ([], False),
    ],
)
def test_a_datasets_first_version_is_new_if_it_came_later(
    there: list[DatasetCache], *, starts: bool
) -> None:
    assert played(trigger(dataset="d"), *there) == (["Dataset/d"] if starts else [])


def test_each_bound_version_of_a_dataset_starts_one_run() -> None:
    one, names = trigger(dataset="d"), []
    for bound in ("v1", "v2", "v2", "v1"):
        for _ in range(2):
            found = look(one, cache(bound, 5))
            names += [found.make["metadata"]["name"]] if found.make else []
            one = trigger(found.status, dataset="d")
    assert len(names) == len(set(names)) == 2
