"""Pods with shares of GPUs as the webhook lets them in."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from lockstep.api import names
from lockstep.compat.shares.settings import Settings
from lockstep.devices.admission.review import Rejected, admitted, review

Json = dict[str, Any]


def pod(limits: Json, *, requests: Json | None = None, **spec: Any) -> Json:
    resources = {"limits": limits, **({"requests": requests} if requests else {})}
    main = {"name": "main", "image": "none", "resources": resources}
    return {"metadata": {"name": "p"}, "spec": {"containers": [main], **spec}}


def let_in(given: Json) -> Json:
    before = copy.deepcopy(given)
    found = admitted(given, lambda: 80_000, Settings)
    assert given == before, "what the API server showed stays as it is"
    return found


OURS = {names.GPU_MEMORY: "2Gi", names.GPU_COMPUTE: "30"}


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [
        (OURS, {**OURS, names.GPU_CARDS: "1"}),
        ({**OURS, names.GPU_CARDS: "2"}, {**OURS, names.GPU_CARDS: "2"}),
        (
            {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "1000"},
            {names.GPU_CARDS: "2", names.GPU_MEMORY: "1000"},
        ),
        (
            {"aliyun.com/gpu-mem": "3"},
            {names.GPU_CARDS: "1", names.GPU_MEMORY: "3072"},
        ),
        (
            {"nano-gpu/gpu-percent": "25"},
            {names.GPU_CARDS: "1", names.GPU_MEMORY: "20000", names.GPU_COMPUTE: "25"},
        ),
    ],
)
def test_shares_come_to_our_scheduler_with_a_card_slot(limits, wanted):
    found = let_in(pod(limits))
    assert found["spec"]["schedulerName"] == "lockstep"
    assert found["spec"]["containers"][0]["resources"]["limits"] == wanted


def test_a_pod_without_shares_is_left_alone():
    given = pod({"nvidia.com/gpu": "1"})
    assert let_in(given) == given


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (pod({names.GPU_COMPUTE: "130"}), "at most 100 hundredths"),
        (pod(OURS, schedulerName="volcano"), "spec.schedulerName: given 'volcano'"),
        (pod({"nvidia.com/gpumem": "5.5"}), "given '5.5'; a whole number is needed"),
        (pod({"nvidia.com/remote-gpu": "1"}), "cards of other nodes cannot be used"),
        (pod({names.GPU_MEMORY: "much"}), "spec.containers[0].resources"),
    ],
)
def test_what_cannot_be_held_is_named(given, words):
    with pytest.raises(Rejected) as refused:
        let_in(given)
    assert words in str(refused.value)
    assert review({"object": given}, lambda: None, Settings)[0] == []


def test_the_front_goes_before_the_libraries_a_container_names():
    given = pod(OURS)
    given["spec"]["containers"][0]["env"] = [{"name": "LD_LIBRARY_PATH", "value": "/opt/lib"}]
    (variable,) = let_in(given)["spec"]["containers"][0]["env"]
    assert variable["value"] == "/run/lockstep/front:/opt/lib"
