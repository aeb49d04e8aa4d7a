"""What tools print of a fabric, read; what is no such text is refused in words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.compat import fabrics
from lockstep.devices.network.core.fabric import Found, resolve
from lockstep.devices.network.core.infiniband import ibnetdiscover
from lockstep.devices.network.core.sources import Unreadable, lldp, netq

IB = """#
# Topology file: generated on Mon Nov 23 23:16:30 2026
#
vendid=0x0
switchguid=0x200000(200000)
Switch\t8 "S-0000000000200000"\t\t# "leaf1" base port 0 lid 0 lmc 0
[1]\t"H-0000000000100000"[1](100001) \t\t# "node1 mlx5_0" lid 0 4xSDR
[2]\t"H-0000000000100003"[1](100004) \t\t# "node2 mlx5_0" lid 0 4xSDR
[5]\t"S-0000000000200002"[1]\t\t# "spine1" lid 0 4xSDR

Switch\t8 "S-0000000000200002"\t\t# "spine1" base port 0 lid 0 lmc 0
[1]\t"S-0000000000200000"[5]\t\t# "leaf1" lid 0 4xSDR

Ca\t2 "H-0000000000100003"\t\t# "node2 mlx5_0"
[1](100004) \t"S-0000000000200000"[2]\t\t# lid 0 lmc 0 "leaf1" lid 0 4xSDR

