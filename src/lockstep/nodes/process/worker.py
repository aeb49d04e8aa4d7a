"""One pod on this node, from its arrival to its removal: decides, acts, and decides again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lockstep.api.names import GPU_RESIZE_ANNOTATION, NICS
from lockstep.devices.sharing.front import NoFront
from lockstep.kube.errors import ApiError
from lockstep.nodes.process import admission, cgroups, fences, paths, pod_lifecycle
from lockstep.nodes.process.cgroups import Membership, limits_of
from lockstep.nodes.process.claims import NotYet
from lockstep.nodes.process.container_runner import ContainerRunner
from lockstep.nodes.process.downward import Place
from lockstep.nodes.process.environment import Around, ConfigError, command, packages
from lockstep.nodes.process.facts import PodFacts, Verdict, containers_of
from lockstep.nodes.process.home import PodHome, RunHome, verdict_of, with_verdict
from lockstep.nodes.process.names import resident
from lockstep.nodes.process.orders import OrderBook, home_directory, identity
from lockstep.nodes.process.reporter import Reporter
from lockstep.nodes.process.shim.calls import Refused
from lockstep.nodes.process.spec import Container, Pod
from lockstep.nodes.process.surroundings import Surroundings
from lockstep.nodes.process.volume_store import VolumeStore
from lockstep.nodes.process.volumes import refreshable

log = logging.getLogger(__name__)

LOOK_EVERY = 10.0
"""Seconds between looks at directories' sizes, at labels shown in files, and at tokens' ages."""
TROUBLE = 1.0
"""Seconds until a pod is looked at again after the machine failed it."""
GRACE_OF_THE_GONE = 2.0
"""Seconds that the containers of a pod get that is gone from the server already."""


class Worker:
    """One pod of this node."""

    def __init__(self, node: Surroundings, pod: Pod, home: PodHome) -> None:
        self.node, self.pod, self.home = node, pod, home
        self.book = OrderBook(home, node.isolation, self.hostname)
        self.runners = {
            container.name: ContainerRunner(
                pod, container, self.book, node.image(container), changed=self.changed, say=self.say
            )
            for container, _ in containers_of(pod)
        }
        record = home.record
        self.state = PodFacts(
            accepted_at=record.accepted_at,
            verdict=verdict_of(record),
            released=record.released,
            disrupted=record.disrupted,
            ip=record.address,
            grace=float(pod.spec.termination_grace_period_seconds),
            shares=node.shares.sizes(pod) if record.gpus else {},
        )
        self.reporter = Reporter(node, self)
        self.gone = False
        self.frozen = False
        """Whether the node stops, so that nothing is started any more."""
        self._wake = asyncio.Event()
        self._acting = asyncio.Lock()
        self._stale = asyncio.Event()
        self._see_deletion()

    @property
    def hostname(self) -> str:
        """Return the host name inside the pod."""
        return self.pod.spec.hostname or self.pod.metadata.name[:63].rstrip("-.")

    @property
    def facts(self) -> PodFacts:
        """Return all that is known of the pod now."""
        known = {name: runner.facts for name, runner in self.runners.items()}
        return replace(self.state, containers=known)

    # --- what others tell it ---

    def changed(self) -> None:
        """Look again at what is to be done."""
        self._wake.set()

    def update(self, pod: Pod) -> None:
        """Note that the server's copy of the pod changed."""
        if pod.metadata.labels != self.pod.metadata.labels:
            self._stale.set()
        self.pod = pod
        self._see_deletion()
        self.changed()

    def object_gone(self) -> None:
        """Note that the server has no such pod any more."""
        self.gone = True
        self.state = replace(
            self.state, deleted=True, grace=min(self.state.grace, GRACE_OF_THE_GONE)
        )
        self._hasten()
        self.changed()

    def fail(self, verdict: Verdict) -> None:
        """Give the pod up for the reason in *verdict*."""
        if self.state.verdict is None:
            with_verdict(self.home.record, verdict)
            self.home.save()
            self.state = replace(self.state, verdict=verdict)
            self.changed()

    def say(self, kind: str, reason: str, message: str) -> None:
        """Record an event about the pod."""
        self.node.event(self.pod, kind, reason, message)

    def _see_deletion(self) -> None:
        meta = self.pod.metadata
        if meta.deletion_timestamp is None:
            return
        grace = meta.deletion_grace_period_seconds
        allowed = float(30 if grace is None else grace)
        self.state = replace(self.state, deleted=True, grace=min(self.state.grace, allowed))
        self._hasten()

    def _hasten(self) -> None:
        for runner in self.runners.values():
            if runner.grace is not None:
                runner.stop(self.state.grace, "")

    # --- its life ---

    async def run(self) -> None:
        """Bring the pod through its life; returns when nothing of it is left on the server."""
        meta = self.pod.metadata
        try:
            async with asyncio.TaskGroup() as group:
                others = [group.create_task(self.reporter.run()), group.create_task(self._upkeep())]
                await self._live()
                for other in others:
                    other.cancel()
        finally:
            self.node.names.drop(meta.uid)
            self.node.tokens.forget(meta.uid)
            self.node.contents.forget(meta.uid)
        cgroups.remove(self.home.record.groups)
        self.node.kept.keep(self.home)
        self.home.remove()

    async def _turn(self) -> float | None:
        """Do what is to be done now; return when to look again, none for when something happens."""
        async with self._acting:
            if self.frozen:
                decision = pod_lifecycle.Decision()
            else:
                decision = pod_lifecycle.decide(self.pod, self.facts, time.time())
            for action in decision.actions:
                await self._perform(action)
            self._resize_share()
        self._tell_names()
        self.reporter.look()
        return 0.0 if decision.actions else decision.wake

    async def _live(self) -> None:
        """Act turn by turn until nothing of the pod is left on the server."""
        await self._resume()
        while not self.reporter.removed:
            self._wake.clear()
            try:
                idle_until = await self._turn()
            except OSError as error:
                # A full disk, say: it is one pod's trouble, and may pass.
                log.warning("pod %s: %s", self.pod.metadata.name, error)
                idle_until = time.time() + TROUBLE
            await self._sleep(idle_until)

    async def _sleep(self, until: float | None) -> None:
        wait = None if until is None else max(0.0, until - time.time())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), wait)

    async def _resume(self) -> None:
        for runner in self.runners.values():
            await runner.resume()
        # Where nothing runs any more the machine itself may have been started anew, and what was
        # in memory is gone: such a pod is prepared again.
        if any(runner.facts.running for runner in self.runners.values()):
            self.state = replace(self.state, prepared=True)

    async def _perform(self, action: pod_lifecycle.Action) -> None:
        if isinstance(action, pod_lifecycle.Prepare):
            await self._prepare()
        elif isinstance(action, pod_lifecycle.Start):
            await self._start(action)
        elif isinstance(action, pod_lifecycle.Stop):
            self.runners[action.container].stop(action.grace, action.why)
        elif isinstance(action, pod_lifecycle.Fail):
            self.say("Warning", action.verdict.reason, action.verdict.message)
            self.fail(action.verdict)
        else:
            await asyncio.to_thread(self._release)
            # The record is written by the loop's thread alone: two writers would trip each other.
            self.home.record.released = True
            self.home.save()
            self.state = replace(self.state, released=True)

    # --- preparing and starting ---

    async def _prepare(self) -> None:
        self._tell_limitations()
        self._tell_names()
        store = VolumeStore(self.home.volumes)
        try:
            claims = await self.node.claims.of(self.pod)
            store.make(self.pod, await self._around(), claims)
        except (ConfigError, ApiError, Refused, OSError, paths.UnsafeName) as error:
            message = str(error)
            soon = isinstance(error, NotYet)
            if self.state.hindrance is None or self.state.hindrance.message != message:
                self.say("Warning", "FailedMount", f"volumes cannot be set up: {message}")
            hindrance = pod_lifecycle.retry(
                self.state.hindrance, "ContainerCreating", message, time.time()
            )
            if soon:
                hindrance = replace(hindrance, retry_at=time.time() + TROUBLE)
            self.state = replace(self.state, hindrance=hindrance)
            return
        for remark in store.remarks:
            self._remark("NotEnforced", remark)
        self.state = replace(self.state, prepared=True, hindrance=None)

    async def _around(self) -> Around:
        sources = await self.node.sources(self.pod)
        place = Place(
            self.node.name, self.node.host_ip, self.home.record.address, self.node.allocatable
        )
        return Around(self.pod, sources, place)

    async def _start(self, action: pod_lifecycle.Start) -> None:
        runner = self.runners[action.container]
        # A shim that was killed may have left something of the last run.
        cgroups.kill(self.home.record.groups, action.container)
        try:
            around = await self._around()
            orders = self._orders(runner.container, around)
            await runner.start(action.attempt, orders)
            self._note_undisturbed()
        except (ConfigError, paths.UnsafeName, ApiError, NoFront) as error:
            runner.hinder("CreateContainerConfigError", str(error))
        except (Refused, OSError) as error:
            runner.hinder("CreateContainerError", str(error))

    def _note_undisturbed(self) -> None:
        """Forget a stop of the node from which the pod's containers have started again."""
        if self.home.forget_disruption():
            self.state = replace(self.state, disrupted="")

    def _orders(self, container: Container, around: Around) -> Callable[[RunHome], dict[str, Any]]:
        image = self.node.image(container)
        user = identity(self.pod, container, image)
        given = fences.cards_by_container(self.pod, self.home.record.gpus)
        granted = given.get(container.name, [])
        nics = fences.cards_by_container(self.pod, self.home.record.nics, NICS)
        own = nics.get(container.name, []) if self.home.record.nics else []
        shut = fences.shut(self.node.cards, granted) + fences.shut(self.node.nics.cards, own)
        base = self.node.environment(self.hostname, home_directory(user["uid"]), granted)
        base |= self.node.nics.variables(own) | packages(self.pod, image)
        wanted = command(container, around, base, image)
        share = self.node.shares.enter(self.pod, container, granted, user["uid"])
        wanted = share.joined(wanted)
        if share.remark:
            self._remark("ShareNotHeld", f"container {container.name}: {share.remark}")
        membership = self.node.groups.enter(
            self.pod.metadata.uid, container.name, limits_of(container, fences.denials(shut))
        )
        membership = self._with_own_ports(container, membership)
        places = self.node.groups.places(self.pod.metadata.uid)
        if self.node.ports.root is not None:
            places.append(str(self.node.ports.root / self.pod.metadata.uid))
        self.home.note_groups(places)
        for failed in membership.unenforced:
            self._remark("LimitNotEnforced", f"container {container.name}: {failed}")
        return lambda run: self.book.start(
            container, run, around, wanted, membership, shut=shut, share=share.mounts, image=image
        )

    def _with_own_ports(self, container: Container, membership: Membership) -> Membership:
        """Return *membership* with the group that gives the pod its declared ports."""
        try:
            joined = self.node.ports.join(self.pod, container.name, self.home.record.address)
        except OSError as error:
            why = error.strerror or str(error)
            self._remark("PortsShared", f"ports are shared with the pods beside this one: {why}")
            return membership
        return replace(membership, procs=tuple(dict.fromkeys((*membership.procs, *joined))))

    def _resize_share(self) -> None:
        """Hold the pod's share of GPUs to another size, where that was granted."""
        annotations = self.pod.metadata.annotations
        if GPU_RESIZE_ANNOTATION not in annotations or self.state.deleted or self.state.released:
            return
        told = self.state.resized
        if told is not None and told.message.startswith(annotations[GPU_RESIZE_ANNOTATION]):
            return
        found = self.node.shares.resize(self.pod)
        if found is not None:
            sizes = self.node.shares.sizes(self.pod)
            self.state = replace(self.state, shares=sizes, resized=found)
            words = found.message.removeprefix(annotations[GPU_RESIZE_ANNOTATION])
            event = "ShareResized" if found.done else "ShareNotResized"
            self.say("Normal" if found.done else "Warning", event, words.removeprefix(": "))

    def _tell_limitations(self) -> None:
        self._remark(
            "ImageNotPulled", "commands of this machine are run; no image is used", "Normal"
        )
        for text in admission.unhonoured(self.pod, root=self.node.root):
            self._remark("NotHonoured", text)
        if not self.node.isolation.mounts:
            self._remark("NotIsolated", self.node.isolation.problem)

    def _remark(self, reason: str, message: str, kind: str = "Warning") -> None:
        """Make an event that is made once in the life of the pod."""
        if self.home.first_time(f"{reason}: {message}"):
            self.say(kind, reason, message)

    def _tell_names(self) -> None:
        uid = self.pod.metadata.uid
        if self.state.released or not self.home.record.address:
            self.node.names.drop(uid)
            return
        self.node.names.put(uid, resident(self.pod, self.facts, self.home, self.hostname))

    # --- while it runs, and after ---

    async def _upkeep(self) -> None:
        """Follow changes of what the volumes are made of, and watch directories' sizes."""
        follows = refreshable(self.pod)
        if follows:
            self.node.contents.follow(self.pod, self._stale.set)
        limited = any(one.empty_dir and one.empty_dir.size_limit for one in self.pod.spec.volumes)
        while follows or limited:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stale.wait(), LOOK_EVERY)
            self._stale.clear()
            if self.state.prepared and not self.state.released:
                await self._look_after_volumes()

    async def _look_after_volumes(self) -> None:
        store = VolumeStore(self.home.volumes)
        with contextlib.suppress(ConfigError, ApiError, OSError):
            store.refresh(self.pod, await self._around())
        excess = await asyncio.to_thread(store.oversized, self.pod)
        if excess is not None:
            self.say("Warning", "Evicted", excess)
            self.fail(Verdict("Evicted", excess))

    def _release(self) -> None:
        cgroups.kill(self.home.record.groups)
        VolumeStore(self.home.volumes).remove()
        cgroups.remove(self.home.record.groups)
        self.node.shares.drop(self.pod.metadata.uid)

    def detach(self) -> None:
        """Leave the containers to their shims."""
        for runner in self.runners.values():
            runner.detach()

    def kill(self) -> None:
        """Kill all containers at once."""
        for runner in self.runners.values():
            runner.kill()

    async def stop_now(self, grace: float) -> None:
        """Stop all containers because the node itself ends."""
        self.frozen = True
        async with self._acting:
            pass  # what was being started has started, and is stopped with the rest
        running = [runner for runner in self.runners.values() if runner.facts.running]
        if running:
            why = self.home.disrupt("the node was told to stop")
            self.state = replace(self.state, disrupted=why)
        for runner in running:
            runner.stop(grace, "the node stops")
        await asyncio.gather(*(runner.ended.wait() for runner in running))
        cgroups.remove(self.home.record.groups)
        VolumeStore(self.home.volumes).empty_memory()
        if running:
            self.reporter.look()
            await self.reporter.told()
