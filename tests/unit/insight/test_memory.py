"""Memory by formulas, against published figures and against what must hold of any."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.insight.memory.formulas import GIB, Plan, completed, estimate, layer_bytes, remedies

# Korthikanti et al., arXiv 2205.05198: GiB of a layer's activations at sequence 2048, by
# tensor parallelism of 8; then with sequence parallelism, selective, and full recomputation.
LAYERS = [
    (6144, 64, 4, (1.23, 0.82, 0.20, 0.09)),
    (12288, 96, 1, (0.54, 0.33, 0.10, 0.05)),
    (20480, 128, 1, (0.82, 0.48, 0.17, 0.08)),
    (25600, 160, 1, (1.03, 0.60, 0.21, 0.10)),
]


@pytest.mark.parametrize(("hidden", "heads", "batch", "published"), LAYERS)
def test_a_layers_activations_are_as_published(
    hidden: int, heads: int, batch: int, published: tuple[float, ...]
) -> None:
    plain = Plan(
        1e9, layers=1, hidden=hidden, heads=heads, batch=batch, tensor=8, flash=False, vocab=1
    )
    split = replace(plain, sequence_parallel=True)
    plans = (plain, split, replace(split, recompute="selective"), replace(split, recompute="full"))
    found = [layer_bytes(plan) / GIB for plan in plans]
    assert found == pytest.approx(published, abs=0.0051)


STATES = [
    (Plan(1e9, precision="mixed", optimizer="adam"), 16.0),
    (Plan(1e9, precision="fp32", optimizer="adam"), 16.0),
    (Plan(1e9, precision="fp32", optimizer="sgd"), 8.0),
    (Plan(1e9, precision="mixed", optimizer="adam", zero=1, data=4), 4 + 12 / 4),
    (Plan(1e9, precision="mixed", optimizer="adam", zero=2, data=4), 2 + 14 / 4),
    (Plan(1e9, precision="mixed", optimizer="adam", zero=3, data=4), 16 / 4),
    (Plan(1e9, precision="mixed", optimizer="adam", tensor=2, pipeline=2), 4.0),
]


@pytest.mark.parametrize(("plan", "per_parameter"), STATES)
def test_states_take_as_many_bytes_as_zero_says(plan: Plan, per_parameter: float) -> None:
    found = estimate(plan)
    states = found.parameters + found.gradients + found.optimizer
    assert states / plan.params == pytest.approx(per_parameter)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"params": -1}, "params"),
    ({"params": float("nan")}, "params"),
    ({"batch": 0}, "batch"),
    ({"zero": 4}, "zero"),
    ({"layers": 2, "pipeline": 4}, "pipeline"),
    ({"heads": 6, "tensor": 4}, "tensor"),
    ({"hidden": -8}, "hidden"),
]


@pytest.mark.parametrize(("wrong", "field"), BAD)
def test_a_wrong_plan_is_refused_by_field(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match=rf"^{field}: given .*must"):
        estimate(Plan(**({"params": 7e9} | wrong)))


plans = st.builds(
    Plan,
    params=st.sampled_from([1e6, 125e6, 7e9, 70e9]),
    batch=st.integers(1, 64),
    sequence=st.sampled_from([128, 2048, 8192]),
    zero=st.integers(0, 3),
    data=st.integers(1, 64),
    tensor=st.sampled_from([1, 2, 8]),
    flash=st.booleans(),
    recompute=st.sampled_from(["none", "selective", "full"]),
    precision=st.sampled_from(["fp32", "mixed", "bf16"]),
)


@given(plans)
def test_more_work_never_takes_less_memory(plan: Plan) -> None:
    base = estimate(plan).most
    assert estimate(replace(plan, batch=plan.batch + 1)).most >= base
    assert estimate(replace(plan, sequence=2 * plan.sequence)).most >= base
    assert estimate(replace(plan, zero=0)).optimizer >= estimate(plan).optimizer


@given(plans, st.sampled_from([16, 24, 80]))
def test_every_remedy_fits(plan: Plan, card: int) -> None:
    assert all(memory.most <= card * GIB for _, memory in remedies(plan, card * GIB))


@pytest.mark.parametrize(
    ("params", "layers", "hidden"), [(7e9, 32, 4096), (13e9, 40, 5120), (70e9, 80, 8192)]
)
def test_a_usual_shape_is_near_published_models(params: float, layers: int, hidden: int) -> None:
    found = completed(Plan(params))
    assert found.layers == pytest.approx(layers, rel=0.15)
    assert found.hidden == pytest.approx(hidden, rel=0.15)
