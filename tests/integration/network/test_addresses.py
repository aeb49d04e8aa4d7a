"""Planned addresses in the kernel: set, undone, and whole after a kill between any two calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fabric import needs_namespaces
from tests.support.network_world import World
from tests.support.waiting import eventually_sync, stretched

SCRIPT = r"""
import json, os, signal, subprocess, sys
from pathlib import Path
from lockstep.api.network import Address
from lockstep.devices.network import netlink
from lockstep.devices.network.core.wanted import Wanted, wanted

before = Path(sys.argv[1])
planned = [
    Address(rail=f"r{n}", address=f"10.7{n}.0.5/16", table=5100 + n, gateway=f"10.7{n}.0.1", mtu=m)
    for n, m in enumerate((1400, 1300))
]
want = wanted(planned, {"r0": "nic0", "r1": "nic1"})

def held():
    shown = []
    for about in ("addr", "rule", "route"):
        more = ["table", "all"] if about == "route" else []
        said = json.loads(subprocess.check_output(["ip", "-4", "-j", about, "show", *more]) or "[]")
        shown.append(sorted(json.dumps(one, sort_keys=True) for one in said))
    for nic in ("nic0", "nic1"):
        for name in ("arp_ignore", "arp_announce", "rp_filter"):
            shown.append(Path(f"/proc/sys/net/ipv4/conf/{nic}/{name}").read_text())
    return shown

def killed_after(count, target):
    child = os.fork()
    if child == 0:
        steps = netlink._steps
        left = [count]
        def act(inner):
            def run(ipr):
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
                inner(ipr)
            return run
        netlink._steps = lambda ipr, want: [(w, act(a)) for w, a in steps(ipr, want)]
        netlink.bring(target, before)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])

empty = held()
netlink.bring(want, before)
full = held()
assert netlink.bring(want, before) == [], "a second time changes something"
netlink.bring(Wanted(), before)
assert held() == empty, "something is left"
kills = 0
for target in (want, Wanted()):
    count = 0
    while killed_after(count, target):
        kills, count = kills + 1, count + 1
        netlink.bring(want, before)
        assert held() == full, ("after a kill", count)
        netlink.bring(Wanted() if target is want else want, before)
    netlink.bring(want, before)
netlink.bring(Wanted(), before)
assert held() == empty, "something is left after kills"
print(json.dumps(kills))
"""

pytestmark = pytest.mark.xdist_group("network")


@pytest.fixture
def space() -> Iterator[str]:
    needs_namespaces()
    name = f"lka{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    inside = ["ip", "netns", "exec", name]
    for n in (0, 1):
        far = ["peer", "name", f"far{n}"]
        subprocess.run([*inside, "ip", "link", "add", f"nic{n}", "type", "veth", *far], check=True)
        for link in (f"nic{n}", f"far{n}"):
            subprocess.run([*inside, "ip", "link", "set", link, "up"], check=True)
    yield name
    subprocess.run(["ip", "netns", "del", name], check=True)


def test_a_kill_between_any_two_calls_leaves_nothing_behind(space: str, tmp_path: Path) -> None:
    command = ["ip", "netns", "exec", space, sys.executable, "-c", SCRIPT, str(tmp_path / "b.json")]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=stretched(120), check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) >= 12


@pytest.fixture(scope="module")
def topology(world: World) -> None:
    """Two rails, whose nodes have the first addresses themselves."""
    rails = [
        {
            "name": f"rail{n}",
            "subnet": f"10.{60 + n}.0.0/16",
            "pool": f"10.{60 + n}.128.0/17",
            "interfaces": [f"rail{n}"],
        }
        for n in (0, 1)
    ]
    tiers = [{"name": "node", "label": "kubernetes.io/hostname"}]
    spec = {"tiers": tiers, "rails": rails}
    body = {"apiVersion": "lockstep.dev/v1alpha1", "kind": "Topology", "spec": spec}
    world.create({**body, "metadata": {"name": "default"}})


def reaches(world: World, node: str, rail: str, own: str, other: str) -> bool:
    """Tell whether an address answers to another one of a node."""
    command = (sys.executable, "-m", "tests.support.node_questions", rail, own, other)
    inside = world.fabric.inside(node, *command)
    return subprocess.run(inside, capture_output=True, check=False).returncode == 0


def shown(world: World, node: str) -> str:
    """Return the addresses that a node has."""
    return subprocess.check_output(world.fabric.inside(node, "ip", "addr", "show"), text=True)


def test_pods_reach_each_other_on_both_rails_over_the_plan(world: World, topology: None) -> None:
    for number in (1, 2, 3):
        main = {"name": "main", "image": "none"}
        labels = {"lockstep.dev/job": "llm"}
        meta = {"name": f"llm-{number}", "namespace": "default", "labels": labels}
        meta["annotations"] = {"lockstep.dev/hcas": "mlx5_0,mlx5_1"}
        pod = {"nodeName": f"n{number}", "containers": [main]}
        world.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod})
    done = world.run("network", "plan", "llm", "--apply", "-o", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    again = json.loads(world.run("network", "plan", "llm", "-o", "json").stdout)
    assert again == found
    told = world.run("explain", "llm", "--network").stdout
    assert "NCCL_IB_HCA==mlx5_0,mlx5_1" in told
    own = {
        (told["node"], one["rail"]): one["address"].partition("/")[0]
        for told in found.values()
        for one in told["addresses"]
    }
    assert len(set(own.values())) == 6

    for node, peer in (("n1", "n2"), ("n2", "n3"), ("n3", "n1")):
        for rail in ("rail0", "rail1"):
            ends = own[node, rail], own[peer, rail]
            eventually_sync(
                lambda n=node, r=rail, e=ends: reaches(world, n, r, *e), 60, f"{node} {rail}"
            )
    world.delete("/api/v1/namespaces/default/pods/llm-1")
    gone = own["n1", "rail0"]
    eventually_sync(
        lambda: gone not in shown(world, "n1"),
        60,
        "the address of a pod that is gone is taken back",
    )


PLANNER = """
import asyncio, sys
from pathlib import Path
from lockstep.devices.network.planner import add_addresses
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.runtime.manager import Manager

