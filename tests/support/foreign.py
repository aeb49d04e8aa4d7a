"""Objects of other systems on a cluster of the test's own: create them, wait for their words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.process_node import needs_mounts
from tests.support.training import Cluster
from tests.support.waiting import eventually

from lockstep.api.core import AnyObject
from lockstep.api.resource import Resource
from lockstep.compat import dialects
from lockstep.compat.etoperator.kinds import KINDS
from lockstep.compat.registry import sources
from lockstep.compat.trainer.kinds import KINDS as TRAINER_KINDS
from lockstep.compat.volcano.kinds import KINDS as VOLCANO_KINDS
from lockstep.kube.crds import ensure_foreign
from lockstep.kube.errors import NotFound, ServerFailed

Json = dict[str, Any]
SERVED: dict[tuple[str, str], Resource[AnyObject]] = {
    (s.kind.group, s.kind.kind): s.resource for s in sources()
} | {(kind.group, kind.kind): kind.resource for kind in (*KINDS, *TRAINER_KINDS, *VOLCANO_KINDS)}


def served(api_version: str, kind: str) -> Resource[AnyObject]:
    """Return the kind as a resource of the API server."""
    return SERVED[api_version.partition("/")[0], kind]


async def install(cluster: Cluster) -> None:
    """Install the kinds of all dialects, as Lockstep's own."""
    async with cluster.node.server.client() as admin:
        await ensure_foreign(admin, dialects.manifests(dialects.DIALECTS))


async def create(cluster: Cluster, api_version: str, kind: str, name: str, spec: Json) -> None:
    """Create an object once its kind is served."""
    needs_mounts()
    await put(cluster, api_version, kind, {"name": name, "namespace": "default"}, spec)


async def put(cluster: Cluster, api_version: str, kind: str, meta: Json, spec: Json) -> None:
    """Create an object with the metadata *meta* once its kind is served."""
    res = served(api_version, kind)

    async def made() -> bool:
        try:
            await cluster.client.create(
                res, {"metadata": meta, "spec": spec}, meta.get("namespace")
            )
        except (NotFound, ServerFailed):
            # A kube-apiserver answers 503 while it takes a definition into use.
            return False
        return True

    await eventually(made, 60, f"{kind} to be served")


async def says(
    cluster: Cluster, api_version: str, kind: str, name: str, what: Callable[[Json], object]
) -> Json:
    """Return the status of an object once *what* holds of it."""
    res, last = served(api_version, kind), {}

    async def look() -> Json | None:
        nonlocal last
        space = "default" if res.namespaced else None
        last = (await cluster.client.get(res, name, space)).status
        return last if what(last) else None

    try:
        return await eventually(look, 200, f"the status of {kind} {name}")
    except AssertionError as error:
        raise AssertionError(f"{error}; its status: {last}") from None


def true(condition: str) -> Callable[[Json], bool]:
    """Return a function that says whether a status has the condition."""

    def holds(status: Json) -> bool:
        told = {c["type"]: c["status"] for c in status.get("conditions") or []}
        return told.get(condition) == "True"

    return holds


def template(*command: str, **more: Any) -> Json:
    """Return a pod template that runs *command*."""
    main = {"name": "main", "image": "none", "command": list(command), **more}
    spec = {"terminationGracePeriodSeconds": 2, "restartPolicy": "Never", "containers": [main]}
    return {"spec": spec}
