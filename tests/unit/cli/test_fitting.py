"""A job whose stated model does not fit the cards is warned of before it runs out of memory."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.api.core import Node
from lockstep.api.wire import convert
from lockstep.cli.fitting import too_large

Json = dict[str, Any]
SMALL = {"nvidia.com/gpu.memory": "24576", "nvidia.com/gpu.product": "A10"}
LARGE = {"nvidia.com/gpu.memory": "81920", "nvidia.com/gpu.product": "H100"}
MODEL: Json = {"parameters": "7G", "layers": 32, "hidden": 4096, "sequence": 2048}


def node(labels: Json) -> Node:
    return convert({"metadata": {"name": "n", "labels": labels}}, Node)


def job(model: Json | None, gpus: int = 8, selector: Json | None = None, **split: int) -> Json:
    limits = {"nvidia.com/gpu": gpus}
    pod: Json = {"containers": [{"name": "m", "resources": {"limits": limits}}]}
    if selector:
        pod["nodeSelector"] = selector
    parallelism = {**split, **({"model": model} if model is not None else {})}
    roles = [{"name": "worker", "replicas": 2, "template": {"spec": pod}}]
    return {"kind": "TrainingJob", "spec": {"parallelism": parallelism, "roles": roles}}


@pytest.mark.parametrize(
    ("given", "labels", "warned"),
    [
        (job(MODEL), [SMALL, LARGE], True),  # 7e9 x 16 bytes are 104 GiB
        (job({**MODEL, "sharded": True}), [LARGE], False),
        (job(MODEL, tensor=4), [LARGE], False),
        (job({**MODEL, "sharded": True}, selector={"nvidia.com/gpu.product": "A10"}, gpus=1),
         [SMALL, LARGE], True),
        (job({**MODEL, "parameters": "100M", "layers": 12, "hidden": 768}), [SMALL], False),
        (job(MODEL), [{}], False),
        (job(None, tensor=2), [SMALL], False),
        (job({**MODEL, "expertParameters": "6G"}), [SMALL], False),
        (job({**MODEL, "layers": "many"}), [SMALL], False),
        ({"kind": "TrainingJob", "spec": {}}, [SMALL], False),
    ],
)  # fmt: skip
def test_what_cannot_fit_is_warned_of(given: Json, labels: list[Json], warned: bool) -> None:
    assert bool(too_large(given, map(node, labels))) == warned


def test_the_warning_says_what_would_fit() -> None:
    words = too_large(job(MODEL), [node(LARGE)])
    assert "the largest card for it has 80 GiB" in words
    assert "would fit: --zero" in words
