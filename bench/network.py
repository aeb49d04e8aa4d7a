"""The training network: how surely culprits and trees are found, and how fast."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figure import Figure, NotMeasured
from bench.support.network_trees import NodeTree, cases
from bench.support.networks import Drawn, Network, fat_tree
from lockstep.api.topology import Rail
from lockstep.devices.network.checklist import about, checks
from lockstep.devices.network.core.fabric import Fabric, resolve
from lockstep.devices.network.core.infiniband import ibnetdiscover
from lockstep.devices.network.core.plan import planned, pools
from lockstep.devices.network.core.verdict import judge
from lockstep.devices.network.tree import Tree

KINDS = ("node", "nic", "cable", "one-way", "leaf", "uplink")
SLOW = True
REAL_DRAWS = 50
SIMULATOR = Path("/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so")


def run() -> list[Figure]:
    figures = [*small(), *large(), checklist(), plan(), *fabrics(), big_fabric()]
    try:
        figures.append(rate())
        figures += real_draws()
    except NotMeasured as error:
        print(f"bench: network: the matrix's rate is not measured: {error}")
    return figures


def small() -> Iterator[Figure]:
    """One fault among eight simulated nodes, and none among eight."""
    named = false = 0
    for seed in range(50):
        drawn = Network(8, 4, 2, random.Random(seed))
        false += bool(judge(drawn.flows(0, seed), drawn.leaves))
        drawn.draw(1, ("nic", "cable", "leaf"))
        found = {one.place: one.kind for one in judge(drawn.flows(0, seed), drawn.leaves)}
        named += found == drawn.faults
    yield Figure("network: one fault of 8 simulated nodes named", named, "of 50", limit=50)
    yield Figure("network: false alarms of 8 nodes", false, "of 50", "lower", limit=0)


def large() -> Iterator[Figure]:
    """One to five faults among 1,024 simulated nodes, 16 peers each, 5 % noise."""
    right, worst = 0, 0.0
    draws = 100
    for seed in range(draws):
        rng = random.Random(seed)
        drawn = Network(1024, 16, 2, rng)
        drawn.draw(rng.randint(1, 5), KINDS)
        flows = drawn.flows(16, seed)
        start = time.perf_counter()
        found = judge(flows, drawn.leaves)
        worst = max(worst, time.perf_counter() - start)
        right += {one.place: one.kind for one in found} == drawn.faults
    share = 100 * right / draws
    yield Figure("network: faults of 1,024 simulated nodes named", share, "%", limit=99)
    yield Figure("network: verdict on 1,024 nodes", worst, "s", "lower", limit=1)


def checklist() -> Figure:
    """Sixty made trees with something broken each, and sound ones beside them."""
    right = 0
    with tempfile.TemporaryDirectory() as place:
        for number, case in enumerate(cases()):
            tree = NodeTree(f"node{number}")
            sound = tree.write(Path(place) / "sound")
            before = [c for c in checks([about(Tree(sound))]) if c.state in ("fail", "warn")]
            case.change(tree)
            found = checks([about(Tree(tree.write(Path(place) / "broken")))])
            where = f"{tree.name}/{case.place}" if case.place else tree.name
            named = any(
                c.group == case.group and c.place == where and c.state in case.states for c in found
            )
            right += named and not before
    return Figure("network: checklist, broken trees told right", right, "of 60", limit=58)


def plan() -> Figure:
    """Addresses for 1,024 nodes of eight rails."""
    rails = [Rail(name=f"rail{n}", subnet=f"10.{n}.0.0/16") for n in range(8)]
    owners = [f"node{n}" for n in range(1024)]
    start = time.perf_counter()
    planned(owners, pools(rails))
    took = 1000 * (time.perf_counter() - start)
    return Figure("network: addresses of 1,024 nodes of 8 rails", took, "ms", "lower", limit=200)


def fabrics() -> Iterator[Figure]:
    """Random fabrics, a tenth with a fault; one in ten through ibsim and ibnetdiscover."""
    equal = named = broken = simulated = 0
    for seed in range(200):
        drawn = fat_tree(random.Random(seed), broken=seed % 10 == 5)
        fabric = drawn.fabric
        if seed % 10 == 0 and (text := through_ibsim(fabric)) is not None:
            simulated += 1
            fabric = ibnetdiscover(text)
        found = resolve(fabric)
        same = alike({n: list(p) for n, p in found.nodes.items()}, drawn)
        equal += same and (bool(drawn.broken) or not found.faults)
        if drawn.broken:
            broken += 1
            named += any(drawn.broken in one.place for one in found.faults)
    print(f"bench: network: {simulated} of 200 fabrics went through ibsim")
    yield Figure("network: trees of random fabrics found", equal, "of 200", limit=200)
    yield Figure("network: faults of random fabrics named", named, f"of {broken}", limit=broken)


def alike(nodes: dict[str, list[str]], drawn: Drawn) -> bool:
    """Tell whether two trees put the same hosts together in each tier."""
    return _groups(nodes) == _groups(drawn.nodes)


def _groups(nodes: dict[str, list[str]]) -> list[set[frozenset[str]]]:
    found = []
    for tier in range(max(map(len, nodes.values()), default=0)):
        held: dict[str, set[str]] = {}
        for node, path in nodes.items():
            held.setdefault(path[tier], set()).add(node)
        found.append({frozenset(one) for one in held.values()})
    return found


def through_ibsim(fabric: Fabric) -> str | None:
    """Return what ibnetdiscover prints of a fabric that ibsim simulates; None without them."""
    if not (shutil.which("ibsim") and shutil.which("ibnetdiscover") and SIMULATOR.exists()):
        return None
    text, first = ibsim_text(fabric)
    with tempfile.TemporaryDirectory() as place:
        net = Path(place) / "net"
        net.write_text(text)
        with subprocess.Popen(
            ["ibsim", "-s", str(net)],
            cwd=place,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as simulator:
            environment = {**os.environ, "LD_PRELOAD": str(SIMULATOR), "SIM_HOST": first}
            try:
                return _asked(environment)
            finally:
                simulator.kill()


def _asked(environment: dict[str, str]) -> str:
    end = time.monotonic() + 20
    while True:
        done = subprocess.run(
            ["ibnetdiscover"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if not done.returncode and "Switch" in done.stdout:
            return done.stdout
        if time.monotonic() > end:
            raise NotMeasured(f"ibnetdiscover on ibsim: {done.stderr[-200:]}")
        time.sleep(0.2)


def ibsim_text(fabric: Fabric) -> tuple[str, str]:
    """Return a fabric in ibsim's words, and the adapter from which it is asked."""
    names: dict[tuple[str, str], tuple[str, int]] = {}
    used: dict[str, int] = {}
    for cable in fabric.cables:
        for end in (cable.one, cable.other):
            host = end.device in fabric.hosts
            device = f"{end.device} {end.port}" if host else end.device
            used[device] = used.get(device, 0) + 1
            names[end.device, end.port] = (device, used[device])
    lines: dict[str, list[str]] = {}
    for cable in fabric.cables:
        one = names[cable.one.device, cable.one.port]
        other = names[cable.other.device, cable.other.port]
        lines.setdefault(one[0], []).append(f'[{one[1]}] "{other[0]}"[{other[1]}]')
        lines.setdefault(other[0], []).append(f'[{other[1]}] "{one[0]}"[{one[1]}]')
    said = []
    for device, those in lines.items():
        kind = "Switch 64" if device in fabric.switches else "Hca 1"
        said.append(f'{kind} "{device}"\n' + "\n".join(those) + "\n")
    return "\n".join(said), next(one for one in lines if one not in fabric.switches)


