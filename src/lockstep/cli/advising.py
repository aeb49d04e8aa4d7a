"""What ``advise`` does on the cluster: reads what launchers report, runs clones, remembers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Final

from lockstep.api.core import CONFIG_MAPS, LEASES, NODES, PODS, PRIORITY_CLASSES, Pod
from lockstep.api.device_usage import DEVICE_USAGES
from lockstep.api.names import JOB_LABEL, REPORT_ANNOTATION
from lockstep.api.price_list import PRICE_LISTS
from lockstep.api.probes import Sheet
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.wire import Json, to_builtins
from lockstep.cli.connect import Session
from lockstep.cli.failure import CommandFailed
from lockstep.cli.output import note
from lockstep.insight.advice import evidence, experiments
from lockstep.insight.advice.evidence import Gpu
from lockstep.insight.advice.judge import FEWEST_STEPS, Advice, Verdict, judge
from lockstep.insight.cost import prices
from lockstep.insight.history.deriving import gpu_indices, gpu_share, node_span
from lockstep.kube.errors import AlreadyExists, ApiError, Forbidden, NotFound

SUFFIX: Final = "-advice"
"""Of the ConfigMap that remembers what was said of a job of this name."""
KEY: Final = "advice"
_EVERY: Final = 0.5
_OVER: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user wants."""

    name: str
    prove: bool
    experiments: int
    steps: int
    patience: float


@dataclass(frozen=True, slots=True)
class Told:
    """The advice on a job, with what its GPUs cost."""

    job: str
    advice: Advice
    currency: str = ""
    per_hour: float | None = None
    """What the job's GPUs cost an hour; None where no price holds."""
    since: Json | None = None
    """What became of earlier advice on a job of this name."""

    def money_per_day(self, gain: float) -> float | None:
        """Return what a *gain* saves a day."""
        return None if self.per_hour is None else round(self.per_hour * 24 * gain, 2)


async def advise(session: Session, asked: Asked) -> Told:
    """Return what can be said of the job, after experiments where they were asked for.

    Raises:
        ApiError: when the server cannot be used now.
        CommandFailed: when nothing is known of the job's steps.
    """
    job = await session.client.get(TRAINING_JOBS, asked.name, session.namespace)
    raw = to_builtins(job)
    sheets = await _sheets(session, asked.name, asked.patience)
    pods = await _pods(session, asked.name)
    found = judge(evidence.gather(sheets, await _gpus(session, pods)))
    if asked.prove:
        found = replace(found, verdicts=await _proved(session, raw, found.verdicts, asked))
    currency, per_hour = await _price(session, pods)
    uid = job.metadata.uid
    since = await _remember(session, asked.name, uid, found)
    return Told(asked.name, found, currency, per_hour, since)


async def _pods(session: Session, name: str) -> list[Pod]:
    chosen = f"{JOB_LABEL}={name}"
    return (await session.client.list(PODS, session.namespace, label_selector=chosen)).items


async def _reported(session: Session, name: str) -> list[Sheet]:
    chosen = f"{JOB_LABEL}={name}"
    leases = await session.client.list(LEASES, session.namespace, label_selector=chosen)
    found: list[Sheet] = []
    for lease in leases.items:
        text = lease.metadata.annotations.get(REPORT_ANNOTATION, "")
        found += evidence.read(text)
    return found


async def _sheets(session: Session, name: str, patience: float) -> list[Sheet]:
    """Return what the job's ranks measured; wait for the first steps of a job that is young."""
    deadline = time.monotonic() + patience
    while True:
        found = await _reported(session, name)
        steps = [one.sums.get("steps", 0) for one in found]
        ready = steps and min(steps) >= FEWEST_STEPS and all(o.profile for o in found)
        job = await session.client.get(TRAINING_JOBS, name, session.namespace)
        if ready or job.status.phase in _OVER or time.monotonic() > deadline:
            return found
        await asyncio.sleep(_EVERY)


# What its GPUs do and cost


async def _gpus(session: Session, pods: list[Pod]) -> Gpu:
    names = {f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in pods}
    try:
        usages = (await session.client.list(DEVICE_USAGES)).items
    except (NotFound, Forbidden):
        return Gpu()
    cards = [one for usage in usages for one in usage.gpus if names & set(one.pods)]
    if not cards:
        return Gpu()
    return Gpu(
        busy=_mean([one.utilization for one in cards]),
        sm=_mean([one.sm_active for one in cards]),
        tensor=_mean([one.tensor_active for one in cards]),
        memory=sum(one.memory_used / max(1, one.memory) for one in cards) / len(cards),
        neighbours=len({pod for one in cards for pod in one.pods} - names),
    )


def _mean(percents: list[int | None] | list[int]) -> float | None:
    known = [one for one in percents if one is not None]
    return sum(known) / len(known) / 100 if known else None


async def _price(session: Session, pods: list[Pod]) -> tuple[str, float | None]:
    try:
        lists = (await session.client.list(PRICE_LISTS)).items
        nodes = {one.metadata.name: one for one in (await session.client.list(NODES)).items}
    except (NotFound, Forbidden):
        return "", None
    known, wrong = prices.read(lists)
    if wrong or not known.entries:
        return "", None
    now, total, any_price = time.time(), 0.0, False
    for pod in pods:
        node = nodes.get(pod.spec.node_name)
        span = node_span(node, now) if node is not None else None
        if span is None:
            continue
        for _, _, rate in known.rates(span, now, now + 1):
            if rate is not None:
                any_price = True
                total += rate * len(gpu_indices(pod)) * gpu_share(pod, node)
    return known.currency, total if any_price else None


