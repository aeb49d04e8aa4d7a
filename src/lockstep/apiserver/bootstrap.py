"""What is there from the first start on."""

from __future__ import annotations

from lockstep.apiserver.objects import Objects, WriteOptions
from lockstep.apiserver.status import StatusError

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")

_OPTIONS = WriteOptions(manager="lockstep-apiserver")


async def create_namespaces(objects: Objects) -> None:
    """Create the namespaces that every cluster has."""
    served = objects.catalog.find("", "v1", "namespaces")
    if served is None:
        return
    for name in NAMESPACES:
        obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        try:
            await objects.create(served, "", obj, _OPTIONS)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
