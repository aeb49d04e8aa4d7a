"""DaemonSets: a pod on every node that they are for."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from lockstep.api.core import (
    PODS,
    AnyObject,
    Node,
    NodeSelectorRequirement,
    Pod,
    PodSpec,
)
from lockstep.api.node_terms import term_holds
from lockstep.api.wire import Json, convert, to_builtins
from lockstep.health.core.lifecycle import tolerates
from lockstep.runtime.actions import Create, Delete
from lockstep.workloads.core import pods as members
from lockstep.workloads.core import revisions
from lockstep.workloads.core.plan import DAEMON_SETS, Plan, World, amount, pod_body, word

_WORST: Final = ("NoExecute",)
_ALL: Final = (*_WORST, "NoSchedule")
_CONDITIONS: Final = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")


@dataclass(frozen=True, slots=True)
class Daemons:
    """A DaemonSet with its pods by node."""

    obj: AnyObject
    wanted: list[str]
    """Nodes that are to have a pod."""
    kept: frozenset[str]
    """Nodes whose pods may stay."""
    on: dict[str, list[Pod]]
    hashed: str
    """Word of today's template."""
    now: float

    def available(self, pod: Pod) -> bool:
        """Say whether *pod* has been ready for as long as it has to be."""
        least = int(self.obj.spec.get("minReadySeconds", 0))
        return members.available_in(pod, least, self.now) == 0

    def updated(self, pod: Pod) -> bool:
        """Say whether *pod* is of today's template."""
        return pod.metadata.labels.get(revisions.HASH_LABEL) == self.hashed


def decide(obj: AnyObject, world: World, now: float) -> Plan:
    """Return what the DaemonSet *obj* needs next."""
    plan = Plan({})
    revision = revisions.newest(DAEMON_SETS, obj, world.revisions, plan)
    template = _daemon(obj.spec.get("template") or {})
    spec = convert(template.get("spec") or {}, PodSpec)
    on: dict[str, list[Pod]] = {}
    for pod in world.pods:
        on.setdefault(node_of(pod), []).append(pod)
    daemons = Daemons(
        obj,
        [one.metadata.name for one in world.nodes if _suits(spec, one, _ALL)],
        frozenset(one.metadata.name for one in world.nodes if _suits(spec, one, _WORST)),
        on,
        revision.removeprefix(f"{obj.metadata.name}-"),
        now,
    )
    if obj.metadata.deletion_timestamp is None:
        _keep(daemons, template, world, plan)
        _change(daemons, plan)
    least = int(obj.spec.get("minReadySeconds", 0))
    _, plan.again = members.count_available(world.pods, least, now)
    plan.status = _status(daemons)
    hashes = {pod.metadata.labels.get(revisions.HASH_LABEL, "") for pod in world.pods}
    used = {revision, *(f"{obj.metadata.name}-{one}" for one in hashes)}
    revisions.forget(obj, world.revisions, used, plan)
    return plan


