"""The actions that bring the cluster to what a job's status says."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any, Final

from lockstep.api import timestamp
from lockstep.api.core import CONFIG_MAPS, PODS, SECRETS, SERVICES, Pod
from lockstep.api.gang import GANGS
from lockstep.api.merge import difference
from lockstep.api.names import MAX_WAIT_ANNOTATION, RANK_ANNOTATION
from lockstep.api.roles import launched, launcher_host, service_name
from lockstep.api.training import TRAINING_JOBS, TrainingJob
from lockstep.api.wire import to_builtins
from lockstep.jobs import launcher_objects, objects, ssh
from lockstep.jobs.frameworks.base import Framework, logs_in
from lockstep.jobs.job_state import Seen
from lockstep.jobs.order import open_roles
from lockstep.jobs.roster import Roster, finished, owns
from lockstep.runtime.actions import Action, Change, Create, Delete

FORCE_AFTER: Final = 120.0
"""Seconds past its grace after which a pod whose node does not answer is taken for ended."""


_SILENT_GRACE: Final = 1


def running(seen: Seen, framework: Framework, roster: Roster, now: float) -> Iterator[Action]:
    """Yield what a job that should run needs: first what has to go, then what has to come.

    *seen*'s job bears the new status. Pods are created only once all of the last attempt have
    ended: they bear the same names, and half of an old gang is none.
    """
    job = seen.job
    replaced = [
        pod
        for name, pod in (*roster.current.items(), *roster.standing.items())
        if job.status.replacing.get(name) == pod.metadata.uid
    ]
    # One that stands by is made again when it ends, for any reason.
    replaced += [p for p in roster.standing.values() if finished(p) and p not in replaced]
    yield from removal(seen, [*roster.stale, *roster.surplus, *replaced], now)
    yield from _surroundings(seen, framework, roster, now)
    yield from _ranks(job, framework, roster)
    waits = job.status.retry_at is not None and timestamp.parse(job.status.retry_at) > now
    if not (roster.stale or roster.foreign or waits):
        everyone, begun = list(roster.wanted.values()), open_roles(job)
        standby = [m for n, m in roster.standby.items() if n not in roster.standing]
        for member in (*roster.missing(), *standby):
            if member.role.name not in begun:
                continue
            yield Create(PODS, objects.pod(job, framework, member, everyone, seen.launcher_image))


def _ranks(job: TrainingJob, framework: Framework, roster: Roster) -> Iterator[Action]:
    """Yield what tells pods their rank where a spare has taken a place; spares come behind all.

    The scheduler gives the last up first, and people read it.
    """
    if not launched(job):
        return
    places = [(roster.current.get(n), framework.rank(job, m)) for n, m in roster.wanted.items()]
    behind = (roster.standing.get(name) for name in roster.standby)
    places += [(pod, len(places) + number) for number, pod in enumerate(behind)]
    for pod, rank in places:
        if pod is None or pod.metadata.deletion_timestamp is not None:
            continue
        if pod.metadata.annotations.get(RANK_ANNOTATION, str(rank)) != str(rank):
            told = {"metadata": {"annotations": {RANK_ANNOTATION: str(rank)}}}
            yield Change(PODS, pod.metadata.name, told)


def suspended(seen: Seen, now: float) -> Iterator[Action]:
    """Yield what gives the job's place back."""
    yield from removal(seen, _own(seen), now)
    yield from _without_gang(seen)


def ended(seen: Seen, now: float) -> Iterator[Action]:
    """Yield what is to be cleaned up after the job's end.

    A pod that never started is deleted under any policy: it could still be placed, and run.
    """
    policy = seen.job.spec.run_policy.clean_pods
    own = _own(seen)
    going = {
        "None": [p for p in own if not p.spec.node_name],
        "Running": [p for p in own if not finished(p)],
        "All": own,
    }[policy]
    yield from removal(seen, going, now)
    if all(finished(p) for p in own):
        yield from _without_gang(seen)


def expired(job: TrainingJob) -> Action:
    """Return the deletion of the job itself."""
    return Delete(TRAINING_JOBS, job.metadata.name, job.metadata.uid)


