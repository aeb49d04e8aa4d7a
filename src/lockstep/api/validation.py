"""Rules across the fields of a TrainingJob, beyond what its schema says.

They are checked before a job is sent, and again by its controller; the most important ones are
also CEL rules of the CRD.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.label_syntax import value_problems
from lockstep.api.names import ARRAY_LABEL, SCHEDULER_NAME
from lockstep.api.parallelism import Parallelism
from lockstep.api.quantity import to_int
from lockstep.api.roles import (
    containers,
    gpus,
    launched,
    least,
    most,
    pod_name,
    processes,
    ranked,
    service_name,
    world_size,
)
from lockstep.api.spot import SPOT_SUFFIX, selectable
from lockstep.api.training import Identity, Role, TrainingJob

_DNS_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_HOST_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_HOST_NAME_LENGTH: Final = 63


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an object: where, what was given, and what is allowed instead."""

    field: str
    given: object
    allowed: str

    def __str__(self) -> str:
        given = "" if self.given is None else f": given {self.given!r}"
        return f"{self.field}{given}; {self.allowed}"


def problems(job: TrainingJob) -> list[Problem]:
    """Return what is wrong with *job* across its fields; nothing when it can run."""
    found = [*_name(job), *_queue(job), *_duplicates(job), *_after(job), *_success(job)]
    found += [*_order(job), *_spot(job)]
    for i, role in enumerate(job.spec.roles):
        at = f"spec.roles[{i}]"
        found += [*_sizes(role, at), *_host_names(job, role, at), *_identity(job, role, at)]
        found += [*_template(job, role, at)]
        if role.omit and launched(job):
            # The launchers of a world know their places by the numbers in their names.
            found.append(
                Problem(f"{at}.omit", role.omit, "must be empty: launchers hold the ranks")
            )
    if job.spec.framework in ("mpi", "horovod"):
        found += _mpi(job)
    return found or list(_parallelism(job))


def _name(job: TrainingJob) -> Iterator[Problem]:
    name = job.metadata.name
    if name and not _DNS_LABEL.fullmatch(name):
        yield Problem(
            "metadata.name",
            name,
            "must start with a letter and hold only lower-case letters, digits and '-', because "
            "it is the name of the job's service",
        )


def _queue(job: TrainingJob) -> Iterator[Problem]:
    # The queue is a label of the pods, too.
    if value_problems(job.spec.queue):
        yield Problem(
            "spec.queue",
            job.spec.queue,
            "must have at most 63 letters, digits, '-', '_' and '.', and begin and end with a "
            "letter or digit",
        )


def _duplicates(job: TrainingJob) -> Iterator[Problem]:
    seen: set[str] = set()
    for i, role in enumerate(job.spec.roles):
        if role.name in seen:
            yield Problem(f"spec.roles[{i}].name", role.name, "must differ from the other roles'")
        seen.add(role.name)


def _after(job: TrainingJob) -> Iterator[Problem]:
    for i, name in enumerate(job.spec.after):
        if not _DNS_LABEL.fullmatch(name):
            yield Problem(f"spec.after[{i}]", name, "must be the name of a job")
        elif name in (job.metadata.name, job.metadata.labels.get(ARRAY_LABEL)):
            allowed = "must be another job than this one, or another array than its own"
            yield Problem(f"spec.after[{i}]", name, allowed)


def _success(job: TrainingJob) -> Iterator[Problem]:
    known = [role.name for role in job.spec.roles]
    for name in job.spec.success_policy.roles if job.spec.success_policy else ():
        if name not in known:
            allowed = f"must be roles of the job: {', '.join(known)}"
            yield Problem("spec.successPolicy.roles", name, allowed)


