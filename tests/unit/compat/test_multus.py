"""Attachments for rails, and the user's own held against them."""

from __future__ import annotations

import json

import pytest

from lockstep.api.topology import Rail
from lockstep.compat.multus import attached, definitions, rail_of, selection

RAILS = [
    Rail(name="rail0", subnet="10.0.0.0/16", vlan=100, mtu=9000, interfaces=["ens0"]),
    Rail(name="rail1", subnet="10.1.0.0/16", interfaces=["ens1"]),
]


def test_each_rail_gets_a_definition_that_is_on_it() -> None:
    found = definitions(RAILS, "team")
    assert [one["metadata"]["name"] for one in found] == ["rail0", "rail1"]
    plugin = json.loads(found[0]["spec"]["config"])["plugins"][0]
    assert (plugin["type"], plugin["master"], plugin["mtu"]) == ("macvlan", "ens0.100", 9000)
    assert [rail_of(one, RAILS) for one in found] == [("rail0", ""), ("rail1", "")]


def test_vfs_carry_their_vlan_and_resource() -> None:
    first = definitions(RAILS, "team", "sriov", "mellanox.com/vfs")[0]
    assert json.loads(first["spec"]["config"])["plugins"][0]["vlan"] == 100
    assert first["metadata"]["annotations"] == {
        "k8s.v1.cni.cncf.io/resourceName": "mellanox.com/vfs"
    }


def test_a_pods_annotation_names_rails_in_either_form() -> None:
    assert attached(selection(["rail0", "rail1"], {"rail0": "10.0.0.5/16"}, "t")) == [
        "rail0",
        "rail1",
    ]
    assert attached("team/rail0@net1, rail1") == ["rail0", "rail1"]
    with pytest.raises(ValueError, match="no JSON"):
        attached("[{")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"type": "macvlan", "master": "eth9"}, "eth9 is on no rail; rails are rail0, rail1"),
        ({"type": "sriov", "vlan": 7, "ipam": {"subnet": "10.0.4.0/24"}}, "vlan 7; the rail rail0"),
        ("{", "cannot be read"),
    ],
)
def test_an_attachment_to_no_rail_is_named(config: object, words: str) -> None:
    text = config if isinstance(config, str) else json.dumps(config)
    rail, problem = rail_of({"metadata": {"name": "own"}, "spec": {"config": text}}, RAILS)
    assert rail == ""
    assert words in problem


@pytest.mark.parametrize(
    ("rails", "type_", "words"),
    [
        (RAILS, "vhost", "none of"),
        (RAILS, "sriov", "needs the resource"),
        ([Rail(name="r", interfaces=["mlx*"])], "macvlan", "must name one NIC"),
    ],
)
def test_what_cannot_be_attached_is_refused(rails: list[Rail], type_: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        definitions(rails, "team", type_)
