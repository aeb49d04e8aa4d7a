"""Models as Datasets: who makes one, who owns it, who lets go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.serve_components import META, run, with_revisions

from lockstep.api.core import AnyObject
from lockstep.api.meta import ObjectMeta, OwnerReference
from lockstep.compat.fluid.objects import DATASETS, Dataset
from lockstep.compat.fluid.translate import translate as cache_of
from lockstep.compat.kserve import storage
from lockstep.compat.kserve.objects import InferenceService, Spec
from lockstep.compat.kserve.runtimes import known
from lockstep.runtime.actions import Action, Change, Create, Delete
from lockstep.serve.core import models
from lockstep.serve.core.local_models import SeenLocalModel, decide_local, source
from lockstep.serve.core.service_state import Seen

Json = dict[str, Any]
URI = "s3://b/iris"
NAME = storage.model_name(URI)


def service(uri: str = URI) -> InferenceService:
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": uri}
    return InferenceService(metadata=META, spec=Spec(predictor={"model": model}))


def seen(uri: str = URI, **more: Any) -> Seen:
    return with_revisions(Seen(service(uri), known([], []), [], [], cached=True, **more))


def held(*owners: str, name: str = NAME) -> Dataset:
    refs = [OwnerReference(api_version="v", kind="k", name=one, uid=one) for one in owners]
    return Dataset(metadata=ObjectMeta(name=name, namespace="n", uid="d", owner_references=refs))


def about_datasets(found: Seen) -> list[Action]:
    return [one for one in run(found).actions if one.resource is DATASETS]


def test_a_model_in_a_store_becomes_one_dataset() -> None:
    [made] = about_datasets(seen())
    assert isinstance(made, Create)
    assert made.body["metadata"]["name"] == NAME
    assert cache_of(convert_(made.body), runtime()).mounts[0].uri == URI


def convert_(body: Json) -> Dataset:
    from lockstep.api.wire import convert

    return convert(body, Dataset)


def runtime() -> Any:
    from lockstep.compat.fluid.objects import Runtime

    return Runtime(metadata=META)


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        (held("u"), []),
        (held("other"), [("Change", ["other", "u"])]),
        (held("u", name="model-old"), [("Create", []), ("Delete", [])]),
        (held("u", "other", name="model-old"), [("Create", []), ("Change", ["other"])]),
        (held("other", name="model-old"), [("Create", [])]),
    ],
)
def test_services_share_a_dataset_and_the_last_deletes_it(
    there: Dataset, expected: list[tuple[str, list[str]]]
) -> None:
    found = seen(datasets={there.metadata.name: there})
    shown = [
        (
            type(one).__name__,
            [ref["uid"] for ref in one.patch["metadata"]["ownerReferences"]]
            if isinstance(one, Change)
            else [],
        )
        for one in about_datasets(found)
    ]
    assert shown == expected
    assert all(isinstance(one, Create | Change | Delete) for one in about_datasets(found))


@pytest.mark.parametrize(
    ("uri", "claim"),
    [
        ("s3://b/iris", storage.model_name("s3://b/iris")),
        ("dataset://held", "held"),
        ("dataset://other/held", storage.model_name("dataset://other/held")),
        ("http://h/model.joblib", None),
        ("file:///m", None),
    ],
)
def test_which_models_are_mounted_as_claims(uri: str, claim: str | None) -> None:
    volume = storage.provide(uri, cached=True).volumes[0]
    assert (volume.get("persistentVolumeClaim") or {}).get("claimName") == claim


@pytest.mark.parametrize(
    ("uri", "namespace", "expected"),
    [
        ("s3://b/flowers", "n", "dataset://lockstep-system/local-model-all"),
        ("s3://b/flowers/iris", "n", "dataset://n/local-model-mine/iris"),
        ("s3://b/flowers/iris", "m", "dataset://lockstep-system/local-model-all/iris"),
        ("s3://b/flowers-too", "n", "s3://b/flowers-too"),
    ],
)
def test_local_models_are_read_where_they_are(uri: str, namespace: str, expected: str) -> None:
    caches = [local("all", "s3://b/flowers"), local("mine", "s3://b/flowers", "n")]
    if uri == "s3://b/flowers":
        caches = caches[:1]
    if expected.startswith("dataset://n/"):
        caches.reverse()
    assert source(uri, namespace, caches) == expected


def local(name: str, uri: str, namespace: str = "", **spec: Any) -> AnyObject:
    meta = ObjectMeta(name=name, namespace=namespace, uid=name)
    return AnyObject(metadata=meta, spec={"sourceModelUri": uri, **spec})


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"nodeGroups": ["gpu"]}, "there is no LocalModelNodeGroup gpu; there are: cpu"),
        ({"sourceModelUri": "pvc://x"}, "known are s3, gs"),
    ],
)
def test_a_local_model_that_cannot_be_kept_says_why(spec: Json, says: str) -> None:
    one = local("m", "s3://b/m", **{k: v for k, v in spec.items() if k != "sourceModelUri"})
    one = AnyObject(metadata=one.metadata, spec={**one.spec, **spec})
    status, actions = decide_local(SeenLocalModel(one, {"cpu": local("cpu", "")}))
    assert says in status["message"]
    assert actions == []


def test_a_dataset_that_fails_is_the_services_trouble() -> None:
    found = seen()
    latest = found.revisions[-1]
    from lockstep.compat.fluid.objects import Condition, DatasetStatus

    told = Condition(type="Ready", status="False", reason="SourceMissing", message="no bucket")
    broken = held("u")
    status = DatasetStatus(phase="NotBound", conditions=[told])
    broken = Dataset(metadata=broken.metadata, status=status)
    failure = models.failure(replace(found, datasets={NAME: broken}), latest)
    assert failure is not None
    assert (failure.reason, failure.message) == ("SourceMissing", "no bucket")
