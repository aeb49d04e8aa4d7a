"""Pipelines that are kept and recurring runs, as Kubeflow's REST face shows them: objects each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from lockstep.api.core import AnyObject
from lockstep.api.meta import owner_reference
from lockstep.api.resource import Resource
from lockstep.api.wire import Json
from lockstep.compat.kfp import translate as kfp
from lockstep.compat.kfp.kinds import PIPELINE_VERSIONS, PIPELINES, SCHEDULED_WORKFLOWS
from lockstep.compat.translation import Refused
from lockstep.kube.client import Client
from lockstep.pipelines.rest_words import body_of, filtered, slug

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Kind = Resource[AnyObject]
Show = Callable[[AnyObject], Json]

_LARGEST = 8 << 20


@dataclass(frozen=True)
class Shelf:
    """The pipelines and recurring runs of one namespace."""

    client: Client
    namespace: str

    def routes(self, at: str) -> list[web.RouteDef]:
        """Return the routes below *at*."""
        pipelines, one = f"{at}/pipelines", f"{at}/pipelines/{{id}}"
        recurring, version = f"{at}/recurringruns", f"{one}/versions/{{version}}"
        return [
            web.get(pipelines, self._list),
            web.post(f"{pipelines}/upload", self._upload),
            web.post(f"{pipelines}/upload_version", self._upload_version),
            web.get(f"{pipelines}/names/{{name}}", self._named),
            web.get(one, self._one(PIPELINES, _pipeline)),
            web.delete(one, self._gone(PIPELINES)),
            web.get(f"{one}/versions", self._versions),
            web.get(
                f"{one}/versions/{{version}}", self._one(PIPELINE_VERSIONS, _version, "version")
            ),
            web.delete(version, self._gone(PIPELINE_VERSIONS, "version")),
            web.get(recurring, self._recurring),
            web.get(f"{recurring}/{{id:[^:]+}}", self._one(SCHEDULED_WORKFLOWS, _recurring_shown)),
            web.delete(f"{recurring}/{{id:[^:]+}}", self._gone(SCHEDULED_WORKFLOWS)),
            web.post(f"{recurring}/{{id:[^:]+}}:enable", self._switch(enabled=True)),
            web.post(f"{recurring}/{{id:[^:]+}}:disable", self._switch(enabled=False)),
        ]

    async def spec_of(self, reference: Json) -> tuple[Json, Json]:
        """Return the pipeline that *reference* names, and its platform part.

        Raises:
            Refused: when it names none.
        """
        version = reference.get("pipeline_version_id")
        if not version:
            newest = await self._all_versions(str(reference.get("pipeline_id") or ""))
            if not newest:
                field = "pipeline_version_reference.pipeline_id"
                raise Refused(field, reference.get("pipeline_id"), "no such pipeline is kept")
            version = newest[0].metadata.name
        found = await self.client.get(PIPELINE_VERSIONS, str(version), self.namespace)
        return found.spec.get("pipelineSpec") or {}, found.spec.get("platformSpec") or {}

    async def schedule(self, body: Json, run: Json) -> web.Response:
        """Keep a recurring run of what *run* says: metadata and spec of a PipelineRun."""
        name = str(body.get("display_name") or "recurring")
        trigger = body.get("trigger") or {}
        spec = {
            "enabled": body.get("mode") != "DISABLE",
            "maxConcurrency": int(body.get("max_concurrency") or 1),
            "noCatchup": bool(body.get("no_catchup")),
            "trigger": _camel(trigger),
            "workflow": {**run["metadata"], "spec": run["spec"]},
            "description": str(body.get("description") or ""),
            "displayName": name,
        }
        meta = {"generateName": f"{slug(name)[:40]}-", "labels": run["metadata"]["labels"]}
        made = await self.client.create(
            SCHEDULED_WORKFLOWS, {"metadata": meta, "spec": spec}, self.namespace
        )
        return web.json_response(_recurring_shown(made))

    async def _list(self, request: web.Request) -> web.Response:
        wanted = filtered(request.query.get("filter", ""))
        listed = (await self.client.list(PIPELINES, self.namespace)).items
        found = [_pipeline(one) for one in listed]
        if wanted is not None:
            found = [one for one in found if wanted in (one["display_name"], one["name"])]
        return web.json_response({"pipelines": found, "total_size": len(found)})

    async def _upload(self, request: web.Request) -> web.Response:
        tree, platform = await _uploaded(request)
        name = str(request.query.get("name") or request.query.get("display_name") or "")
        name = name or kfp.name_of(tree)
        spec = {"displayName": name, "description": request.query.get("description", "")}
        body = {"metadata": {"name": slug(name)}, "spec": spec}
        made = await self.client.create(PIPELINES, body, self.namespace)
        await self._keep(made, "v1", tree, platform)
        return web.json_response(_pipeline(made))

    async def _upload_version(self, request: web.Request) -> web.Response:
        tree, platform = await _uploaded(request)
        pipeline = str(request.query.get("pipelineid") or "")
        kept = await self.client.get(PIPELINES, pipeline, self.namespace)
        count = len(await self._all_versions(pipeline))
        name = str(request.query.get("name") or f"v{count + 1}")
        return web.json_response(_version(await self._keep(kept, name, tree, platform)))

    async def _keep(self, pipeline: AnyObject, name: str, tree: Json, platform: Json) -> AnyObject:
        meta = pipeline.metadata
        owner = owner_reference(pipeline, PIPELINES)
        spec: Json = {"pipelineName": meta.name, "displayName": name, "pipelineSpec": tree}
        if platform:
            spec["platformSpec"] = platform
        made = {"name": f"{meta.name}-{slug(name)}", "ownerReferences": [owner]}
        found: AnyObject = await self.client.create(
            PIPELINE_VERSIONS, {"metadata": made, "spec": spec}, self.namespace
        )
        return found

    async def _named(self, request: web.Request) -> web.Response:
        name = slug(request.match_info["name"])
        return web.json_response(_pipeline(await self.client.get(PIPELINES, name, self.namespace)))

    async def _all_versions(self, pipeline: str) -> list[AnyObject]:
        """Return the versions of a pipeline, the newest first."""
        listed = (await self.client.list(PIPELINE_VERSIONS, self.namespace)).items
        own = [one for one in listed if one.spec.get("pipelineName") == pipeline]
        return sorted(own, key=_age, reverse=True)

    async def _versions(self, request: web.Request) -> web.Response:
        own = await self._all_versions(request.match_info["id"])
        found = [_version(one) for one in own]
        return web.json_response({"pipeline_versions": found, "total_size": len(found)})

    async def _recurring(self, request: web.Request) -> web.Response:
        listed = (await self.client.list(SCHEDULED_WORKFLOWS, self.namespace)).items
        found = [_recurring_shown(one) for one in listed]
        return web.json_response({"recurringRuns": found, "total_size": len(found)})

    def _one(self, kind: Kind, show: Show, key: str = "id") -> Handler:
        """Return what answers with the object that the path names at *key*."""

        async def answer(request: web.Request) -> web.Response:
            name = request.match_info[key]
            return web.json_response(show(await self.client.get(kind, name, self.namespace)))

        return answer

    def _gone(self, kind: Kind, key: str = "id") -> Handler:
        """Return what deletes that object, and what belongs to it."""

        async def answer(request: web.Request) -> web.Response:
            name = request.match_info[key]
            await self.client.delete(kind, name, self.namespace, propagation="Background")
            return web.json_response({})

        return answer

    def _switch(self, *, enabled: bool) -> Handler:
        async def answer(request: web.Request) -> web.Response:
            name, patch = request.match_info["id"], {"spec": {"enabled": enabled}}
            await self.client.patch(SCHEDULED_WORKFLOWS, name, patch, self.namespace)
            return web.json_response({})

        return answer


async def _uploaded(request: web.Request) -> tuple[Json, Json]:
    """Return the pipeline of an upload, which must be one that runs here, and its platform part.

    Raises:
        Refused: when it is none, or asks for what is not served.
    """
    import yaml

    if request.content_type == "application/json":
        raw = str((await body_of(request)).get("package", ""))
    else:
        part = await (await request.multipart()).next()
        if part is None or not hasattr(part, "read"):
            raise Refused("uploadfile", None, "the form must have a file")
        raw = bytes(await part.read())[: _LARGEST + 1].decode(errors="replace")
    try:
        documents = [one for one in yaml.safe_load_all(raw) if isinstance(one, dict)]
    except yaml.YAMLError as error:
        words = f"must be what kfp's compiler writes as YAML: {error}"
        raise Refused("uploadfile", None, words) from None
    tree = next((one for one in documents if kfp.is_pipeline(one)), None)
    if tree is None:
        raise Refused("uploadfile", None, "holds no pipeline; give the YAML of kfp's compiler")
    platform = next((one for one in documents if "platforms" in one), {})
    kfp.translate(tree, platform)
    return tree, platform


def _age(one: AnyObject) -> tuple[str, int]:
    version = one.metadata.resource_version
    return one.metadata.creation_timestamp or "", int(version) if version.isdecimal() else 0


def _pipeline(one: AnyObject) -> Json:
    return {
        "pipeline_id": one.metadata.name,
        "name": one.metadata.name,
        "display_name": one.spec.get("displayName") or one.metadata.name,
        "description": one.spec.get("description") or "",
        "created_at": one.metadata.creation_timestamp,
        "namespace": one.metadata.namespace,
    }


def _version(one: AnyObject) -> Json:
    platform = one.spec.get("platformSpec")
    tree = one.spec.get("pipelineSpec") or {}
    return {
        "pipeline_id": one.spec.get("pipelineName"),
        "pipeline_version_id": one.metadata.name,
        "name": one.metadata.name,
        "display_name": one.spec.get("displayName") or one.metadata.name,
        "created_at": one.metadata.creation_timestamp,
        "pipeline_spec": {"pipeline_spec": tree, "platform_spec": platform} if platform else tree,
    }


def _camel(trigger: Json) -> Json:
    """Return a trigger in the words of the object."""
    names = {
        "cron_schedule": "cronSchedule",
        "periodic_schedule": "periodicSchedule",
        "interval_second": "intervalSecond",
        "start_time": "startTime",
        "end_time": "endTime",
    }
    found: Json = {}
    for key, value in trigger.items():
        if value is not None:
            found[names.get(key, key)] = _camel(value) if isinstance(value, dict) else value
    return found


def _snake(trigger: Json) -> Json:
    cron, periodic = trigger.get("cronSchedule"), trigger.get("periodicSchedule")
    given = cron or periodic or {}
    found: Json = {"cron": given["cron"]} if cron else {}
    if periodic:
        found["interval_second"] = str(given.get("intervalSecond"))
    for key, name in (("startTime", "start_time"), ("endTime", "end_time")):
        if key in given:
            found[name] = given[key]
    return {"cron_schedule" if cron else "periodic_schedule": found}


def _recurring_shown(one: AnyObject) -> Json:
    spec = one.spec
    conditions = one.status.get("conditions") or [{}]
    found: Json = {
        "recurring_run_id": one.metadata.name,
        "display_name": spec.get("displayName") or one.metadata.name,
        "description": spec.get("description") or "",
        "mode": "ENABLE" if spec.get("enabled", True) else "DISABLE",
        "status": "ENABLED" if spec.get("enabled", True) else "DISABLED",
        "created_at": one.metadata.creation_timestamp,
        "max_concurrency": str(spec.get("maxConcurrency", 1)),
        "no_catchup": bool(spec.get("noCatchup")),
        "trigger": _snake(spec.get("trigger") or {}),
    }
    if conditions[0].get("type") == "Error":
        found["error"] = {"code": 3, "message": conditions[0].get("message", "")}
    return found
