"""Who talks to whom and how much: Megatron's groups and published volumes."""

import pytest

from lockstep.api.parallelism import Model, Parallelism
from lockstep.scheduler.core.ranks.collectives import collectives

GPT3 = Model(
    parameters=175e9,
    layers=96,
    hidden=12288,
    sequence=2048,
    micro_batch=2,
    micro_batches=48,
    gradient_bytes=2,
)


def volumes(split: Parallelism, ranks: int) -> dict[str, float]:
    return {one.name: one.volume / 1e9 for one in collectives(split, ranks)}


def groups(split: Parallelism, ranks: int, name: str) -> list[list[int]]:
    return next(one.groups.tolist() for one in collectives(split, ranks) if one.name == name)


def test_gpt3_on_1024_gpus_moves_what_was_published():
    found = volumes(Parallelism(tensor=8, pipeline=8, model=GPT3), 1024)
    assert found == {
        "tensor": pytest.approx(405.9, rel=1e-3),
        "data": pytest.approx(10.25, rel=1e-3),
        "pipeline": pytest.approx(1.208, rel=1e-3),
    }


def test_fp32_gradients_double_traffic_and_sharded_parameters_add_half():
    def data(**more: object) -> float:
        model = Model(parameters=8e9, **more)
        return volumes(Parallelism(data=4, model=model), 4)["data"]

    assert data(gradient_bytes=2) == pytest.approx(2 * 3 / 4 * 2 * 8)
    assert data(gradient_bytes=4) == pytest.approx(2 * data(gradient_bytes=2))
    assert data(gradient_bytes=2, sharded=True) == pytest.approx(1.5 * data(gradient_bytes=2))


def test_context_and_expert_volumes_shrink_with_the_share_that_stays():
    model = Model(
        layers=2, hidden=4, sequence=8, micro_batches=1, activation_bytes=1, experts_per_token=2
    )
    # Keys and values of 8 tokens x 4, of 2 layers, once forward and twice back; half stays.
    assert volumes(Parallelism(context=2, model=model), 2)["context"] * 1e9 == 0.5 * 64 * 2 * 3
    # Four times 8 tokens x 4 to two experts each, in 2 layers; three quarters leave.
    assert volumes(Parallelism(expert=4, model=model), 4)["expert"] * 1e9 == 0.75 * 4 * 64 * 2


GROUPS = [
    # what is shown, split, ranks, which groups, the first of them
    ("tensor varies fastest", Parallelism(tensor=2, pipeline=2), 8, "tensor", [[0, 1], [2, 3]]),
    ("data strides over tensor", Parallelism(tensor=2, pipeline=2), 8, "data", [[0, 2], [1, 3]]),
    ("stages are a world apart", Parallelism(tensor=2, pipeline=2), 8, "pipeline", [[0, 4]]),
    (
        "tp-pp-dp puts stages next to each other",
        Parallelism(tensor=2, pipeline=2, order="tp-pp-dp"),
        8,
        "pipeline",
        [[0, 2], [1, 3]],
    ),
    (
        "gradients are reduced over data and context together",
        Parallelism(tensor=2, context=2),
        8,
        "data",
        [[0, 2, 4, 6], [1, 3, 5, 7]],
    ),
    ("context comes after tensor", Parallelism(tensor=2, context=2), 8, "context", [[0, 2]]),
    ("experts split the data axis", Parallelism(tensor=2, expert=2), 8, "expert", [[0, 2]]),
    (
        "each boundary of the pipeline is a pair",
        Parallelism(pipeline=3),
        3,
        "pipeline",
        [[0, 1], [1, 2]],
    ),
    ("ranks too few for another copy stand by", Parallelism(tensor=2), 7, "tensor", [[4, 5]]),
]


@pytest.mark.parametrize(
    ("what", "split", "ranks", "name", "some"), GROUPS, ids=[g[0] for g in GROUPS]
)
def test_groups(what, split, ranks, name, some):
    found = groups(split, ranks, name)
    assert all(group in found for group in some), found
    members = sorted(rank for group in found for rank in group)
    assert name == "pipeline" or len(set(members)) == len(members)


def test_too_few_ranks_are_refused():
    with pytest.raises(ValueError, match="4 ranks do not hold tensor x context x pipeline = 8"):
        collectives(Parallelism(tensor=4, pipeline=2), 4)
