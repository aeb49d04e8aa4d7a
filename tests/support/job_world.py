"""A fake cluster in memory for one training job, whose writes can be cut off anywhere."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import structs
from tests.support.jobs import NOW

from lockstep.api import timestamp
from lockstep.api.core import PODS, Pod
from lockstep.api.gang import GANGS
from lockstep.api.merge import difference
from lockstep.api.meta import Condition
from lockstep.api.names import REPORT_ANNOTATION
from lockstep.api.rendezvous import World
from lockstep.api.roles import launcher_host
from lockstep.api.training import TRAINING_JOBS, TrainingJob, TrainingJobStatus
from lockstep.api.wire import convert, to_builtins
from lockstep.jobs.decide import decide
from lockstep.jobs.job_state import Decision, Seen
from lockstep.runtime.actions import Change, Create, Delete

Json = dict[str, Any]


class Crash(Exception):
    """The controller ended between two calls."""


def merged(tree: Json, patch: Json) -> Json:
    """Return *tree* with a JSON merge patch applied."""
    result = dict(tree)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merged(result.get(key) or {}, value)
        else:
            result[key] = value
    return result


@dataclass
class FakeCluster:
    """An API server, a scheduler and nodes for one job; time is a number."""

    job: TrainingJob | None
    now: float = NOW
    pods: dict[str, Pod] = field(default_factory=dict)
    objects: dict[tuple[str, str], Any] = field(default_factory=dict)
    calls_left: int | None = None
    """How many writes still get through before the controller crashes."""
    calls: int = 0
    told: list[str] = field(default_factory=list)
    made: list[tuple[str, str]] = field(default_factory=list)
    """Every pod ever created, with its attempt."""
    silent: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    going: dict[str, str] = field(default_factory=dict)
    """Pods, with their uids, whose node is told to go away."""
    _uids: int = 0

    # The controller

    def seen(self) -> Seen:
        assert self.job is not None
        name = self.job.metadata.name
        return Seen(
            self.job,
            list(self.pods.values()),
            gang=self.objects.get(("Gang", name)),
            service=self.objects.get(("Service", name)),
            launcher_service=self.objects.get(("Service", launcher_host(self.job))),
            config_map=self.objects.get(("ConfigMap", f"{name}-config")),
            secret=self.objects.get(("Secret", f"{name}-ssh")),
            world=self.objects.get(("ConfigMap", f"{name}-world")),
            leases={n: o for (kind, n), o in self.objects.items() if kind == "Lease"},
            silent=frozenset(self.silent),
            lost=frozenset(self.lost),
            going={
                name: "lockstep.dev/leaving"
                for name, uid in self.going.items()
                if name in self.pods and self.pods[name].metadata.uid == uid
            },
            role=self.objects.get(("Role", f"{name}-launcher")),
            binding=self.objects.get(("RoleBinding", f"{name}-launcher")),
        )

    def reconcile(self) -> Decision | None:
        """Decide once and carry it out as the real shell does: status first, then the actions."""
        if self.job is None:
            return None
        decision = decide(self.seen(), self.now)
        if decision.status != self.job.status:
            self._write(lambda: self._set_status(decision.status))
            self.told += [note.reason for note in decision.notes]
        for action in decision.actions:
            self._write(lambda action=action: self._apply(action))  # type: ignore[misc]
        return decision

    def settle(self, limit: int = 50) -> None:
        """Reconcile until nothing changes any more."""
        for _ in range(limit):
            before = (self.job, dict(self.pods), dict(self.objects))
            self.reconcile()
            self.let_go()
            if before == (self.job, dict(self.pods), dict(self.objects)):
                return
        raise AssertionError(f"never settles: {self.job}")

    def _write(self, call: Any) -> None:
        if self.calls_left is not None:
            if self.calls_left == 0:
                raise Crash
            self.calls_left -= 1
        self.calls += 1
        call()

    def _set_status(self, status: TrainingJobStatus) -> None:
        assert self.job is not None
        old = to_builtins(self.job.status)
        patched = merged(old, difference(old, to_builtins(status)))
        self.job = structs.replace(self.job, status=convert(patched, TrainingJobStatus))
        assert self.job.status == status

    def _apply(self, action: Create | Change | Delete) -> None:
        if isinstance(action, Create):
            self._create(action)
        elif isinstance(action, Delete):
            self._delete(action)
        else:
            if action.resource is PODS:
                pod = to_builtins(self.pods[action.name])
                self.pods[action.name] = convert(merged(pod, action.patch), Pod)
                return
            key = (action.resource.kind, action.name)
            tree = merged(to_builtins(self.objects[key]), action.patch)
            self.objects[key] = convert(tree, action.resource.type)

    def _create(self, action: Create) -> None:
        self._uids += 1
        body = dict(action.body)
        given = {"uid": f"u{self._uids}", "creationTimestamp": timestamp.show(self.now)}
        body["metadata"] = {**body["metadata"], **given}
        name = body["metadata"]["name"]
        if action.fill:
            body["stringData"] = {**body.get("stringData", {}), **action.fill()}
        if "stringData" in body:
            strings = body.pop("stringData")
            body["data"] = {k: b64encode(v.encode()).decode() for k, v in strings.items()}
        if action.resource is PODS:
            if name not in self.pods:
                self.pods[name] = convert(body, Pod)
                self.made.append((name, self.pods[name].metadata.labels["lockstep.dev/attempt"]))
        elif (action.resource.kind, name) not in self.objects:
            self.objects[(action.resource.kind, name)] = convert(body, action.resource.type)

    def _delete(self, action: Delete) -> None:
        if action.resource is TRAINING_JOBS:
            self.job = None
        elif action.resource is GANGS:
            self.objects.pop(("Gang", action.name), None)
        else:
            pod = self.pods.get(action.name)
            assert pod is not None and pod.metadata.uid == action.uid
            if action.grace == 0 or not pod.spec.node_name:
                del self.pods[action.name]
            else:
                self.ask_to_end(action.name)

    # Everybody else

    def edit(self, **spec: Any) -> None:
        """Change fields of the job's spec, as a user does."""
        assert self.job is not None
        meta = structs.replace(self.job.metadata, generation=self.job.metadata.generation + 1)
        tree = merged(to_builtins(self.job.spec), spec)
        self.job = structs.replace(self.job, metadata=meta, spec=convert(tree, type(self.job.spec)))

    def annotate(self, name: str, text: str) -> None:
        """Put an annotation on the job, as a user does, or the one who saves its state."""
        assert self.job is not None
        meta = self.job.metadata
        told = structs.replace(meta, annotations=meta.annotations | {name: text})
        self.job = structs.replace(self.job, metadata=told)

    def place(self) -> None:
        """Bind all pods, once all that the gang needs are there."""
        gang = self.objects.get(("Gang", self.job.metadata.name)) if self.job else None
        if gang is None:
            return
        for group in gang.spec.groups:
            names = [p for p in self.pods.values() if self._group(p) == group.name]
            if len(names) < group.min:
                return
        for name, pod in self.pods.items():
            if not pod.spec.node_name:
                spec = structs.replace(pod.spec, node_name="node-1")
                self.pods[name] = structs.replace(pod, spec=spec)

    @staticmethod
    def _group(pod: Pod) -> str:
        return pod.metadata.labels["lockstep.dev/gang-group"]

    def start(self) -> None:
        """Let all bound pods run."""
        for name, pod in self.pods.items():
            if pod.spec.node_name and pod.status.phase == "Pending":
                self.set(name, "Running", conditions=[Condition(type="Ready", status="True")])

    def set(self, name: str, phase: str, **more: Any) -> None:
        """Set a pod's status."""
        pod = self.pods[name]
        self.pods[name] = structs.replace(
            pod, status=structs.replace(pod.status, phase=phase, **more)
        )

    def fail(self, name: str, code: int = 1, message: str = "") -> None:
        """Let a pod end with an exit code, and with last words."""
        end = {"exitCode": code, "reason": "Error", "message": message}
        ended = {"name": "main", "state": {"terminated": end}}
        status = convert(
            {"phase": "Failed", "containerStatuses": [ended]}, type(self.pods[name].status)
        )
        self.pods[name] = structs.replace(self.pods[name], status=status)

    def world(self) -> World:
        """Return the world that the launchers follow."""
        assert self.job is not None
        there = self.objects[("ConfigMap", f"{self.job.metadata.name}-world")]
        return msgspec.json.decode(there.data["world"], type=World)

    def report(self, name: str, state: str, **more: Any) -> None:
        """Let the launcher of a pod report of the present generation, or of the one stated."""
        said = {"generation": self.world().generation, "uid": self.pods[name].metadata.uid}
        text = msgspec.json.encode({**said, "state": state, **more}).decode()
        lease = self.objects[("Lease", name)]
        meta = structs.replace(lease.metadata, annotations={REPORT_ANNOTATION: text})
        self.objects[("Lease", name)] = structs.replace(lease, metadata=meta)

    def everybody(self, state: str, **more: Any) -> None:
        """Let all launchers report the same, and the controller see it."""
        for name in self.pods:
            self.report(name, state, **more)
        self.settle()

    def disrupt(self, name: str, phase: str = "Failed") -> None:
        """Let the cluster take a pod away, as an eviction or a node told to stop does."""
        said = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
        status = convert({"phase": phase, "conditions": [said]}, type(self.pods[name].status))
        self.pods[name] = structs.replace(self.pods[name], status=status)

    def preempt(self, name: str) -> None:
        """Let a pod go so that others can have its place, faster than anybody sees it go."""
        assert self.job is not None
        key = ("Gang", self.job.metadata.name)
        gang = self.objects[key]
        status = structs.replace(gang.status, preempted={name: self.pods[name].metadata.uid})
        self.objects[key] = structs.replace(gang, status=status)
        del self.pods[name]

    def ask_to_end(self, name: str) -> None:
        """Mark a pod as being deleted."""
        pod = self.pods[name]
        meta = structs.replace(pod.metadata, deletion_timestamp=timestamp.show(self.now + 30))
        self.pods[name] = structs.replace(pod, metadata=meta)

    def let_go(self) -> None:
        """Let the nodes confirm the end of the pods that are being deleted."""
        for name, pod in list(self.pods.items()):
            if pod.metadata.deletion_timestamp is not None:
                del self.pods[name]

    def run(self) -> None:
        """Bring the job to the point where its pods run."""
        self.settle()
        self.place()
        self.settle()
        self.start()
        self.settle()
