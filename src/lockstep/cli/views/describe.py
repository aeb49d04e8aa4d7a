"""Everything worth knowing about one object, on one page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lockstep.api import copies, names, roles
from lockstep.api.code import Code
from lockstep.api.core import Event, Node, Pod
from lockstep.api.gang import Gang
from lockstep.api.goodput import in_words, lost_in_words
from lockstep.api.job_history import History
from lockstep.api.meta import Condition, ObjectMeta
from lockstep.api.node_policy import NodePolicy
from lockstep.api.queue import Queue
from lockstep.api.training import Role, TrainingJob
from lockstep.cli.views import amounts, gangs, history, jobs, nodes
from lockstep.cli.views.pods import event_table, pod_table, state
from lockstep.cli.views.queues import amounts as in_one_cell
from lockstep.cli.views.table import Column, Table, cell, plain, table
from lockstep.cli.views.times import ago, between

Fact = tuple[str, object]


def describe_job(
    job: TrainingJob, gang: Gang | None, pods: Sequence[Pod], events: Iterable[Event], now: float
) -> list[str]:
    """Return a page about a job, its gang and its pods."""
    spec, status = job.spec, job.status
    facts: list[Fact] = [
        *_identity(job.metadata, now),
        ("Framework", spec.framework),
        ("Phase", jobs.phase(job)),
        ("Why", jobs.why(job, gang)),
        ("Message", status.message if status.message != jobs.why(job, gang) else ""),
        ("Queue", spec.queue),
        ("Priority", spec.priority_class_name),
        ("Topology", gangs.wish(spec.topology)),
        *_code(spec.code),
        ("Starts in", gangs.starts(gang, now) if gang else ""),
        ("Gang", "" if jobs.ended(job) else f"{jobs.members(job, gang)} members placed"),
        ("Domain", gangs.domain(gang) if gang else ""),
        ("Restarts", f"{status.restarts} of at most {spec.recovery.max_restarts}"),
        ("Now", history.doing(job, now)),
        ("Runtime", jobs.ran(job, now)),
        ("Goodput", in_words(status.goodput, now)),
        ("Done again", lost_in_words(status.goodput)),
        ("Copies", copies.in_words(status.copies, status.replicated)),
        ("Checkpoints", status.history.saves or None),
    ]
    lines = [*_facts(facts), "", "Roles:", *_table(_roles(job.spec.roles))]
    lines += _history(status.history, now)
    return [*lines, *_conditions(status.conditions, now), *_pods(pods, now), *_events(events, now)]


def _code(code: Code | None) -> list[Fact]:
    """Return which code a job runs, and with which packages."""
    if code is None:
        return []
    changed = f" with changes {code.changes}" if code.changes else ""
    kept = f"{code.environment}, kept in configmap/{code.packages}"
    return [
        ("Code", f"{code.files} files, {code.size} bytes, {code.digest}"),
        ("Commit", f"{code.commit}{changed}" if code.commit else ""),
        ("Packages", kept if code.packages else ""),
    ]


def _history(known: History, now: float) -> list[str]:
    """Return what is on record of a job: the last phases, and the attempts."""
    spans = _table(history.span_table(known, now)) if known.spans else []
    lines = _section("History", spans)
    if known.dropped_spans:
        lines.append(f"  {known.dropped_spans} earlier phases are summed up in the goodput")
    if known.attempts:
        lines += _section("Attempts", _table(history.attempt_table(known, now).narrow()))
    return lines


def describe_gang(
    gang: Gang, pods: Sequence[Pod], events: Iterable[Event], now: float
) -> list[str]:
    """Return a page about a gang and its members."""
    spec, status = gang.spec, gang.status
    facts: list[Fact] = [
        *_identity(gang.metadata, now),
        ("Phase", gangs.phase(gang)),
        ("Why", gangs.why(gang)),
        ("Reason", status.reason),
        ("Position", status.position if gangs.waits(gang) else None),
        ("Starts in", gangs.starts(gang, now)),
        ("Queue", spec.queue),
        ("Priority", spec.priority_class_name),
        ("Topology", gangs.wish(spec.topology)),
        ("Strategy", spec.strategy or "the queue's"),
        (
            "Members",
            f"{status.members} exist, {status.bound} bound, {status.running} running, "
            f"{gangs.minimum(gang)} needed",
        ),
        ("Domain", gangs.domain(gang)),
        ("Waited", between(status.waiting_since, status.placed_at, now)),
    ]
    return [
        *_facts(facts),
        *_conditions(status.conditions, now),
        *_pods(pods, now),
        *_events(events, now),
    ]


def describe_queue(queue: Queue, members: Sequence[Gang], now: float) -> list[str]:
    """Return a page about a queue and the gangs in it."""
    spec, status = queue.spec, queue.status
    facts: list[Fact] = [
        *_identity(queue.metadata, now),
        ("Parent", spec.parent),
        ("Weight", f"{spec.weight:g}"),
        ("Guaranteed", in_one_cell(spec.guaranteed)),
        ("Limit", in_one_cell(spec.limit)),
        ("Used", in_one_cell(status.used)),
        ("Lending", spec.lending),
        ("Preemption", spec.preemption),
    ]
    shown = gangs.gang_table(members, now).narrow()
    return [
        *_facts(facts),
        *_conditions(status.conditions, now),
        *_section("Gangs", _table(shown) if members else []),
    ]


def describe_node(
    node: Node, pods: Sequence[Pod], events: Iterable[Event], now: float
) -> list[str]:
    """Return a page about a node and what runs on it."""
    here = nodes.by_node(pods).get(node.metadata.name, [])
    facts: list[Fact] = [*_identity(node.metadata, now), ("Status", nodes.status(node))]
    facts += [
        (f"{word} used", _share(node, here, resource))
        for word, resource in (("GPUs", names.GPU), ("CPUs", names.CPU), ("Memory", names.MEMORY))
    ]
    facts += [("Taint", f"{t.key}={t.value}:{t.effect}") for t in node.spec.taints]
    return [
        *_facts(facts),
        *_conditions(node.status.conditions, now),
        *_pods(here, now),
        *_events(events, now),
    ]


def describe_pod(pod: Pod, events: Iterable[Event], now: float) -> list[str]:
    """Return a page about a pod."""
    labels, told = pod.metadata.labels, pod.metadata.annotations
    facts: list[Fact] = [
        *_identity(pod.metadata, now),
        ("State", state(pod)),
        ("Message", pod.status.message),
        ("Node", pod.spec.node_name),
        ("Address", pod.status.pod_ip),
        ("Job", labels.get(names.JOB_LABEL)),
        ("Gang", labels.get(names.GANG_LABEL)),
        ("GPUs", told.get(names.GPUS_ANNOTATION)),
        ("NICs", told.get(names.NICS_ANNOTATION)),
        ("NUMA node", told.get(names.NUMA_ANNOTATION)),
        *((f"Container {c.name}", c.container_id) for c in pod.status.container_statuses),
    ]
    return [*_facts(facts), *_conditions(pod.status.conditions, now), *_events(events, now)]


def describe_any(obj: dict[str, Any], events: Iterable[Event], now: float) -> list[str]:
    """Return a page about an object of which nothing special is known."""
    import yaml

    shown = {key: value for key, value in obj.items() if key != "metadata"}
    meta = obj.get("metadata", {})
    facts: list[Fact] = [("Name", meta.get("name")), ("Namespace", meta.get("namespace"))]
    text = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=100)
    return [*_facts(facts), *text.splitlines(), *_events(events, now)]


def policy_nodes(policy: NodePolicy, nodes: Iterable[Node]) -> list[str]:
    """Return how many nodes are in each tier of a policy, as the scheduler sees it."""
    # Only here are the scheduler's arrays needed, which take a while to load.
    from lockstep.scheduler.core.runtime.offline import cluster_of

    cluster = cluster_of(nodes=nodes, node_policies=[policy])
    filled = cluster.policies.filled(policy.metadata.name, cluster.table)
    shown = table(("Tier", Column("Nodes", number=True)), ((t.name, n) for t, n in filled))
    return _section("Nodes", _table(shown))


def _identity(meta: ObjectMeta, now: float) -> list[Fact]:
    created = meta.creation_timestamp
    return [
        ("Name", meta.name),
        ("Namespace", meta.namespace),
        ("Labels", " ".join(f"{key}={value}" for key, value in meta.labels.items())),
        ("Created", f"{created} ({ago(created, now)} ago)" if created else ""),
        ("Being deleted since", meta.deletion_timestamp),
    ]


def _facts(facts: Sequence[Fact]) -> list[str]:
    shown = [(name, value) for name, value in facts if value not in (None, "")]
    width = max(len(name) for name, _ in shown) + 2
    return [f"{name + ':':<{width}} {cell(value)}" for name, value in shown]


def _roles(given: Sequence[Role]) -> Table:
    columns = ("Role", "Pods", "Min", "Max", "Processes", "GPUs each", "Topology")
    return table(
        columns,
        (
            (
                role.name,
                role.replicas,
                roles.least(role),
                roles.most(role),
                roles.processes(role),
                roles.gpus(role),
                gangs.wish(role.topology),
            )
            for role in given
        ),
    )


def _share(node: Node, pods: Sequence[Pod], resource: str) -> str:
    whole = amounts.allocatable(node, resource)
    used = amounts.total(pods, resource)
    return f"{amounts.show(used, resource)} of {amounts.show(whole, resource)}" if whole else ""


def _conditions(given: Sequence[Condition], now: float) -> list[str]:
    rows = (
        (c.type, c.status, c.reason, ago(c.last_transition_time, now), c.message) for c in given
    )
    shown = table(("Condition", "Status", "Reason", "Since", "Message"), rows)
    return _section("Conditions", _table(shown) if given else [])


def _pods(pods: Sequence[Pod], now: float) -> list[str]:
    return _section("Pods", _table(pod_table(pods, now).narrow()) if pods else [])


def _events(events: Iterable[Event], now: float) -> list[str]:
    shown = event_table(events, now)
    return _section("Events", _table(shown.narrow()) if shown.rows else [])


def _table(shown: Table) -> list[str]:
    return [f"  {line}" for line in plain(shown).splitlines()]


def _section(title: str, lines: list[str]) -> list[str]:
    return ["", f"{title}:", *lines] if lines else []
