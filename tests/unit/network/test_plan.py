"""Addresses for gangs: whole or refused, never doubled, reused late."""

from __future__ import annotations

import random

import pytest

from lockstep.api.topology import Rail
from lockstep.devices.network.core.plan import Pool, Refused, planned, pools

RAILS = [
    Rail(name=f"rail{n}", subnet=f"10.{n + 1}.0.0/24", gateway=f"10.{n + 1}.0.1") for n in (0, 1)
]


def freed(pool: Pool, owner: str) -> None:
    """Give back what an owner holds."""
    for number in [number for number, who in pool.held.items() if who == owner]:
        del pool.held[number]


def test_each_rank_gets_an_address_and_table_on_each_rail() -> None:
    found = planned(["a", "b"], pools(RAILS)).members
    assert [one.address for one in found["a"]] == ["10.1.0.2/24", "10.2.0.2/24"]
    assert [one.address for one in found["b"]] == ["10.1.0.3/24", "10.2.0.3/24"]
    assert found["a"][0].table != found["a"][1].table
    assert found["a"][0].gateway == "10.1.0.1"


def test_a_plan_made_again_is_the_same() -> None:
    those = pools(RAILS)
    first = planned(["a", "b"], those)
    assert planned(["a", "b"], those).members == first.members
    assert planned(["b", "a", "c"], those).members["a"] == first.members["a"]


def test_addresses_rise_before_any_is_used_again() -> None:
    those = pools([Rail(name="r", subnet="10.0.0.0/29")])
    seen = []
    for number in range(8):
        seen.append(planned([f"p{number}"], those).members[f"p{number}"][0].address)
        freed(those[0], f"p{number}")
    assert seen[:6] == [f"10.0.0.{n}/29" for n in range(1, 7)]
    assert seen[6:] == ["10.0.0.1/29", "10.0.0.2/29"]


def test_addresses_are_never_doubled_in_random_starts_and_ends() -> None:
    rng = random.Random(7)  # noqa: S311
    those = pools([Rail(name="r", subnet="10.0.0.0/25"), Rail(name="s", subnet="10.0.1.0/25")])
    running: dict[str, list[str]] = {}
    for number in range(10_000):
        if running and (rng.random() < 0.5 or len(running) > 20):
            gone = rng.choice(sorted(running))
            for pool in those:
                for owner in running[gone]:
                    freed(pool, owner)
            del running[gone]
            continue
        owners = [f"{number}-{rank}" for rank in range(rng.randint(1, 5))]
        planned(owners, those)
        running[str(number)] = owners
        for pool in those:
            assert sorted(pool.held.values()) == sorted(o for one in running.values() for o in one)


@pytest.mark.parametrize(
    ("rails", "words"),
    [
        ([Rail(name="a", subnet="10.0.0.0/29")], "6 addresses, 0 are taken, and 9 are needed"),
        (
            [Rail(name="a", subnet="10.0.0.0/16"), Rail(name="b", subnet="10.0.4.0/24")],
            r"rails a \(10.0.0.0/16\) and b \(10.0.4.0/24\) overlap",
        ),
        ([Rail(name="a")], "rail a states no subnet"),
        ([Rail(name="a", subnet="10.0.0.1/16")], "rail a: subnet '10.0.0.1/16'"),
        ([Rail(name="a", subnet="10.0.0.0/16", gateway="10.1.0.1")], "gateway 10.1.0.1 is outside"),
        ([], "no rails"),
    ],
)
def test_what_cannot_be_planned_is_refused_with_names(rails: list[Rail], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        planned([f"p{n}" for n in range(9)], pools(rails))


def test_a_refused_plan_changes_nothing() -> None:
    those = pools([Rail(name="a", subnet="10.0.0.0/24"), Rail(name="b", subnet="10.1.0.0/30")])
    with pytest.raises(Refused):
        planned(["p", "q", "r"], those)
    assert [pool.held for pool in those] == [{}, {}]


def test_a_pool_is_the_given_part_of_the_subnet() -> None:
    rails = [Rail(name="a", subnet="10.1.0.0/24"), Rail(name="b", subnet="10.2.0.0/24")]
    pooled = [rails[0], Rail(name="b", subnet="10.2.0.0/24", pool="10.2.0.128/30")]
    (pool,) = pools(pooled, pooled=True)
    (given,) = planned(["x"], [pool]).members["x"]
    assert (given.rail, given.address) == ("b", "10.2.0.128/24")
    # The rail's table is the same as where all rails are planned.
    assert given.table == planned(["x"], pools(rails)).members["x"][1].table
    with pytest.raises(Refused, match=r"rail b: 10\.2\.0\.128/30 has 4 addresses, 1 are taken"):
        planned(["y", "z", "v", "w"], [pool])


@pytest.mark.parametrize("pool", ["10.9.0.0/24", "10.1.0.5/24", "fd00::/64", "many"])
def test_a_pool_outside_its_subnet_is_refused(pool: str) -> None:
    with pytest.raises(Refused, match="rail a: pool"):
        pools([Rail(name="a", subnet="10.1.0.0/24", pool=pool)])
