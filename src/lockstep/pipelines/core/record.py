"""What a run's status keeps of its steps, and what is made of it after a restart or a retry."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from lockstep.api.pipeline import PipelineRun, PipelineRunStatus, StepStatus, Template
from lockstep.api.wire import Json, convert, to_builtins
from lockstep.pipelines.core.engine import Engine

PLAIN: Final = 400
"""Most steps that a status shows one by one; more are compressed."""
LARGEST: Final = 64 << 20


def steps_of(status: PipelineRunStatus) -> dict[str, StepStatus]:
    """Return the steps of a status, compressed or not.

    Raises:
        ValueError: when what is compressed cannot be read.
    """
    if not status.compressed:
        return status.steps
    inflate = zlib.decompressobj()
    try:
        text = inflate.decompress(base64.b64decode(status.compressed), LARGEST)
    except zlib.error as error:
        raise ValueError(f"status.compressed: {error}") from error
    return convert(json.loads(text), dict[str, StepStatus])


def records(run: PipelineRun) -> dict[str, StepStatus]:
    """Return what is known of the steps of *run*, for its engine to go on from.

    After a retry only what succeeded is known to have ended; the rest gets another try.
    """
    known = steps_of(run.status)
    if run.spec.retries <= run.status.retries:
        return known
    return {name: _again(one, run.spec.templates.get(one.template)) for name, one in known.items()}


def _again(one: StepStatus, template: Template | None) -> StepStatus:
    daemon = template is not None and template.pod is not None and template.pod.daemon
    if one.phase == "Succeeded" and one.kind == "Pod" and daemon:
        # Its pod went with the graph around it.
        return _tried(one)
    if one.phase in ("Succeeded", "Waiting", "Skipped", "Omitted"):
        return one if one.phase == "Succeeded" else replace(one, phase="Waiting")
    if one.kind in ("Graph", "Loop", "Values"):
        return replace(one, phase="Waiting", finished_at=None)
    return _tried(one)


def _tried(one: StepStatus) -> StepStatus:
    # A further try has a name of its own, and the retries of the step count anew.
    tries = one.attempt + 1
    return replace(
        one,
        phase="Pending",
        attempt=tries,
        faults=tries,
        started_at=None,
        finished_at=None,
        message="",
        outputs={},
        exit_code=None,
        locks=[],
    )


def patch(engine: Engine, changed: Iterable[str], *, compressed: bool) -> Json:
    """Return the part of the status that says how the *changed* steps are doing."""
    if not compressed:
        return {"steps": {name: _whole(engine.nodes[name].status()) for name in changed}}
    steps = {name: to_builtins(node.status()) for name, node in engine.nodes.items()}
    packed = zlib.compress(json.dumps(steps).encode(), 6)
    return {"steps": None, "compressed": base64.b64encode(packed).decode()}


def _whole(status: StepStatus) -> Json:
    """Return *status* with nothing for each field that it leaves out, as a merge patch wants."""
    return {**dict.fromkeys(StepStatus.__struct_encode_fields__), **to_builtins(status)}