def removal(seen: Seen, pods: Iterable[Pod], now: float) -> Iterator[Action]:
    """Yield the deletion of *pods*, without waiting for ever for a node that is gone.

    A pod whose launcher is silent and whose node is lost is given up at once: nothing new comes
    to that node, so that no device is handed out twice.
    """
    for pod in pods:
        meta = pod.metadata
        if meta.name in seen.silent and pod.spec.node_name in seen.lost:
            yield Delete(PODS, meta.name, meta.uid, grace=0)
        elif meta.deletion_timestamp is None:
            # A launcher that is silent saves nothing: its ranks need not be waited for.
            grace = _SILENT_GRACE if meta.name in seen.silent else None
            yield Delete(PODS, meta.name, meta.uid, grace=grace)
        elif now >= timestamp.parse(meta.deletion_timestamp) + FORCE_AFTER:
            yield Delete(PODS, meta.name, meta.uid, grace=0)


def _own(seen: Seen) -> list[Pod]:
    return [p for p in seen.pods if owns(seen.job, p.metadata)]


def _without_gang(seen: Seen) -> Iterator[Action]:
    gang = seen.gang
    if gang is not None and owns(seen.job, gang.metadata) and not gang.metadata.deletion_timestamp:
        yield Delete(GANGS, gang.metadata.name, gang.metadata.uid)


def _surroundings(seen: Seen, framework: Framework, roster: Roster, now: float) -> Iterator[Action]:
    job = seen.job
    if logs_in(job, framework):
        files = framework.ssh_files(job) or ssh.files()
        yield from _secret(seen, files)
    yield from _config_map(seen, framework, roster)
    # A service that the templates name may be the user's.
    theirs = service_name(job) != job.metadata.name
    if seen.service is None or not (theirs or owns(job, seen.service.metadata)):
        yield Create(SERVICES, objects.service(job))
    if host := launcher_host(job):
        there = seen.launcher_service
        if there is None or not owns(job, there.metadata):
            yield Create(SERVICES, objects.launcher_service(job, host))
    yield from launcher_objects.surroundings(seen, roster, now)
    yield from _gang(seen)
    yield from _place_in_line(seen, now)


def _gang(seen: Seen) -> Iterator[Action]:
    job, there = seen.job, seen.gang
    if there is None or not owns(job, there.metadata):
        yield Create(GANGS, objects.gang(job))
        return
    patch: dict[str, Any] = {}
    wanted, told = objects.gang_spec(job), objects.foreseen(job)
    if there.spec != wanted:
        patch["spec"] = difference(to_builtins(there.spec), to_builtins(wanted))
    known = there.metadata.annotations
    changes: dict[str, str | None] = {}
    changes |= {name: text for name, text in told.items() if known.get(name) != text}
    if MAX_WAIT_ANNOTATION in known.keys() - told.keys():
        changes[MAX_WAIT_ANNOTATION] = None
    if changes:
        patch["metadata"] = {"annotations": changes}
    if patch:
        yield Change(GANGS, there.metadata.name, patch)


def _place_in_line(seen: Seen, now: float) -> Iterator[Action]:
    """Yield what tells the gang since when its job is queued, and when that was last saved.

    A resumed job has a new gang: it is told before there are pods that could be placed.
    """
    job, there = seen.job, seen.gang
    known = there if there is not None and owns(job, there.metadata) else None
    since = timestamp.show(now)
    if known is not None:
        since = known.status.queued_at or known.metadata.creation_timestamp or since
    status = {}
    queued, saved = job.status.queued_at, job.status.last_checkpoint
    if queued is not None and queued < since:
        status["queuedAt"] = queued
    if saved is not None and (known is None or known.status.last_checkpoint != saved):
        status["lastCheckpoint"] = saved
    if status:
        yield Change(GANGS, job.metadata.name, {"status": status}, subresource="status")


def _secret(seen: Seen, files: dict[str, str]) -> Iterator[Action]:
    job, there = seen.job, seen.secret
    if there is None or not owns(job, there.metadata):
        yield Create(SECRETS, objects.ssh_secret(job, files), fill=ssh.keys)
        return
    wanted = {name: b64encode(text.encode()).decode() for name, text in files.items()}
    known = {name: there.data.get(name, "") for name in wanted}
    if patch := difference(known, wanted):
        yield Change(SECRETS, there.metadata.name, {"data": patch})


def _config_map(seen: Seen, framework: Framework, roster: Roster) -> Iterator[Action]:
    job, there = seen.job, seen.config_map
    up = frozenset(n for n, p in roster.current.items() if p.status.phase == "Running")
    files = framework.files(job, up)
    if not files:
        return
    if there is None or not owns(job, there.metadata):
        yield Create(CONFIG_MAPS, objects.config_map(job, files))
    elif patch := difference(there.data, files):
        yield Change(CONFIG_MAPS, there.metadata.name, {"data": patch})
