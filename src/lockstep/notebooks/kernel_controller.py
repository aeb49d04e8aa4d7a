"""The shell around kernels: reads the caches, asks keepers, carries out, writes the status."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from lockstep.api.core import PODS, SECRETS, Pod
from lockstep.api.meta import owned_by
from lockstep.api.notebooks import ENVIRONMENTS, KERNELS, Kernel, KernelStatus
from lockstep.api.resource import Resource
from lockstep.compat.kubeflow.notebook import NOTEBOOKS
from lockstep.kube.events import reference
from lockstep.kube.informer import Informer
from lockstep.notebooks.core import kernel_pod, keys
from lockstep.notebooks.core.kernel_state import Decision, Park, Report, SeenKernel, Settings
from lockstep.notebooks.core.kernels import decide, refused
from lockstep.notebooks.keepers import Keepers
from lockstep.notebooks.master import Master
from lockstep.runtime.actions import Action, Create, Note
from lockstep.runtime.controller import Key
from lockstep.runtime.reconciler import MESSAGE, Writer
from lockstep.runtime.refusals import RETRY_REFUSED
from lockstep.runtime.status import write_status


@dataclass
class KernelController:
    """Brings each kernel to what its user needs now: a place while it computes, none while not."""

    writer: Writer
    caches: Mapping[Resource[Any], Informer[Any]]
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
        # First on record, then done: after a crash the next process finds what was decided.
        kernel = await self._write_status(kernel, decision.status)
        return await self._carry_out(replace(seen, kernel=kernel), decision)

    async def _see(self, kernel: Kernel) -> SeenKernel:
        space = kernel.metadata.namespace
        pod: Pod | None = self.caches[PODS].get(space, kernel_pod.pod_name(kernel))
        if pod is not None and not owned_by(pod, kernel):
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
            elif isinstance(action, Note):
                self.writer.tell(KERNELS, seen.kernel, action)
            else:
                again = await self._change(seen, action) or again
        return again

    async def _change(self, seen: SeenKernel, action: Action) -> float | None:
        actions = [action]
        if isinstance(action, Create):
            secret = kernel_pod.secret(seen.kernel, await self.master.key())
            # An older kernel of the same name may have left one, with other tokens.
            actions.insert(0, Create(SECRETS, secret, overwrite=True))
        refusals = await self.writer.act(reference(KERNELS, seen.kernel.metadata), actions)
        if not refusals:
            return None
        status = structs.replace(
            seen.kernel.status, phase="Waiting", message=str(refusals[0])[:MESSAGE]
        )
        await self._write_status(seen.kernel, status)
        return RETRY_REFUSED

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
        self.writer.tell(KERNELS, seen.kernel, event)
        return RETRY_REFUSED

    async def _write_status(self, kernel: Kernel, status: KernelStatus) -> Kernel:
        """Bring the status on record; a kernel that changed since it was read is read again.

        Raises:
            Conflict: when it did.
        """
        return await write_status(self.writer.client, KERNELS, kernel, status) or kernel
