"""Which GPUs of a node a pod gets."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.scheduler.core.resources.device_inventory import Layout, layout_of
from lockstep.scheduler.core.resources.nearest_gpus import choose
from lockstep.scheduler.core.util.bitmask import format_indices, indices_of, mask_of, parse_indices


def layout(*nvlink: int, numa: tuple[int, ...] | None = None, ill: tuple[int, ...] = ()) -> Layout:
    devices = [
        {"index": i, "nvlink": link, "numa": numa[i] if numa else 0, "healthy": i not in ill}
        for i, link in enumerate(nvlink)
    ]
    return layout_of(json.dumps(devices), len(devices))


PAIRS, HALVES = layout(0, 0, 1, 1, 2, 2, 3, 3), layout(0, 0, 0, 0, 1, 1, 1, 1)
ONE = layout(*[0] * 8, numa=(0, 0, 0, 0, 1, 1, 1, 1))

CASES = [
    # what is shown, layout, free devices, how many, which
    ("lowest first where all are alike", layout(*[0] * 8), "0,1,2,3,4,5,6,7", 2, "0,1"),
    ("one domain rather than two", HALVES, "3,4,5,6,7", 2, "4,5"),
    ("the domain with least to spare", HALVES, "0,1,4,5,6,7", 2, "0,1"),
    ("a single GPU comes from the broken pair", PAIRS, "1,2,3,4,5,6,7", 1, "1"),
    ("fullest domains first where none holds them all", HALVES, "0,1,2,5,6", 4, "0,1,2,5"),
    ("whole pairs for four", PAIRS, "0,2,3,4,5,6", 4, "2,3,4,5"),
    ("one NUMA node inside one NVLink domain", ONE, "2,3,4,5,6,7", 2, "2,3"),
    ("the NUMA node that holds them", ONE, "3,4,5,6", 3, "4,5,6"),
    ("all that are free", HALVES, "0,5,7", 3, "0,5,7"),
]


@pytest.mark.parametrize(
    ("what", "layout", "free", "count", "expected"), CASES, ids=[c[0] for c in CASES]
)
def test_choice(what, layout, free, count, expected):
    assert format_indices(choose(layout, parse_indices(free), count)) == expected


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=16).flatmap(
        lambda links: st.tuples(
            st.just(links), st.sets(st.sampled_from(range(len(links))), min_size=1)
        )
    ),
    st.data(),
)
def test_choice_is_free_and_of_the_right_size(links_and_free, data):
    links, free = links_and_free
    count = data.draw(st.integers(1, len(free)))
    chosen = set(indices_of(choose(layout(*links), mask_of(free), count)))
    assert chosen <= free
    assert len(chosen) == count
    used = {links[i] for i in chosen}
    holding = [d for d in set(links) if sum(links[i] == d for i in free) >= count]
    assert len(used) == 1 or not holding


def test_too_few_are_refused():
    with pytest.raises(ValueError, match="3 devices asked for, 2 are free"):
        choose(HALVES, mask_of([0, 1]), 3)


@pytest.mark.parametrize(
    ("annotation", "count", "healthy"),
    [
        ("", 4, [0, 1, 2, 3]),
        ("", 0, []),
        ("not json", 2, [0, 1]),
        ('[{"index": 0}, {"index": 1, "healthy": false}]', 2, [0]),
        ('[{"index": 0}, {"index": 0, "kind": "nic"}, {"index": 70}]', 1, [0]),
        ('[{"index": 3, "kind": "nic"}]', 1, [0]),
    ],
)
def test_what_a_node_states(annotation, count, healthy):
    assert list(indices_of(layout_of(annotation, count).healthy)) == healthy


@pytest.mark.parametrize(("text", "indices"), [("", []), ("0, 2", [0, 2]), ("x,-1,99,3", [3])])
def test_indices_are_read_leniently(text, indices):
    assert list(indices_of(parse_indices(text))) == indices
