"""The cluster as the scheduler knows it, kept by events.

Every ``set_`` and ``remove_`` may be repeated and may come before the objects that it refers to:
a pod on a node that is not known yet takes its room as soon as the node appears. After any sequence
of events the state is the one that the present objects alone would give.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from lockstep.api.core import Node, Pod, PriorityClass
from lockstep.api.gang import Defragmentation, Gang, GangSpec
from lockstep.api.names import RUNTIME_ANNOTATION, SCHEDULER_NAME
from lockstep.api.node_policy import NodePolicy
from lockstep.api.queue import Queue
from lockstep.api.topology import Topology
from lockstep.scheduler.core.model.data_wishes import with_data_wishes
from lockstep.scheduler.core.model.node_info import NodeInfo
from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.pod_shape import Shapes
from lockstep.scheduler.core.model.reservation import Reservations
from lockstep.scheduler.core.model.topology import Topologies
from lockstep.scheduler.core.model.whole_cards import with_whole_cards
from lockstep.scheduler.core.model.workload import Member, PodKey, Workload, WorkloadKey
from lockstep.scheduler.core.quota.account import Amounts, CardKind
from lockstep.scheduler.core.quota.cluster_capacity import ClusterCapacity
from lockstep.scheduler.core.quota.ledger import Ledger
from lockstep.scheduler.core.resources.columns import Columns
from lockstep.scheduler.core.resources.device_allocation import NOTHING, Spot
from lockstep.scheduler.core.scoring.demand_history import DemandHistory
from lockstep.scheduler.core.scoring.feasibility import Fits
from lockstep.scheduler.core.state.claim_book import ClaimBook
from lockstep.scheduler.core.state.disruption_budgets import Budgets
from lockstep.scheduler.core.state.node_policies import NodePolicies
from lockstep.scheduler.core.state.node_usage import NodeUsage
from lockstep.scheduler.core.state.nominations import Nominations
from lockstep.scheduler.core.state.pod_diff import dated, older, only_confirms, same_room
from lockstep.scheduler.core.state.priority_classes import Priorities
from lockstep.scheduler.core.state.queue_accounts import QueueAccounts
from lockstep.scheduler.core.state.share_resizes import ShareResizes


class Cluster:
    """Nodes, pods and gangs, and what follows from them."""

    def __init__(self, names: Collection[str] = ()) -> None:
        self.names = frozenset((SCHEDULER_NAME, *names))
        """Pods of these schedulers' names are ours to place."""
        self.columns = Columns()
        self.table = NodeTable(self.columns)
        self.policies = NodePolicies()
        self.shapes = Shapes(self.columns)
        self.past = DemandHistory()
        self.fits = Fits(self.table, self.past)
        self.occupancy = NodeUsage(self.table)
        self.pods: dict[PodKey, Member] = {}
        self.workloads: dict[WorkloadKey, Workload] = {}
        self.priorities = Priorities()
        self.namespaces: dict[str, Mapping[str, str]] = {}
        """Labels of the namespaces; empty where they are not known, as in a simulation."""
        self.timed = False
        """Whether anything ever said how long it runs."""
        self.reservations = Reservations()
        self.leaving: dict[PodKey, Member] = {}
        """Pods with nodes that are being deleted."""
        self.ledger = Ledger()
        self.offer = ClusterCapacity(self.table, self.ledger)
        self.accounts = QueueAccounts(self.ledger, self.priorities, self.workload_of, self.card)
        self.nominations = Nominations(self.table, self.ledger)
        self.budgets = Budgets()
        self.defragmentations: dict[WorkloadKey, Defragmentation] = {}
        """What is to be shown of moves for the sake of gangs; newer than what they show."""
        self.freed = 0
        """Moves whenever something may fit that did not: what failed since need not be retried."""
        self.touched: set[WorkloadKey] = set()
        """Workloads whose members or wishes changed; its reader clears it."""
        self.device_claims = ClaimBook(self.table)
        self.resizes = ShareResizes()
        self._topologies = Topologies()

    # Nodes and their topology.

    def set_node(self, node: Node) -> None:
        """Take in a node, new or changed."""
        facts = self.device_claims.facts(NodeInfo.of(node))
        new, card = facts.name not in self.table.rows, self.card(facts.name)
        if not self.table.put(facts):
            return
        self.freed += 1
        if self.ledger.active and self.card(facts.name) != card:
            self.ledger.stale = True
        count = self.occupancy.settle if new else self.occupancy.hold
        count(facts.name)

    def on_node(self, name: str) -> Iterable[Member]:
        """Return the pods that take room on a node."""
        return self.occupancy.on(name)

    def card(self, node: str) -> CardKind:
        """Return what a node's GPUs are like, as far as it says."""
        return self.offer.card(node)

    def capacity(self) -> Amounts:
        """Return what all nodes offer together, in the workloads of the queues' accounts."""
        return self.offer.total()

    def remove_node(self, name: str) -> None:
        """Forget a node; its pods stay known."""
        self.device_claims.remove_node(name)
        self.table.remove(name)

    def set_topology(self, topology: Topology) -> None:
        """Take in a topology; that called ``default`` goes before one derived from other kinds."""
        self._use_tiers(self._topologies.set(topology))

    def remove_topology(self, name: str) -> None:
        """Forget a topology; without any the tiers are the built-in ones."""
        self._use_tiers(self._topologies.remove(name))

    def _use_tiers(self, changed: bool) -> None:
        if changed:
            self.table.set_tiers(self._topologies.tiers)
            self.freed += 1

    def set_node_policy(self, policy: NodePolicy) -> None:
        """Take in a node policy."""
        self.policies.set(policy)
        self._touch_gangs(lambda spec: True)

    def remove_node_policy(self, name: str) -> None:
        """Forget a node policy."""
        self.policies.remove(name)
        self._touch_gangs(lambda spec: True)

    # Pods.

    def set_pod(self, pod: Pod) -> bool:
        """Take in a pod, new or changed; return whether a decision may follow from it.

        A placement that the API server does not show yet outlives updates of the same pod.
        """
        wanted = self.resizes.counted(pod, with_data_wishes(pod))
        wanted = with_whole_cards(pod, wanted)
        spec = self.device_claims.spec(pod, wanted)
        shape = self.shapes.of(spec, pod.metadata.annotations)
        member = Member.of(pod, shape, self.names)
        if spec.resource_claims:
            member.gates = tuple(gate.name for gate in spec.scheduling_gates)
            member.grant = self.device_claims.grant(pod, member.grant)
        workload = self.workload_of(member)
        if workload is not None and workload.aligns and not member.aligns:
            member.shape = self.shapes.aligned(shape, workload.alignment_for(member))
        self._open_for(member)
        old = self.pods.get(member.key)
        if old is not None and old.uid == member.uid and member.version < old.version:
            return False
        if old is not None and only_confirms(member, old):
            return self._confirm(old, member.version)
        if old is not None and old.assumed and old.uid == member.uid and not member.node:
            member.node, member.grant, member.assumed = old.node, old.grant, True
        self.timed |= member.runtime is not None
        # a pod of its own that stands is no workload any more
        if member.ours and member.priority < 0:
            self.ledger.activate()
        if dated(member, old):
            self.freed += 1  # when it ends is news
        self._replace(old, member)
        return True

    def _confirm(self, member: Member, version: int) -> bool:
        """Let an assumption be one no more; its room is counted, and its account knows it."""
        member.version, member.assumed = version, False
        workload = self.workload_of(member)
        if workload is None:
            return False
        if not workload.is_gang:
            self._quit_unit(member, None)  # a pod of its own is done with once it is bound
            return True
        last = workload.confirmed(member)
        if last:
            self.touched.add(workload.key)
        return last

    def workload_of(self, member: Member) -> Workload | None:
        """Return the workload of a pod; None where it has none, or none any more."""
        return self.workloads.get(member.workload) if member.workload is not None else None

    def remove_pod(self, namespace: str, name: str) -> None:
        """Forget a pod and give back what it held."""
        self.device_claims.forget((namespace, name))
        self.resizes.forget((namespace, name))
        old = self.pods.get((namespace, name))
        if old is not None:
            self._replace(old, None)

    def assume(self, decided: Iterable[tuple[PodKey, Spot]]) -> None:
        """Count pods as placed before the API server confirms it.

        Raises:
            KeyError: when a pod is not known.
        """
        placed = []
        for key, spot in decided:
            member = self.pods[key]
            self._leave(member)
            member.node, member.grant, member.assumed = spot.node, spot.grant, True
            self.accounts.count(member)
            placed.append(member)
            self._touch(member)
        self.occupancy.enter_all(placed)

    def retract(self, decided: Collection[tuple[PodKey, Spot]]) -> None:
        """Take back placements that broke off in the middle, however far they got."""
        for key, spot in decided:
            member = self.pods.get(key)
            if member is None or not member.assumed or member.node != spot.node:
                continue
            self.device_claims.release(key)
            self.occupancy.withdraw(member)
            self.ledger.leave(member)
            member.node, member.grant, member.assumed = "", NOTHING, False
            self._touch(member)
        for node in {spot.node for _, spot in decided} & self.table.rows.keys():
            self.occupancy.recount(node)

    def forget(self, key: PodKey, uid: str) -> None:
        """Take back an assumption; one that was confirmed meanwhile stays."""
        member = self.pods.get(key)
        if member is None or not member.assumed or member.uid != uid:
            return
        self.device_claims.release(key)
        self._leave(member)
        member.node, member.grant, member.assumed = "", NOTHING, False
        self.freed += 1
        self._touch(member)

    # Gangs and what orders them.

    def set_gang(self, gang: Gang) -> None:
        """Take in a gang, new or changed."""
        key = WorkloadKey("Gang", gang.metadata.namespace, gang.metadata.name)
        workload = self._workload(key)
        if workload.gang is not None and older(gang, workload.gang):
            return
        moved = workload.gang is None or workload.gang.spec.queue != gang.spec.queue
        aligned = workload.aligns
        workload.adopt(gang)
        if aligned or workload.aligns:
            self._align(workload)
        self.timed |= RUNTIME_ANNOTATION in gang.metadata.annotations
        self.touched.add(key)
        if moved:
            self.accounts.recount(workload)

    def remove_gang(self, namespace: str, name: str) -> None:
        """Forget a gang's object; its pods, if any, then wait for it."""
        key = WorkloadKey("Gang", namespace, name)
        workload = self.workloads.get(key)
        if workload is None:
            return
        aligned = workload.aligns
        workload.adopt(None)
        if aligned:
            self._align(workload)
        self._drop_if_empty(workload)
        self.touched.add(key)
        self.accounts.recount(workload)

    def _align(self, workload: Workload) -> None:
        """Have the members whose pods say nothing of alignment follow what their gang says."""
        for member in workload.members.values():
            if not member.aligns:  # what is counted of it stays: it takes what it took
                member.shape = self.shapes.aligned(member.shape, workload.alignment_for(member))
                self._open_for(member)

    def set_priority_class(self, priority_class: PriorityClass) -> None:
        """Take in a priority class."""
        self.ledger.stale |= self.ledger.active
        self.priorities.set(priority_class)
        name = priority_class.metadata.name
        self._touch_gangs(lambda spec: spec.priority_class_name == name)

    def remove_priority_class(self, name: str) -> None:
        """Forget a priority class."""
        self.ledger.stale |= self.ledger.active
        self.priorities.remove(name)
        self._touch_gangs(lambda spec: spec.priority_class_name == name)

    def set_queue(self, queue: Queue) -> None:
        """Take in a queue.

        Raises:
            ValueError: when one of its amounts is not a quantity.
        """
        if self.ledger.set(queue):
            self.freed += 1
            # what a queue says may reach those below it
            for key, workload in self.workloads.items():
                workload.changed()
                self.touched.add(key)

    def remove_queue(self, name: str) -> None:
        """Forget a queue."""
        if self.ledger.remove(name):
            self.freed += 1
            self._touch_gangs(lambda spec: spec.queue == name)

    def settle(self) -> None:
        """Bring up to date what claims say of pods and nodes, and accounts that are built anew."""
        for pod in self.device_claims.stale():
            self.set_pod(pod)
        self.freed += self.device_claims.refresh(self.freed)
        if self.ledger.stale:
            held = (m for m in self.pods.values() if m.ours and m.holds)
            self.ledger.rebuild(held, self.accounts.count)

    # Bookkeeping.

    def _open_for(self, member: Member) -> None:
        """Give single devices the columns that a pod goes by."""
        if self.table.open_for(member.shape):
            for node in self.table.rows:
                self.occupancy.hold(node)

    def _replace(self, old: Member | None, new: Member | None) -> None:
        if new is not None and new.ours and (old is None or old.uid != new.uid):
            self.past.note(new.shape, new.created)
        if old is not None and new is not None and same_room(old, new):
            self.occupancy.renew(new)
            self.ledger.renew(old, new)
        else:
            if old is not None:
                self.freed += old.holds
                self._leave(old)
            if new is not None:
                self._enter(new)
        if old is not None:
            del self.pods[old.key]
            self.leaving.pop(old.key, None)
            self._quit_unit(old, new)
        if new is not None:
            self.pods[new.key] = new
            if new.terminating and new.holds:
                self.leaving[new.key] = new
            self._join_unit(new)

    def _enter(self, member: Member) -> None:
        if member.holds:
            self.accounts.count(member)
            self.occupancy.enter(member)

    def _leave(self, member: Member) -> None:
        if member.holds:
            self.ledger.leave(member)
            self.occupancy.leave(member)

    def _join_unit(self, member: Member) -> None:
        key = member.workload
        bound = member.over or (member.holds and not member.assumed)
        if key is None or (key.kind == "Pod" and bound):
            return  # a pod of its own is done with once it is bound
        workload = self._workload(key)
        workload.members[member.name] = member
        workload.changed()
        self.touched.add(key)

    def _workload(self, key: WorkloadKey) -> Workload:
        workload = self.workloads.get(key)
        if workload is None:
            workload = self.workloads[key] = Workload(key)
        return workload

    def _quit_unit(self, member: Member, successor: Member | None) -> None:
        workload = self.workload_of(member)
        if workload is None:
            return
        workload.members.pop(member.name, None)
        if successor is None or successor.workload != workload.key:
            workload.changed()
        self._drop_if_empty(workload)
        self.touched.add(workload.key)

    def _drop_if_empty(self, workload: Workload) -> None:
        if not workload.members and workload.gang is None:
            self.workloads.pop(workload.key, None)

    def _touch_gangs(self, concerned: Callable[[GangSpec], bool]) -> None:
        for key, workload in self.workloads.items():
            if workload.gang is not None and concerned(workload.gang.spec):
                workload.changed()
                self.touched.add(key)

    def _touch(self, member: Member) -> None:
        workload = self.workload_of(member)
        if workload is not None:
            workload.changed()
            self.touched.add(workload.key)
