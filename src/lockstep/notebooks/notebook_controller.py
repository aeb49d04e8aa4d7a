"""The shell around Kubeflow's Notebook: secret, service and pod, and the status in its words."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lockstep.api.core import PODS, SECRETS, SERVICES, Pod
from lockstep.api.meta import owned_by
from lockstep.api.resource import Resource
from lockstep.compat.kubeflow.notebook import NOTEBOOKS, STOPPED, Notebook, status
from lockstep.kube.errors import NotFound
from lockstep.kube.events import reference
from lockstep.kube.informer import Informer
from lockstep.notebooks.core import dozing, notebook_pod
from lockstep.notebooks.core.kernel_state import Settings
from lockstep.notebooks.kind_ownership import KindOwnership
from lockstep.notebooks.master import Master
from lockstep.runtime.actions import Action, Change, Create, Delete, Note
from lockstep.runtime.controller import Key
from lockstep.runtime.reconciler import Writer
from lockstep.runtime.refusals import RETRY_REFUSED
from lockstep.runtime.status import write_status


@dataclass
class NotebookController:
    """Keeps one pod for each notebook that is not stopped."""

    writer: Writer
    caches: Mapping[Resource[Any], Informer[Any]]
    master: Master
    settings: Settings
    ownership: KindOwnership
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the notebook at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        notebook: Notebook | None = self.caches[NOTEBOOKS].get(*key)
        if notebook is None or notebook.metadata.deletion_timestamp is not None:
            return None
        if not await self.ownership.ours(notebook.metadata):
            return None
        pod: Pod | None = self.caches[PODS].get(key[0], notebook_pod.pod_name(notebook))
        if pod is not None and not owned_by(pod, notebook):
            pod = None
        await write_status(self.writer.client, NOTEBOOKS, notebook, status(notebook, pod))
        stopped = STOPPED in notebook.metadata.annotations
        if pod is None:
            actions = [] if stopped else await self._making(notebook)
        else:
            # A StatefulSet's pod comes back, with any exit code.
            over = stopped or pod.status.phase in ("Succeeded", "Failed")
            going = pod.metadata.deletion_timestamp is not None
            actions = [Delete.of(PODS, pod.metadata)] if over and not going else []
        if await self.writer.act(reference(NOTEBOOKS, notebook.metadata), actions):
            return RETRY_REFUSED
        return None if stopped else await self._doze(notebook)

    async def _doze(self, notebook: Notebook) -> float | None:
        """Let a page sleep that was not looked at for long; return when to look again."""
        left = dozing.left(notebook, self.clock()) if self.settings.gateway else None
        if left is None or left > 0:
            return left
        about = notebook.metadata
        # Against the version that was seen: a request that has come meanwhile keeps it awake.
        sleep = {"metadata": {"annotations": {STOPPED: dozing.ASLEEP}}}
        if await self.writer.act(reference(NOTEBOOKS, about), [Change.of(NOTEBOOKS, about, sleep)]):
            return RETRY_REFUSED
        text = "it was not looked at for long: it wakes when its page is opened"
        self.writer.tell(NOTEBOOKS, notebook, Note("Asleep", text))
        return None

    async def _making(self, notebook: Notebook) -> list[Action]:
        if not notebook.pod_spec.get("containers"):
            text = "spec.template.spec.containers: a notebook needs one container; name its image"
            self.writer.tell(NOTEBOOKS, notebook, Note("Refused", text, warning=True))
            return []
        if await self._is_there(notebook):
            # Made a moment ago, and not in the cache yet: its tokens stay.
            return []
        secret = notebook_pod.secret(notebook, await self.master.key(), self.clock())
        # An older pod, or notebook of the same name, may have left one, with other tokens.
        made: list[Action] = [Create(SECRETS, secret, overwrite=True)]
        if self.caches[SERVICES].get(notebook.metadata.namespace, notebook.metadata.name) is None:
            made.append(Create(SERVICES, notebook_pod.service(notebook)))
        return [*made, Create(PODS, notebook_pod.pod(notebook, self.settings))]

    async def _is_there(self, notebook: Notebook) -> bool:
        try:
            await self.writer.client.get(
                PODS, notebook_pod.pod_name(notebook), notebook.metadata.namespace
            )
        except NotFound:
            return False
        return True
