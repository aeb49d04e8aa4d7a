"""The shell around kernels: reads the caches, asks keepers, carries out, writes the status."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec.structs import replace

from lockstep.api.core import PODS, SECRETS, Pod
from lockstep.api.merge import difference
from lockstep.api.notebooks import ENVIRONMENTS, KERNELS, Kernel, KernelStatus
from lockstep.api.resource import Resource
from lockstep.api.wire import to_builtins
from lockstep.compat.kubeflow.notebook import NOTEBOOKS
from lockstep.kube.client import Client
from lockstep.kube.controller import Key
from lockstep.kube.errors import AlreadyExists, ApiError, Conflict, NotFound
from lockstep.kube.events import Recorder
from lockstep.kube.informer import Informer
from lockstep.notebooks.core import kernel_pod, keys
from lockstep.notebooks.core.kernels import decide, refused
from lockstep.notebooks.core.world import (
    Action,
    Create,
    Decision,
    Delete,
    Park,
    Report,
    SeenKernel,
    Settings,
    Tell,
)
from lockstep.notebooks.keepers import Keepers
from lockstep.notebooks.master import Master

log = logging.getLogger(__name__)

_REFUSALS: Final = frozenset({400, 403, 405, 413, 422})
RETRY_SECONDS: Final = 30.0


@dataclass
class KernelController:
    """Brings each kernel to what its user needs now: a place while it computes, none while not."""

    client: Client
    caches: Mapping[Resource[Any], Informer[Any]]
    recorder: Recorder
    master: Master
    settings: Settings
    keepers: Keepers = field(default_factory=Keepers)
    clock: Callable[[], float] = time.time

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the kernel at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        kernel: Kernel | None = self.caches[KERNELS].get(*key)
        if kernel is None or kernel.metadata.deletion_timestamp is not None:
            return None
        seen = await self._see(kernel)
        decision = decide(seen, self.settings, self.clock())
        try:
            # First on record, then done: whoever goes on after a crash finds what was decided.
            kernel = await self._write_status(kernel, decision.status)
            return await self._carry_out(
                SeenKernel(kernel, seen.pod, seen.report, seen.environment, seen.notebook), decision
            )
        except (Conflict, NotFound) as error:
            log.debug("%s: %s", key, error)
            return 0.1

    async def _see(self, kernel: Kernel) -> SeenKernel:
        space = kernel.metadata.namespace
        pod: Pod | None = self.caches[PODS].get(space, kernel_pod.pod_name(kernel))
        if pod is not None and not _owned(pod, kernel):
            pod = None
        spec = kernel.spec
        environment = self.caches[ENVIRONMENTS].get(space, spec.environment)
        notebook = self.caches[NOTEBOOKS].get(space, spec.notebook)
        report = await self._report(kernel, pod) if pod is not None else None
        return SeenKernel(kernel, pod, report, environment, notebook)

    async def _report(self, kernel: Kernel, pod: Pod) -> Report | None:
        going = pod.metadata.deletion_timestamp is not None
        if going or pod.status.phase != "Running" or not pod.status.pod_ip:
            return None
        return await self.keepers.state(*await self._keeper(kernel, pod))

    async def _keeper(self, kernel: Kernel, pod: Pod) -> tuple[str, str]:
        token = keys.kernel_token(await self.master.key(), kernel.metadata.uid)
        return f"{pod.status.pod_ip}:{kernel_pod.PORT}", token

    async def _carry_out(self, seen: SeenKernel, decision: Decision) -> float | None:
        again = decision.again
        for action in decision.actions:
            if isinstance(action, Park):
                again = await self._park(seen, decision.status, action)
            elif isinstance(action, Tell):
                self.recorder.event(seen.kernel, action.type, action.reason, action.message)
            else:
                again = await self._change(seen, action) or again
        return again

    async def _change(self, seen: SeenKernel, action: Action) -> float | None:
        space = seen.kernel.metadata.namespace
        try:
            if isinstance(action, Create):
                secret = kernel_pod.secret(seen.kernel, await self.master.key())
                await self._create(SECRETS, secret, space)
                await self._create(action.resource, action.body, space)
            elif isinstance(action, Delete):
                await self.client.delete(action.resource, action.name, space, uid=action.uid)
        except NotFound:
            return None
        except ApiError as error:
            if error.status not in _REFUSALS:
                raise
            self.recorder.event(seen.kernel, "Warning", "Refused", str(error)[:1000])
            status = replace(seen.kernel.status, phase="Waiting", message=str(error)[:1000])
            await self._write_status(seen.kernel, status)
            return RETRY_SECONDS
        return None

    async def _create(self, resource: Resource[Any], body: dict[str, Any], space: str) -> None:
        try:
            await self.client.create(resource, body, space)
        except AlreadyExists:
            # Made a moment ago, and not in the cache yet. A secret may be of an older one of the
            # same name, whose tokens are not this one's.
            if resource is SECRETS:
                await self.client.patch(SECRETS, body["metadata"]["name"], body, space)

    async def _park(self, seen: SeenKernel, status: KernelStatus, action: Park) -> float:
        assert seen.pod is not None  # noqa: S101  only a kernel with a pod is parked
        where, token = await self._keeper(seen.kernel, seen.pod)
        answer = await self.keepers.park(where, token, drop=action.drop)
        if answer is None or "parked" in answer or answer.get("busy"):
            # What it says is asked again, and decided by.
            return 0.1
        about = answer.get("obstacles") or [
            {"name": "state", "type": "error", "why": str(answer.get("error", "unknown"))}
        ]
        told, event = refused(status, about)
        await self._write_status(seen.kernel, told)
        self.recorder.event(seen.kernel, event.type, event.reason, event.message)
        return RETRY_SECONDS

    async def _write_status(self, kernel: Kernel, status: KernelStatus) -> Kernel:
        """Bring the status on record; a kernel that changed since it was read is read again.

        Raises:
            Conflict: when it did.
        """
        patch = difference(to_builtins(kernel.status), to_builtins(status))
        if not patch:
            return kernel
        about = kernel.metadata
        # Against the version that was seen: what is late must not undo what came after it.
        body = {"metadata": {"resourceVersion": about.resource_version}, "status": patch}
        return await self.client.patch(
            KERNELS, about.name, body, about.namespace, subresource="status"
        )


def _owned(pod: Pod, kernel: Kernel) -> bool:
    return any(one.uid == kernel.metadata.uid for one in pod.metadata.owner_references)
