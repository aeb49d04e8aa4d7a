"""Planned addresses in the kernel: set, undone, and whole after a kill between any two calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.network.conftest import World
from tests.support.fabric import needs_namespaces
from tests.support.waiting import eventually_sync

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
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) >= 12


def test_pods_reach_each_other_on_both_rails_over_the_plan(world: World) -> None:
    rails = [
        {"name": f"rail{n}", "subnet": f"10.{60 + n}.0.0/16", "interfaces": [f"rail{n}"]}
        for n in (0, 1)
    ]
    tiers = [{"name": "node", "label": "kubernetes.io/hostname"}]
    spec = {"tiers": tiers, "rails": rails}
    topology = {"apiVersion": "lockstep.dev/v1alpha1", "kind": "Topology", "spec": spec}
    # Addresses after those that the nodes have themselves.
    marks = {f"rail{n}": (10 << 24) + ((60 + n) << 16) + 100 for n in (0, 1)}
    notes = {"lockstep.dev/network-last": json.dumps(marks)}
    world.create({**topology, "metadata": {"name": "default", "annotations": notes}})
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

    def reaches(node: str, rail: str, peer: str) -> bool:
        ends = (rail, own[node, rail], own[peer, rail])
        asked = f"sys.exit(not netlink.answers(*{ends!r}))"
        words = f"import sys; from lockstep.devices.network import netlink; {asked}"
        inside = world.fabric.inside(node, sys.executable, "-c", words)
        return subprocess.run(inside, capture_output=True, check=False).returncode == 0

    for node, peer in (("n1", "n2"), ("n2", "n3"), ("n3", "n1")):
        for rail in ("rail0", "rail1"):
            eventually_sync(lambda n=node, r=rail, p=peer: reaches(n, r, p), 60, f"{node} {rail}")
    world.delete("/api/v1/namespaces/default/pods/llm-1")

    def undone() -> bool:
        shown = subprocess.check_output(world.fabric.inside("n1", "ip", "addr", "show"), text=True)
        return own["n1", "rail0"] not in shown

    eventually_sync(undone, 60, "the address of a pod that is gone is taken back")
