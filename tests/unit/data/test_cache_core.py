"""Owners of chunks, room, and orders: the rules that the node's cache goes by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.data.core.chunks import CHUNK, Chunks
from lockstep.data.core.epochs import Expected, Order, Passes, permutation, share
from lockstep.data.core.manifest import Found, Manifest, build
from lockstep.data.core.owners import owner
from lockstep.data.core.room import NEVER, Account, victims
from lockstep.data.core.tree import ROOT, Tree

NODES = [f"n{index}" for index in range(8)]


def of_sizes(*sizes: int) -> Manifest:
    return build(
        [("", [Found(f"d{i % 3}/{i:04}", size, "e", 1.0) for i, size in enumerate(sizes)])]
    )


@given(st.integers(0, 10_000), st.sampled_from(NODES))
def test_a_chunk_moves_only_when_its_owner_goes(chunk: int, gone: str) -> None:
    before = owner("v", chunk, NODES)
    after = owner("v", chunk, [one for one in NODES if one != gone])
    assert before in {after, gone}


def test_owners_have_like_shares() -> None:
    counts = dict.fromkeys(NODES, 0)
    for chunk in range(4000):
        counts[owner("v", chunk, NODES)] += 1
    assert all(400 < one < 600 for one in counts.values())


@given(st.lists(st.integers(0, 3 * CHUNK), min_size=1, max_size=20))
def test_chunks_cover_each_file_once(sizes: list[int]) -> None:
    manifest = of_sizes(*sizes)
    chunks = Chunks(manifest)
    seen = []
    for index, entry in enumerate(manifest.entries):
        spans = [chunks.span(index, one) for one in chunks.all_of(index)]
        assert sum(end - start for start, end in spans) == entry.size
        assert all(chunks.file(one) == index for one in chunks.all_of(index))
        seen += list(chunks.all_of(index))
    assert seen == list(range(chunks.total))


@given(st.lists(st.tuples(st.sampled_from("rsf"), st.integers(1, 60)), max_size=60))
def test_an_account_never_passes_its_limit(steps: list[tuple[str, int]]) -> None:
    account, pending = Account(100, 70), list[int]()
    for step, size in steps:
        if step == "r" and account.reserve(size):
            pending.append(size)
        elif step == "s" and pending:
            account.settle(one := pending.pop(), one)
        elif step == "f":
            account.free(min(size, account.used))
        assert account.used + account.reserved <= 100
        assert account.reserved == sum(pending)


@pytest.mark.parametrize(
    ("needed", "held", "need", "before", "gone"),
    [
        ([1, 9, 5], [4, 4, 4], 4, 2, [1]),
        ([1, 9, 5], [4, 4, 4], 8, 2, [1, 2]),
        ([1, 9, 5], [4, 4, 4], 12, 2, []),
        ([1, 9, 5], [4, 0, 4], 4, 2, [2]),
        ([NEVER, NEVER], [4, 4], 4, NEVER, []),
        ([NEVER, NEVER], [4, 4], 4, 3, [1]),
    ],
)
def test_what_is_needed_last_goes_first(
    needed: list[int], held: list[int], need: int, before: int, gone: list[int]
) -> None:
    assert victims(np.array(needed), np.array(held), need, before, None) == gone


@given(st.integers(1, 200), st.integers(1, 8), st.integers(1, 8), st.data())
def test_each_sample_is_read_once_though_the_world_changes(
    count: int, before: int, after: int, data: st.DataObject
) -> None:
    order = permutation(7, 3, count)
    steps = data.draw(st.integers(0, count // before))
    start = steps * before
    read = [one for rank in range(before) for one in share(order, 0, rank, before)[:steps]]
    read += [one for rank in range(after) for one in share(order, start, rank, after)]
    assert sorted(read) == list(range(count))


def test_a_permutation_is_the_same_on_every_machine() -> None:
    assert permutation(1, 0, 6).tolist() == permutation(1, 0, 6).tolist()
    assert permutation(1, 0, 100).tolist() != permutation(1, 1, 100).tolist()


def test_an_order_that_was_seen_twice_is_believed() -> None:
    passes = Passes()
    order = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7, 10, 11]
    for file in order:
        passes.read(file)
    assert not passes.believed
    for file in order[:9]:
        passes.read(file)
    assert passes.believed
    assert next(passes.ahead()) == order[9]


def test_an_order_that_changes_is_not_believed() -> None:
    passes = Passes()
    for file in permutation(1, 0, 50).tolist() + permutation(1, 1, 50).tolist():
        passes.read(file)
    assert not passes.believed


def test_the_next_epoch_is_needed_after_this_one() -> None:
    expected = Expected(4)
    expected.publish("r", Order(np.array([2, 0]), following=np.array([1, 2])))
    assert expected.needed().tolist() == [1, 2, 0, NEVER]
    expected.read(2)
    assert expected.needed().tolist() == [0, 1, 2, NEVER]
    assert list(expected.ahead()) == [0, 1, 2]
    expected.withdraw("r")
    assert not expected.known


def hits(policy: str, count: int, room: int, epochs: int) -> float:
    """Play shuffled epochs through the cache's own rules, and return the share of hits."""
    expected, held, found = Expected(count), np.zeros(count, np.int64), 0
    account = Account(room, room)
    for epoch in range(epochs):
        order = permutation(5, epoch, count)
        if policy == "known":
            expected.publish("r", Order(order, following=permutation(5, epoch + 1, count)))
        for file in order.tolist():
            if epoch:
                found += bool(held[file])
            expected.read(file)
            if held[file]:
                continue
            if not account.reserve(1) and expected.known:
                needed = expected.needed()
                for gone in victims(needed, held, 1, int(needed[file]), None):
                    held[gone] = 0
                    account.free(1)
                if not account.reserve(1):
                    continue
            elif account.reserved == 0:
                continue
            account.settle(1, 1)
            held[file] = 1
    return found / (count * (epochs - 1))


@pytest.mark.parametrize("policy", ["unknown", "known"])
@pytest.mark.parametrize("share_of", [0.25, 0.5, 0.75])
def test_hits_are_at_least_the_caches_share_of_the_dataset(policy: str, share_of: float) -> None:
    assert hits(policy, 400, int(400 * share_of), 4) >= share_of - 0.02


def test_a_tree_has_each_path_under_one_number() -> None:
    manifest = of_sizes(*range(10))
    tree = Tree(manifest)
    numbers = set()
    for entry in manifest.entries:
        parent, _, name = entry.path.partition("/")
        directory = tree.find(ROOT, parent)
        assert directory is not None
        node = tree.find(directory, name)
        assert node is not None and tree.entry(node) == entry
        numbers.add(node)
    assert len(numbers) == len(manifest.entries)
    assert [one.name for one in tree.children(ROOT)] == ["d0", "d1", "d2"]


@pytest.mark.parametrize(("quota", "fits"), [(100, [True, True, False]), (0, [True, True, True])])
def test_datasets_of_a_namespace_share_a_quota(quota: int, fits: list[bool]) -> None:
    accounts: list[Account] = []

    def together(size: int) -> bool:
        taken = sum(one.used + one.reserved for one in accounts)
        return not quota or taken + size <= quota

    accounts += [Account(1000, 700, together=together) for _ in range(2)]
    assert [one.reserve(40) for one in (*accounts, accounts[0])] == fits
