"""Reading and changing objects of any kind that has a page, as requests of the user's own."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, Final

import msgspec
import yaml
from aiohttp import web

from lockstep.api.core import AnyObject
from lockstep.api.resource import Resource
from lockstep.api.wire import Json
from lockstep.console import answers
from lockstep.console.answers import Unreadable, answer, problem
from lockstep.console.cluster_cache import ClusterCache
from lockstep.console.sessions import Session
from lockstep.console.views.kinds import OBJECTS
from lockstep.console.views.query import require_names
from lockstep.kube.client import Patch
from lockstep.kube.errors import ApiError, Conflict

NONE: Final = "-"
"""In place of the namespace of what has none."""
MOST_DIFFERENCES: Final = 400


class Sent(msgspec.Struct, forbid_unknown_fields=True):
    """An object as a tree or as YAML, to write or only to check."""

    object: Json | None = None
    yaml: str | None = None
    check: bool = False


class Patched(msgspec.Struct, forbid_unknown_fields=True):
    """A merge patch; with ``version`` only of the object as it was then."""

    patch: Json
    version: str = ""
    check: bool = False


class Objects:
    """The endpoints below ``/api/objects``."""

    def __init__(self, world: ClusterCache, user: Callable[[web.Request], Session]) -> None:
        self._world, self._user = world, user

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        one = "/api/objects/{word}/{namespace}/{name}"
        return [
            web.post("/api/objects", self._create),
            web.get(one, self._get),
            web.put(one, self._replace),
            web.patch(one, self._patch),
            web.delete(one, self._delete),
            web.post("/api/drain/{name}", self._drain),
        ]

    async def _create(self, request: web.Request) -> web.Response:
        session = self._user(request)
        given: Sent = await answers.body(request, Sent)
        tree = tree_of(given)
        res = resource_of(tree)
        meta = tree.setdefault("metadata", {})
        if res.namespaced:
            meta.setdefault("namespace", session.namespace)
            require_names(namespace=str(meta["namespace"]))
        path = res.path(str(meta["namespace"]) if res.namespaced else None)
        made = await _write(session, "POST", path, tree, check=given.check)
        word = next(word for word, one in OBJECTS.items() if one.plural == res.plural)
        named = made.get("metadata", {})
        told = {"word": word, "namespace": named.get("namespace") or NONE, "name": named["name"]}
        return answer({**told, "object": made}, 200 if given.check else 201)

    async def _get(self, request: web.Request) -> web.Response:
        session = self._user(request)
        res, namespace, name = _target(request)
        found = msgspec.json.decode(await session.client.get_raw(res.path(namespace, name)))
        found.get("metadata", {}).pop("managedFields", None)
        return answer({"object": found, "yaml": shown(found)})

    async def _replace(self, request: web.Request) -> web.Response:
        """Write an object that was read before; a conflict is answered with the difference."""
        session = self._user(request)
        res, namespace, name = _target(request)
        given: Sent = await answers.body(request, Sent)
        tree = tree_of(given)
        meta = tree.setdefault("metadata", {})
        if meta.get("name", name) != name or (meta.get("namespace") or namespace) != namespace:
            raise Unreadable(f"metadata: the name stays {name}; create another object instead")
        path = res.path(namespace, name)
        try:
            made = await _write(session, "PUT", path, tree, check=given.check)
        except Conflict as error:
            there = msgspec.json.decode(await session.client.get_raw(path))
            return problem(409, error.message, difference=difference(there, tree))
        return answer({"object": made, "yaml": shown(made)})

    async def _patch(self, request: web.Request) -> web.Response:
        session = self._user(request)
        res, namespace, name = _target(request)
        given: Patched = await answers.body(request, Patched)
        patch = given.patch
        if given.version:
            meta = patch.get("metadata")
            known = dict(meta) if isinstance(meta, dict) else {}
            patch = {**patch, "metadata": {**known, "resourceVersion": given.version}}
        params = {"dryRun": "All"} if given.check else {}
        await session.client.request(
            "PATCH",
            res.path(namespace, name),
            params={"fieldManager": "lockstep-console", "fieldValidation": "Strict", **params},
            body=msgspec.json.encode(patch),
            content_type=Patch.MERGE.value,
        )
        return answer({})

    async def _delete(self, request: web.Request) -> web.Response:
        session = self._user(request)
        res, namespace, name = _target(request)
        await session.client.delete(res, name, namespace, uid=request.query.get("uid") or None)
        return answer({})

    async def _drain(self, request: web.Request) -> web.Response:
        """Cordon a node and ask for the end of its pods; tell which of them stay, and why."""
        session, name = self._user(request), request.match_info["name"]
        require_names(name=name)
        if not await self._world.cluster_ready():
            return problem(503, f"the API server is being read: {self._world.problem()}")
        node = self._world.node(name)
        if node is None:
            return problem(404, f"name: there is no node {name!r}")
        patch = {"spec": {"unschedulable": True}}
        await session.client.patch(OBJECTS["nodes"], name, patch)
        gone, stay = [], []
        for namespace, pod, _ in node.pods:
            try:
                await session.client.evict(namespace, pod)
                gone.append(f"{namespace}/{pod}")
            except ApiError as error:
                stay.append({"pod": f"{namespace}/{pod}", "message": error.message})
        return answer({"evicted": gone, "stay": stay})


def tree_of(given: Sent) -> Json:
    """Return what was sent as a tree.

    Raises:
        Unreadable: when it is neither an object nor YAML of one.
    """
    if (given.object is None) == (given.yaml is None):
        raise Unreadable("body: give either object or yaml")
    return given.object if given.object is not None else parsed(given.yaml or "")


def parsed(text: str) -> Json:
    """Return the one object that a YAML text holds.

    Raises:
        Unreadable: with the line where it goes wrong.
    """
    try:
        events = sum(isinstance(e, yaml.AliasEvent) for e in yaml.parse(text, yaml.SafeLoader))
        if events > 100:
            raise Unreadable("yaml: it has more than 100 aliases; write them out")
        found = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}: " if mark is not None else ""
        raise Unreadable(f"yaml: {line}{error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Unreadable(f"yaml: {str(error)[:200]}") from None
    if not isinstance(found, dict):
        raise Unreadable("yaml: it is no object; begin with apiVersion and kind")
    return {str(key): plain(value) for key, value in found.items()}


def plain(tree: Any) -> Any:
    """Return what YAML gave as JSON has it: dates as texts, and keys that are texts."""
    if isinstance(tree, dict):
        return {str(key): plain(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [plain(value) for value in tree]
    if tree is None or isinstance(tree, str | int | float | bool):
        return tree
    return tree.isoformat() if hasattr(tree, "isoformat") else str(tree)


def resource_of(tree: Json) -> Resource[Any]:
    """Return the kind of an object that is to be created.

    Raises:
        Unreadable: when no page shows that kind.
    """
    said = (tree.get("apiVersion"), tree.get("kind"))
    if not isinstance(tree.get("metadata", {}), dict):
        raise Unreadable("metadata: it is no object")
    for res in OBJECTS.values():
        if said == (res.api_version, res.kind):
            return res
    kinds = ", ".join(sorted({res.kind for res in OBJECTS.values()}))
    raise Unreadable(f"kind: {str(said[1])[:60]!r} of {str(said[0])[:60]!r} is none of {kinds}")


def shown(tree: Any) -> str:
    """Return an object as YAML, without what the server notes for itself."""
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=100)


def difference(there: Json, wanted: Json) -> list[str]:
    """Return the lines in which what stands there and what was to be written differ."""
    for tree in (there, wanted):
        tree.pop("status", None)
        for field in ("managedFields", "resourceVersion", "generation"):
            tree.get("metadata", {}).pop(field, None)
    old, new = shown(there).splitlines(), shown(wanted).splitlines()
    lines = difflib.unified_diff(old, new, "now", "yours", lineterm="", n=2)
    return list(lines)[:MOST_DIFFERENCES]


async def _write(session: Session, method: str, path: str, tree: Json, *, check: bool) -> Json:
    params = {"fieldManager": "lockstep-console", "fieldValidation": "Strict"}
    if check:
        params["dryRun"] = "All"
    body = await session.client.request(
        method, path, params=params, body=msgspec.json.encode(tree), repeatable=check
    )
    made: Json = msgspec.json.decode(body)
    made.get("metadata", {}).pop("managedFields", None)
    return made


def _target(request: web.Request) -> tuple[Resource[AnyObject], str | None, str]:
    word, name = request.match_info["word"], request.match_info["name"]
    res = OBJECTS.get(word)
    if res is None:
        raise web.HTTPNotFound(reason=f"kind: use one of {', '.join(OBJECTS)}")
    require_names(name=name)
    namespace = request.match_info["namespace"]
    if not res.namespaced:
        return res, None, name
    require_names(namespace=namespace)
    return res, namespace, name