def _order(job: TrainingJob) -> Iterator[Problem]:
    """Yield what is wrong with the order in which roles start, and with rules about failures."""
    before = {role.name: [one.role for one in role.after] for role in job.spec.roles}
    for i, role in enumerate(job.spec.roles):
        for k, one in enumerate(role.after):
            at = f"spec.roles[{i}].after[{k}].role"
            if one.role not in before:
                yield Problem(at, one.role, f"must be a role of the job: {', '.join(before)}")
            elif role.name in _all_before(one.role, before):
                yield Problem(at, one.role, "must not wait for this role in its turn")
        if role.after and launched(job):
            allowed = "must be empty where launchers hold the ranks; set launcher to None"
            yield Problem(f"spec.roles[{i}].after", role.after[0].role, allowed)
    for i, rule in enumerate(job.spec.recovery.rules):
        for name in rule.roles:
            if name not in before:
                at = f"spec.recovery.rules[{i}].roles"
                yield Problem(at, name, f"must be roles of the job: {', '.join(before)}")


def _spot(job: TrainingJob) -> Iterator[Problem]:
    """Yield what is wrong with the use of spot nodes."""
    if job.spec.spot == "Allowed":
        return
    for i, role in enumerate(job.spec.roles):
        at = f"spec.roles[{i}].template.spec.affinity"
        if not selectable(role.template.get("spec")):
            yield Problem(at, None, "must have nodeSelectorTerms with lists of matchExpressions")
    if job.spec.spot != "AboveMin":
        return
    if not any(least(role) < most(role) for role in job.spec.roles):
        allowed = "needs a role with fewer pods in min than in replicas or max; or Allowed, Never"
        yield Problem("spec.spot", job.spec.spot, allowed)
    names = {role.name for role in job.spec.roles}
    for i, role in enumerate(job.spec.roles):
        if role.name + SPOT_SUFFIX in names:
            allowed = f"must not be beside a role {role.name + SPOT_SUFFIX}, the name of its group"
            yield Problem(f"spec.roles[{i}].name", role.name, allowed)
        if job.spec.parallelism.tensor > processes(role):
            allowed = (
                f"must fit a pod of role {role.name} ({processes(role)} processes) with "
                "spec.spot: AboveMin, so that a tensor group is not split between both sorts"
            )
            yield Problem("spec.parallelism.tensor", job.spec.parallelism.tensor, allowed)


def _all_before(role: str, before: dict[str, list[str]]) -> set[str]:
    """Return *role* and all that go before it."""
    found: set[str] = set()
    left = [role]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += before.get(one, [])
    return found


def _sizes(role: Role, at: str) -> Iterator[Problem]:
    if role.min is not None and role.min > role.replicas:
        yield Problem(f"{at}.min", role.min, f"must not exceed replicas ({role.replicas})")
    if role.max is not None and role.max < role.replicas:
        yield Problem(f"{at}.max", role.max, f"must not be less than replicas ({role.replicas})")


def _host_names(job: TrainingJob, role: Role, at: str) -> Iterator[Problem]:
    longest = pod_name(job.metadata.name, role, most(role) - 1)
    if len(longest) > _HOST_NAME_LENGTH:
        yield Problem(
            f"{at}.name",
            role.name,
            f"together with the job's name must be shorter by {len(longest) - _HOST_NAME_LENGTH}: "
            f"the pod's host name {longest!r} may have at most {_HOST_NAME_LENGTH} characters",
        )


def _identity(job: TrainingJob, role: Role, at: str) -> Iterator[Problem]:
    pattern, count = role.identity.name, most(role)
    if pattern == Identity().name:
        return
    samples = {i for i in (0, 1, role.identity.block or 0, count - 1) if i < count}
    names = {pod_name(job.metadata.name, role, index) for index in samples}
    if len(names) < len(samples):
        needs = "needs {index}, or a block, {block} and {member}"
        yield Problem(f"{at}.identity.name", pattern, f"{needs}: there are {count} pods")
    if not all(_HOST_NAME.fullmatch(name) for name in names):
        yield Problem(
            f"{at}.identity.name",
            pattern,
            "must give host names: lower-case letters, digits and '-', and braces around job, "
            "role and index alone",
        )