Ca\t2 "H-0000000000100000"\t\t# "node1 mlx5_0"
[1](100001) \t"S-0000000000200000"[1]\t\t# lid 0 lmc 0 "leaf1" lid 0 4xSDR
"""


def lldp_answer(*rows: tuple[str, str, str, bool]) -> dict[str, object]:
    """Return what lldpcli prints: local port, neighbour, its port, whether it bridges."""
    told = [
        {
            local: {
                "via": "LLDP",
                "chassis": {
                    far: {
                        "id": {"type": "mac", "value": "aa:bb:cc:00:00:01"},
                        "capability": [{"type": "Bridge", "enabled": bridges}],
                    }
                },
                "port": {"id": {"type": "ifname", "value": port}, "descr": "words"},
            }
        }
        for local, far, port, bridges in rows
    ]
    return {"lldp": {"interface": told if len(told) > 1 else told[0]}}


def test_a_slow_link_is_found_by_lldp() -> None:
    """``show neighbors details`` states the medium that a port runs (IEEE 802.3 MAU types)."""
    medium = {"n1": "100GbaseCR4 - 100GBASE-CR4", "n2": "100GbaseCR4", "n3": "10GigBaseCX4"}
    medium["n4"] = medium["n2"]
    answers = {
        node: lldp_answer(("eth0", "leaf1", f"swp{number}", True))
        for number, node in enumerate(medium, 1)
    }
    for node, mau in medium.items():
        about = answers[node]["lldp"]["interface"]["eth0"]["port"]  # type: ignore[index]
        about["auto-negotiation"] = {"supported": True, "enabled": True, "current": mau}
    (fault,) = resolve(lldp(json.dumps(answers))).faults
    assert (fault.kind, fault.evidence) == ("slow-link", "10GigBaseCX4; others 100GbaseCR4")
    assert "n3[eth0]" in fault.place


def test_ibnetdiscover_is_read() -> None:
    found = resolve(ibnetdiscover(IB))
    assert found.tiers == ["leaf", "spine"]
    assert found.nodes == {"node1": ["leaf1", "spine1"], "node2": ["leaf1", "spine1"]}
    assert found.faults == []


def test_a_cable_that_one_end_does_not_see_is_named() -> None:
    text = IB.replace(
        '[1](100004) \t"S-0000000000200000"[2]\t\t# lid 0 lmc 0 "leaf1" lid 0 4xSDR', ""
    )
    assert [one.kind for one in resolve(ibnetdiscover(text)).faults] == ["one-way"]


def test_lldp_of_one_node_and_of_several_is_read() -> None:
    one = lldp_answer(("eth1", "leaf1", "Ethernet1", True))
    assert resolve(lldp(json.dumps(one), "n1")).nodes == {"n1": ["leaf1"]}
    several = {
        "n1": lldp_answer(("eth1", "leaf1", "Ethernet1", True)),
        "n2": lldp_answer(("eth1", "leaf2", "Ethernet1", True)),
        "leaf1": lldp_answer(("Ethernet1", "n1", "eth1", False), ("Ethernet9", "spine", "1", True)),
        "leaf2": lldp_answer(("Ethernet1", "n2", "eth1", False), ("Ethernet9", "spine", "2", True)),
    }
    found = resolve(lldp(json.dumps(several)))
    assert found.nodes == {"n1": ["leaf1", "spine"], "n2": ["leaf2", "spine"]}
    assert found.faults == []


def test_netq_is_read() -> None:
    rows = [
        {"hostname": h, "ifname": "eth0", "peerHostname": "leaf1", "peerIfname": f"swp{n}"}
        for n, h in enumerate(("n1", "n2"))
    ]
    assert resolve(netq(json.dumps({"lldp": rows}))).nodes == {"n1": ["leaf1"], "n2": ["leaf1"]}


def test_topograph_is_read() -> None:
    nodes = {"i-1": {"Name": "n1", "ID": "i-1"}, "i-2": {"Name": "n2", "ID": "i-2"}}
    leaf = {"ID": "leaf1", "Vertices": nodes}
    tiers = {"vertices": {"spine": {"ID": "spine", "Vertices": {"leaf1": leaf}}}}
    graph = {"tiers": tiers, "domains": {"nvl1": {"n1": "i-1", "n2": "i-2"}}}
    names, domains = fabrics.topograph(json.dumps(graph))
    assert names == ["nvlink", "leaf", "spine"]
    assert domains == {"n1": ["nvl1", "leaf1", "spine"], "n2": ["nvl1", "leaf1", "spine"]}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (
            {"fabric.topograph.run/tier-0": "l1", "fabric.topograph.run/tier-1": "s1"},
            (["tier-0", "tier-1"], {"n": ["l1", "s1"]}),
        ),
        (
            {
                "network.topology.nvidia.com/leaf": "l1",
                "network.topology.nvidia.com/accelerator": "nv",
            },
            (["nvlink", "leaf"], {"n": ["nv", "l1"]}),
        ),
        ({"zone": "a"}, ([], {})),
    ],
)
def test_topographs_labels_are_read(labels: dict[str, str], expected: object) -> None:
    assert fabrics.from_labels({"n": labels}) == expected


def test_slurm_is_read() -> None:
    text = (
        "SwitchName=l1 Nodes=n[01-02]\nSwitchName=l2 Nodes=n03,n4\nSwitchName=s Switches=l[1-2]\n"
    )
    names, domains = fabrics.slurm(text)
    assert names == ["leaf", "spine"]
    assert domains["n01"] == ["l1", "s"]
    assert sorted(domains) == ["n01", "n02", "n03", "n4"]


def test_labels_go_with_the_switches_that_are_gone() -> None:
    from lockstep.cli.network_discover import labels_of

    leaf, spine = "network.lockstep.dev/leaf", "network.lockstep.dev/spine"
    there = {
        "moved": {leaf: "l1", spine: "s"},
        "dead": {leaf: "l1", spine: "s"},
        "unheard": {leaf: "l2", spine: "s"},
        "new": {},
    }
    found = Found(tiers=["leaf", "spine"], nodes={"moved": ["l2", "s"], "absent": ["l3", "s"]})
    assert labels_of(found, there) == {
        "moved": {leaf: "l2", spine: "s"},
        "dead": {leaf: None},
        "unheard": {},
        "new": {},
    }


def test_a_tree_as_hypernodes_is_the_same_tree_again() -> None:
    from lockstep.cli.network_discover import _hypernodes

    nodes = {f"n{i}": [f"l{i // 2}", f"s{i // 4}"] for i in range(8)}
    said = json.dumps({"items": fabrics.hypernodes(["leaf", "spine"], nodes)})
    names, domains = _hypernodes(said)
    assert names == ["leaf", "spine"]
    assert domains == {n: [f"leaf-{p[0]}", f"spine-{p[1]}"] for n, p in nodes.items()}


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (ibnetdiscover, "", "no line like"),
        (lldp, "nonsense", "no JSON"),
        (lldp, '{"n1": {"other": 1}}', "n1: no key 'lldp'"),
        (netq, '{"lldp": []}', "no entries under 'lldp'"),
        (netq, '{"lldp": [{"hostname": "a"}]}', "without peerHostname"),
        (fabrics.topograph, "{}", "no 'vertices'"),
        (fabrics.slurm, "Nodes=n1", "line 1"),
        (fabrics.slurm, "SwitchName=a Nodes=n[9-1]", "runs backwards"),
    ],
)
def test_what_is_no_such_text_is_refused_in_words(read: object, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read(text)  # type: ignore[operator]


_TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=6)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["lldp", "interface", "chassis", "port", "id", "value", "vertices", "tiers", "name"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(_TREES.map(json.dumps))
def test_any_json_is_read_or_refused(text: str) -> None:
    for read in (lldp, netq, fabrics.topograph):
        try:
            found = read(text)
        except ValueError:
            continue
        assert found is not None


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (ibnetdiscover, fabrics.slurm, lldp):
        try:
            read(text)
        except (Unreadable, ValueError):
            continue
