"""``arena serve``: each type as an InferenceService, versions, and what is refused."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from lockstep.api.meta import ObjectMeta
from lockstep.cli.arena import serving
from lockstep.cli.arena.parse import parse
from lockstep.cli.arena.serve_commands import _updated
from lockstep.cli.failure import BadInput
from lockstep.compat.kserve.objects import InferenceService, Spec
from lockstep.compat.kserve.runtimes import known
from lockstep.compat.kserve.translate import Component, predictor

Json = dict[str, Any]


def made(line: str) -> Json:
    kind, *words = shlex.split(line)
    return serving.service(kind, serving.parsed(kind, words))


def component(body: Json) -> Component:
    """Return what serves *body*; it must be one that can be served."""
    meta = ObjectMeta(name=body["metadata"]["name"], namespace="n")
    return predictor(InferenceService(metadata=meta, spec=Spec(**body["spec"])), known([], []))


@pytest.mark.parametrize(
    ("line", "port", "says"),
    [
        (
            "kserve --name=iris --model-format=sklearn --storage-uri=s3://b/iris --replicas=2",
            8080,
            "kserve/sklearnserver:latest",
        ),
        ("kserve --name=own --image=i --port=9000 'serve it'", 9000, "serve it"),
        ("custom --name=c --image=i --restful-port=5000 --gpus=1 'python app.py'", 5000, "app.py"),
        (
            "tensorflow --name=t --image=tf --model-name=m --model-path=/models/m --data=c:/models",
            8501,
            "--model_base_path=/models/m",
        ),
        ("triton --name=t --image=i --model-repository=/m --load-models=a,b", 8000, "a"),
        ("distributed --name=d --image=i --workers=2 --worker-gpus=4 'vllm serve'", 8000, "vllm"),
    ],
)
def test_a_service_of_each_type_can_be_served(line: str, port: int, says: str) -> None:
    found = component(made(line))
    assert found.port == port
    assert says in str(found.template)


def test_a_distributed_service_has_gangs_as_replicas() -> None:
    found = component(made("distributed --name=d --image=i --workers=2 --worker-gpus=4 run"))
    assert found.workers == 2
    limits = found.worker["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"nvidia.com/gpu": 4}


def test_a_second_version_waits_for_its_share() -> None:
    first = made("custom --name=c --version=v1 --image=one --restful-port=80 run")
    second = made("custom --name=c --version=v2 --image=two --restful-port=80 run")
    spec = {**first["spec"], **serving.beside(first, second)}
    assert [one["trafficPercent"] for one in spec["canary"]] == [0]
    spec |= serving.split({"spec": spec}, ["v1:80", "v2:20"])
    found = component({**first, "spec": spec})
    assert [percent for percent, _ in found.canaries] == [20]
    # The same version again is replaced where it stands, with its share.
    third = made("custom --name=c --version=v2 --image=three --restful-port=80 run")
    again = serving.beside({"spec": spec}, third)["canary"]
    assert [one["trafficPercent"] for one in again] == [20]
    assert again[0]["predictor"]["containers"][0]["image"] == "three"


@pytest.mark.parametrize(
    ("weights", "says"),
    [(["v1"], "VERSION:WEIGHT"), (["v9:100"], "no version 'v9'"), (["v1:80"], "make 80")],
)
def test_shares_that_cannot_be_are_refused(weights: list[str], says: str) -> None:
    first = made("custom --name=c --version=v1 --image=one run")
    with pytest.raises(BadInput, match=says):
        serving.split(first, weights)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("custom --image=i run", "--name must be set"),
        ("custom --name=c run", "--image must be set"),
        ("custom --name=c --image=i --gpumemory=3 run", "--gpumemory is not served"),
        ("custom --name=c --image=i --version=V_1 run", "cannot name a version"),
        ("custom --name=c --image=i --moon=1", "unknown flag"),
        ("tensorflow --name=t --image=i", "--model-path must be set"),
        ("triton --name=t --image=i", "--model-repository must be set"),
        ("distributed --name=d --image=i --masters=2 run", "a replica has one"),
    ],
)
def test_what_cannot_be_is_refused_by_its_flag(line: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        made(line)


def test_an_update_changes_what_is_stated_alone() -> None:
    there = made("custom --name=c --image=one --cpu=1 --env=A=1 --restful-port=80 run")
    words = ["--name=c", "--image=two", "--replicas=3", "--env=B=2"]
    values, _ = parse(words, serving.TYPES["custom"])
    spec = _updated(there, values, {"name", "image", "replicas", "env"}, "")["predictor"]
    box = spec["containers"][0]
    assert (box["image"], spec["minReplicas"], spec["maxReplicas"]) == ("two", 3, 3)
    assert {one["name"] for one in box["env"]} >= {"A", "B"}
    assert box["resources"]["requests"]["cpu"] == "1"
