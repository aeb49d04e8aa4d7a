"""Namespaces as nodes with one process each that measures with all others when told to."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass, field
from types import TracebackType

from tests.support.fabric import Fabric

from lockstep.devices.network.core.verdict import Fault, Flow, judge

RATE = "200mbit"
SLOW = "80mbit"
WORKER = """
import json, sys
from lockstep.api.network import Endpoint
from lockstep.devices.network.core.rounds import partners, rounds
from lockstep.devices.network.probe import Listener, Terms, measure

node, count, address = sys.argv[1], int(sys.argv[2]), sys.argv[3]
terms = Terms("t" * 32, 0.05, 20.0)
listener = Listener(terms, address, "rail0", "rail0")
print(listener.endpoint.port, flush=True)
ports = json.loads(sys.stdin.readline())
nodes = [f"n{i}" for i in range(1, count + 1)]
for _ in sys.stdin:
    said = []
    for peer in partners(nodes, node, rounds(count)):
        if nodes.index(node) > nodes.index(peer):
            listener.measure(peer)
            continue
        far = Endpoint(rail="rail0", nic="rail0", address=ports[peer][0], port=ports[peer][1])
        one = measure(terms, listener.endpoint, node, peer, far)
        said.append([peer, one.rate, one.back, one.resent, one.resent_back])
    print(json.dumps(said), flush=True)
"""


@dataclass
class Draws:
    """Nodes under two leaves of equal size; break one thing, judge, heal."""

    nodes: int
    fabric: Fabric = field(init=False)
    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    undo: list[list[str]] = field(default_factory=list)

    def __enter__(self) -> Draws:
        self.fabric = Fabric(self.nodes, rails=1, rate=RATE, tag=f"ld{os.getpid() % 100000}")
        self.fabric.start()
        ports = {}
        for number in range(1, self.nodes + 1):
            name, address = f"n{number}", f"10.60.0.{number}"
            worker = [sys.executable, "-c", WORKER, name, str(self.nodes), address]
            self.running[name] = subprocess.Popen(
                self.fabric.inside(name, *worker),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            ports[name] = (address, int(self._line(name)))
        for name in self.running:
            self._tell(name, json.dumps(ports))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one in self.running.values():
            one.kill()
            one.wait()
        self.fabric.stop()

    def leaf(self, name: str) -> str:
        return "leaf0" if int(name[1:]) <= self.nodes // 2 else "leaf1"

    def judged(self) -> list[Fault]:
        """Have all measure, up to thrice where something is slow, and judge the best."""
        best: dict[tuple[str, str], Flow] = {}
        faults: list[Fault] = []
        for _ in range(3):
            for flow in self._measured():
                ends = (flow.source, flow.target)
                known = best.get(ends, flow)
                rate, resent = max(known.rate, flow.rate), min(known.resent, flow.resent)
                best[ends] = Flow(*ends, "rail0", rate, resent)
            faults = judge(list(best.values()), {name: self.leaf(name) for name in self.running})
            if not faults:
                break
        return faults

    def broken(self, rng: random.Random) -> str:
        """Break a NIC, a cable or a leaf; return the place that must be named."""
        kind = rng.choice(("nic", "cable", "leaf"))
        number = rng.randint(1, self.nodes)
        name = f"n{number}"
        if kind == "nic":
            self.fabric.limit(name, "rail0", SLOW)
            return f"{name}/rail0"
        if kind == "cable":
            for hook, way in (("input", "iifname"), ("output", "oifname")):
                rule = f"{way} rail0 numgen random mod 100 < 4 drop"
                chain = f"add chain inet f {hook} {{ type filter hook {hook} priority 0; }}"
                for words in ("add table inet f", chain, f"add rule inet f {hook} {rule}"):
                    self._run(name, ["nft", words])
            self.undo.append([name, "nft", "delete table inet f"])
            return f"{name}/rail0"
        leaf = self.leaf(name)
        for other in self.running:
            if self.leaf(other) == leaf:
                self.fabric.limit(other, "rail0", SLOW)
                self.fabric.limit("switch", f"s{other[1:]}-0", SLOW)
        return leaf

    def healed(self) -> None:
        """Mend all."""
        for name, *command in self.undo:
            self._run(name, command)
        self.undo.clear()
        for name in self.running:
            self.fabric.limit(name, "rail0", RATE)
            self.fabric.limit("switch", f"s{name[1:]}-0", RATE)

    def _measured(self) -> list[Flow]:
        for name in self.running:
            self._tell(name, "go")
        found = []
        for name in self.running:
            for peer, rate, back, resent, resent_back in json.loads(self._line(name)):
                found.append(Flow(name, peer, "rail0", rate, resent))
                found.append(Flow(peer, name, "rail0", back, resent_back))
        return found

    def _run(self, name: str, command: list[str]) -> None:
        subprocess.run(self.fabric.inside(name, *command), check=True, capture_output=True)

    def _tell(self, name: str, line: str) -> None:
        stdin = self.running[name].stdin
        assert stdin is not None
        stdin.write(line + "\n")
        stdin.flush()

    def _line(self, name: str) -> str:
        stdout = self.running[name].stdout
        assert stdout is not None
        return stdout.readline()
