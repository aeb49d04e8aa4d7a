"""How far a job is: its status as it follows from its pods."""

from __future__ import annotations

from typing import Final

from msgspec import structs

from lockstep.api import timestamp
from lockstep.api.core import Pod
from lockstep.api.roles import least
from lockstep.api.training import Role, TrainingJobStatus
from lockstep.jobs import conditions as cond
from lockstep.jobs import gathering
from lockstep.jobs.job_state import Seen
from lockstep.jobs.order import open_roles, waits_for
from lockstep.jobs.reasons import message
from lockstep.jobs.roster import Roster, counts, leaving

_STARTED: Final = ("Running", "Succeeded")


def observe(seen: Seen, roster: Roster, status: TrainingJobStatus, now: float) -> TrainingJobStatus:
    """Return *status* with what is seen of the pods: counts, conditions, phase and message."""
    replacing = {
        name: uid
        for name, uid in status.replacing.items()
        if (name in roster.wanted and not _replaced(roster.current.get(name), uid))
        or (name in roster.standby and not _replaced(roster.standing.get(name), uid))
    }
    status = structs.replace(
        status,
        replacing=replacing,
        replica_statuses=counts(roster, status.replica_statuses, replacing),
    )
    job = structs.replace(seen.job, status=status)
    begun = open_roles(job)
    roster = roster.of_roles(begun)
    status = _created(seen, roster, status, now)
    status = _placed(roster, status, now)
    status = _running(roster, status, now, gathering.started(seen, roster), _redone(seen, status))
    if status.retry_at and timestamp.parse(status.retry_at) <= now:
        status = structs.replace(status, retry_at=None)
    said = message(status, roster, seen.gang, seen.warnings, now) or "; ".join(waits_for(job))
    if seen.refusals:
        said = _refused(seen)
    return structs.replace(status, phase=_phase(status), message=said)


def _replaced(pod: Pod | None, uid: str) -> bool:
    return pod is not None and pod.metadata.uid != uid


def _refused(seen: Seen) -> str:
    others = len(seen.refusals) - 1
    return seen.refusals[0] + (f" (and {others} more)" if others else "")


def _created(
    seen: Seen, roster: Roster, status: TrainingJobStatus, now: float
) -> TrainingJobStatus:
    if seen.refusals:
        return cond.put(status, cond.CREATED, False, cond.Why("Refused", _refused(seen)), now)
    if not roster.missing():
        number = len(roster.wanted)
        text = "1 pod is created" if number == 1 else f"{number} pods are created"
        return cond.put(status, cond.CREATED, True, cond.Why("PodsCreated", text), now)
    known = cond.find(status, cond.CREATED)
    if known is None or known.reason in ("Refused", "InvalidSpec"):
        return cond.put(status, cond.CREATED, False, cond.Why("Creating"), now)
    return status


def _enough(roster: Roster, accept: tuple[str, ...] | None) -> bool:
    return all(_role_has_enough(roster, role, accept) for role in _roles(roster))


def _roles(roster: Roster) -> list[Role]:
    return list({m.role.name: m.role for m in roster.wanted.values()}.values())


def _role_has_enough(roster: Roster, role: Role, accept: tuple[str, ...] | None) -> bool:
    pods = [p for p in roster.of_role(role.name) if not leaving(p)]
    if accept is None:
        return sum(bool(p.spec.node_name) for p in pods) >= least(role)
    return sum(p.status.phase in accept for p in pods) >= least(role)


def _placed(roster: Roster, status: TrainingJobStatus, now: float) -> TrainingJobStatus:
    if cond.holds(status, cond.PLACED):
        return status
    if not _enough(roster, None):
        return cond.put(status, cond.PLACED, False, cond.Why("Waiting"), now)
    nodes = len({p.spec.node_name for p in roster.current.values() if p.spec.node_name})
    text = f"placed on {nodes} node{'s' if nodes > 1 else ''}"
    status = cond.put(status, cond.PLACED, True, cond.Why("Placed", text), now)
    return structs.replace(status, start_time=status.start_time or timestamp.show(now))


def _running(
    roster: Roster, status: TrainingJobStatus, now: float, ranks: bool, redone: str
) -> TrainingJobStatus:
    if cond.holds(status, cond.PLACED) and _enough(roster, _STARTED) and ranks:
        text = f"attempt {status.attempt} runs{redone}"
        status = cond.put(status, cond.RUNNING, True, cond.Why("Running", text), now)
        # What went wrong last stays on record.
        last = cond.find(status, cond.RESTARTING)
        return cond.clear(
            status, cond.RESTARTING, cond.Why("Running", last.message if last else ""), now
        )
    return cond.clear(
        status, cond.RUNNING, cond.Why("TooFewPods", "fewer pods run than it needs"), now
    )


def _redone(seen: Seen, status: TrainingJobStatus) -> str:
    """Return in words which finished steps the present world does again, and how to keep them."""
    there = gathering.current(seen)
    if there is None or there.generation != status.generation:
        return ""
    begun, done = there.resume or 0, status.goodput.step
    # The newest step may have been finished by some ranks alone.
    if done - begun <= 1:
        return ""
    text = f"; steps {begun + 1} to {done} are done again: no newer state of every rank was left"
    if seen.job.spec.checkpoint is None or not seen.job.spec.checkpoint.directory:
        text += " (spec.checkpoint.directory keeps it beyond the pods)"
    return text


def _phase(status: TrainingJobStatus) -> str:
    if cond.holds(status, cond.RUNNING):
        return "Running"
    if cond.holds(status, cond.RESTARTING):
        return "Restarting"
    return "Starting" if cond.holds(status, cond.PLACED) else "Pending"
