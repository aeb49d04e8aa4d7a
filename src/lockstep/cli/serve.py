"""``lockstep serve``: inference services, their versions, and how these are released."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

from lockstep.api.core import CONTROLLER_REVISIONS, PODS, ControllerRevision
from lockstep.api.merge import difference
from lockstep.api.names import REVISION_LABEL, ROUTE_LABEL, SYSTEM_NAMESPACE
from lockstep.api.serving import ROUTERS
from lockstep.api.wire import to_builtins
from lockstep.cli.app import App, AtLeast
from lockstep.cli.connect import Anywhere, InNamespace, Session, run
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.log_streams import STARTED, Request, stream
from lockstep.cli.options import Namespaced, Output
from lockstep.cli.output import Format, print_lines, print_objects, print_table, structured
from lockstep.cli.views.serving import component, of_service, service_page, service_table
from lockstep.compat.kserve.objects import INFERENCE_SERVICES, InferenceService
from lockstep.compat.kserve.problem import Problem
from lockstep.serve.core import release as steps
from lockstep.serve.core.revisions import WRITTEN_ANNOTATION

app = App("Inference services: what serves, who gets how many requests, release and rollback.")

Name = Annotated[str, "Name of the InferenceService."]


@app.command("list")
async def list_(session: Anywhere, *, output: Output = Format.TABLE) -> None:
    """List services with their replicas and the shares of their versions.

    Example: lockstep serve list -A
    """
    found = (await session.client.list(INFERENCE_SERVICES, session.scope(INFERENCE_SERVICES))).items
    if structured(output):
        print_objects([to_builtins(one) for one in found], output, single=False)
        return
    pods = (await session.client.list(PODS, session.scope(PODS), label_selector=ROUTE_LABEL)).items
    where = "" if session.all_namespaces else f" in {session.namespace}"
    print_table(
        service_table(found, pods, time.time()),
        output,
        empty=f"no inference services{where}",
        namespaces=session.all_namespaces,
    )


@app.command()
async def describe(session: InNamespace, name: Name) -> None:
    """Show a service: its model, its release, its load, and each version with its answers.

    Example: lockstep serve describe iris
    """
    service = await _service(session, name)
    selector = f"{ROUTE_LABEL}={name}"
    pods = (await session.client.list(PODS, session.namespace, label_selector=selector)).items
    routers = (await session.client.list(ROUTERS, SYSTEM_NAMESPACE)).items
    revisions = await _revisions(session, service)
    print_lines(service_page(service, of_service(service, pods), revisions, routers, time.time()))


@app.command()
async def logs(
    session: InNamespace,
    name: Name,
    *,
    revision: Annotated[str, "Only replicas of this version."] = "",
    tail: Annotated[int | None, AtLeast(0), "Only so many last lines each."] = None,
) -> None:
    """Print what the replicas of a service wrote.

    Example: lockstep serve logs iris --tail 20
    """
    await _service(session, name)
    selector = f"{ROUTE_LABEL}={name}" + (f",{REVISION_LABEL}={revision}" if revision else "")
    pods = (await session.client.list(PODS, session.namespace, label_selector=selector)).items
    started = [pod for pod in pods if pod.status.phase in STARTED]
    if not started:
        raise CommandFailed(
            f"no replica of {name} runs", f"`lockstep serve describe {name}` says why"
        )
    for pod in sorted(started, key=lambda one: one.metadata.name):
        request = Request(pod.metadata.name, pod=True, tail=tail)
        prefix = f"{pod.metadata.name}: " if len(started) > 1 else ""
        await stream(session, request, pod.metadata.name, prefix, follow=False)


@app.command()
def release(
    name: Name,
    *,
    percent: Annotated[int | None, range(101), "Share of the newest version, at once."] = None,
    plan: Annotated[Path | None, "--steps", "A file of steps for this and later versions."] = None,
    go_on: Annotated[bool, "--continue", "End the pause of now."] = False,
    promote: Annotated[bool, "--promote", "Give the newest version everything."] = False,
    target: Namespaced,
) -> None:
    """Say how much of the requests the newest version gets, at once or in steps.

    \b
    Examples:
      lockstep serve release iris --percent 10
      lockstep serve release iris --steps steps.yaml
      lockstep serve release iris --continue
      lockstep serve release iris --promote
    """
    if sum((percent is not None, plan is not None, go_on, promote)) != 1:
        raise BadInput("choose one of --percent, --steps, --continue and --promote")
    annotations = _steps(plan) if plan is not None else {}
    if annotations:
        run(target, lambda s: _patch(s, name, {"metadata": {"annotations": annotations}}))
        print(f"inferenceservice/{name} is released in steps")
    elif percent is not None:
        body = {"spec": {"predictor": {"canaryTrafficPercent": percent}}}
        clear = {"metadata": {"annotations": {steps.STEPS_ANNOTATION: None}}}
        run(target, lambda s: _patch(s, name, body | clear))
        print(f"inferenceservice/{name}: the newest version gets {percent} %")
    else:
        run(target, lambda s: _go_on(s, name, everything=promote))


@app.command()
async def rollback(
    session: InNamespace,
    name: Name,
    *,
    to: Annotated[str, "Version, such as iris-predictor-00003; by default the one before."] = "",
) -> None:
    """Go back to an earlier version: its predictor becomes the newest one, for all requests.

    Example: lockstep serve rollback iris
    """
    service = await _service(session, name)
    known = await _revisions(session, service)
    names = [one.metadata.name for one in known]
    if to and to not in names:
        raise CommandFailed(f"{name} has no version {to}; there are: {', '.join(names) or 'none'}")
    if not to and len(known) < 2:
        raise CommandFailed(f"{name} has no version before this one")
    chosen = next(one for one in known if one.metadata.name == to) if to else known[-2]
    written = json.loads(chosen.metadata.annotations.get(WRITTEN_ANNOTATION) or "{}")
    if not written:
        raise CommandFailed(f"{chosen.metadata.name} does not say what it was made of")
    written.pop("canaryTrafficPercent", None)
    change = difference(service.spec.predictor, written)
    # A person who goes back does not want to wait for steps.
    clear = {"metadata": {"annotations": {steps.STEPS_ANNOTATION: None}}}
    await _patch(session, name, {"spec": {"predictor": change}, **clear})
    print(f"inferenceservice/{name} goes back to {chosen.metadata.name}")


def _steps(file: Path) -> dict[str, str]:
    try:
        text = file.read_text()
        steps.steps({steps.STEPS_ANNOTATION: text})
    except (OSError, UnicodeDecodeError, Problem) as error:
        raise BadInput(f"--steps {file}: {error}") from None
    return {steps.STEPS_ANNOTATION: text}


async def _service(session: Session, name: str) -> InferenceService:
    hint = "lockstep serve list -A"
    return await session.get(INFERENCE_SERVICES, name, "inference service", hint)


async def _revisions(session: Session, service: InferenceService) -> list[ControllerRevision]:
    selector = f"{ROUTE_LABEL}={service.metadata.name}"
    found = await session.client.list(
        CONTROLLER_REVISIONS, session.namespace, label_selector=selector
    )
    return sorted(found.items, key=lambda one: one.revision)


async def _patch(session: Session, name: str, body: dict[str, Any]) -> None:
    await _service(session, name)
    await session.client.patch(INFERENCE_SERVICES, name, body, session.namespace)


async def _go_on(session: Session, name: str, *, everything: bool) -> None:
    service = await _service(session, name)
    state = component(service).release
    if not state:
        if not everything:
            raise CommandFailed(f"{name} is not released in steps", "--percent, or --steps FILE")
        await _patch(session, name, {"spec": {"predictor": {"canaryTrafficPercent": None}}})
        print(f"inferenceservice/{name}: the newest version gets everything")
        return
    if state.get("phase") not in ("Progressing", "Paused"):
        raise CommandFailed(f"the release of {state['revision']} is {state['phase']}")
    step = "all" if everything else str(state["step"])
    word = {steps.CONTINUE_ANNOTATION: f"{state['revision']}/{step}"}
    await _patch(session, name, {"metadata": {"annotations": word}})
    print(f"inferenceservice/{name}: {state['revision']} goes on")
