"""A thousand random faults on simulated clusters, through the cores that production runs.

Lines of kernel logs become findings, policies say what is done, devices are fenced, gangs move, and
nodes come back through checks. What is simulated is the cluster alone: nodes, gangs, time.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace
from tests.support.signatures import SAMPLES

from lockstep.api.core import Pod, PodSpec, PodStatus
from lockstep.api.health_policy import HealthPolicySpec
from lockstep.api.meta import ObjectMeta, OwnerReference
from lockstep.api.names import GANG_LABEL, GPUS_ANNOTATION
from lockstep.api.node_health import (
    Checked,
    CheckResult,
    Finding,
    NodeHealth,
    NodeHealthSpec,
    NodeHealthStatus,
)
from lockstep.api.timestamp import read, show
from lockstep.health.core.diagnose import diagnose, with_findings
from lockstep.health.core.findings import finding_of, merged
from lockstep.health.core.policy import Acted, away, objection
from lockstep.health.core.signatures import match
from lockstep.health.remediation import plan

GPUS = 8
FAULTS = 50
CLUSTERS = 20
_SAMPLES = [(one.line, match(one.line, kernel=True)) for one in SAMPLES if one.where == "kernel"]
LINES = [line for line, taken in _SAMPLES if taken is not None and taken.verdict.kind != "cascade"]


@dataclass
class Cluster:
    """Nodes by name, and the gangs that run on their devices."""

    random: random.Random
    policy: HealthPolicySpec
    nodes: dict[str, NodeHealth] = field(default_factory=dict)
    gangs: dict[str, Pod] = field(default_factory=dict)
    moved: Counter[str] = field(default_factory=Counter)
    """How often each gang was moved since the last fault."""
    now: float = 1.7e9

    def fenced(self, node: str) -> bool:
        status = self.nodes[node].status
        return bool(status.fenced) or status.tainted

    def place(self, gang: str) -> None:
        """Put a gang of one pod on a device that is handed out, where there is one."""
        self.gangs.pop(gang, None)
        used = {
            (p.spec.node_name, p.metadata.annotations[GPUS_ANNOTATION]) for p in self.gangs.values()
        }
        free = [
            (node, f"{index}")
            for node, health in self.nodes.items()
            if not health.status.tainted
            for index in range(GPUS)
            if f"gpu/{index}" not in health.status.fenced and (node, f"{index}") not in used
        ]
        if not free:
            return
        node, index = self.random.choice(free)
        owner = OwnerReference(api_version="v1", kind="J", name=gang, uid=gang, controller=True)
        meta = ObjectMeta(
            name=gang,
            labels={GANG_LABEL: gang},
            annotations={GPUS_ANNOTATION: index},
            owner_references=[owner],
        )
        self.gangs[gang] = Pod(
            metadata=meta, spec=PodSpec(node_name=node), status=PodStatus(phase="Running")
        )

    def remediate(self, node: str) -> str:
        """Take the step that the controller takes for a node; return what held it."""
        health, now = self.nodes[node], show(self.now)
        what = plan.wanted(health.spec.findings, self.policy)
        stays = plan.returning(health, what, self.policy)
        status = health.status
        done = set(what.fenced) <= set(status.fenced) and bool(what.tainted) <= status.tainted
        acted = what.anything and not (done and (status.fenced or status.tainted))
        if acted:
            known = ((n, one) for n, h in self.nodes.items() for one in h.spec.findings)
            if len(away(known, self.now)) >= self.policy.storage_away:
                return "storage"
            seen = [
                Acted(n, self.fenced(n), read(h.status.acted_at)) for n, h in self.nodes.items()
            ]
            if why := objection(self.policy, node, len(self.nodes), seen, self.now):
                return why
        whole = plan.both(what, stays)
        for one in plan.leaving([p for p in self.gangs.values() if p.spec.node_name == node], what):
            self.moved[one.pod.metadata.name] += 1
            self.gangs.pop(one.pod.metadata.name)
        told = NodeHealthStatus(
            fenced=list(whole.fenced),
            tainted=bool(whole.tainted),
            acted_at=now if acted else status.acted_at,
            asked=plan.asked(health, stays, self.policy, now),
        )
        self.nodes[node] = replace(health, status=told)
        return ""


def cluster(seed: int) -> Cluster:
    rng = random.Random(seed)  # noqa: S311
    policy = HealthPolicySpec(
        share=rng.choice([0.1, 0.25, 0.5]),
        per_hour=rng.choice([None, 2, 5]),
        cool_down=rng.choice(["0s", "30m"]),
        return_checks=rng.choice([[], ["disk"]]),
    )
    made = Cluster(rng, policy)
    for number in range(rng.randint(4, 40)):
        name = f"n{number}"
        made.nodes[name] = NodeHealth(metadata=ObjectMeta(name=name), spec=NodeHealthSpec())
    for number in range(rng.randint(1, 3 * len(made.nodes))):
        made.place(f"g{number}")
    return made


def fault(here: Cluster) -> tuple[str, Finding]:
    """Have a random node log a random line about one of its devices, or about itself."""
    node, index = here.random.choice(list(here.nodes)), here.random.randrange(GPUS)
    found = finding_of(here.random.choice(LINES), {})
    assert found is not None, "a line without a verdict"
    device = here.random.choice([f"gpu/{index}", ""])
    one = replace(found, device=device)
    health = here.nodes[node]
    findings = merged(health.spec.findings, [one], show(here.now))
    here.nodes[node] = replace(health, spec=replace(health.spec, findings=findings))
    return node, one


def repair(here: Cluster, node: str) -> None:
    """Mend a node: its findings are taken away, and its agent answers the checks."""
    health = here.nodes[node]
    here.nodes[node] = replace(health, spec=replace(health.spec, findings=[]))
    here.remediate(node)
    asked = here.nodes[node].status.asked
    if asked is None:
        return
    assert here.fenced(node), "a node that has not passed its checks is open"
    checked = Checked(asked=asked, results=[CheckResult(name="disk", state="ok")])
    health = here.nodes[node]
    here.nodes[node] = replace(health, spec=replace(health.spec, checked=checked))
    here.remediate(node)
    assert not here.fenced(node)


@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_random_faults_keep_the_policy(seed: int) -> None:
    here = cluster(seed)
    most = max(1, int(here.policy.share * len(here.nodes)))
    gangs = list(here.gangs)
    acts: list[tuple[float, str]] = []
    for _ in range(FAULTS):
        here.now += here.random.expovariate(1 / 600)
        fenced_before = {node for node in here.nodes if here.fenced(node)}
        here.moved.clear()
        node, one = fault(here)
        verdict = with_findings(diagnose([]), [(node, one)])
        assert verdict.cause, "a fault without a verdict"
        for _ in range(2):
            for name in here.nodes:
                here.remediate(name)
            for gang in gangs:
                if gang not in here.gangs:
                    here.place(gang)
        assert max(here.moved.values(), default=0) <= 1, "a fault costs two restarts"
        fenced = {name for name in here.nodes if here.fenced(name)}
        for name in fenced:
            asks = plan.wanted(here.nodes[name].spec.findings, here.policy)
            assert asks.anything, f"{name} is well, and fenced"
        assert len(fenced) <= max(most, len(fenced_before)), "the share is exceeded"
        acts += [(here.now, name) for name in fenced - fenced_before]
        hour = {name for at, name in acts if here.now - at < 3600}
        assert here.policy.per_hour is None or len(hour) <= here.policy.per_hour
        if here.random.random() < 0.4 and fenced:
            repair(here, here.random.choice(sorted(fenced)))