def node_of(pod: Pod) -> str:
    """Return the node that a daemon's pod is on, or is meant for."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else []
    for term in terms:
        for field in term.match_fields:
            if field.key == "metadata.name" and field.values:
                return field.values[0]
    return ""


def _keep(daemons: Daemons, template: Json, world: World, plan: Plan) -> None:
    """Plan the pods of nodes that have none, and the end of those that failed or are too many."""
    for node in daemons.wanted:
        pods = daemons.on.get(node, [])
        over = [one for one in pods if members.ended(one) and not members.leaving(one)]
        second = _older([one for one in pods if members.active(one)])[1:]
        plan.actions.extend(Delete.of(PODS, one.metadata) for one in [*over, *second])
        if not pods:
            plan.actions.append(Create(PODS, _body(daemons, template, node, world)))
    for node, pods in daemons.on.items():
        if node not in daemons.kept:
            gone = [one for one in pods if not members.leaving(one)]
            plan.actions.extend(Delete.of(PODS, one.metadata) for one in gone)


def _body(daemons: Daemons, template: Json, node: str, world: World) -> Json:
    obj, labels = daemons.obj, {revisions.HASH_LABEL: daemons.hashed}
    if generation := obj.metadata.annotations.get("deprecated.daemonset.template.generation"):
        labels["pod-template-generation"] = generation
    words = (word(5, obj.metadata.uid, node, daemons.hashed, number) for number in count())
    names = (f"{obj.metadata.name}-{one}" for one in words)
    name = next(one for one in names if one not in world.names)
    return pod_body(DAEMON_SETS, obj, _on(template, node), name, **labels)


def _older(pods: list[Pod]) -> list[Pod]:
    return sorted(pods, key=lambda one: (one.metadata.creation_timestamp or "", one.metadata.name))


def _change(daemons: Daemons, plan: Plan) -> None:
    """Plan the end of pods of another template, as many as may be missing at a time."""
    strategy = daemons.obj.spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return
    rolling = strategy.get("rollingUpdate") or {}
    most = max(1, amount(rolling.get("maxUnavailable"), len(daemons.wanted), 1, up=True))
    missing, old = 0, []
    for node in daemons.wanted:
        pods = _older([one for one in daemons.on.get(node, []) if members.active(one)])[:1]
        if not any(map(daemons.available, pods)):
            missing += 1
        old += [one for one in pods if not daemons.updated(one)]
    # One that is not available anyway costs nothing.
    for pod in sorted(old, key=lambda one: (daemons.available(one), one.metadata.name)):
        if daemons.available(pod):
            if missing >= most:
                return
            missing += 1
        plan.actions.append(Delete.of(PODS, pod.metadata))


def _daemon(template: Json) -> Json:
    """Return a template with what every daemon bears."""
    spec = dict(template.get("spec") or {})
    added = [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute"}
        for what in ("not-ready", "unreachable")
    ]
    marks = [*_CONDITIONS, *(["network-unavailable"] if spec.get("hostNetwork") else [])]
    added += [
        {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoSchedule"}
        for what in marks
    ]
    given = list(spec.get("tolerations") or ())
    spec["tolerations"] = given + [one for one in added if one not in given]
    return {**template, "spec": spec}


def _on(template: Json, node: str) -> Json:
    """Return a template whose pods run on *node* and nowhere else."""
    field: Any = NodeSelectorRequirement(key="metadata.name", operator="In", values=[node])
    fields = [to_builtins(field)]
    spec = dict(template.get("spec") or {})
    affinity = dict(spec.get("affinity") or {})
    nodes = dict(affinity.get("nodeAffinity") or {})
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = (nodes.get(key) or {}).get("nodeSelectorTerms") or [{}]
    nodes[key] = {"nodeSelectorTerms": [{**one, "matchFields": fields} for one in terms]}
    spec["affinity"] = {**affinity, "nodeAffinity": nodes}
    return {**template, "spec": spec}


def _suits(spec: PodSpec, node: Node, effects: tuple[str, ...]) -> bool:
    """Say whether a daemon is for *node*, as far as taints of *effects* go."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity is not None and affinity.required is not None:
        terms = affinity.required.node_selector_terms
        if not any(term_holds(one, labels, node.metadata.name) for one in terms):
            return False
    bad = [one for one in node.spec.taints if one.effect in effects]
    return all(any(tolerates(one, taint) for one in spec.tolerations) for taint in bad)


def _status(daemons: Daemons) -> Json:
    first = [
        _older(pods)[0]
        for node in daemons.wanted
        if (pods := [one for one in daemons.on.get(node, []) if not members.leaving(one)])
    ]
    available = sum(map(daemons.available, first))
    optional = {
        "updatedNumberScheduled": sum(map(daemons.updated, first)),
        "numberAvailable": available,
        "numberUnavailable": len(daemons.wanted) - available,
    }
    return {
        "currentNumberScheduled": len(first),
        "numberMisscheduled": len(set(daemons.on) - set(daemons.wanted)),
        "desiredNumberScheduled": len(daemons.wanted),
        "numberReady": sum(map(members.ready, first)),
        "observedGeneration": daemons.obj.metadata.generation,
        **{key: value for key, value in optional.items() if value},
    }


def refused(obj: AnyObject) -> str:
    """Return what of *obj* cannot be honoured, in words."""
    rolling = (obj.spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    if str(rolling.get("maxSurge", 0)) not in ("0", "0%"):
        return "spec.updateStrategy.rollingUpdate.maxSurge: must be 0; maxUnavailable does the same"
    return ""
