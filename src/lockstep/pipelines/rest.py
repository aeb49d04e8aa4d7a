"""The REST face of Kubeflow Pipelines (v2beta1), for ``kfp.Client``: it keeps nothing, runs do.

An experiment is a label of runs; uploaded pipelines and recurring runs are objects as well.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
from aiohttp import web

from lockstep.api.pipeline import PIPELINE_RUNS, PipelineRun, PipelineRunSpec, StepStatus
from lockstep.api.wire import Json, convert
from lockstep.compat.kfp import translate as kfp
from lockstep.compat.translation import Refused
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError
from lockstep.pipelines.core.check import problems
from lockstep.pipelines.core.record import steps_of
from lockstep.pipelines.mlflow import Registry
from lockstep.pipelines.rest_kept import Shelf
from lockstep.pipelines.rest_words import body_of, filtered, slug

EXPERIMENT_LABEL: Final = "lockstep.dev/experiment"
DISPLAY_ANNOTATION: Final = "lockstep.dev/display-name"
LARGEST: Final = 8 << 20
"""Most bytes of a request."""
_STATES: Final[Mapping[str, str]] = {
    "Pending": "PENDING",
    "Running": "RUNNING",
    "Suspended": "PAUSED",
    "Succeeded": "SUCCEEDED",
    "Failed": "FAILED",
    "Stopped": "CANCELED",
}
_STEPS: Final[Mapping[str, str]] = {
    "Waiting": "PENDING",
    "Pending": "PENDING",
    "Running": "RUNNING",
    "Succeeded": "SUCCEEDED",
    "Failed": "FAILED",
    "Stopped": "CANCELED",
    "Skipped": "SKIPPED",
    "Omitted": "SKIPPED",
}
_CODES: Final[Mapping[int, str]] = {
    400: "INVALID_PARAMETER_VALUE",
    403: "PERMISSION_DENIED",
    404: "RESOURCE_DOES_NOT_EXIST",
    409: "RESOURCE_ALREADY_EXISTS",
    501: "NOT_IMPLEMENTED",
}
_HERE: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Face:
    """The REST face over one API server, for one namespace."""

    client: Client
    namespace: str
    defaults: Json
    """Fields of a run's spec that a request does not say: root, storageSecret, queue."""

    @property
    def _shelf(self) -> Shelf:
        return Shelf(self.client, self.namespace)

    def app(self) -> web.Application:
        """Return the application to serve."""
        app = web.Application(client_max_size=LARGEST, middlewares=[_only_from_here, _errors])
        at = "/apis/v2beta1"
        app.add_routes(
            [
                web.get(f"{at}/healthz", self._healthz),
                web.get(f"{at}/experiments", self._experiments),
                web.post(f"{at}/experiments", self._experiment_made),
                web.get(f"{at}/experiments/{{id}}", self._experiment),
                web.get(f"{at}/runs", self._runs),
                web.post(f"{at}/runs", self._start),
                web.get(f"{at}/runs/{{id}}", self._run),
                web.delete(f"{at}/runs/{{id}}", self._delete),
                web.post(f"{at}/runs/{{id:[^:]+}}:terminate", self._terminate),
                web.post(f"{at}/runs/{{id:[^:]+}}:retry", self._retry),
                web.post(f"{at}/recurringruns", self._schedule),
                *self._shelf.routes(at),
                *Registry(self.client, self.namespace, self.defaults.get("root", "")).routes(),
                web.route("*", "/{rest:.*}", _not_served),
            ]
        )
        return app

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.json_response({"multi_user": False})

    async def _experiments(self, request: web.Request) -> web.Response:
        wanted = filtered(request.query.get("filter", ""))
        if wanted is not None:
            # One that no run bears yet is as good as any.
            return web.json_response({"experiments": [_experiment(wanted)], "total_size": 1})
        runs = (await self.client.list(PIPELINE_RUNS, self.namespace)).items
        names = {one.metadata.labels.get(EXPERIMENT_LABEL, "default") for one in runs}
        found = [_experiment(name) for name in sorted(names)]
        return web.json_response({"experiments": found, "total_size": len(found)})

    async def _experiment_made(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        return web.json_response(_experiment(str(body.get("display_name") or "default")))

    async def _experiment(self, request: web.Request) -> web.Response:
        return web.json_response(_experiment(request.match_info["id"]))

    async def _runs(self, request: web.Request) -> web.Response:
        label = ""
        if experiment := request.query.get("experiment_id"):
            label = f"{EXPERIMENT_LABEL}={slug(experiment)}"
        runs = (await self.client.list(PIPELINE_RUNS, self.namespace, label_selector=label)).items
        ordered = sorted(runs, key=lambda run: run.metadata.creation_timestamp or "", reverse=True)
        found = [_shown(run) for run in ordered]
        return web.json_response({"runs": found, "total_size": len(found)})

    async def _start(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        made = await self.client.create(PIPELINE_RUNS, await self._wanted(body), self.namespace)
        return web.json_response(_shown(made))

    async def _schedule(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        return await self._shelf.schedule(body, await self._wanted(body))

    async def _wanted(self, body: Json) -> Json:
        """Return the run that a request asks for.

        Raises:
            Refused: when it names no pipeline, or one that cannot run here.
        """
        given = body.get("pipeline_spec")
        reference = body.get("pipeline_version_reference") or {}
        if isinstance(given, dict):
            tree, platform = given.get("pipeline_spec", given), given.get("platform_spec") or {}
        elif reference:
            tree, platform = await self._shelf.spec_of(reference)
        else:
            words = "a run brings its pipeline, or names one that is kept"
            raise Refused("pipeline_spec", None, words)
        config = body.get("runtime_config") or {}
        types = kfp.parameters(tree)
        arguments = {
            name: kfp.typed(value, types.get(name))
            for name, value in (config.get("parameters") or {}).items()
        }
        spec = {**kfp.translate(tree, platform), **self.defaults, "arguments": arguments}
        if config.get("pipeline_root"):
            spec["root"] = config["pipeline_root"]
        if body.get("service_account"):
            spec["serviceAccountName"] = body["service_account"]
        if found := problems(convert(spec, PipelineRunSpec)):
            raise Refused(found[0].field, found[0].given, found[0].allowed)
        name = str(body.get("display_name") or kfp.name_of(tree))
        meta = {
            "generateName": f"{slug(name)[:40]}-",
            "labels": {EXPERIMENT_LABEL: slug(str(body.get("experiment_id") or "default"))},
            "annotations": {DISPLAY_ANNOTATION: name},
        }
        return {"metadata": meta, "spec": spec}

    async def _run(self, request: web.Request) -> web.Response:
        found = await self.client.get(PIPELINE_RUNS, request.match_info["id"], self.namespace)
        return web.json_response(_shown(found, steps_of(found.status)))

    async def _delete(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        await self.client.delete(PIPELINE_RUNS, name, self.namespace, propagation="Background")
        return web.json_response({})

    async def _terminate(self, request: web.Request) -> web.Response:
        return await self._change(request, {"desired": "Stopped"})

    async def _retry(self, request: web.Request) -> web.Response:
        found = await self.client.get(PIPELINE_RUNS, request.match_info["id"], self.namespace)
        return await self._change(
            request, {"desired": "Running", "retries": found.spec.retries + 1}
        )

    async def _change(self, request: web.Request, spec: Json) -> web.Response:
        name = request.match_info["id"]
        await self.client.patch(PIPELINE_RUNS, name, {"spec": spec}, self.namespace)
        return web.json_response({})


@web.middleware
async def _only_from_here(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer programs of this machine alone: no page of a browser may start runs."""
    host = request.headers.get("Host", "").rpartition(":")[0] or request.headers.get("Host", "")
    if host not in _HERE or "Origin" in request.headers:
        return _error(403, "only programs of this machine are answered")
    return await handler(request)


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Say in Kubeflow's way what is wrong."""
    try:
        return await handler(request)
    except Refused as refused:
        return _error(400, str(refused.problem))
    except msgspec.ValidationError as error:
        return _error(400, str(error))
    except ApiError as error:
        return _error(error.status if error.status >= 400 else 503, error.message)


async def _not_served(request: web.Request) -> web.StreamResponse:
    return _error(501, f"{request.method} {request.path} is not served; runs and experiments are")


def _error(status: int, message: str) -> web.Response:
    body = {"error": message, "message": message, "code": status}
    # By this word MLflow's client tells what it may do about it.
    body["error_code"] = _CODES.get(status, "INTERNAL_ERROR")
    return web.json_response(body, status=status)


def _experiment(name: str) -> Json:
    return {"experiment_id": slug(name), "display_name": name, "storage_state": "AVAILABLE"}


def _shown(run: PipelineRun, steps: Mapping[str, StepStatus] | None = None) -> Json:
    """Return a run as Kubeflow shows it."""
    meta, status = run.metadata, run.status
    found: Json = {
        "run_id": meta.name,
        "display_name": meta.annotations.get(DISPLAY_ANNOTATION, meta.name),
        "experiment_id": meta.labels.get(EXPERIMENT_LABEL, "default"),
        "storage_state": "AVAILABLE",
        "state": _STATES[status.phase],
        "created_at": meta.creation_timestamp,
        "runtime_config": {"parameters": run.spec.arguments, "pipeline_root": run.spec.root},
    }
    if status.completion_time:
        found["finished_at"] = status.completion_time
    if status.phase == "Failed":
        found["error"] = {"code": 2, "message": status.message}
    if steps:
        found["run_details"] = {"task_details": [_task(meta.name, *one) for one in steps.items()]}
    return found


def _task(run: str, place: str, one: StepStatus) -> Json:
    found: Json = {
        "run_id": run,
        "task_id": place,
        "display_name": one.name,
        "state": "CACHED" if one.kept_from else _STEPS[one.phase],
    }
    if one.started_at:
        found["start_time"] = one.started_at
    if one.finished_at:
        found["end_time"] = one.finished_at
    if one.phase == "Failed":
        found["error"] = {"code": 2, "message": one.message}
    if one.kind == "Pod" and one.object:
        found["pod_name"] = one.object
    return found
