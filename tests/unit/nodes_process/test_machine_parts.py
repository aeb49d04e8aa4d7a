"""What the node finds on its machine: control groups, GPUs, and what pods see of them."""

from __future__ import annotations

import os
import sys
import types
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, cast

import pytest

from lockstep.devices.core.model import Card, Inventory
from lockstep.kube.config import ClusterConfig
from lockstep.nodes.process.cgroups import Groups, Limits, kill, members, remove
from lockstep.nodes.process.isolation import Isolation
from lockstep.nodes.process.machine_info import node_name
from lockstep.nodes.process.registration import Description
from lockstep.nodes.process.surroundings import Surroundings

LIMITS = Limits(cpu=500, memory=1 << 20)


def groups(tmp_path: Path, own: str, *directories: str) -> Groups:
    for directory in directories:
        (tmp_path / "top" / directory).mkdir(parents=True)
    (tmp_path / "own").write_text(own)
    return Groups("n", top=tmp_path / "top", own=tmp_path / "own")


@pytest.mark.parametrize(
    ("own", "directories", "written"),
    [
        (
            "4:memory:/a\n1:cpu,cpuacct:/b\n0::/",
            ["memory/a", "cpu,cpuacct/b"],
            {
                "memory/a/lockstep-n/p/c/memory.limit_in_bytes": "1048576",
                "cpu,cpuacct/b/lockstep-n/p/c/cpu.cfs_quota_us": "50000",
            },
        ),
        (
            "4:memory:/\n1:cpu,cpuacct:/\n",
            ["memory", "cpu"],
            {
                "memory/lockstep-n/p/c/memory.limit_in_bytes": "1048576",
                "cpu/lockstep-n/p/c/cpu.cfs_quota_us": "50000",
            },
        ),
        (
            "0::/slice/scope\n",
            # A group with processes may not have children with controllers: the kernel refuses
            # the write, which a directory in place of the file does as well.
            ["slice/scope/cgroup.subtree_control"],
            {
                "slice/lockstep-n/p/c/memory.max": "1048576",
                "slice/lockstep-n/p/c/cpu.max": "50000 100000",
                "slice/cgroup.subtree_control": "+memory",
            },
        ),
    ],
)
def test_groups_are_made_where_they_are_allowed(
    tmp_path: Path, own: str, directories: list[str], written: dict[str, str]
) -> None:
    found = groups(tmp_path, own, *directories)
    entered = found.enter("p", "c", LIMITS)
    assert entered.unenforced == ()
    assert {key: (tmp_path / "top" / key).read_text() for key in written} == written
    assert {str(Path(one).parent.parent) for one in entered.procs} == set(found.places("p"))


@pytest.mark.parametrize(
    ("own", "directories", "problem"),
    [
        ("4:memory:/none\n1:cpu:/none\n", ["memory", "cpu"], "No such file"),
        ("", [], "no control groups"),
        ("0::/\n", ["cgroup.subtree_control"], "directory"),
    ],
)
def test_limits_that_cannot_be_enforced_are_named(
    tmp_path: Path, own: str, directories: list[str], problem: str
) -> None:
    found = groups(tmp_path, own, *directories)
    entered = found.enter("p", "c", LIMITS)
    assert [text.partition(":")[0] for text in entered.unenforced] == ["cpu", "memory"]
    assert all(problem in text for text in entered.unenforced)
    assert found.enter("p", "c", Limits()).unenforced == ()


def test_members_are_killed_and_empty_groups_removed(tmp_path: Path) -> None:
    import subprocess

    process = subprocess.Popen(["sleep", "1000"])
    place = tmp_path / "pod"
    (place / "c").mkdir(parents=True)
    (place / "d").mkdir()
    (place / "c" / "cgroup.procs").write_text(f"{process.pid}\n")
    assert members([str(place)]) == {process.pid}
    assert members([str(place)], "d") == set()
    kill([str(place)], "d")
    assert process.poll() is None
    kill([str(place)])
    assert process.wait(10) == -9
    remove([str(place)])
    assert [one.name for one in place.iterdir()] == ["c"]


def surroundings(cards: tuple[Card, ...], namespaces: tuple[str, ...]) -> Surroundings:
    client = types.SimpleNamespace(config=ClusterConfig("https://127.0.0.1:6443"))
    nothing: Any = None
    return Surroundings(
        name="n",
        client=cast("Any", client),
        data=Path("/data"),
        host_ip="127.0.0.1",
        pods=IPv4Network("127.0.0.0/8"),
        isolation=Isolation(namespaces),
        groups=nothing,
        ports=nothing,
        images=nothing,
        names=nothing,
        tokens=nothing,
        contents=nothing,
        event=nothing,
        allocatable={},
        claims=nothing,
        kept=nothing,
        shares=nothing,
        cards=cards,
    )


ALL = ("mount", "uts")
CARDS = (Card(index=0), Card(index=1, uuid="GPU-b"))


@pytest.mark.parametrize(
    ("cards", "given", "namespaces", "wanted"),
    [
        ((), [], ALL, {"CUDA_VISIBLE_DEVICES": None, "GLOO_SOCKET_IFNAME": None}),
        (CARDS, [1], ALL, {"CUDA_VISIBLE_DEVICES": "GPU-b", "NVIDIA_VISIBLE_DEVICES": "GPU-b"}),
        (CARDS, [0], ALL, {"CUDA_VISIBLE_DEVICES": "0", "NVIDIA_VISIBLE_DEVICES": "0"}),
        (CARDS, [], ALL, {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}),
        ((), [], (), {"GLOO_SOCKET_IFNAME": "lo"}),
        ((), [], ALL, {"KUBERNETES_SERVICE_PORT": "6443", "HOSTNAME": "h", "HOME": "/root"}),
    ],
)
def test_environment_of_every_container(
    cards: tuple[Card, ...],
    given: list[int],
    namespaces: tuple[str, ...],
    wanted: dict[str, str | None],
) -> None:
    env = surroundings(cards, namespaces).environment("h", "/root", given)
    assert {key: env.get(key) for key in wanted} == wanted
    assert env["PATH"].split(":")[0] == str(Path(sys.executable).parent)
    own = {key for key in os.environ if not key.startswith("KUBERNETES_")}
    assert set(env) & own <= {"PATH", "HOME", "HOSTNAME", *wanted}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("Box", "box"), ("a_b", "a-b"), ("x.local", "x.local"), ("-a-", "a"), ("___", "process-node")],
)
def test_node_is_named_as_kubernetes_allows(given: str, wanted: str) -> None:
    assert node_name(given) == wanted


@pytest.mark.parametrize(
    ("problems", "enforced"), [((), "True"), (("cpu: Permission denied",), "False")]
)
def test_node_says_whether_limits_hold(problems: tuple[str, ...], enforced: str) -> None:
    node = Description("n", "127.0.0.1", 10250, Inventory(), problems)
    status = node.status(ready=True, why="runs", now=1.0, since=0.0)
    conditions = {one["type"]: one for one in status["conditions"]}
    assert conditions["Ready"]["status"] == "True"
    assert conditions["LimitsEnforced"]["status"] == enforced
    assert all(text in conditions["LimitsEnforced"]["message"] for text in problems)
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}
