"""From the answers of a check's nodes to checks and one verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

from msgspec.structs import replace

from lockstep.api.network import Check, Measured, NodeAnswer, State, Verdict
from lockstep.devices.network.core.verdict import SLOW, Fault, Flow, judge

FIXES: Mapping[str, str] = {
    "leaf": "look at the leaf switch: its load, its buffers, its firmware",
    "node": "look at what all NICs of the node share: PCIe, CPU frequency, memory, its driver",
    "nic": "look at the NIC's rate, its PCIe link and its queueing discipline (tc qdisc show)",
    "cable": "clean or replace the cable and its transceivers; look at both ends' error counters",
    "one-way": "packets are lost in one direction: look at pause frames and drops at both ends",
    "uplink": "look at the leaf's uplinks: one that is down halves what they carry",
    "pair": "look at the path between the two: a link that only some flows are hashed to",
    "rail": "look at the rail's spine",
    "across": "look at the routes between the rails, and at the spines' load: "
    "`ip route get ADDRESS from OWN oif NIC`",
    "silent": "see that the node agent runs there: `lockstep list nodes`, its log",
    "unreachable": "look at addresses and routes of the rail: `ip addr`, `ip rule`, `ip route`",
}


def flows(answers: Mapping[str, NodeAnswer]) -> list[Flow]:
    """Return both directions of what was measured on one rail; what failed has the rate 0."""
    found = []
    for node in sorted(answers):
        for one in answers[node].measured:
            if one.to_rail:
                continue
            found.append(Flow(node, one.peer, one.rail, one.rate, one.resent))
            found.append(Flow(one.peer, node, one.rail, one.back, one.resent_back))
    return found


def summed_up(
    nodes: Sequence[str],
    answers: Mapping[str, NodeAnswer],
    leaves: Mapping[str, str] | None = None,
) -> tuple[list[Check], Verdict]:
    """Return the checks of the group ``function`` and the verdict about the whole."""
    silent = [node for node in nodes if answers.get(node, NodeAnswer()).state != "done"]
    heard = {node: one for node, one in answers.items() if node not in silent}
    measured = [one for one in flows(heard) if not {one.source, one.target} & set(silent)]
    faults = judge(measured, leaves)
    checks = [*_silent(silent, answers), *_faults(faults), *_problems(heard, faults, silent)]
    checks += _across(heard, faults, measured)
    if not measured and len(nodes) > 1:
        checks.append(Check(group="function", state="unknown", evidence="nothing was measured"))
    if not checks:
        told = f"{len(measured)} measurements, all at the rate of their rail"
        checks.append(Check(group="function", state="ok", evidence=told))
    return checks, _verdict(silent, faults, bool(measured) or len(nodes) < 2)


def _verdict(silent: Sequence[str], faults: Sequence[Fault], measured: bool) -> Verdict:
    if faults:
        first = faults[0]
        return Verdict(kind=first.kind, place=first.place, evidence=first.evidence)
    if silent:
        return Verdict(kind="silent", place=", ".join(silent), evidence="gave no answer in time")
    return Verdict(kind="healthy" if measured else "unknown")


def _silent(silent: Iterable[str], answers: Mapping[str, NodeAnswer]) -> Iterator[Check]:
    for node in silent:
        told = answers.get(node, NodeAnswer())
        seen = f"began and did not end; {told.problem}" if told.state else "no answer"
        yield _check("unknown", "silent", seen.removesuffix("; "), node)


def _faults(faults: Iterable[Fault]) -> Iterator[Check]:
    for one in faults:
        yield _check("fail", one.kind, f"{one.kind}: {one.evidence}", one.place)


def _problems(
    answers: Mapping[str, NodeAnswer], faults: Sequence[Fault], silent: Sequence[str]
) -> Iterator[Check]:
    blamed = {fault.place for fault in faults}
    for node, answer in sorted(answers.items()):
        if answer.problem:
            yield _check("warn", "unreachable", answer.problem, node)
        for one in answer.measured:
            if one.to_rail:
                continue
            ends = {f"{node}/{one.rail}", f"{one.peer}/{one.rail}", node, one.peer}
            if one.problem and one.peer not in silent and not ends & blamed:
                place = f"{node},{one.peer}/{one.rail}"
                yield _check("fail", "unreachable", one.problem, place)


def _across(
    answers: Mapping[str, NodeAnswer], faults: Sequence[Fault], flows: Sequence[Flow]
) -> Iterator[Check]:
    """Yield what is slow or closed between two rails, where neither end is at fault on its own."""
    blamed = {fault.place for fault in faults}
    usual = {rail: _usual(flows, rail) for rail in {flow.rail for flow in flows}}
    lanes: dict[tuple[str, str], list[str]] = {}
    count: Counter[tuple[str, str]] = Counter()
    for node, answer in sorted(answers.items()):
        for one in answer.measured:
            ends = {node, one.peer, f"{node}/{one.rail}", f"{one.peer}/{one.to_rail}"}
            if not one.to_rail or ends & blamed:
                continue
            lane = (min(one.rail, one.to_rail), max(one.rail, one.to_rail))
            count[lane] += 1
            limit = SLOW * min(usual.get(rail, 0.0) for rail in lane)
            rate = min(one.rate, one.back)
            if one.problem or rate < limit:
                why = one.problem or f"{rate:.2f} Gb/s"
                said = f"{node}/{one.rail} to {one.peer}/{one.to_rail}: {why}"
                lanes.setdefault(lane, []).append(said)
    for lane, bad in sorted(lanes.items()):
        told = f"{len(bad)} of {count[lane]} pairs are slow or closed: {'; '.join(bad[:4])}"
        yield _check("fail", "across", told, ",".join(lane))


def _usual(flows: Sequence[Flow], rail: str) -> float:
    """Return the median rate of a rail in Gb/s: what half of its pairs reach."""
    return median([flow.rate for flow in flows if flow.rail == rail] or [0.0])


def _check(state: State, kind: str, evidence: str, place: str) -> Check:
    fix = FIXES[kind]
    return Check(group="function", state=state, evidence=evidence, fix=fix, place=place)


def best(
    before: Mapping[str, NodeAnswer], after: Mapping[str, NodeAnswer]
) -> Mapping[str, NodeAnswer]:
    """Return the later answers with the best of what was measured in both."""
    found = {}
    for node, answer in after.items():
        known = {(m.peer, m.rail, m.to_rail): m for m in before.get(node, NodeAnswer()).measured}
        measured = [
            _better(known[key], one) if (key := (one.peer, one.rail, one.to_rail)) in known else one
            for one in answer.measured
        ]
        found[node] = replace(answer, measured=measured)
    return found


def _better(one: Measured, other: Measured) -> Measured:
    if one.problem or other.problem:
        return other if one.problem else one
    return Measured(
        peer=one.peer,
        rail=one.rail,
        rate=max(one.rate, other.rate),
        back=max(one.back, other.back),
        latency=min(one.latency, other.latency),
        resent=min(one.resent, other.resent),
        resent_back=min(one.resent_back, other.resent_back),
        to_rail=one.to_rail,
    )
