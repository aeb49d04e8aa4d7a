"""Device claims in the cluster's state: what nodes offer of them, and what placements decide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lockstep.api.claims import DeviceClass, ResourceClaim, ResourceSlice
from lockstep.api.core import Pod, PodSpec
from lockstep.scheduler.core.model.decisions import Assignment, Placement
from lockstep.scheduler.core.model.node_info import NodeInfo
from lockstep.scheduler.core.model.node_table import NodeTable
from lockstep.scheduler.core.model.workload import PodKey
from lockstep.scheduler.core.resources.device_allocation import Grant
from lockstep.scheduler.core.state.device_claims import DeviceClaims
from lockstep.scheduler.core.state.device_use import Written
from lockstep.scheduler.core.util.bitmask import indices_of, mask_of


class ClaimBook:
    """What ties claims to pods and to the rows of the node table."""

    def __init__(self, table: NodeTable) -> None:
        self.claims = DeviceClaims()
        self._table = table
        self._nodes: dict[str, NodeInfo] = {}
        """The nodes as they say themselves, without what they offer to claims."""
        self._pods: dict[PodKey, Pod] = {}
        """The pods with claims."""
        self._users: dict[PodKey, set[PodKey]] = {}
        """By claim, the pods that name it."""
        self._stale: set[PodKey] = set()
        self._mark = 0
        self._freed = -1
        self._all_nodes = True

    # What there is.

    def set_slice(self, one: ResourceSlice) -> None:
        """Take in a slice.

        Raises:
            ValueError: when it cannot be read; it counts as not there.
        """
        try:
            self.claims.devices.set(one)
        finally:
            self._everything()

    def remove_slice(self, name: str) -> None:
        """Forget a slice."""
        self.claims.devices.remove(name)
        self._everything()

    def set_class(self, one: DeviceClass) -> None:
        """Take in a class."""
        self.claims.set_class(one)
        self._everything()

    def remove_class(self, name: str) -> None:
        """Forget a class."""
        self.claims.remove_class(name)
        self._everything()

    def _everything(self) -> None:
        self.claims.devices_changed()
        self._stale |= self._pods.keys()
        self._all_nodes = True

    def set_claim(self, claim: ResourceClaim) -> None:
        """Take in a claim."""
        self.claims.set_claim(claim)
        key = claim.metadata.namespace, claim.metadata.name
        self._all_nodes |= self.claims.counts_devices
        users = {one.uid for one in claim.status.reserved_for}
        for pod in self._users.get(key, ()):
            self._stale.add(pod)
            if self._pods[pod].metadata.uid in users and all(
                self._shows(one, self._pods[pod]) for one in self.claims.decided(pod)
            ):
                self.claims.settle(pod)

    def _shows(self, one: Written, pod: Pod) -> bool:
        claim = self.claims.use.claims.get((one.claim.metadata.namespace, one.claim.metadata.name))
        return claim is not None and any(
            user.uid == pod.metadata.uid for user in claim.status.reserved_for
        )

    def remove_claim(self, namespace: str, name: str) -> None:
        """Forget a claim."""
        self.claims.remove_claim(namespace, name)
        self._all_nodes |= self.claims.counts_devices
        self._stale |= self._users.get((namespace, name), set())

    # Pods.

    def spec(self, pod: Pod, spec: PodSpec) -> PodSpec:
        """Return a pod's *spec* with what its claims make it ask for."""
        if not spec.resource_claims:
            return spec
        self._note(pod)
        return self.claims.wanted(pod, spec)

    def grant(self, pod: Pod, noted: Grant) -> Grant:
        """Return the devices that a pod holds: those that were *noted* on it, and its claims'."""
        cards = self.claims.cards(pod) if pod.spec.resource_claims else 0
        return noted._replace(gpus=noted.gpus | cards) if cards else noted

    def _note(self, pod: Pod) -> None:
        key = pod.metadata.namespace, pod.metadata.name
        if key in self._pods:
            self._unlink(key)
        self._pods[key] = pod
        for name in _claim_names(pod):
            self._users.setdefault((pod.metadata.namespace, name), set()).add(key)

    def _unlink(self, key: PodKey) -> None:
        pod = self._pods.pop(key)
        for name in _claim_names(pod):
            users = self._users.get((key[0], name), set())
            users.discard(key)
            if not users:
                self._users.pop((key[0], name), None)

    def forget(self, key: PodKey) -> None:
        """Forget a pod."""
        if key in self._pods:
            self._unlink(key)
            self._stale.discard(key)
            self.claims.settle(key)

    def release(self, key: PodKey) -> None:
        """Take back what was decided for a pod that does not get its node."""
        if self.claims.decided(key):
            self.claims.settle(key)
            self._all_nodes = True

    def stale(self) -> list[Pod]:
        """Return the pods whose claims changed, once."""
        found = [self._pods[key] for key in self._stale if key in self._pods]
        self._stale.clear()
        return found

    # Nodes.

    def facts(self, node: NodeInfo) -> NodeInfo:
        """Return a node with what it offers to claims."""
        self._nodes[node.name] = node
        self.claims.devices.relabelled(node.name)
        return self._offering(node)

    def remove_node(self, name: str) -> None:
        """Forget a node."""
        self._nodes.pop(name, None)
        self.claims.devices.relabelled(name)

    def refresh(self, freed: int) -> bool:
        """Bring up to date what nodes offer; return whether one of them offers more than before.

        *freed* moves when something was freed: what was refused is then offered again.
        """
        if not self.claims.wishes:
            return False
        if freed != self._freed:
            self._freed = freed
            self.claims.retry()
        more = False
        for name in self._changed():
            facts = self._offering(self._nodes[name])
            row = self._table.rows[name]
            before = self._table.facts[row]
            had = before.allocatable if before is not None else {}
            if self._table.put(facts):
                more |= any(n > had.get(k, 0) for k, n in facts.allocatable.items())
        self._mark = self._table.journal.mark
        return more

    def withdraw(self, freed: int) -> None:
        """Offer no more what was refused, until *freed* moves on."""
        self._freed = freed
        self.refresh(freed)

    def _changed(self) -> Iterable[str]:
        rows = self._table.journal.since(self._mark)
        if self._all_nodes or rows is None:
            self._all_nodes = False
            return [name for name in self._nodes if name in self._table.rows]
        facts = (self._table.facts[row] for row in set(rows))
        return [one.name for one in facts if one is not None and one.name in self._nodes]

    def _offering(self, node: NodeInfo) -> NodeInfo:
        if not self.claims.wishes:
            return node
        offers = self.claims.offers(node.name, node.labels, self._taken(node.name, node))
        row = self._table.rows.get(node.name)
        for name in offers if row is not None else ():
            column = self._table.columns.id(name)
            if column < len(self._table.used):  # those decided on, which still count as asking
                offers[name] += int(self._table.used[column, row])
        return replace(node, allocatable={**node.allocatable, **offers})

    def _taken(self, name: str, node: NodeInfo) -> int:
        row = self._table.rows.get(name)
        free = node.layout.healthy if row is None else self._table.free_devices(row)
        return node.layout.present & ~free

    # Decisions.

    def fulfil(self, placement: Placement) -> Placement | None:
        """Return a placement with the devices that the claims of its pods get.

        None where a node has too few of them after all; nothing is decided then.
        """
        if not any(one.member.key in self._pods for one in placement.assignments):
            return placement
        dealt: dict[str, int] = {}
        for one in placement.assignments:
            if one.member.key not in self._pods:
                dealt[one.spot.node] = dealt.get(one.spot.node, 0) | one.spot.gpus
        found: list[Assignment] = []
        for one in placement.assignments:
            if one.member.key in self._pods:
                decided = self._decide(one, dealt)
                if decided is None:
                    for earlier in found:
                        self.release(earlier.member.key)
                    self._all_nodes = True
                    return None
                found.append(decided)
            else:
                found.append(one)
        return replace(placement, assignments=tuple(found))

    def _decide(self, one: Assignment, dealt: dict[str, int]) -> Assignment | None:
        node = one.spot.node
        facts = self._nodes[node]
        taken = self._taken(node, facts) | dealt.get(node, 0)
        key, liked = one.member.key, one.spot.gpus
        decided = self.claims.decide(self._pods[key], node, facts.labels, taken, liked)
        if decided is None:
            return None
        written, cards = decided
        own = liked.bit_count() - cards.bit_count()
        rest = mask_of(indices_of(liked & ~cards & ~taken)[: max(0, own)])
        mask = cards | rest
        dealt[node] = dealt.get(node, 0) | mask
        self.claims.assume(key, written)
        grant = one.spot.grant._replace(gpus=mask)
        return Assignment(one.member, replace(one.spot, grant=grant))


def _claim_names(pod: Pod) -> list[str]:
    made = [one.resource_claim_name for one in pod.status.resource_claim_statuses]
    named = [one.resource_claim_name for one in pod.spec.resource_claims]
    return [one for one in (*made, *named) if one]
