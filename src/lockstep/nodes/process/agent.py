"""The node's pods: which there are, taking them up, adopting and reaping what was left."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Coroutine
from typing import Any

from lockstep.api import names as well_known
from lockstep.api import quantity
from lockstep.api.backoff import Pauses
from lockstep.devices.core import grants
from lockstep.kube.cache import Change
from lockstep.kube.errors import ApiError
from lockstep.kube.informer import Informer
from lockstep.nodes.process import addresses, admission, cgroups, paths, shares
from lockstep.nodes.process.account_access import with_access
from lockstep.nodes.process.facts import Verdict
from lockstep.nodes.process.home import PodHome, Record, with_verdict
from lockstep.nodes.process.reporter import RETRIES
from lockstep.nodes.process.spec import POD_RUNS, Pod
from lockstep.nodes.process.status import timestamp
from lockstep.nodes.process.supervision import Supervised
from lockstep.nodes.process.surroundings import Surroundings
from lockstep.nodes.process.volume_store import VolumeStore
from lockstep.nodes.process.worker import GRACE_OF_THE_GONE, Worker
from lockstep.runtime.status import patch_status

log = logging.getLogger(__name__)

OVER = ("Succeeded", "Failed")
AGAIN = 1.0
"""Seconds until a pod is taken up anew after a fault of the node's own."""
STOP_GRACE = 5.0
"""Seconds that containers get when the node itself is told to stop."""


