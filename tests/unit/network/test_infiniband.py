"""InfiniBand fabrics as real ones are listed: SHARP units, adapters without a host, cut listings.

The shape is that of a fabric of GB200 racks whose listing NVIDIA publishes with topograph: groups
of hosts under one leaf a rail, nine spines, two cables from each leaf to each spine.
"""

from __future__ import annotations

import pytest

from lockstep.devices.network.core.fabric import Found, gigabits, resolve
from lockstep.devices.network.core.infiniband import ibnetdiscover
from lockstep.devices.network.core.sources import Unreadable

GROUPS, RAILS, SPINES, HOSTS = 2, 4, 3, 5
STYLES = ("HCA-{0}", "mlx5_{1}")
"""How the hosts of a group call the card of a rail, counted from one or from zero."""


def listing(odd: dict[tuple[int, int, int], str] | None = None) -> str:
    """Return a fabric's listing; *odd* describes an adapter by group, host and rail otherwise."""
    ports: dict[str, list[str]] = {}
    heads: dict[str, tuple[str, str]] = {}

    def joined(one: str, at: int, far: str, far_at: int) -> None:
        for near, port, other, there in ((one, at, far, far_at), (far, far_at, one, at)):
            words = heads[other][1]
            ports.setdefault(near, []).append(
                f'[{port}]\t"{other}"[{there}] # "{words}" lid 7 4xNDR'
            )

    for spine in range(SPINES):
        heads[f"S-5{spine:03}"] = (f"5{spine:03}", f"MF0;SPINE-{spine}:MQM9701/U1")
    for group in range(GROUPS):
        for rail in range(RAILS):
            leaf, image = f"S-1{group}{rail}0", f"1{group}{rail}0"
            heads[leaf] = (image, f"MF0;LEAF-{rail}-{group}:MQM9701/U1")
            for spine in range(SPINES):
                for cable in range(2):
                    joined(
                        leaf,
                        40 + 2 * spine + cable,
                        f"S-5{spine:03}",
                        2 * RAILS * group + rail + 50 * cable,
                    )
            heads[f"H-1{group}{rail}f"] = (image, "Mellanox Technologies Aggregation Node")
            joined(leaf, 65, f"H-1{group}{rail}f", 1)
            for host in range(HOSTS):
                words = f"g{group}-c{host} {STYLES[group].format(rail + 1, rail)}"
                guid = f"H-a{group}{host}{rail}"
                heads[guid] = (guid[2:], (odd or {}).get((group, host, rail), words))
                joined(leaf, host + 1, guid, 1)
    text = ["# Topology file: generated on Wed Aug 6 2025"]
    for guid, (image, words) in heads.items():
        kind = "Switch 65" if guid[0] == "S" else "Ca 1"
        text += ["", f"sysimgguid=0x{image}", f'{kind} "{guid}" # "{words}"']
        text += ports[guid]
    return "\n".join(text)


def groups(found: Found) -> dict[str, set[str]]:
    """Return the hosts of each domain of the nearest tier."""
    domains: dict[str, set[str]] = {}
    for host, those in found.nodes.items():
        domains.setdefault(those[0], set()).add(host)
    return domains


HOSTS_OF = {
    f"MF0;LEAF-0-{group}:MQM9701/U1": {f"g{group}-c{host}" for host in range(HOSTS)}
    for group in range(GROUPS)
}


def test_aggregation_units_and_styles_of_names_are_no_faults() -> None:
    found = resolve(ibnetdiscover(listing()))
    assert groups(found) == HOSTS_OF
    assert found.tiers == ["leaf", "spine"]
    assert found.faults == []


@pytest.mark.parametrize(
    "words",
    ["MT4129 ConnectX7   Mellanox Technologies", "localhost HCA-1", "(none) mlx5_0", "", "x y z w"],
)
def test_adapters_that_state_no_host_join_no_leaves(words: str) -> None:
    odd = {(0, 0, 0): words, (0, 1, 1): words, (1, 0, 0): words, (1, 2, 3): words}
    found = resolve(ibnetdiscover(listing(odd)))
    assert [one.kind for one in found.faults] == ["unnamed-adapter"]
    assert {
        name: {h for h in hosts if h[0] == "g"} for name, hosts in groups(found).items()
    } == HOSTS_OF
    assert {h for hosts in groups(found).values() for h in hosts if h[0] == "H"} == {
        "H-a000",
        "H-a011",
        "H-a100",
        "H-a123",
    }


def test_hosts_of_one_name_are_told_apart_by_guid() -> None:
    odd = {(group, 0, rail): f"ubuntu mlx5_{rail}" for group in (0, 1) for rail in range(RAILS)}
    found = resolve(ibnetdiscover(listing(odd)))
    assert len(groups(found)) == GROUPS
    assert [one.kind for one in found.faults] == ["unnamed-adapter"]


def test_swapped_rails_of_one_host_are_two_faults() -> None:
    odd = {(0, 3, 2): "g0-c3 HCA-4", (0, 3, 3): "g0-c3 HCA-3"}
    found = resolve(ibnetdiscover(listing(odd)))
    assert groups(found) == HOSTS_OF
    assert [one.kind for one in found.faults] == ["wrong-rail", "wrong-rail"]
    assert all("g0-c3" in one.place for one in found.faults)


def test_one_cable_of_two_that_is_missing_is_named() -> None:
    lines = listing().splitlines()
    at = lines.index('Switch 65 "S-1000" # "MF0;LEAF-0-0:MQM9701/U1"')
    cable = next(one for one in lines[at:] if one.startswith("[42]"))
    other_end = next(one for one in lines if '"S-1000"[42]' in one)
    del lines[lines.index(cable, at)]
    found = resolve(ibnetdiscover("\n".join(one for one in lines if one != other_end)))
    assert [(one.kind, one.place) for one in found.faults] == [
        ("missing-cable", "MF0;LEAF-0-0:MQM9701/U1 - MF0;SPINE-1:MQM9701/U1")
    ]


def test_a_cut_listing_is_refused_or_said() -> None:
    text = listing()
    last_switch = text.rindex("\nSwitch")
    with pytest.raises(Unreadable, match="without a section: S-"):
        ibnetdiscover(text[: last_switch - 30])
    last_adapter = text.rindex("\nCa")
    said = resolve(ibnetdiscover(text[:last_adapter]))
    assert [one.kind for one in said.faults] == ["cut-listing"]
    assert groups(said) == HOSTS_OF


def test_a_node_without_a_link_is_said() -> None:
    with pytest.raises(Unreadable, match="no cable is in the listing"):
        ibnetdiscover('Ca 1 "H-b8" # "dgx-n01 HCA-1"')


@pytest.mark.parametrize(
    ("rate", "speed"),
    [("4xNDR", 400.0), ("1xSDR", 2.5), ("100GbaseCR4", 100.0), ("1000BaseTFD", 1.0), ("odd", 0.0)],
)
def test_rates_are_read(rate: str, speed: float) -> None:
    assert gigabits(rate) == speed
