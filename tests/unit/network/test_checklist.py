"""Each group of checks over recorded trees: what is broken is named, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.support.network_trees import Case, NodeTree, cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from lockstep.api.topology import Rail
from lockstep.devices.network.checklist import (
    GROUPS,
    about,
    checks,
    recorded_matrix,
    verdict,
)
from lockstep.devices.network.recording import record
from lockstep.devices.network.tree import Tree, trees

CASES = cases()


def bad(place: Path) -> list[tuple[str, str, str]]:
    found = checks([about(Tree(place))])
    return [(c.group, c.state, c.place) for c in found if c.state in ("fail", "warn")]


def test_a_sound_tree_is_well_in_each_group(tmp_path: Path) -> None:
    found = checks([about(Tree(NodeTree().write(tmp_path)))])
    assert [c for c in found if c.state != "ok"] == []
    assert {c.group for c in found} == set(GROUPS) - {"function"}
    assert verdict(found).kind == "healthy"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.group} {case.name}")
def test_what_is_broken_is_named(case: Case, tmp_path: Path) -> None:
    tree = NodeTree()
    case.change(tree)
    found = bad(tree.write(tmp_path))
    place = f"{tree.name}/{case.place}" if case.place else tree.name
    assert any(group == case.group and where == place for group, _, where in found), found


def test_the_odd_machine_is_named(tmp_path: Path) -> None:
    for number in range(1, 5):
        tree = NodeTree(f"node{number}", number)
        if number == 3:
            for n in range(4):
                tree.set(f"sys/class/infiniband/mlx5_{n}/fw_ver", "20.1")
        tree.write(tmp_path)
    found = checks([about(one) for one in trees(tmp_path)])
    wrong = {(c.group, c.place) for c in found if c.state == "fail"}
    assert wrong == {("odd", f"node3/mlx5_{n}") for n in range(4)}


def test_a_rails_vlan_and_mtu_are_held_against_the_nic(tmp_path: Path) -> None:
    place = NodeTree().write(tmp_path)
    rails = [Rail(name="r0", interfaces=["ens0"], vlan=300, mtu=4200)]
    found = checks([about(Tree(place), rails)])
    wrong = [(c.group, c.place) for c in found if c.state == "fail"]
    assert ("vlan", "node1/mlx5_0") in wrong
    assert ("port", "node1/mlx5_0") in wrong


def test_a_recorded_tree_says_the_same_again(tmp_path: Path) -> None:
    tree = NodeTree()
    tree.set("sys/class/infiniband/mlx5_1/ports/1/rate", "100 Gb/sec (2X HDR)")
    first = tree.write(tmp_path)
    record(tmp_path / "again" / tree.name, first)
    assert bad(tmp_path / "again" / tree.name) == bad(first) != []


def test_a_recorded_matrix_gives_the_function_group() -> None:
    names = ("a", "b", "c", "d")
    rows = [
        {
            "from": one,
            "to": other,
            "rail": "rail0",
            "rate": 10.0 if "b" in (one, other) else 50.0,
            "back": 10.0 if "b" in (one, other) else 50.0,
        }
        for index, one in enumerate(names)
        for other in names[index + 1 :]
    ]
    found = recorded_matrix(json.dumps(rows))
    assert [(c.group, c.state, c.place) for c in found] == [("function", "fail", "b/rail0")]
    with pytest.raises(ValueError, match="matrix"):
        recorded_matrix('[{"to": 3}]')


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    name=st.sampled_from(["ip-addr", "ip-rule", "ip-route", "ip-neigh", "lldp", "rdma-system"]),
    said=st.one_of(
        st.text(max_size=80),
        st.recursive(
            st.one_of(st.none(), st.integers(), st.text(max_size=8)),
            lambda inner: st.one_of(
                st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
            ),
        ).map(json.dumps),
    ),
)
def test_any_output_of_tools_is_survived(
    tmp_path_factory: pytest.TempPathFactory, name: str, said: str
) -> None:
    tree = NodeTree(nics=2)
    tree.set(f"tools/{name}", said)
    checks([about(Tree(tree.write(tmp_path_factory.mktemp("fuzz"))))])


def test_a_folder_without_trees_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="sys and tools"):
        trees(tmp_path)
