"""Attachments for rails."""

from __future__ import annotations

import json

import pytest

from lockstep.api.topology import Rail
from lockstep.compat.multus import definitions

RAILS = [
    Rail(name="rail0", subnet="10.0.0.0/16", vlan=100, mtu=9000, interfaces=["ens0"]),
    Rail(name="rail1", subnet="10.1.0.0/16", interfaces=["ens1"]),
]


def test_each_rail_gets_a_definition_that_is_on_it() -> None:
    found = definitions(RAILS, "team")
    assert [one["metadata"]["name"] for one in found] == ["rail0", "rail1"]
    plugin = json.loads(found[0]["spec"]["config"])["plugins"][0]
    assert (plugin["type"], plugin["master"], plugin["mtu"]) == ("macvlan", "ens0.100", 9000)


def test_vfs_carry_their_vlan_and_resource() -> None:
    first = definitions(RAILS, "team", "sriov", "mellanox.com/vfs")[0]
    assert json.loads(first["spec"]["config"])["plugins"][0]["vlan"] == 100
    assert first["metadata"]["annotations"] == {
        "k8s.v1.cni.cncf.io/resourceName": "mellanox.com/vfs"
    }


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
