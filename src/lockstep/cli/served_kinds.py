"""The kinds that an API server serves, found by their apiVersion and name."""

from __future__ import annotations

import msgspec

from lockstep.api.core import AnyObject
from lockstep.api.resource import Resource
from lockstep.cli.connect import Session
from lockstep.cli.failure import CommandFailed
from lockstep.kube.errors import NotFound


async def find_resource(session: Session, api_version: str, kind: str) -> Resource[AnyObject]:
    """Return the resource that the server serves for a kind.

    Raises:
        CommandFailed: when it serves none.
    """
    group, _, version = api_version.rpartition("/")
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        served = msgspec.json.decode(await session.client.get_raw(path))["resources"]
    except NotFound:
        served = []
    for entry in served:
        if entry["kind"] == kind and "/" not in entry["name"]:
            return Resource(group, version, entry["name"], kind, entry["namespaced"], AnyObject)
    raise CommandFailed(
        f"the API server does not serve {kind} in {api_version}",
        "`lockstep manifests crds | kubectl apply -f -` adds our kinds to a cluster",
    )