def _template(job: TrainingJob, role: Role, at: str) -> Iterator[Problem]:
    spec = role.template.get("spec")
    if not isinstance(spec, dict):
        yield Problem(f"{at}.template.spec", spec, "must be the spec of a pod with containers")
        return
    if not containers(role):
        yield Problem(
            f"{at}.template.spec.containers", spec.get("containers"), "must name one container"
        )
        return
    yield from _pod_fields(job, spec, f"{at}.template.spec")
    try:
        gpus(role)
    except ValueError as error:
        yield Problem(f"{at}.template.spec.containers[0].resources", None, str(error))


def _pod_fields(job: TrainingJob, spec: dict[str, Any], at: str) -> Iterator[Problem]:
    if (policy := spec.get("restartPolicy")) not in (None, "Never", "OnFailure"):
        yield Problem(
            f"{at}.restartPolicy", policy, "must be Never or OnFailure: the pods of a job end"
        )
    if (scheduler := spec.get("schedulerName")) not in (None, "", SCHEDULER_NAME):
        yield Problem(f"{at}.schedulerName", scheduler, f"must be {SCHEDULER_NAME} or left out")
    wanted = job.spec.priority_class_name
    if (given := spec.get("priorityClassName")) and wanted and given != wanted:
        yield Problem(
            f"{at}.priorityClassName",
            given,
            f"must equal spec.priorityClassName ({wanted}) or be left out",
        )
    for field, owner in (
        ("nodeName", "the scheduler's"),
        ("hostname", "the pod's name"),
    ):
        if spec.get(field):
            yield Problem(f"{at}.{field}", spec[field], f"must be left out; it is {owner}")
    if (given := spec.get("subdomain")) not in (None, "", service_name(job)):
        yield Problem(f"{at}.subdomain", given, f"must be {service_name(job)} in all roles")


def _mpi(job: TrainingJob) -> Iterator[Problem]:
    roles = {role.name: role for role in job.spec.roles}
    if sorted(roles) != ["launcher", "worker"]:
        yield Problem(
            "spec.roles",
            sorted(roles),
            f"framework {job.spec.framework} needs the roles launcher and worker",
        )
        return
    launcher = roles["launcher"]
    if (launcher.replicas, most(launcher)) != (1, 1):
        at = f"spec.roles[{job.spec.roles.index(launcher)}]"
        yield Problem(f"{at}.replicas", launcher.replicas, "must be 1: mpirun runs once")


def _parallelism(job: TrainingJob) -> Iterator[Problem]:
    ranks = ranked(job.spec.framework, job.spec.roles)
    world = world_size(ranks)
    split = job.spec.parallelism
    yield from _order_and_model(split)
    product = split.tensor * split.pipeline * split.context * (split.data or 1)
    if split.data is not None and product != world:
        allowed = f"must multiply to the world size {_world(ranks)}, not to {product}"
        yield Problem("spec.parallelism", _shape(split), allowed)
    elif world % product:
        allowed = f"must multiply to a divisor of the world size {_world(ranks)}, not to {product}"
        yield Problem("spec.parallelism", _shape(split), allowed)
    elif world % (experts := split.tensor * split.pipeline * split.expert):
        yield Problem(
            "spec.parallelism.expert",
            split.expert,
            f"times tensor and pipeline must divide the world size {_world(ranks)}, which "
            f"{experts} does not",
        )


def _order_and_model(split: Parallelism) -> Iterator[Problem]:
    at = "spec.parallelism"
    try:
        split.axes()
    except ValueError as error:
        yield Problem(f"{at}.order", split.order, f"must be an order of axes; {error}")
    if split.model is None:
        return
    amounts = {
        "parameters": split.model.parameters,
        "expertParameters": split.model.expert_parameters,
    }
    for name, amount in amounts.items():
        try:
            to_int(amount)
        except ValueError as error:
            yield Problem(f"{at}.model.{name}", amount, str(error))


def _shape(split: Parallelism) -> str:
    names = ("tensor", "pipeline", "context", "data")
    return ", ".join(f"{n} {v}" for n in names if (v := getattr(split, n)) not in (1, None))


def _world(roles: list[Role]) -> str:
    terms = " + ".join(f"{r.replicas} x {processes(r)}" for r in roles)
    return f"{world_size(roles)} ({terms})"
