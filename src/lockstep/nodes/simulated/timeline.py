"""What happens to pods on simulated nodes, and when. Pure: the clock is handed in.

The timeline takes what the server says about pods and nodes, and gives out what is due. It is told
how each action went, and repeats what failed. It knows nothing that the server does not: after a
restart it picks every pod up where its status says that it is.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum

from lockstep.api import names, timestamp
from lockstep.api.backoff import Backoff
from lockstep.api.core import Pod
from lockstep.nodes.simulated.wishes import WishError, end_of, read

RETRIES = Backoff(initial=0.2, cap=20.0, jitter=0.5)
_ENDED = ("Succeeded", "Failed")


class Act(Enum):
    """What is done to a pod."""

    START = "start"
    END = "end"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Action:
    """Something that is due for *pod*, as it is known now."""

    act: Act
    pod: Pod
    exit_code: int = 0
    why: str = ""
    """For an end that was asked for: what asked."""
    started_at: float = 0.0


@dataclass(frozen=True, slots=True)
class _Plan:
    due: float
    act: Act
    exit_code: int = 0
    why: str = ""


@dataclass(slots=True)
class _Life:
    """One incarnation of a pod."""

    pod: Pod
    seed: str
    bound_at: float
    started_at: float | None = None
    ended: bool = False
    busy: bool = False
    """An action on it is under way."""
    failures: int = 0
    not_before: float = 0.0
    entry: int = 0
    """The number of its valid entry in the heap, 0 for none."""
    plan: _Plan | None = field(default=None)


class Timeline:
    """The lives of the pods on the nodes *nodes*."""

    def __init__(self, nodes: Collection[str], *, seed: int = 0) -> None:
        self._nodes = nodes
        self._seed = seed
        self._rng = random.Random(seed)  # noqa: S311 - jitter, not a secret
        self._lives: dict[str, _Life] = {}
        self._by_node: dict[str, set[str]] = {}
        self._born: dict[tuple[str, str], int] = {}
        """How many pods of a name there were before, for names whose fate is left to chance."""
        self._dead: set[str] = set()
        self._heap: list[tuple[float, int, str]] = []
        self._entries = 0

    def __len__(self) -> int:
        return len(self._lives)

    def pod_seen(self, pod: Pod, now: float) -> None:
        """Take a pod's present state; pods of other nodes are passed over."""
        if pod.spec.node_name not in self._nodes:
            return
        uid = pod.metadata.uid
        life = self._lives.get(uid)
        if life is None:
            life = self._lives[uid] = _Life(pod, self._fate(pod), now)
            self._by_node.setdefault(pod.spec.node_name, set()).add(uid)
        went_back = life.pod.status.phase in _ENDED and pod.status.phase not in _ENDED
        life.pod = pod
        if pod.status.phase in _ENDED:
            life.ended = True
        elif went_back:
            # The news of its start was late and has taken the place of its end: it ends again.
            life.ended = False
        elif pod.status.phase == "Running" and life.started_at is None:
            life.started_at = _start_of(pod, now)
        self._schedule(uid, life, now)

    def pod_gone(self, pod: Pod) -> None:
        """Take a pod's end."""
        uid = pod.metadata.uid
        if self._lives.pop(uid, None) is not None:
            mates = self._by_node[pod.spec.node_name]
            mates.discard(uid)
            if not mates:
                del self._by_node[pod.spec.node_name]

    def node_died(self, node: str) -> None:
        """Stop everything on *node*: what is due there waits."""
        self._dead.add(node)

    def node_revived(self, node: str, now: float) -> None:
        """Go on with everything on *node*; what fell due meanwhile is due now."""
        self._dead.discard(node)
        for uid in self._by_node.get(node, ()):
            self._schedule(uid, self._lives[uid], now)

    def is_dead(self, node: str) -> bool:
        """Return whether *node* is dead."""
        return node in self._dead

    def due(self, now: float, limit: int = 1 << 30) -> list[Action]:
        """Take at most *limit* of the actions that are due; ``done`` must follow for each."""
        actions: list[Action] = []
        while self._heap and self._heap[0][0] <= now and len(actions) < limit:
            _, entry, uid = heapq.heappop(self._heap)
            life = self._lives.get(uid)
            if life is None or life.entry != entry or life.plan is None:
                continue
            life.entry = 0
            if life.pod.spec.node_name in self._dead:
                continue
            plan, life.plan, life.busy = life.plan, None, True
            actions.append(
                Action(plan.act, life.pod, plan.exit_code, plan.why, life.started_at or now)
            )
        return actions

    def next_due(self) -> float | None:
        """Return when something may be due next."""
        return self._heap[0][0] if self._heap else None

    def done(self, action: Action, now: float, *, worked: bool) -> None:
        """Note how an action went; one that did not work comes again after a wait."""
        life = self._lives.get(action.pod.metadata.uid)
        if life is None:
            return
        life.busy = False
        if not worked:
            life.failures += 1
            life.not_before = now + RETRIES.delay(life.failures, self._rng)
        else:
            life.failures, life.not_before = 0, 0.0
            if action.act is Act.START:
                life.started_at = now
            elif action.act is Act.END:
                life.ended = True
            else:
                # Nothing is left to do but to see it go, unless the server says otherwise.
                life.not_before = now + RETRIES.cap
        self._schedule(action.pod.metadata.uid, life, now)

    def _schedule(self, uid: str, life: _Life, now: float) -> None:
        """Make the plan for a life valid and put it into the heap, unless it is there already."""
        if life.busy or life.pod.spec.node_name in self._dead:
            return
        plan = self._plan(life, now)
        if plan == life.plan and life.entry:
            return
        life.plan, life.entry = plan, 0
        if plan is not None:
            self._entries += 1
            life.entry = self._entries
            heapq.heappush(self._heap, (max(plan.due, life.not_before), life.entry, uid))

    def _plan(self, life: _Life, now: float) -> _Plan | None:
        pod = life.pod
        if pod.metadata.deletion_timestamp is not None:
            return _Plan(0.0, Act.DELETE)
        if life.ended:
            return None
        try:
            wishes = read(pod.metadata.annotations)
        except WishError as error:
            return _Plan(0.0, Act.END, 1, str(error))
        if life.started_at is None:
            return _Plan(life.bound_at + wishes.start_delay, Act.START)
        if wishes.fail_now is not None:
            return _Plan(0.0, Act.END, wishes.fail_now, "asked to fail")
        end = end_of(wishes, life.seed)
        if end is None:
            return None
        why = "failed by chance, as its fail rate asks for" if end.exit_code else ""
        return _Plan(life.started_at + end.after, Act.END, end.exit_code, why)

    def _fate(self, pod: Pod) -> str:
        """Return the seed of what chance does to a pod: the same in every run of a simulation."""
        key = (pod.metadata.namespace, pod.metadata.name)
        if names.FAIL_RATE_ANNOTATION not in pod.metadata.annotations:
            return f"{self._seed}/{key[0]}/{key[1]}"
        born = self._born[key] = self._born.get(key, -1) + 1
        return f"{self._seed}/{key[0]}/{key[1]}/{born}"


def _start_of(pod: Pod, now: float) -> float:
    at = timestamp.read(pod.status.start_time)
    return now if at is None else at
