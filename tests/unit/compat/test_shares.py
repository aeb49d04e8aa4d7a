"""Pods of other systems that share cards: each sample as a pod of ours, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from lockstep.compat.shares.settings import Settings, settings
from lockstep.compat.shares.translate import translated
from lockstep.compat.shares.variables import variables
from lockstep.compat.translation import Refused

Json = dict[str, Any]
SAMPLES = sorted(Path(__file__).with_name("shares").glob("*.yaml"))
CARD = 80 * 1024
"""MiB of every card of the cluster."""
PLUGIN = """
version: v1
sharing:
  timeSlicing:
    resources:
      - {name: nvidia.com/gpu, replicas: 4}
"""


def cluster() -> Settings:
    return settings({"device-plugin": PLUGIN})


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_of_each_dialect(sample: Path) -> None:
    given, wanted = yaml.safe_load_all(sample.read_text())
    assert translated(given, lambda: CARD, cluster) == wanted


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_what_was_translated_stays_as_it_is(sample: Path) -> None:
    _, wanted = yaml.safe_load_all(sample.read_text())
    again = translated(wanted, lambda: CARD, cluster)
    assert again is None or again == wanted


def pod(limits: Json | None = None, **more: Any) -> Json:
    container = {"name": "main", "resources": {"limits": limits or {}}}
    spec = {"containers": [{**container, **more.pop("container", {})}], **more.pop("spec", {})}
    return {"metadata": {"name": "p", **more}, "spec": spec}


NOT_OURS = [
    pod({"cpu": "1"}),
    pod({"nvidia.com/gpu": 2}),
    pod({"lockstep.dev/gpu-memory": 1000}),
    {"metadata": {"name": "p"}},
    {"metadata": {}, "spec": {"containers": "none"}},
]


@pytest.mark.parametrize("given", NOT_OURS)
def test_other_pods_are_left_alone(given: Json) -> None:
    assert translated(given) is None


def test_gpushare_counts_in_mib_where_the_cluster_says_so() -> None:
    found = translated(
        pod({"aliyun.com/gpu-mem": 512}), settings=lambda: settings({"gpushare-unit": "MiB"})
    )
    assert found is not None
    limits = found["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"lockstep.dev/gpu-memory": "512"}


def test_low_priority_of_hami_is_offline() -> None:
    found = translated(pod({"nvidia.com/gpumem": 512, "nvidia.com/priority": 1}))
    assert found is not None
    assert found["metadata"]["annotations"]["lockstep.dev/gpu-class"] == "offline"


LIMITS = "spec.containers[0].resources.limits"
REFUSED = [
    (pod({"aliyun.com/gpu-mem": "5.5"}), f"{LIMITS}[aliyun.com/gpu-mem]", "whole number"),
    (pod({"nvidia.com/gpucores": 120}), f"{LIMITS}[nvidia.com/gpucores]", "at most 100"),
    (
        pod({"nvidia.com/gpumem": 1000, "nvidia.com/gpumem-percentage": 50}),
        f"{LIMITS}[nvidia.com/gpumem-percentage]",
        "leave it out",
    ),
    (
        pod({"nvidia.com/gpumem-percentage": 50}),
        f"{LIMITS}[nvidia.com/gpumem-percentage]",
        "give nvidia.com/gpumem",
    ),
    (pod({"nano-gpu/gpu-percent": 150}), f"{LIMITS}[nano-gpu/gpu-percent]", "multiple of 100"),
    (
        pod({"nvidia.com/gpumem": 10}, container={"securityContext": {"privileged": True}}),
        "spec.containers[0].securityContext.privileged",
        "whole cards",
    ),
    (
        pod({"nvidia.com/gpumem": 10}, annotations={"nvidia.com/vgpu-mode": "mig"}),
        "metadata.annotations[nvidia.com/vgpu-mode]",
        "leave it out",
    ),
    (
        pod({"nvidia.com/gpumem": 10}, annotations={"nvidia.com/use-gputype": "A100"}),
        "metadata.annotations[nvidia.com/use-gputype]",
        "node selector",
    ),
    (
        pod({"nvidia.com/gpumem": 10}, spec={"schedulerName": "yunikorn"}),
        "spec.schedulerName",
        "hami-scheduler",
    ),
    (pod({"hygon.com/dcumem": 10}), f"{LIMITS}[hygon.com/dcumem]", "whole cards"),
    (pod({"nvidia.com/remote-gpu": 1}), f"{LIMITS}[nvidia.com/remote-gpu]", "other nodes"),
    (pod({"nvshare.com/gpu": 1}), f"{LIMITS}[nvshare.com/gpu]", "no memory beyond its cards"),
    (
        pod(
            {"nvidia.com/gpumem": 10},
            container={"env": [{"name": "CUDA_OVERSUBSCRIBE", "value": "true"}]},
        ),
        "spec.containers[0].env[0].value of CUDA_OVERSUBSCRIBE",
        "no memory beyond its cards",
    ),
    (pod(annotations={"gpu-fraction": "1.5"}), "metadata.annotations[gpu-fraction]", "0.99"),
    (pod({"nvidia.com/gpu.shared": 1}), "[nvidia.com/gpu.shared]", "is not known"),
]


@pytest.mark.parametrize(("given", "field", "remedy"), REFUSED)
def test_what_cannot_be_held_is_named(given: Json, field: str, remedy: str) -> None:
    with pytest.raises(Refused) as refused:
        translated(given)
    assert refused.value.problem.field.endswith(field)
    assert remedy in refused.value.problem.allowed


@pytest.mark.parametrize(
    ("dialect", "wanted"),
    [
        ("hami", {"CUDA_DEVICE_MEMORY_LIMIT_0": "3000m", "CUDA_DEVICE_SM_LIMIT": "30"}),
        (
            "gpushare",
            {
                "ALIYUN_COM_GPU_MEM_IDX": "2",
                "ALIYUN_COM_GPU_MEM_POD": "4000",
                "ALIYUN_COM_GPU_MEM_CONTAINER": "3000",
                "ALIYUN_COM_GPU_MEM_DEV": "81920",
            },
        ),
        ("qgpu", {}),
    ],
)
def test_programs_find_the_variables_of_their_system(dialect: str, wanted: dict[str, str]) -> None:
    told = variables(dialect, memory=3000, compute=30, cards=[2], card_memory=CARD, pod=4000)
    assert told == wanted


@pytest.mark.parametrize("data", [{}, {"device-plugin": "{"}, {"device-plugin": "sharing: 3"}])
def test_settings_that_say_nothing_are_the_usual_ones(data: dict[str, str]) -> None:
    assert settings(data) == Settings()
