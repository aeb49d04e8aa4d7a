"""Reads what is known of a job's network, and says what its ranks should be told of it."""

from __future__ import annotations

import json

import msgspec

from lockstep.api.core import NODES, Node
from lockstep.api.devices import Device
from lockstep.api.names import DEVICES_ANNOTATION, HCAS_ANNOTATION, HOSTNAME_LABEL, JOB_LABEL
from lockstep.api.topology import DEFAULT_TOPOLOGY, TOPOLOGIES
from lockstep.api.wire import Json
from lockstep.cli.connect import Session
from lockstep.cli.failure import CommandFailed
from lockstep.jobs.nccl import Hca, Network, Rank, Setting, explained


async def network_of(session: Session, job: str) -> dict[str, list[Setting]]:
    """Return by pod of *job* what counts for it.

    Raises:
        CommandFailed: when the job has no pods.
    """
    path = f"/api/v1/namespaces/{session.namespace}/pods"
    raw = await session.client.get_raw(path, {"labelSelector": f"{JOB_LABEL}={job}"})
    pods: list[Json] = json.loads(raw)["items"]
    if not pods:
        raise CommandFailed(f"the job {job!r} has no pods now", "its network is known once it runs")
    topology = await session.find(TOPOLOGIES, "default") or DEFAULT_TOPOLOGY
    nodes = {one.metadata.name: one for one in (await session.client.list(NODES)).items}
    above = [tier for tier in topology.spec.tiers if tier.label != HOSTNAME_LABEL]
    labelled = [
        tier for tier in above if any(tier.label in one.metadata.labels for one in nodes.values())
    ]
    network = Network(rails=topology.spec.rails, tiers=len(labelled))
    found = {}
    for pod in sorted(pods, key=lambda one: str(one["metadata"]["name"])):
        rank = _rank(pod, nodes.get(pod["spec"].get("nodeName", "")))
        found[rank.pod] = explained(rank, network)
    return found


def _rank(pod: Json, node: Node | None) -> Rank:
    notes = pod["metadata"].get("annotations") or {}
    names = [one for one in str(notes.get(HCAS_ANNOTATION, "")).split(",") if one]
    devices = _devices(node)
    roots = {one.pcie for one in devices if one.kind == "gpu"}
    known = {one.name: one for one in devices if one.kind == "nic"}
    hcas = [
        Hca(
            name,
            rail=f"rail{known[name].rail}" if name in known else "",
            link=known[name].link if name in known else "",
            gid=known[name].gid if name in known and known[name].gid >= 0 else None,
            beside_gpu=name in known and known[name].pcie in roots,
        )
        for name in names
    ]
    env = {
        one["name"]: one["value"].replace("$(LOCKSTEP_HCAS)", ",".join(names))
        for container in pod["spec"].get("containers", ())
        for one in container.get("env") or ()
        if isinstance(one.get("value"), str)
    }
    return Rank(str(pod["metadata"]["name"]), hcas, env)


def _devices(node: Node | None) -> list[Device]:
    text = node.metadata.annotations.get(DEVICES_ANNOTATION, "") if node is not None else ""
    try:
        return msgspec.json.decode(text, type=list[Device]) if text else []
    except msgspec.MsgspecError:
        return []


def lines(found: dict[str, list[Setting]]) -> list[str]:
    """Return what a person reads: ranks with the same settings together."""
    groups: dict[tuple[Setting, ...], list[str]] = {}
    for pod, settings in found.items():
        groups.setdefault(tuple(settings), []).append(pod)
    told = []
    for alike, pods in groups.items():
        told.append(", ".join(pods))
        if not alike:
            told.append("  nothing to set: no HCA was handed out, and no rail is stated")
        for one in alike:
            whose = " (yours)" if one.own is not None else ""
            told.append(f"  {one.name}={one.stands}{whose}")
            told.append(f"    {one.reason}; from: {one.source}")
            if one.own is not None and one.own != one.value:
                told.append(f"    Lockstep would say {one.value}")
            if one.doubt:
                told.append(f"    contradiction: {one.doubt}")
    return told


def tree(found: dict[str, list[Setting]]) -> Json:
    """Return what ``-o json`` shows."""
    names = ("name", "reason", "source", "own", "doubt")
    return {
        pod: [
            {"value": one.stands, "lockstep": one.value, **{n: getattr(one, n) for n in names}}
            for one in settings
        ]
        for pod, settings in found.items()
    }