def big_fabric() -> Figure:
    """What ibnetdiscover prints of 10,000 hosts under 313 leaves and 8 spines."""
    text = made_text(10_000, 32, 8)
    start = time.perf_counter()
    found = resolve(ibnetdiscover(text))
    took = time.perf_counter() - start
    assert len(found.nodes) == 10_000
    assert found.faults == [], found.faults[:3]
    return Figure("network: ibnetdiscover of 10,000 hosts read", took, "s", "lower", limit=5)


def made_text(hosts: int, under: int, spines: int) -> str:
    """Return text as ibnetdiscover prints it of a tree of two tiers."""
    leaves = -(-hosts // under)
    said = []
    for spine in range(spines):
        said.append(f'Switch\t512 "S-{spine:016x}"\t\t# "spine{spine}" base port 0 lid 1 lmc 0')
        said += [
            f'[{leaf + 1}]\t"S-1{leaf:015x}"[{spine + 1}]\t\t# "leaf{leaf}" lid 3 4xNDR'
            for leaf in range(leaves)
        ]
    for leaf in range(leaves):
        said.append(f'Switch\t64 "S-1{leaf:015x}"\t\t# "leaf{leaf}" base port 0 lid 1 lmc 0')
        said += [
            f'[{s + 1}]\t"S-{s:016x}"[{leaf + 1}]\t\t# "spine{s}" lid 3 4xNDR'
            for s in range(spines)
        ]
        for host in range(leaf * under, min(hosts, (leaf + 1) * under)):
            port = 10 + host % under
            said.append(f'[{port}]\t"H-{host:016x}"[1](2)\t\t# "node{host} mlx5_0" lid 3 4xNDR')
    for host in range(hosts):
        said.append(f'Ca\t1 "H-{host:016x}"\t\t# "node{host} mlx5_0"')
        leaf, port = host // under, 10 + host % under
        said.append(f'[1](2) \t"S-1{leaf:015x}"[{port}]\t\t# lid 1 lmc 0 "leaf{leaf}" lid 3 4xNDR')
    return "\n".join(said)


def real_draws() -> Iterator[Figure]:
    """One slow NIC, lossy cable or slow leaf of eight namespaces, drawn again and again."""
    if os.geteuid() or not (shutil.which("tc") and shutil.which("nft")):
        raise NotMeasured("needs root, tc and nft")
    from bench.support.namespaces import Draws

    rng = random.Random(11)
    named = false = 0
    with Draws(8) as draws:
        for _ in range(REAL_DRAWS):
            false += bool(draws.judged())
            place = draws.broken(rng)
            found = [one.place for one in draws.judged()]
            draws.healed()
            named += found == [place]
            if found != [place]:
                print(f"bench: network: {place} was broken, and named was {found}")
    of = f"of {REAL_DRAWS}"
    yield Figure("network: one fault of 8 namespaces named", named, of, limit=REAL_DRAWS)
    yield Figure("network: false alarms of 8 namespaces", false, of, "lower", limit=0)


LISTEN = """
import sys
from lockstep.devices.network.probe import Listener, Terms
one = Listener(Terms("t" * 32, 1.0, 30.0), "10.60.0.2", "rail0", "rail0")
print(one.endpoint.port, flush=True)
for _ in range(3):
    one.measure("n1")
"""
CONNECT = """
import json, sys
from lockstep.api.network import Endpoint
from lockstep.devices.network.probe import Terms, measure
own = Endpoint(rail="rail0", nic="rail0", address="10.60.0.1", port=0)
far = Endpoint(rail="rail0", nic="rail0", address="10.60.0.2", port=int(sys.argv[1]))
print(measure(Terms("t" * 32, 1.0, 30.0), own, "n1", "n2", far).rate)
"""


def rate() -> Figure:
    """The matrix's TCP rate beside iperf3's, between two of eight namespaces, in turns."""
    if os.geteuid() or not shutil.which("iperf3"):
        raise NotMeasured("needs root and iperf3")
    from tests.support.fabric import Fabric as Spaces

    spaces = Spaces(8, rails=1, rate="1gbit", tag=f"lb{os.getpid() % 100000}")
    ours, theirs = [], []
    try:
        spaces.start()
        listening = spaces.inside("n2", sys.executable, "-c", LISTEN)
        serving = spaces.inside("n2", "iperf3", "-s", "-B", "10.60.0.2")
        with (
            subprocess.Popen(listening, stdout=subprocess.PIPE, text=True) as far,
            subprocess.Popen(serving, stdout=subprocess.DEVNULL) as server,
        ):
            try:
                assert far.stdout is not None
                port = far.stdout.readline().strip()
                for _ in range(3):
                    asked = spaces.inside("n1", sys.executable, "-c", CONNECT, port)
                    ours.append(float(subprocess.check_output(asked, text=True)))
                    peer = spaces.inside("n1", "iperf3", "-c", "10.60.0.2", "-J", "-t", "1")
                    said = json.loads(subprocess.check_output(peer, text=True))
                    theirs.append(said["end"]["sum_received"]["bits_per_second"] / 1e9)
            finally:
                far.kill()
                server.kill()
    finally:
        spaces.stop()
    share = sorted(ours)[1] / sorted(theirs)[1]
    name = "network: the matrix's TCP rate over iperf3's, rails of 1 Gb/s"
    figure = Figure(name, share, "", limit=0.95)
    return figure.beside("iperf3", 1.0)
