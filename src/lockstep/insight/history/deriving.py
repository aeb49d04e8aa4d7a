"""What pods, gangs and nodes say about who held which GPU: pure, and the same whenever asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import msgspec

from lockstep.api import names, quantity, timestamp
from lockstep.api.core import Node, Pod
from lockstep.api.devices import Device
from lockstep.api.gang import Gang
from lockstep.api.spot import SPOT_LABELS
from lockstep.insight.history.records import Claim, NodeSpan, Purpose

OVER: Final = ("Succeeded", "Failed")


def node_span(node: Node, since: float) -> NodeSpan | None:
    """Return *node* as it is from *since* on; None where it has no GPUs."""
    gpus = gpu_count(node)
    if not gpus:
        return None
    labels = node.metadata.labels
    return NodeSpan(
        uid=node.metadata.uid,
        name=node.metadata.name,
        gpus=gpus,
        start=since,
        model=labels.get(names.GPU_MODEL_LABEL, ""),
        spot=any(labels.get(key) == value for key, value in SPOT_LABELS.items()),
        labels=dict(labels),
    )


def gpu_count(node: Node) -> int:
    """Return how many GPUs *node* has; none where that cannot be read."""
    try:
        return quantity.to_int(node.status.capacity.get(names.GPU, 0))
    except ValueError:
        return 0


def claims(pod: Pod, gang: Gang | None, node: Node | None, now: float) -> list[Claim]:
    """Return what *pod* holds or held of the GPUs of its node, by purpose.

    *now* only serves as an end where the pod is over and tells no time; such an end is marked.
    """
    indices = gpu_indices(pod)
    if not indices or not pod.spec.node_name:
        return []
    share = gpu_share(pod, node)
    if share <= 0:
        return []
    return [_claim(pod, gang, index, share, span) for index in indices for span in _spans(pod, now)]


_Span = tuple[Purpose, float, float | None, bool]


def _claim(pod: Pod, gang: Gang | None, gpu: int, share: float, span: _Span) -> Claim:
    meta, labels = pod.metadata, pod.metadata.labels
    purpose, start, end, guessed = span
    name = labels.get(names.GANG_LABEL, "") or meta.name
    return Claim(
        pod_uid=meta.uid,
        gpu=gpu,
        purpose=purpose,
        node=pod.spec.node_name,
        namespace=meta.namespace,
        pod=meta.name,
        gang=name,
        job=labels.get(names.JOB_LABEL, "") or name,
        queue=gang.spec.queue if gang else labels.get(names.QUEUE_LABEL, "default"),
        user=gang.metadata.annotations.get(names.CREATOR_ANNOTATION, "") if gang else "",
        share=share,
        start=start,
        end=end,
        leaving=timestamp.read(meta.deletion_timestamp),
        guessed=guessed,
    )


def _spans(pod: Pod, now: float) -> Iterator[_Span]:
    bound = bound_at(pod)
    if bound is None:
        return
    end, guessed = ended_at(pod, now)
    if end is not None:
        end = max(end, bound)
    begun = started_at(pod)
    started = None if begun is None else max(begun, bound)
    if started is None or (end is not None and started >= end):
        yield "starting", bound, end, guessed
        return
    yield "starting", bound, started, False
    yield "running", started, end, guessed


def bound_at(pod: Pod) -> float | None:
    """Return when *pod* got its place, by its conditions, else by the next best that it says.

    None where its status was not written yet: its creation would count time before its place.
    """
    placed = [
        timestamp.read(c.last_transition_time)
        for c in pod.status.conditions
        if c.type == "PodScheduled" and c.status == "True"
    ]
    said = [*placed, timestamp.read(pod.status.start_time)]
    if pod.status.phase in OVER or started_at(pod) is not None:
        said.append(timestamp.read(pod.metadata.creation_timestamp))
    return next((time for time in said if time is not None), None)


def started_at(pod: Pod) -> float | None:
    """Return when the last of its containers began to run; None where one has not yet."""
    begun: list[float] = []
    for status in pod.status.container_statuses:
        state = status.state.running or status.state.terminated
        state = state or status.last_state.terminated
        time = timestamp.read(state.started_at) if state else None
        if time is None:
            return None
        begun.append(time)
    return max(begun, default=None)


def ended_at(pod: Pod, now: float) -> tuple[float | None, bool]:
    """Return when *pod* gave its GPUs back, and whether that is guessed; None while it has not."""
    if pod.status.phase not in OVER:
        return None, False
    finished = [
        timestamp.read(status.state.terminated.finished_at)
        for status in pod.status.container_statuses
        if status.state.terminated is not None
    ]
    known = [time for time in finished if time is not None]
    if known:
        return max(known), False
    leaving = timestamp.read(pod.metadata.deletion_timestamp)
    return (now, True) if leaving is None else (min(now, leaving), False)


def gpu_indices(pod: Pod) -> list[int]:
    """Return the GPUs of its node that *pod* was given; none where that cannot be read."""
    text = pod.metadata.annotations.get(names.GPUS_ANNOTATION, "")
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() for part in parts):
        return []
    return sorted({int(part) for part in parts})


def gpu_share(pod: Pod, node: Node | None) -> float:
    """Return which part of each of its GPUs *pod* asked for: the larger of memory and compute."""
    memory = compute = 0.0
    for container in pod.spec.containers:
        asked = container.resources.requests | container.resources.limits
        try:
            if quantity.to_int(asked.get(names.GPU, 0)):
                return 1.0
            memory += quantity.to_int(asked.get(names.GPU_MEMORY, 0))
            compute += quantity.to_int(asked.get(names.GPU_COMPUTE, 0)) / 100
        except ValueError:
            return 1.0
    card = _card_bytes(node, gpu_indices(pod)) if memory else 0
    if memory and memory < 2**20:  # MiB, as the resource is defined
        memory *= 2**20
    part = memory / card if card else 0.0
    share = max(part, compute)
    # A share that cannot be told is a whole card: no second goes without an owner.
    return min(share, 1.0) if share else 1.0


def _card_bytes(node: Node | None, indices: list[int]) -> int:
    text = node.metadata.annotations.get(names.DEVICES_ANNOTATION, "") if node else ""
    try:
        devices = msgspec.json.decode(text, type=list[Device]) if text else []
    except msgspec.DecodeError:
        return 0
    cards = [d.memory for d in devices if d.kind == "gpu" and d.index in indices]
    return min(cards, default=0) * 2**20


def gone(claim: Claim, gang_deleted: float | None, now: float) -> Claim:
    """Return an open *claim* whose pod is no longer there, with its end.

    Its end is when the pod was to be gone, else when its gang was deleted, else *now*, marked.
    """
    said = [t for t in (claim.leaving, gang_deleted) if t is not None]
    end = min([*said, now])
    return replace(claim, end=max(end, claim.start), guessed=not said)
