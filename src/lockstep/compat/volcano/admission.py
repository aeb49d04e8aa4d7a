"""What Volcano's webhooks deny, as far as one object shows it.

Facts: volcano-sh/volcano:pkg/webhooks/admission/jobs/validate and .../queues/validate.
"""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Final

from lockstep.api.core import AnyObject
from lockstep.api.quantity import parse
from lockstep.compat.admission import different, dns_label
from lockstep.compat.tiers import NetworkTopology
from lockstep.compat.translation import Refused
from lockstep.compat.volcano.objects import JobSpec, Policy

ANY: Final = "*"
ROOT: Final = "root"
_HIERARCHY: Final = "volcano.sh/hierarchy"
_WEIGHTS: Final = "volcano.sh/hierarchy-weights"


def check_job(obj: AnyObject, spec: JobSpec, names: Sequence[str]) -> None:
    """Refuse the Job *obj*, whose tasks have these *names*, where Volcano would deny it.

    Raises:
        Refused: for the first field that breaks a rule.
    """
    different(((f"spec.tasks[{i}].name", name) for i, name in enumerate(names)), "a task's name")
    for i, (name, task) in enumerate(zip(names, spec.tasks, strict=True)):
        dns_label(f"{obj.metadata.name}-{name}-{i}", f"spec.tasks[{i}].name", of="a pod")
        _policies(task.policies, f"spec.tasks[{i}].policies")
    _policies(spec.policies, "spec.policies")
    if spec.queue == ROOT:
        raise Refused("spec.queue", ROOT, "must be a queue below it: jobs go to leaf queues")
    before = {
        name: set(task.depends_on.name if task.depends_on else ())
        for name, task in zip(names, spec.tasks, strict=True)
    }
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        ring = " -> ".join(error.args[1])
        raise Refused(
            "spec.tasks[*].dependsOn", ring, "tasks must not wait for each other"
        ) from None


def check_topology(wish: NetworkTopology | None, at: str) -> None:
    """Refuse a tier that is named twice.

    Raises:
        Refused: when the wish at the field *at* has a number and a name.
    """
    if wish is not None and wish.highest_tier_allowed is not None and wish.highest_tier_name:
        allowed = "cannot stand beside highestTierAllowed; leave one of them out"
        raise Refused(f"{at}.highestTierName", wish.highest_tier_name, allowed)


def _policies(policies: Sequence[Policy], at: str) -> None:
    """Refuse policies of one list that are about the same end."""
    events: list[tuple[str, object]] = []
    codes: list[tuple[str, object]] = []
    for i, policy in enumerate(policies):
        field = f"{at}[{i}]"
        named = list(dict.fromkeys([*policy.events, *([policy.event] if policy.event else [])]))
        if not named and policy.exit_code is None:
            raise Refused(f"{field}.event", None, "an event or an exitCode is needed")
        if policy.exit_code == 0:
            raise Refused(f"{field}.exitCode", 0, "must not be 0, which is no failure")
        events += [(f"{field}.event", event) for event in named]
        if policy.exit_code is not None:
            codes.append((f"{field}.exitCode", policy.exit_code))
    different(events, "an event of policies side by side")
    different(codes, "an exit code of policies side by side")
    if len(events) > 1:
        for field, event in events:
            if event == ANY:
                raise Refused(field, ANY, "must be the only event: it stands for all")


Amounts = dict[str, object]


def check_queue(
    obj: AnyObject, deserved: Amounts, capability: Amounts, guaranteed: Amounts
) -> None:
    """Refuse the Queue *obj* where Volcano would deny it.

    Raises:
        Refused: for the first field that breaks a rule.
    """
    if obj.spec.get("parent") == obj.metadata.name:
        raise Refused("spec.parent", obj.metadata.name, "must be another queue")
    for field, amounts in (("deserved", deserved), ("capability", capability)):
        for name, amount in amounts.items():
            if parse(str(amount)) < 0:
                raise Refused(f"spec.{field}[{name}]", amount, "must not be negative")
    for name, amount in deserved.items():
        if name in capability and parse(str(amount)) > parse(str(capability[name])):
            allowed = f"must be at most the capability, {capability[name]}"
            raise Refused(f"spec.deserved[{name}]", amount, allowed)
    for name, amount in guaranteed.items():
        if parse(str(amount)) > parse(str(deserved.get(name, 0))):
            allowed = f"must be at most deserved, {deserved.get(name, 'which does not name it')}"
            raise Refused(f"spec.guarantee.resource[{name}]", amount, allowed)
    _hierarchy(obj.metadata.annotations)


def _hierarchy(notes: dict[str, str]) -> None:
    path, weights = notes.get(_HIERARCHY, ""), notes.get(_WEIGHTS, "")
    if not path and not weights:
        return
    if path.count("/") != weights.count("/"):
        allowed = f"must have as many parts as {_WEIGHTS}, {weights!r}"
        raise Refused(f"metadata.annotations[{_HIERARCHY}]", path, allowed)
    for weight in weights.split("/"):
        try:
            positive = float(weight) > 0
        except ValueError:
            positive = False
        if not positive:
            raise Refused(f"metadata.annotations[{_WEIGHTS}]", weights, "must be numbers above 0")
