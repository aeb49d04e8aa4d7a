"""Who may use a queue. Pure: the API server, the scheduler and commands ask it alike.

*Example:* ``red`` bears the label ``lockstep.dev/team: red`` and says nothing of its own. Workloads
of namespaces with that label may use it and the queues below it. One of namespace ``blue`` may not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lockstep.api.names import GROUP, TEAM_LABEL
from lockstep.api.queue import AllowedUse, Queue
from lockstep.api.selectors import SelectorError, from_selector


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may use a queue: a team, and who is named."""

    queue: str
    """The queue that says so: the one that is asked for, or one above it."""
    team: str
    allowed: AllowedUse

    def lets(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Tell whether workloads of a namespace with these labels may use the queue."""
        if self.team and labels.get(TEAM_LABEL) == self.team:
            return True
        if namespace in self.allowed.namespaces:
            return True
        try:
            return from_selector(self.allowed.namespace_selector).matches(labels)
        except SelectorError:
            return False

    def names(self, user: str, groups: Sequence[str]) -> bool:
        """Tell whether a user may use the queue from any namespace."""
        return user in self.allowed.users or not set(groups).isdisjoint(self.allowed.groups)


def rule_of(name: str, queues: Mapping[str, Queue]) -> Rule | None:
    """Return who may use a queue; None where every workload may.

    The nearest of the queue and those above it that belongs to a team or names users decides.
    """
    seen: set[str] = set()
    while name in queues and name not in seen:
        queue = queues[name]
        team = queue.metadata.labels.get(TEAM_LABEL, "")
        if team or queue.spec.allowed is not None:
            return Rule(name, team, queue.spec.allowed or AllowedUse())
        seen.add(name)
        name = queue.spec.parent or ""
    return None


def refusal(queue: str, namespace: str, user: str = "") -> str:
    """Return why a workload may not use a queue; it tells nothing of those who may."""
    who = f"user {user} in namespace {namespace}" if user else f"namespace {namespace}"
    return f"{who} may not use queue {queue}"


def remedy(queue: str, rule: Rule) -> str:
    """Return who can change it, and how."""
    kind, where = ("teams", f"Team {rule.team}") if rule.team else ("queues", f"Queue {rule.queue}")
    field = "spec.queue.allowed" if rule.team else "spec.allowed"
    return (
        f"another queue (lockstep queue list), or an entry in {field} of {where}, "
        f"made by an administrator (who may update {kind}.{GROUP})"
    )
