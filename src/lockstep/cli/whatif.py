"""``submit --what-if``: when would it start, what would it cost others, what would start now."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from lockstep.api import duration
from lockstep.api.merge import merged
from lockstep.api.names import ARRIVAL_ANNOTATION, CPU
from lockstep.api.wire import Json
from lockstep.cli.connect import Session
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.snapshot import take
from lockstep.scheduler.core.resources import wording
from lockstep.sim.engine.options import Options
from lockstep.sim.engine.simulation import Simulation
from lockstep.sim.input.initial_cluster import InitialCluster, InputError, read_initial_cluster
from lockstep.sim.input.jobs import Job, owned, read_jobs, read_standing
from lockstep.sim.whatif.forecast import Forecast, forecast
from lockstep.sim.whatif.smaller_shapes import Found, Less, Smaller, smaller

NODES_NAMED = 6
SHAPES_NAMED = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """What would become of one job."""

    job: str
    forecast: Forecast
    smaller: Found
    """With what smaller shapes it would start now; none are looked for where it would anyhow."""

    def tree(self) -> Json:
        """Return it as a tree for JSON; amounts are quantities."""
        shapes = [
            {
                "roles": [
                    {
                        "role": one.role,
                        "pods": one.pods,
                        "instead": one.instead,
                        "each": {less.resource: _quantities(less) for less in one.each},
                    }
                    for one in shape.roles
                ],
                "gpus": shape.gpus,
                "instead": shape.instead,
            }
            for shape in self.smaller.shapes
        ]
        found = asdict(self.forecast)
        return {"job": self.job, **found, "smaller": shapes, "tried": list(self.smaller.tried)}


async def what_if(session: Session, objects: Sequence[Json]) -> list[Answer]:
    """Return what would become of each job among *objects* if it were submitted now, alone.

    Raises:
        BadInput: when none of them is a job, or one is not what its kind says.
        CommandFailed: when the cluster has no nodes.
    """
    jobs = jobs_among(objects, session.namespace)
    # A large cluster takes seconds, in which others of the process go on.
    return await asyncio.to_thread(_answers, await take(session), jobs)


def _answers(there: Sequence[Json], jobs: Sequence[Json]) -> list[Answer]:
    try:
        world = read_initial_cluster(there)
        works = read_standing(there, world)
    except InputError as error:
        raise CommandFailed(str(error)) from None
    try:
        return [answer_to(world, works, obj) for obj in jobs]
    except InputError as error:
        raise BadInput(str(error)) from None


async def plan_effect(session: Session, queues: Mapping[str, Json]) -> dict[str, list[str]]:
    """Return the jobs that would start, wait or be evicted now if queues were changed.

    *queues* are merge patches of their specs, by name.

    Raises:
        CommandFailed: when the cluster has no nodes, or a queue is not there.
        BadInput: when a patch makes no queue.
    """
    return await asyncio.to_thread(_effect, await take(session), queues)


def _effect(there: list[Json], queues: Mapping[str, Json]) -> dict[str, list[str]]:
    known = {obj["metadata"]["name"] for obj in there if obj["kind"] == "Queue"}
    if missing := sorted(set(queues) - known):
        raise CommandFailed(f"there is no queue {missing[0]}", "lockstep queue list")
    planned = [
        {**obj, "spec": merged(obj.get("spec", {}), queues[obj["metadata"]["name"]])}
        if obj["kind"] == "Queue" and obj["metadata"]["name"] in queues
        else obj
        for obj in there
    ]
    try:
        now, then = _first_cycle(there), _first_cycle(planned)
    except InputError as error:
        raise BadInput(str(error)) from None
    return {
        "starts": sorted(then[0] - now[0]),
        "waits": sorted(now[0] - then[0] - then[1]),
        "evicted": sorted(then[1] - now[1]),
    }


def _first_cycle(there: Sequence[Json]) -> tuple[set[str], set[str]]:
    """Return the jobs that stand after one cycle, and those that were evicted in it."""
    world = read_initial_cluster(there)
    simulation = Simulation(world, read_standing(there, world), Options(until=0.0))
    result = simulation.run()
    stand = {one.name for one in result.lives if one.started is not None}
    gone = {victim for _, victim in result.evictions}
    return stand - gone, gone


def never_starts(
    ground: Sequence[Json], objects: Sequence[Json], namespace: str
) -> list[tuple[str, str]]:
    """Return the jobs among *objects* that do not start even where nothing else runs, and why.

    *ground* holds nodes, queues and what else there is besides jobs and pods. Nothing is said of a
    cluster without nodes.
    """
    try:
        world = read_initial_cluster(ground)
        found = [
            (obj["metadata"]["name"], forecast(world, [], _read(obj, world), now_only=True))
            for obj in jobs_among(objects, namespace)
        ]
    except (InputError, BadInput):
        return []
    return [(name, one.reason) for name, one in found if one.starts is None]


def lines(answer: Answer) -> list[str]:
    """Return an answer as lines of text."""
    found = answer.forecast
    shown = [f"{answer.job} {_start(found)}"]
    if found.preempts:
        shown.append(f"  it would preempt {', '.join(found.preempts)}")
    if found.starts != 0 and found.reason:
        shown.append(f"  now: {found.reason}")
    if found.starts != 0 and found.endless:
        shown.append(
            f"  {found.endless} running jobs do not say how long they run (annotation "
            "lockstep.dev/runtime) and are taken to run for ever"
        )
    less = answer.smaller
    shown += [f"  with {_shape(shape)} it would start now" for shape in less.shapes[:SHAPES_NAMED]]
    if less.tried and not less.shapes:
        shown.append(f"  no smaller shape would start now either; tried: {'; '.join(less.tried)}")
    return shown


def _shape(shape: Smaller) -> str:
    """Return a smaller shape in words."""
    parts = []
    for one in shape.roles:
        if one.pods < one.instead:
            parts.append(f"{one.pods} instead of {one.instead} pods of {one.role}")
        parts += [
            f"{wording.instead(less.resource, less.amount, less.instead)} in each pod of {one.role}"
            for less in one.each
        ]
    told = f" ({shape.gpus:g} of {shape.instead:g} GPUs)" if shape.instead else ""
    return wording.listing(parts) + told


def _quantities(less: Less) -> Json:
    shown = {"amount": less.amount, "instead": less.instead}
    workload = "m" if less.resource == CPU else ""
    return {name: f"{amount}{workload}" for name, amount in shown.items()}


def _start(found: Forecast) -> str:
    if found.starts is None:
        return "would not start, as far as run times are known"
    where = _nodes(found.nodes)
    if found.starts == 0:
        return f"would start now, on {where}"
    after = f", when {', '.join(found.after[:3])} ends" if found.after else ""
    return f"would start in {duration.show(found.starts)}{after}, on {where}"


def _nodes(nodes: dict[str, int]) -> str:
    named = [f"{node} ({pods})" if pods > 1 else node for node, pods in nodes.items()]
    rest = len(named) - NODES_NAMED
    shown = ", ".join(named[:NODES_NAMED])
    return f"{shown} and {rest} more nodes" if rest > 0 else shown


def jobs_among(objects: Sequence[Json], namespace: str) -> list[Json]:
    """Return the jobs among *objects* as a server would take them, by default in *namespace*.

    A Gang that is a TrainingJob's own comes with that.

    Raises:
        BadInput: when there is none.
    """
    found = [obj for obj in objects if obj["kind"] in ("TrainingJob", "Gang") and not owned(obj)]
    if not found:
        raise BadInput(
            "--what-if takes TrainingJob and Gang objects, and there is none among them",
            "leave --what-if out, or name a file with a job",
        )
    return [_in(namespace, obj) for obj in found]


def _in(namespace: str, obj: Json) -> Json:
    obj = {**copy.deepcopy(obj), "status": {}}  # servers take none with what is submitted
    meta = obj.setdefault("metadata", {})
    meta["namespace"] = meta.get("namespace") or namespace
    meta["name"] = meta.get("name") or meta.get("generateName", "job-").rstrip("-")
    (meta.get("annotations") or {}).pop(ARRIVAL_ANNOTATION, None)  # the question is about now
    return obj


def answer_to(world: InitialCluster, works: Sequence[Job], obj: Json) -> Answer:
    """Return what would become of a job that came to a world behind other jobs, its older self
    left out.

    Raises:
        InputError: when the job is not what its kind says.
    """
    name = obj["metadata"]["name"]
    others = [work for work in works if (work.key.namespace, work.key.name) != _key(obj)]
    found = forecast(world, others, _read(obj, world))
    waiting = found
    if found.starts != 0:  # what it says of later is no reason for now
        waiting = forecast(world, others, _read(obj, world), now_only=True)
        found = Forecast(**{**asdict(found), "reason": waiting.reason})
    less = Found((), ()) if found.starts == 0 else smaller(world, others, obj)
    return Answer(name, found, less)


def _key(obj: Json) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _read(obj: Json, world: InitialCluster) -> Job:
    (work,) = read_jobs([obj], world)
    return work
