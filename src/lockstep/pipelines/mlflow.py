"""MLflow's REST face, for ``mlflow``: its model versions are ModelVersions, its runs ConfigMaps.

A registered model is the name that versions have in common, and an experiment a word on runs.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from lockstep.api import timestamp
from lockstep.api.core import CONFIG_MAPS, ConfigMap
from lockstep.api.model_version import MODEL_VERSIONS, ModelVersion
from lockstep.api.wire import Json
from lockstep.compat.translation import Refused
from lockstep.kube.client import Client
from lockstep.pipelines.rest_words import body_of, slug

RUN_LABEL: Final = "lockstep.dev/mlflow-run"
_STAGES: Final = {
    "None": "Candidate",
    "Staging": "Canary",
    "Production": "Production",
    "Archived": "Retired",
}
_THEIRS: Final = {ours: theirs for theirs, ours in _STAGES.items()}
_KINDS: Final = {"metrics": "metric", "params": "param", "tags": "tag"}
"""Lists of a run, and what keys of its ConfigMap begin with: each value has a key of its own."""


@dataclass(frozen=True)
class Registry:
    """Runs and model versions of one namespace."""

    client: Client
    namespace: str
    root: str
    """Where artefacts of runs go; a directory of this machine where it is empty."""

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the tracking API that are served."""
        at = "/api/2.0/mlflow"
        runs, models, versions = f"{at}/runs", f"{at}/registered-models", f"{at}/model-versions"
        return [
            web.get(f"{at}/experiments/get-by-name", self._experiment),
            web.get(f"{at}/experiments/get", self._experiment),
            web.post(f"{at}/experiments/create", self._experiment_made),
            web.post(f"{runs}/create", self._start),
            web.get(f"{runs}/get", self._run),
            web.post(f"{runs}/update", self._update),
            web.post(f"{runs}/log-metric", self._one_metric),
            web.post(f"{runs}/log-parameter", self._one_param),
            web.post(f"{runs}/set-tag", self._one_tag),
            web.post(f"{runs}/log-batch", self._batch),
            web.post(f"{runs}/log-inputs", self._inputs),
            web.post(f"{models}/create", self._model),
            web.get(f"{models}/get", self._model),
            web.post(f"{models}/get-latest-versions", self._latest),
            web.post(f"{versions}/create", self._register),
            web.get(f"{versions}/get", self._version),
            web.get(f"{versions}/search", self._search),
            web.get(f"{versions}/get-download-uri", self._download),
            web.post(f"{versions}/transition-stage", self._move),
        ]

    # --- experiments and runs ---

    async def _experiment(self, request: web.Request) -> web.Response:
        query = request.query
        name = query.get("experiment_name") or query.get("experiment_id") or "default"
        shown = {"experiment_id": slug(name), "name": name, "lifecycle_stage": "active"}
        return web.json_response({"experiment": shown})

    async def _experiment_made(self, request: web.Request) -> web.Response:
        return web.json_response({"experiment_id": slug(str((await body_of(request))["name"]))})

    async def _start(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        run = secrets.token_hex(16)
        info = {
            "run_id": run,
            "run_uuid": run,
            "run_name": body.get("run_name") or run[:8],
            "experiment_id": body.get("experiment_id") or "default",
            "status": "RUNNING",
            "start_time": body.get("start_time") or int(time.time() * 1000),
            "artifact_uri": f"{self.root or Path.cwd().joinpath('mlruns').as_uri()}/{run}",
            "lifecycle_stage": "active",
        }
        data = {"info": json.dumps(info), **_keys("tags", body.get("tags") or [])}
        meta = {"name": f"mlflow-{run}", "labels": {RUN_LABEL: "true"}}
        made = await self.client.create(
            CONFIG_MAPS, {"metadata": meta, "data": data}, self.namespace
        )
        return web.json_response({"run": _run(made)})

    async def _kept(self, run: str) -> ConfigMap:
        found: ConfigMap = await self.client.get(CONFIG_MAPS, f"mlflow-{run}", self.namespace)
        return found

    async def _run(self, request: web.Request) -> web.Response:
        return web.json_response({"run": _run(await self._kept(request.query["run_id"]))})

    async def _update(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        kept = await self._kept(body["run_id"])
        told = {k: body[k] for k in ("status", "end_time", "run_name") if body.get(k)}
        info = json.loads(kept.data["info"]) | told
        await self._note(body, {"info": json.dumps(info)})
        return web.json_response({"run_info": info})

    async def _note(self, body: Json, data: dict[str, str]) -> web.Response:
        """Keep *data* of the run that a request names; other values of it stay as they are."""
        name = f"mlflow-{body.get('run_id') or body.get('run_uuid')}"
        await self.client.patch(CONFIG_MAPS, name, {"data": data}, self.namespace)
        return web.json_response({})

    async def _one_metric(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        return await self._note(body, _keys("metrics", [body]))

    async def _one_param(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        return await self._note(body, _keys("params", [body]))

    async def _one_tag(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        return await self._note(body, _keys("tags", [body]))

    async def _batch(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        given = [_keys(kind, body.get(kind) or []) for kind in _KINDS]
        return await self._note(body, {k: v for one in given for k, v in one.items()})

    async def _inputs(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        named = [one["dataset"] for one in body.get("datasets") or []]
        return await self._note(body, {"inputs": json.dumps(named)})

    # --- models ---

    async def _model(self, request: web.Request) -> web.Response:
        given = request.query if request.method == "GET" else await body_of(request)
        return web.json_response({"registered_model": {"name": given["name"]}})

    async def _versions(self, model: str) -> list[ModelVersion]:
        """Return the versions of *model*, of all models where it is empty; the newest first."""
        listed = (await self.client.list(MODEL_VERSIONS, self.namespace)).items
        own = [one for one in listed if model in ("", one.spec.model)]
        return sorted(own, key=_number, reverse=True)

    async def _register(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        model, run = str(body["name"]), str(body.get("run_id") or "")
        newest = await self._versions(model)
        number = _number(newest[0]) + 1 if newest else 1
        spec = {"model": model, "version": str(number), "uri": body["source"], "run": run}
        if run:
            spec |= _origin(await self._kept(run))
        # The name is the number's: of two at once the server refuses one.
        meta = {"name": f"{slug(model)}-{number}"}
        made = await self.client.create(
            MODEL_VERSIONS, {"metadata": meta, "spec": spec}, self.namespace
        )
        return web.json_response({"model_version": _shown(made)})

    async def _find(self, given: Any) -> ModelVersion:
        found = await self._versions(str(given["name"]))
        for one in found:
            if one.spec.version == str(given["version"]):
                return one
        known = ", ".join(one.spec.version for one in found) or "none"
        raise Refused("version", given["version"], f"versions of {given['name']} are {known}")

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"model_version": _shown(await self._find(request.query))})

    async def _download(self, request: web.Request) -> web.Response:
        return web.json_response({"artifact_uri": (await self._find(request.query)).spec.uri})

    async def _search(self, request: web.Request) -> web.Response:
        wanted = request.query.get("filter", "")
        named = re.fullmatch(r"\s*name\s*=\s*'([^']*)'\s*", wanted)
        if wanted and not named:
            raise Refused("filter", wanted, "is name='MODEL', or left out")
        found = await self._versions(named[1] if named else "")
        return web.json_response({"model_versions": [_shown(one) for one in found]})

    async def _latest(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        stages, newest = body.get("stages") or [*_STAGES], dict[str, Json]()
        for one in map(_shown, await self._versions(str(body["name"]))):
            newest.setdefault(one["current_stage"], one)
        found = [one for stage, one in newest.items() if stage in stages]
        return web.json_response({"model_versions": found})

    async def _move(self, request: web.Request) -> web.Response:
        body = await body_of(request)
        if body.get("stage") not in _STAGES:
            raise Refused("stage", body.get("stage"), f"is one of {', '.join(_STAGES)}")
        one = await self._find(body)
        patch = {"spec": {"stage": _STAGES[body["stage"]]}}
        made = await self.client.patch(MODEL_VERSIONS, one.metadata.name, patch, self.namespace)
        return web.json_response({"model_version": _shown(made)})


def _keys(kind: str, given: list[Json]) -> dict[str, str]:
    """Return values of a run by the keys that keep them: names may hold what keys may not."""
    fields = ("key", "value", "timestamp", "step") if kind == "metrics" else ("key", "value")
    return {
        f"{_KINDS[kind]}.{one['key'].encode().hex()}": json.dumps({f: one.get(f) for f in fields})
        for one in given
    }


def _values(kept: ConfigMap, kind: str) -> list[Json]:
    start = f"{_KINDS[kind]}."
    return [json.loads(value) for key, value in sorted(kept.data.items()) if key.startswith(start)]


def _run(kept: ConfigMap) -> Json:
    data = {kind: _values(kept, kind) for kind in _KINDS}
    inputs = [{"dataset": one} for one in json.loads(kept.data.get("inputs", "[]"))]
    info = json.loads(kept.data["info"])
    return {"info": info, "data": data, "inputs": {"dataset_inputs": inputs}}


def _origin(kept: ConfigMap) -> Json:
    """Return what a run tells of a model that came from it: its metrics and its data."""
    metrics = {one["key"]: float(one["value"]) for one in _values(kept, "metrics")}
    named = json.loads(kept.data.get("inputs", "[]"))
    return {"metrics": metrics, "data": [str(one.get("source") or one["name"]) for one in named]}


def _number(one: ModelVersion) -> int:
    return int(one.spec.version) if one.spec.version.isdecimal() else 0


def _shown(one: ModelVersion) -> Json:
    created = int(timestamp.parse(one.metadata.creation_timestamp or "1970-01-01T00:00:00Z") * 1000)
    return {
        "name": one.spec.model,
        "version": one.spec.version,
        "creation_timestamp": created,
        "last_updated_timestamp": created,
        "current_stage": _THEIRS[one.spec.stage],
        "source": one.spec.uri,
        "run_id": one.spec.run,
        "status": "READY",
    }
