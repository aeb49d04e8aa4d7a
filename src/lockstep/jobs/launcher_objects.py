"""What launchers need besides their pods: rights, leases to report in, the world to follow."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from lockstep.api.core import CONFIG_MAPS, LEASES, ROLE_BINDINGS, ROLES, SECRETS
from lockstep.api.rendezvous import CA_KEY, WORLD_KEY, WORLD_SUFFIX, World
from lockstep.api.roles import indices, launched, most, pod_name
from lockstep.api.training import TrainingJob
from lockstep.api.wire import Json
from lockstep.jobs import gathering
from lockstep.jobs.job_state import Seen
from lockstep.jobs.launcher import KEY_SUFFIX
from lockstep.jobs.objects import meta
from lockstep.jobs.roster import Roster, owns
from lockstep.runtime.actions import Action, Change, Create

RIGHTS_SUFFIX: Final = "-launcher"


def surroundings(seen: Seen, roster: Roster, now: float) -> Iterator[Action]:
    """Yield what *seen*'s launchers lack; they find it there when their pods start."""
    job = seen.job
    if not launched(job):
        return
    yield from _rights(seen)
    for name in (*roster.wanted, *roster.standby):
        lease = seen.leases.get(name)
        if lease is None or not owns(job, lease.metadata):
            yield Create(LEASES, _body(LEASES, job, name, spec={}))
    yield from _world(seen, gathering.world(seen, roster, now))


def _new_key() -> dict[str, str]:
    return {"key": secrets.token_hex(32)}


def _world(seen: Seen, wanted: World) -> Iterator[Action]:
    job, there = seen.job, seen.world
    data = {WORLD_KEY: msgspec.json.encode(wanted).decode()}
    if seen.authority:
        data[CA_KEY] = seen.authority
    if there is None or not owns(job, there.metadata):
        # Before the world, so that the Secret need not be asked for where there is a world.
        name = job.metadata.name + KEY_SUFFIX
        yield Create(SECRETS, _body(SECRETS, job, name, type="Opaque"), fill=_new_key)
        yield Create(CONFIG_MAPS, _body(CONFIG_MAPS, job, name_of_world(job), data=data))
    elif any(there.data.get(key) != text for key, text in data.items()):
        # Against the version that was seen: a step of the world is never taken back.
        version = {"resourceVersion": there.metadata.resource_version}
        yield Change(CONFIG_MAPS, there.metadata.name, {"metadata": version, "data": data})


def name_of_world(job: TrainingJob) -> str:
    """Return the name of the ConfigMap with the job's world."""
    return job.metadata.name + WORLD_SUFFIX


def _rights(seen: Seen) -> Iterator[Action]:
    job, name = seen.job, seen.job.metadata.name + RIGHTS_SUFFIX
    rules = _rules(job)
    if seen.role is None or not owns(job, seen.role.metadata):
        yield Create(ROLES, _body(ROLES, job, name, rules=rules))
    elif seen.role.rules != rules:
        yield Change(ROLES, name, {"rules": rules})
    if seen.binding is None or not owns(job, seen.binding.metadata):
        group = "rbac.authorization.k8s.io"
        ref = {"apiGroup": group, "kind": "Role", "name": name}
        yield Create(
            ROLE_BINDINGS,
            _body(ROLE_BINDINGS, job, name, roleRef=ref, subjects=_subjects(job)),
        )


def _subjects(job: TrainingJob) -> list[Json]:
    accounts = {
        role.template["spec"].get("serviceAccountName") or "default" for role in job.spec.roles
    }
    space = job.metadata.namespace
    return [
        {"kind": "ServiceAccount", "name": name, "namespace": space} for name in sorted(accounts)
    ]


def _rules(job: TrainingJob) -> list[Json]:
    """Return what launchers may do: follow the world, and renew their leases."""
    job_name = job.metadata.name
    leases = [
        pod_name(job_name, role, index)
        for role in job.spec.roles
        for index in indices(role, most(role) + job.spec.recovery.spares)
    ]
    return [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": [name_of_world(job)],
            "verbs": ["get", "list", "watch"],
        },
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": leases,
            "verbs": ["get", "patch"],
        },
    ]


def _body(resource: Any, job: TrainingJob, name: str, **more: Any) -> Json:
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**kind, "metadata": meta(job, name), **more}
