"""The shell around Kubeflow's Notebook: secret, service and pod, and the status in its words."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lockstep.api.core import PODS, SECRETS, SERVICES, Pod
from lockstep.api.merge import difference
from lockstep.api.resource import Resource
from lockstep.compat.kubeflow.notebook import NOTEBOOKS, STOPPED, Notebook, status
from lockstep.kube.client import Client
from lockstep.kube.controller import Key
from lockstep.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer
from lockstep.notebooks.core import dozing, notebook_pod
from lockstep.notebooks.core.world import Json, Settings
from lockstep.notebooks.installed import Installed
from lockstep.notebooks.master import Master

log = logging.getLogger(__name__)

_REFUSALS: Final = frozenset({400, 403, 405, 413, 422})
RETRY_SECONDS: Final = 30.0


@dataclass
class NotebookController:
    """Keeps one pod for each notebook that is not stopped."""

    client: Client
    caches: Mapping[Resource[Any], Informer[Any]]
    recorder: Recorder
    master: Master
    settings: Settings
    installed: Installed
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the notebook at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        notebook: Notebook | None = self.caches[NOTEBOOKS].get(*key)
        if notebook is None or notebook.metadata.deletion_timestamp is not None:
            return None
        if not await self.installed.ours(notebook.metadata):
            return None
        pod: Pod | None = self.caches[PODS].get(key[0], notebook_pod.pod_name(notebook))
        if pod is not None and not _owned(pod, notebook):
            pod = None
        stopped = STOPPED in notebook.metadata.annotations
        try:
            await self._write_status(notebook, pod)
            if stopped:
                await self._end(pod)
                return None
            if pod is None:
                await self._make(notebook)
            elif pod.status.phase in ("Succeeded", "Failed"):
                # A StatefulSet's pod comes back, whatever it ended with.
                await self._end(pod)
            return await self._doze(notebook)
        except (Conflict, NotFound) as error:
            log.debug("%s: %s", key, error)
            return 0.1
        except ApiError as error:
            if error.status not in _REFUSALS:
                raise
            self.recorder.event(notebook, "Warning", "Refused", str(error)[:1000])
            return RETRY_SECONDS
        return None

    async def _doze(self, notebook: Notebook) -> float | None:
        """Let a page sleep that was not looked at for long; return when to look again."""
        left = dozing.left(notebook, self.clock()) if self.settings.gateway else None
        if left is None or left > 0:
            return left
        about = notebook.metadata
        # Against the version that was seen: a request that has come meanwhile keeps it awake.
        change = {"annotations": {STOPPED: dozing.ASLEEP}}
        body = {"metadata": {**change, "resourceVersion": about.resource_version}}
        await self.client.patch(NOTEBOOKS, about.name, body, about.namespace)
        text = "it was not looked at for long: it wakes when its page is opened"
        self.recorder.event(notebook, "Normal", "Asleep", text)
        return None

    async def _make(self, notebook: Notebook) -> None:
        if not notebook.pod_spec.get("containers"):
            text = "spec.template.spec.containers: a notebook needs one container; name its image"
            self.recorder.event(notebook, "Warning", "Refused", text)
            return
        master = await self.master.key()
        await self._create(SECRETS, notebook_pod.secret(notebook, master, self.settings))
        if self.caches[SERVICES].get(notebook.metadata.namespace, notebook.metadata.name) is None:
            await self._create(SERVICES, notebook_pod.service(notebook))
        await self._create(PODS, notebook_pod.pod(notebook, self.settings))

    async def _create(self, resource: Resource[Any], body: Json) -> None:
        try:
            await self.client.create(resource, body, body["metadata"]["namespace"])
        except AlreadyExists:
            # Made a moment ago, and not in the cache yet. A secret may be of an older one of the
            # same name, whose tokens are not this one's.
            if resource is SECRETS:
                await self.client.patch(
                    SECRETS, body["metadata"]["name"], body, body["metadata"]["namespace"]
                )

    async def _end(self, pod: Pod | None) -> None:
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return
        about = pod.metadata
        await self.client.delete(PODS, about.name, about.namespace, uid=about.uid)

    async def _write_status(self, notebook: Notebook, pod: Pod | None) -> None:
        patch = difference(notebook.status, status(notebook, pod))
        if patch:
            about = notebook.metadata
            await self.client.patch(
                NOTEBOOKS, about.name, {"status": patch}, about.namespace, subresource="status"
            )


def _owned(pod: Pod, notebook: Notebook) -> bool:
    return any(one.uid == notebook.metadata.uid for one in pod.metadata.owner_references)
