"""The accounts of all queues, kept by every pod that gets or loses a node.

The accounts stand in a tree. A queue whose parent is missing, or that would be part of itself, is
a top queue and says so. What names a queue that does not exist has an account without limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from lockstep.api.names import GPU, PODS, TEAM_LABEL
from lockstep.api.queue import Queue
from lockstep.scheduler.core.model.pod_shape import PodShape
from lockstep.scheduler.core.model.workload import Member, WorkloadKey
from lockstep.scheduler.core.quota.account import ITSELF, Account, Amounts, CardKind, OverQuota
from lockstep.scheduler.core.quota.fair_memory import FairMemory
from lockstep.scheduler.core.quota.guarantee import MODEL_PREFIX, bears_on, holds
from lockstep.scheduler.core.quota.usage_history import later, recalled
from lockstep.scheduler.core.resources.columns import is_port


class Ledger:
    """The accounts. Nothing is counted, and nothing costs, until there is a reason to count."""

    def __init__(self) -> None:
        self.specs: dict[str, Queue] = {}
        self.problems: dict[str, str] = {}
        """By queue: what is odd about its place in the tree."""
        self.accounts: dict[str, Account] = {}
        self.top = Account("")
        self.active = False
        """Whether pods are counted: there are queues, or priorities."""
        self.stale = False
        """Whether the accounts must be built anew before they are read."""
        self.by_model = False
        """Whether any queue tells GPU models apart."""
        self.version = 0
        """Moves with every change of what queues there are and what they say."""
        self.promises: dict[WorkloadKey, tuple[str, Amounts]] = {}
        """By workload: its queue, and what of it is spoken for because places are made free for
        it."""
        self.reserved: dict[str, Amounts] = {}
        """By account, what of its ceilings is kept for those to whom a time is promised."""
        self.moved: set[tuple[str, WorkloadKey]] = set()
        """By account, workloads of which pods have come, gone or changed; its reader
        clears it."""
        self.built = 0
        """Moves whenever the accounts have been built anew."""
        self.aged: float | None = None
        """The time for which the averages of past use hold."""
        self.fair = FairMemory()
        self._recalled: set[str] = set()
        """Queues whose past use is not to be read from what they show any more."""
        self.keeps = False
        """Whether some queue keeps for itself what it does not use."""
        self._charges: dict[int, Amounts] = {}

    def set(self, queue: Queue) -> bool:
        """Take in a queue; return whether that changes what any workload may use.

        Raises:
            ValueError: when an amount is not a quantity.
        """
        old = self.specs.get(queue.metadata.name)
        team = queue.metadata.labels.get(TEAM_LABEL)
        if (
            old is not None
            and old.spec == queue.spec
            and old.metadata.labels.get(TEAM_LABEL) == team
        ):
            self.specs[queue.metadata.name] = queue
            return False
        Account.of(queue.metadata.name, queue.spec)
        self.specs[queue.metadata.name] = queue
        self.active = self.stale = True
        self.version += 1
        return True

    def remove(self, name: str) -> bool:
        """Forget a queue; return whether it was known."""
        known = self.specs.pop(name, None) is not None
        self._recalled.discard(name)
        self.stale |= known
        self.version += known
        return known

    def activate(self) -> None:
        """Count from now on."""
        if not self.active:
            self.active = self.stale = True

    def rebuild(self, members: Iterable[Member], count: Callable[[Member], None]) -> None:
        """Build all accounts from the queues, and count *members* again."""
        before = self.accounts
        self._build()
        self.moved.clear()
        self.built += 1
        for name, account in self.accounts.items():
            account.succeed(before.get(name))
        for member in members:
            member.account = None
            count(member)
        self.fair.rebuilt(self.accounts.values())
        self.stale = False

    def _build(self) -> None:
        self.top, self.problems = Account(""), {}
        accounts = {name: Account.of(name, queue.spec) for name, queue in self.specs.items()}
        for name in sorted(accounts):
            account = accounts[name]
            account.parent = accounts.get(self._parent(name), self.top)
            account.parent.parts.append(account)
        for name in [name for name, account in accounts.items() if account.parts]:
            inner = accounts[f"{name}{ITSELF}"] = Account(f"{name}{ITSELF}", parent=accounts[name])
            accounts[name].parts.append(inner)
        self.keeps = any(account.kept for account in accounts.values())
        named = {r for a in accounts.values() for r in (*a.guaranteed, *a.ceilings)}
        self.by_model = any(name.startswith(MODEL_PREFIX) for name in named)
        self.accounts = accounts
        for account in accounts.values():
            account.chain = tuple(account.outward(self.top))
        for account in (self.top, *accounts.values()):
            managed = account.guaranteed_below()
            for part in account.parts:
                part.managed = managed
        self.begin()

    def begin(self) -> None:
        """Count nothing but what queues keep for themselves."""
        for account in (*self.accounts.values(), self.top):
            account.used = {}
            account.claimed = {} if self.keeps else account.used
        if self.keeps:
            self.top.claim_kept()

    def _parent(self, name: str) -> str:
        """Return the parent that a queue really has; empty for a top queue."""
        parent = self.specs[name].spec.parent
        if not parent:
            return ""
        if parent not in self.specs:
            self.problems[name] = f"its parent {parent} does not exist; it is taken as a top queue"
            return ""
        seen, above = {name}, parent
        while above in self.specs and above not in seen:
            seen.add(above)
            above = self.specs[above].spec.parent or ""
        if above == name:
            problem = f"it is part of itself by way of {parent}; it is taken as a top queue"
            self.problems[name] = problem
            return ""
        return parent

    def age(self, now: float) -> None:
        """Let time pass where past use counts: the average moves towards what was used in it."""
        passed = now - self.aged if self.aged is not None else 0.0
        self.aged = now
        if passed > 0:
            self.fair.age(passed)
        for name, account in self.accounts.items():
            if account.half_life is None:
                continue
            if name not in self._recalled:
                self._recalled.add(name)
                account.average = recalled(self.specs[name].status, account, now)
            elif passed > 0:
                account.average = later(account, passed)

    def rest(self, contending: Iterable[str], capacity: Mapping[str, int]) -> None:
        """Take note of what is used until anything happens: past use is counted by that.

        *contending* are the queues in which something waits meanwhile.
        """
        for account in self.accounts.values():
            account.rest()
        self.fair.rest(map(self.account, contending), capacity)

    # Pods.

    def account(self, queue: str) -> Account:
        """Return the account of what is in a queue."""
        found = self.accounts.get(f"{queue}{ITSELF}") or self.accounts.get(queue)
        if found is None:
            found = self.accounts[queue] = Account(queue, parent=self.top)
            found.chain, found.managed = (found,), self.top.guaranteed_below()
            found.claimed = {} if self.keeps else found.used
            self.top.parts.append(found)
        return found

    def charges(self, shape: PodShape) -> Amounts:
        """Return the least that one pod of a shape counts for, wherever it goes."""
        found = self._charges.get(shape.id)
        if found is None:
            found = self._charges[shape.id] = {
                name: value * 1000 if name == GPU else value
                for name, value in shape.request.items()
                if name != PODS and not is_port(name)
            }
            if shape.share is not None:
                found[GPU] = found.get(GPU, 0) + shape.share.cards * shape.share.compute * 10
        return found

    def charged(self, shape: PodShape, card: CardKind) -> Amounts:
        """Return what one pod of a shape counts for on a node with such GPUs.

        A share counts by its compute or by its memory, whichever is the larger part of the card.
        """
        charges = self.charges(shape)
        share = shape.share
        if share is not None and card.memory:
            part = max(share.compute * 10, -(-share.memory * 1000 // card.memory))
            charges = {**charges, GPU: share.cards * min(part, 1000)}
        if self.by_model and card.model and GPU in charges:
            return {**charges, f"{MODEL_PREFIX}{card.model}": charges[GPU]}
        return charges

    def enter(self, member: Member, queue: str, card: CardKind) -> Account | None:
        """Count a pod that has got a node; return its account where its workload is new there.

        The account that counts it says then how important the workload is.
        """
        account = self.account(queue)
        charged = self.charged(member.shape, card)
        key = member.owner
        new = key not in account.holding
        account.holding.setdefault(key, {})[member.key] = member
        self.moved.add((account.name, key))
        member.account, member.charged = account.name, charged
        self.add(account, charged, 1)
        return account if new else None

    def rank(self, account: Account, member: Member, priority: int) -> None:
        """State how important the workload of a pod just counted is."""
        key = member.owner
        account.priorities[key] = priority
        account.standing[priority] += 1
        self.fair.there += 1

    def leave(self, member: Member) -> None:
        """Count a pod no more."""
        if member.account is None:
            return
        account = self.counted_in(member)
        key = member.owner
        self.moved.add((account.name, key))
        there = account.holding[key]
        del there[member.key]
        if not there:
            del account.holding[key]
            account.standing[account.priorities.pop(key)] -= 1
            self.fair.there -= 1
            self.fair.end()
        self.add(account, member.charged, -1)
        member.account = None

    def renew(self, old: Member, new: Member) -> None:
        """Let a newer view of a pod stand for the older one."""
        if old.account is not None:
            new.account, new.charged, old.account = old.account, old.charged, None
            key = new.owner
            self.counted_in(new).holding[key][new.key] = new
            self.moved.add((new.account, key))

    def counted_in(self, member: Member) -> Account:
        """Return the account of a pod that is counted.

        Raises:
            ValueError: when it is not.
        """
        if member.account is None:
            raise ValueError(f"{member.namespace}/{member.name} is counted in no queue")
        return self.accounts[member.account]

    def add(self, account: Account, charged: Mapping[str, int], times: int) -> None:
        """Count amounts, so many times, in an account and those around it."""
        for one in account.chain:
            used = one.used
            for name, amount in charged.items():
                used[name] = used.get(name, 0) + amount * times
        if self.keeps:
            for name, amount in charged.items():
                self._claim(account, name, amount * times)

    def _claim(self, account: Account, resource: str, change: int) -> None:
        one: Account | None = account
        while one is not None and change:
            had = one.claimed.get(resource, 0)
            one.claimed[resource] = had + change
            kept = one.kept.get(resource, 0)
            change = max(had + change, kept) - max(had, kept)
            one = one.parent

    def counted(self, account: Account) -> Iterator[Member]:
        """Yield the pods that are counted in a queue and its parts, or in all of them (top)."""
        for one in self.accounts.values():
            if account is self.top or account in one.chain:
                for members in one.holding.values():
                    yield from members.values()

    # Questions.

    def lacking(
        self, account: Account, asked: Mapping[str, int], capacity: Mapping[str, int]
    ) -> OverQuota | None:
        """Return the innermost ceiling that *asked* would pass on top of what is used."""
        return next(self.passed(account, asked, capacity), None)

    def passed(
        self, account: Account, asked: Mapping[str, int], capacity: Mapping[str, int]
    ) -> Iterator[OverQuota]:
        """Yield the ceilings that *asked* would pass, and what the cluster lacks as queues keep it.

        The inner ones come before the outer, resource by resource.
        """
        for name, amount in asked.items():
            change = amount
            for one in account.chain:
                if not change:
                    break  # what an inner queue keeps anyway is claimed in all around it
                had = one.claimed.get(name, 0) + self._kept_off(one, name)
                ceiling = one.ceilings.get(name)
                if ceiling is not None and had + change > ceiling.amount:
                    yield OverQuota(one, name, ceiling.field, ceiling.amount, had, change)
                if self.keeps:
                    kept = one.kept.get(name, 0)
                    change = max(had + change, kept) - max(had, kept)
            had = self.top.claimed.get(name, 0) + self.promised(self.top, name)
            if self.keeps and change and had + change > capacity.get(name, 0):
                most = capacity.get(name, 0)
                yield OverQuota(self.top, name, "lending", most, had, change)

    def room(self, account: Account, resource: str, capacity: Mapping[str, int]) -> int | None:
        """Return the most of a resource that passes no ceiling; None where nothing limits it."""
        most: int | None = None
        kept = 0
        for one in account.chain:
            had = one.claimed.get(resource, 0) + self._kept_off(one, resource)
            ceiling = one.ceilings.get(resource)
            if ceiling is not None:
                here = kept + max(0, ceiling.amount - had)
                most = here if most is None else min(most, here)
            kept += max(0, one.kept.get(resource, 0) - had)
        if not self.keeps:
            return most
        had = self.top.claimed.get(resource, 0) + self.promised(self.top, resource)
        here = kept + max(0, capacity.get(resource, 0) - had)
        return here if most is None else min(most, here)

    def claims(self, account: Account, asked: Mapping[str, int], leaf: Account) -> bool:
        """Return whether a queue may claim what is *asked* in a part of it (*leaf*) from its
        siblings: it stays within its guaranteed amounts with it, in all that it or one of them is
        guaranteed. What its parts keep for themselves counts as used.
        """
        contested = account.managed
        if not bears_on(asked, contested):
            return False
        spoken_for = self.spoken_for(account, contested)
        if self.keeps:
            spoken_for = {r: n + account.idle(r) for r, n in spoken_for.items()}
            asked = self.felt(account, asked, leaf)
        return holds(account.guaranteed, spoken_for, asked, contested)

    def felt(self, account: Account, asked: Mapping[str, int], leaf: Account) -> Amounts:
        """Return how much more is used or kept in a queue once what is *asked* is used in a part of
        it: what that part keeps anyway makes no difference.
        """
        found = dict(asked)
        for one in leaf.chain:
            if one is account:
                break
            for name, change in found.items():
                had, kept = one.claimed.get(name, 0), one.kept.get(name, 0)
                found[name] = max(had + change, kept) - max(had, kept)
        return found

    def spoken_for(self, account: Account, resources: Iterable[str]) -> Amounts:
        """Return what is used of some resources in a queue and its parts, or kept for it there."""
        return {r: account.used.get(r, 0) + self.promised(account, r) for r in resources}

    def _kept_off(self, account: Account, resource: str) -> int:
        kept = self.promised(account, resource)
        if self.reserved:
            kept += self.reserved.get(account.name, {}).get(resource, 0)
        return kept

    def promised(self, account: Account, resource: str) -> int:
        """Return how much of a resource is spoken for in a queue and its parts."""
        if not self.promises:
            return 0
        total = 0
        for queue, amounts in self.promises.values():
            if account is self.top or account in self.account(queue).chain:
                total += amounts.get(resource, 0)
        return total