async def run():
    async with Client(ClusterConfig.load(Path(sys.argv[1]))) as client:
        manager = Manager(client, name="controllers", leader_elect=False)
        add_addresses(manager)
        await manager.run(print)

asyncio.run(run())
"""


@pytest.fixture
def planner(world: World) -> Iterator[None]:
    """The controller of addresses."""
    process = subprocess.Popen([sys.executable, "-c", PLANNER, str(world.kubeconfig)])
    yield
    process.terminate()
    process.wait(20)


def test_a_gang_gets_addresses_when_all_pods_are_placed(
    world: World, topology: None, planner: None
) -> None:
    limits = {"limits": {"lockstep.dev/nics": "2"}}
    main = {"name": "main", "image": "none", "resources": limits}

    def add(number: int, node: str) -> None:
        labels = {"lockstep.dev/gang": "moe"}
        meta = {"name": f"moe-{number}", "namespace": "default", "labels": labels}
        spec = {"containers": [main], **({"nodeName": node} if node else {})}
        world.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})

    def planned(node: str) -> dict[str, list[str]]:
        notes = world.read(f"/api/v1/nodes/{node}")["metadata"].get("annotations", {})
        pods = json.loads(notes.get("lockstep.dev/network", "{}")).get("pods", {})
        names = {
            one["metadata"]["uid"]: one["metadata"]["name"]
            for one in world.read("/api/v1/namespaces/default/pods")["items"]
        }
        return {
            names.get(uid, "gone"): [one["address"].partition("/")[0] for one in those]
            for uid, those in pods.items()
        }

    # One that waits for a node holds up the whole gang; another gang goes its own way.
    add(3, "")
    add(1, "n1")
    add(2, "n2")
    other = {"name": "alone", "namespace": "default"}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": other}
    world.create({**body, "spec": {"nodeName": "n3", "containers": [main]}})
    eventually_sync(lambda: "alone" in planned("n3"), 60, "a gang of one is planned")
    assert "moe-1" not in planned("n1")
    world.delete("/api/v1/namespaces/default/pods/moe-3")
    eventually_sync(lambda: "moe-2" in planned("n2"), 60, "the gang is planned")
    own, others = planned("n1")["moe-1"], planned("n2")["moe-2"]
    for rail, ends in enumerate(zip(own, others, strict=True)):
        eventually_sync(
            lambda r=rail, e=ends: reaches(world, "n1", f"rail{r}", *e), 60, f"they meet on {rail}"
        )
    for name in ("moe-1", "moe-2", "alone"):
        world.delete(f"/api/v1/namespaces/default/pods/{name}")
    eventually_sync(lambda: own[0] not in shown(world, "n1"), 60, "its addresses are taken back")
    eventually_sync(lambda: "gone" not in planned("n1"), 60, "and its plan is forgotten")