class Agent:
    """Runs the pods that are bound to this node."""

    def __init__(self, node: Surroundings, room: admission.Room) -> None:
        self.node, self.room = node, room
        self.workers: dict[str, Worker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._taken_up = asyncio.Event()
        self._informer = Informer(
            node.client, POD_RUNS, field_selector=f"spec.nodeName={node.name}"
        )

    async def run(self) -> None:
        """Follow the pods of this node until cancelled; then leave them as they are."""
        informing = asyncio.ensure_future(self._informer.run())
        try:
            await self._informer.wait_synced()
            await self._reap_orphans()
            # Those with a record come first: what they hold must not be given to others.
            for pod in sorted(self._informer, key=lambda pod: self._stored(pod) is None):
                self._see(pod)
            self._informer.subscribe(self._on_change)
            self._taken_up.set()
            await informing
        finally:
            informing.cancel()
            for task in [*self._tasks.values(), *self._others]:
                task.cancel()

    async def wait_ready(self) -> None:
        """Wait until the node's pods are known and those that run are adopted."""
        await self._taken_up.wait()

    def find(self, namespace: str, name: str) -> Worker | None:
        """Return the pod of that name, when it is here; the latest, while one before it ends."""
        for worker in reversed(self.workers.values()):
            meta = worker.pod.metadata
            if (meta.namespace, meta.name) == (namespace, name):
                return worker
        return None

    async def stop(self) -> None:
        """Stop all containers, because the machine's user ends the node."""
        await asyncio.gather(*(self._stop(worker) for worker in list(self.workers.values())))

    async def _stop(self, worker: Worker) -> None:
        """Stop one pod; when that fails, the others still end as they should."""
        try:
            await worker.stop_now(STOP_GRACE)
        except Exception:
            log.exception("pod %s is killed, as it could not be stopped", worker.pod.metadata.uid)
            worker.kill()

    # --- pods that come and go ---

    def _on_change(self, change: Change[Pod]) -> None:
        if change.new is not None:
            self._see(change.new)
        elif change.old is not None:
            worker = self.workers.get(change.old.metadata.uid)
            if worker is not None:
                worker.object_gone()

    def _see(self, pod: Pod) -> None:
        if self.node.isolation.mounts:
            pod = with_access(pod)
        worker = self.workers.get(pod.metadata.uid)
        if worker is not None:
            worker.update(pod)
            return
        stored = self._stored(pod)
        if stored is None and pod.status.phase in OVER:
            if pod.metadata.deletion_timestamp is not None:
                self._spawn(self._delete(pod))
            return
        home = stored or self._accept(pod)
        if home is not None:
            self._begin(Worker(self.node, pod, home))

    def _stored(self, pod: Pod) -> PodHome | None:
        try:
            return PodHome.load(self.node.data, pod.metadata.uid)
        except paths.UnsafeName:
            return None

    def _begin(self, worker: Worker) -> None:
        uid = worker.pod.metadata.uid
        self.workers[uid] = worker
        task = asyncio.ensure_future(worker.run())
        self._tasks[uid] = task

        def ended(task: asyncio.Task[None]) -> None:
            self.workers.pop(uid, None)
            self._tasks.pop(uid, None)
            if not task.cancelled() and task.exception() is not None:
                # The next run takes the pod up from what is on disk, as after a crash.
                log.error("pod %s is taken up anew", uid, exc_info=task.exception())
                worker.detach()
                asyncio.get_running_loop().call_later(AGAIN, self._see, worker.pod)

        task.add_done_callback(ended)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    # --- admission ---

    def _accept(self, pod: Pod) -> PodHome | None:
        """Make the pod's home, with a verdict in it when the pod cannot run here."""
        meta = pod.metadata
        verdict = admission.refuse(pod, self.room, self._holders())
        verdict = verdict or self._unmountable(pod) or _forgotten(pod)
        record = Record(
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            accepted_at=time.time(),
            labels=dict(meta.labels),
            owner=next((one.uid for one in meta.owner_references if one.controller), ""),
            containers=[one.name for one in pod.spec.containers],
        )
        if verdict is None:
            try:
                record.address = addresses.choose(meta.uid, self._addresses(), self.node.pods)
                record.gpus = self._gpus(pod)
                record.nics = self.node.nics.choose(pod, self._used_nics())
            except (addresses.NoAddress, grants.NotEnough) as error:
                verdict = Verdict("UnexpectedAdmissionError", str(error), admitted=False)
        if verdict is not None:
            with_verdict(record, verdict)
            self.node.event(pod, "Warning", verdict.reason, verdict.message)
        try:
            home = PodHome.at(self.node.data, record)
        except paths.UnsafeName:
            self._spawn(self._reject(pod, verdict))
            return None
        home.save()
        return home

    def _unmountable(self, pod: Pod) -> Verdict | None:
        if self.node.isolation.mounts:
            return None
        for container in [*pod.spec.init_containers, *pod.spec.containers]:
            if container.volume_mounts:
                text = (
                    f"container {container.name} mounts volumes, and {self.node.isolation.problem}"
                )
                return Verdict("MountsNotPermitted", f"Pod was rejected: {text}", admitted=False)
        return None

    def _holders(self) -> list[Pod]:
        return [one.pod for one in self.workers.values() if not one.state.released]

    def _addresses(self) -> set[str]:
        return {one.home.record.address for one in self.workers.values()}

    def _gpus(self, pod: Pod) -> list[int]:
        wanted = admission.requests(pod).get(well_known.GPU, 0) // 1000
        annotation = pod.metadata.annotations.get(well_known.GPUS_ANNOTATION, "")
        if not wanted and not annotation:
            return []
        present = [card.index for card in self.node.cards]
        others = [
            (one.pod, one.home.record.gpus)
            for one in self.workers.values()
            if not one.state.released
        ]
        used = shares.taken(pod, others, self.node.cards)
        return grants.assign(annotation, wanted, present, used)

    def _used_nics(self) -> list[int]:
        running = (one for one in self.workers.values() if not one.state.released)
        return [index for one in running for index in one.home.record.nics]

    async def _reject(self, pod: Pod, verdict: Verdict | None) -> None:
        """Fail a pod that must not even get a directory."""
        told = verdict or Verdict("InvalidPod", "Pod was rejected")
        status = {
            "phase": "Failed",
            "reason": told.reason,
            "message": told.message,
            "startTime": timestamp(time.time()),
        }
        meta = pod.metadata
        try:
            await patch_status(self.node.client, POD_RUNS, meta, status)
        except ApiError as error:
            log.warning("cannot reject %s/%s: %s", meta.namespace, meta.name, error)

    async def _delete(self, pod: Pod) -> None:
        """Let a pod go that is over and of which nothing is here."""
        meta = pod.metadata
        pauses = Pauses(RETRIES)
        while True:
            try:
                await self.node.client.delete(
                    POD_RUNS, meta.name, meta.namespace, grace_seconds=0, uid=meta.uid
                )
            except ApiError as error:
                if error.status in (404, 409):
                    return
                log.warning("cannot delete %s/%s: %s", meta.namespace, meta.name, error)
                await asyncio.sleep(pauses.failed())
            else:
                return

    # --- what was left behind ---

    async def _reap_orphans(self) -> None:
        """End what belongs to pods that were deleted while the node was away."""
        known = {pod.metadata.uid for pod in self._informer}
        root = self.node.data / "pods"
        left = [one.name for one in root.iterdir()] if root.exists() else []
        orphans = [uid for uid in left if uid not in known]
        await asyncio.gather(*(self._reap(uid) for uid in orphans))

    async def _reap(self, uid: str) -> None:
        home = PodHome.load(self.node.data, uid)
        if home is None:
            shutil.rmtree(self.node.data / "pods" / uid, ignore_errors=True)
            return
        log.info("pod %s/%s is gone; ending it", home.record.namespace, home.record.name)
        runs = [run for name in home.containers() for run in home.attempts(name) if run.alive]
        for run in runs:
            found = Supervised.adopt(run)
            if found is not None:
                found.stop()
                found.close()
        until = time.monotonic() + GRACE_OF_THE_GONE
        while any(run.alive for run in runs):
            if time.monotonic() > until:
                for found in [one for run in runs if (one := Supervised.adopt(run)) is not None]:
                    found.kill()
                    found.close()
            await asyncio.sleep(0.05)
        cgroups.kill(home.record.groups)
        VolumeStore(home.volumes).remove()
        cgroups.remove(home.record.groups)
        self.node.shares.drop(uid)
        self.node.kept.keep(home)
        home.remove()


def _forgotten(pod: Pod) -> Verdict | None:
    """Return the verdict on a pod that ran here, as the server says, and left no trace."""
    ran = any(one.state.running or one.state.terminated for one in pod.status.container_statuses)
    if not ran:
        return None
    return Verdict(
        "ContainerStatusUnknown", "The node has lost what it knew of the pod's containers"
    )


def amounts(allocatable: dict[str, str]) -> dict[str, int]:
    """Return *allocatable* in thousandths."""
    return {name: quantity.to_milli(value) for name, value in allocatable.items()}