# Experiments


async def _proved(
    session: Session, job: Json, verdicts: tuple[Verdict, ...], asked: Asked
) -> tuple[Verdict, ...]:
    tried = experiments.worth_trying(verdicts, asked.experiments)
    if not tried:
        return verdicts
    await _priority(session)
    note(f"runs {len(tried) + 1} clones of {asked.name}, {asked.steps} steps each")
    control = await _ran(session, job, experiments.CONTROL, 0, asked)
    found: dict[str, Verdict] = {}
    for one in tried if control else ():
        altered = await _ran(session, job, experiments.change_of(one), one.number, asked)
        found[one.cause] = experiments.weighed(one, control, altered)
    done = [found.get(one.cause, one) for one in verdicts]
    return tuple(sorted(done, key=lambda one: -one.expected))


async def _priority(session: Session) -> None:
    body = {
        "metadata": {"name": experiments.PRIORITY_CLASS},
        "value": -1000,
        "preemptionPolicy": "Never",
        "description": "Clones that prove why a job is slow; everything else goes first.",
    }
    try:
        await session.client.create(PRIORITY_CLASSES, body)
    except AlreadyExists:
        return
    except Forbidden as error:
        try:
            await session.client.get(PRIORITY_CLASSES, experiments.PRIORITY_CLASS)
        except ApiError:
            raise CommandFailed(
                f"clones need the PriorityClass {experiments.PRIORITY_CLASS}: {error.message}",
                "an administrator's first `lockstep advise --prove` makes it",
            ) from None


async def _ran(session: Session, job: Json, change: str, number: int, asked: Asked) -> float:
    """Return the seconds of a step of a clone; 0 where it made none in time."""
    body = experiments.clone(job, change, number, asked.steps)
    async with _cloned(session, body) as name:
        deadline = time.monotonic() + asked.patience
        sheets: list[Sheet] = []
        while time.monotonic() < deadline:
            clone = await session.client.get(TRAINING_JOBS, name, session.namespace)
            sheets = await _reported(session, name) or sheets
            if clone.status.phase in _OVER:
                break
            await asyncio.sleep(_EVERY)
        else:
            note(f"{name} made too few steps within {asked.patience:g} s: {clone.status.message}")
        found = evidence.gather(sheets)
        note(f"{change}: a step takes {found.step * 1000:.0f} ms ({found.steps} steps)")
        return found.step if found.steps >= asked.steps // 4 else 0.0


@contextlib.asynccontextmanager
async def _cloned(session: Session, body: Json) -> AsyncIterator[str]:
    name = body["metadata"]["name"]
    with contextlib.suppress(NotFound):
        await session.client.delete(TRAINING_JOBS, name, session.namespace)
        await _gone(session, name)
    await session.client.create(TRAINING_JOBS, body)
    try:
        yield name
    finally:
        with contextlib.suppress(NotFound):
            await session.client.delete(TRAINING_JOBS, name, session.namespace)


async def _gone(session: Session, name: str) -> None:
    for _ in range(60):
        try:
            await session.client.get(TRAINING_JOBS, name, session.namespace)
        except NotFound:
            return
        await asyncio.sleep(_EVERY)
    raise CommandFailed(f"an earlier clone, {name}, does not end", f"lockstep delete {name}")


# What was said before


async def _remember(session: Session, name: str, uid: str, advice: Advice) -> Json | None:
    """Keep what is said; return what became of what was said of the job's predecessor."""
    client, called = session.client, name + SUFFIX
    try:
        before = json.loads((await client.get(CONFIG_MAPS, called, session.namespace)).data[KEY])
    except (NotFound, KeyError, ValueError):
        before = None
    if not advice.step:
        return None
    since = before.get("since") if before else None
    if before and before["uid"] != uid and before["verdicts"]:
        since = _became(before, advice.step)
    if before is None or before["uid"] != uid or advice.verdicts:
        told = [{"cause": one.cause, "gain": one.expected} for one in advice.verdicts]
        kept = {"uid": uid, "step": advice.step, "verdicts": told, "since": since}
        await _keep(session, called, {KEY: json.dumps(kept)})
    return dict(since) if since else None


def _became(before: Json, step: float) -> Json:
    gain = 1 - step / before["step"]
    first = before["verdicts"][0]
    words = (
        f"since the advice on the job before ({first['cause']}): a step took "
        f"{before['step'] * 1000:.0f} ms, now {step * 1000:.0f} ms: {gain * 100:.0f} % gained, "
        f"{first['gain'] * 100:.0f} % predicted"
    )
    return {
        "cause": first["cause"],
        "predicted": first["gain"],
        "measured": round(gain, 4),
        "words": words,
    }


def dearest(text: str) -> tuple[str, float] | None:
    """Return the cause with the largest gain of what was kept as *text*; None where it says none.

    Users may write what is kept, so it is read as a stranger's.
    """
    try:
        told = [(str(one["cause"]), float(one["gain"])) for one in json.loads(text)["verdicts"]]
    except (KeyError, TypeError, ValueError):
        return None
    cause, gain = max(told, key=lambda one: one[1], default=("", 0.0))
    return (cause, min(1.0, gain)) if gain > 0 else None


async def _keep(session: Session, name: str, data: dict[str, str]) -> None:
    body = {"metadata": {"name": name, "namespace": session.namespace}, "data": data}
    try:
        await session.client.create(CONFIG_MAPS, body)
    except AlreadyExists:
        await session.client.patch(CONFIG_MAPS, name, {"data": data}, session.namespace)
    except Forbidden:
        note("the advice is not kept: your user may not write ConfigMaps here")
