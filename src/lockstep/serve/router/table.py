"""Where requests go: routes and their replicas, as the API server tells them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from lockstep.api.core import Pod
from lockstep.api.names import REVISION_LABEL
from lockstep.api.serving import Backend, Route, RouteSpec
from lockstep.kube.cache import Change
from lockstep.serve.core import pods
from lockstep.serve.router.exchange import answer
from lockstep.serve.router.lane import Lane, Replica
from lockstep.serve.router.upstream import Pool

PREFIX: Final = b"/serving/"
_INSIDE: Final = re.compile(rb"([a-z0-9-]+)\.([a-z0-9-]+)(?:\.svc(?:\.cluster\.local)?)?")
_SHOWN: Final = 10


class Table:
    """All routes that the router knows; its methods are told of every change."""

    def __init__(self, domain: str, changed: Callable[[Lane, bool], None]) -> None:
        self._changed = changed
        self._suffix = b"." + domain.encode() if domain else b""
        self.lanes: dict[str, Lane] = {}
        self._hosts: dict[bytes, str] = {}
        self._pods: dict[str, dict[str, Pod]] = {}
        """Replicas by namespace and revision."""
        self._users: dict[str, set[str]] = {}
        """Lanes by the revisions that they send to."""
        self._proven: set[str] = set()
        """Pods of which the router itself has found that they answer."""

    # --- requests ---

    def find(self, host: bytes, target: bytes) -> tuple[Lane, bytes] | None:
        """Return the lane of a request, and its target at the replica."""
        if target.startswith(PREFIX):
            parts = target[len(PREFIX) :].split(b"/", 2)
            if len(parts) >= 2:
                name, mark, query = parts[1].partition(b"?")
                lane = self.lanes.get(f"{parts[0].decode('latin-1')}/{name.decode('latin-1')}")
                rest = b"/" + (parts[2] if len(parts) == 3 else b"") + mark + query
                return (lane, rest) if lane is not None else None
        name = host.partition(b":")[0].lower()
        key = self._hosts.get(name)
        if key is None and (found := _INSIDE.fullmatch(name)):
            key = f"{found[2].decode()}/{found[1].decode()}"
        lane = self.lanes.get(key) if key is not None else None
        return (lane, target) if lane is not None else None

    def unknown(self, host: bytes, target: bytes) -> bytes:
        """Return the answer to a request for a service that is not there."""
        if target.partition(b"?")[0] in (b"/healthz", b"/readyz"):
            return answer(200, "")
        there = sorted(self.lanes)
        shown = ", ".join(there[:_SHOWN]) + (", ..." if len(there) > _SHOWN else "")
        asked = target[:200] if target.startswith(PREFIX) else host[:200]
        return answer(
            404,
            f"no service is reached by {asked.decode('latin-1')!r}; there are: {shown or 'none'}; "
            "their paths begin with /serving/NAMESPACE/NAME/",
        )

    # --- routes and replicas ---

    def on_route(self, change: Change[Route]) -> None:
        """Take a route that came, changed or went."""
        meta = change.object.metadata
        key = f"{meta.namespace}/{meta.name}"
        host = f"{meta.name}-{meta.namespace}".encode() + self._suffix
        if change.new is None:
            self._remove(key, host)
            return
        lane = self.lanes.get(key)
        if lane is None:
            lane = self.lanes[key] = Lane(key, change.new.spec, self._changed)
        before, lane.spec = lane.spec, change.new.spec
        if self._suffix:
            self._hosts[host] = key
        if lane.spec.closing != before.closing:
            self._changed(lane, True)
        self._use(key, (change.old.spec if change.old else before), lane.spec)
        self._replicas(lane)

    def _use(self, key: str, before: RouteSpec, after: RouteSpec) -> None:
        """Note which revisions the lane *key* sends to."""
        namespace = key.partition("/")[0]
        for one in before.backends:
            self._users.get(f"{namespace}/{one.revision}", set()).discard(key)
        for one in after.backends:
            self._users.setdefault(f"{namespace}/{one.revision}", set()).add(key)

    def _remove(self, key: str, host: bytes) -> None:
        self._hosts.pop(host, None)
        lane = self.lanes.pop(key, None)
        if lane is not None:
            self._use(key, lane.spec, RouteSpec())
            for _, request in list(lane.waiting):
                request.refuse(404, f"service {key} is gone", 0)
            lane.waiting.clear()
            for replica in lane.replicas.values():
                replica.pool.close()

    def on_pod(self, change: Change[Pod]) -> None:
        """Take a replica that came, changed or went."""
        pod = change.object
        key = f"{pod.metadata.namespace}/{pod.metadata.labels.get(REVISION_LABEL, '')}"
        there = self._pods.setdefault(key, {})
        if change.new is None:
            there.pop(pod.metadata.uid, None)
            self._proven.discard(pod.metadata.uid)
            if not there:
                del self._pods[key]
        else:
            there[pod.metadata.uid] = change.new
            if _was_ready(change):
                self._proven.discard(pod.metadata.uid)
        for user in self._users.get(key, ()):
            if user in self.lanes:
                self._replicas(self.lanes[user])

    def proven(self, lane: Lane, uid: str) -> None:
        """Note that the replica *uid* answers, before the server says that it is ready."""
        self._proven.add(uid)
        self._replicas(lane)

    def unproven(self, lane: Lane) -> Iterator[tuple[str, str, int, str]]:
        """Yield uid, address, port and path of the replicas that may answer already."""
        for uid, pod, backend in self._of(lane):
            asked = uid not in lane.replicas and bool(lane.spec.probe)
            if asked and pod.status.pod_ip and not pods.going(pod):
                yield uid, pod.status.pod_ip, backend.port, lane.spec.probe

    def _of(self, lane: Lane) -> Iterator[tuple[str, Pod, Backend]]:
        """Yield the pods of a lane with the backend that each belongs to."""
        namespace = lane.key.partition("/")[0]
        for backend in lane.spec.backends:
            for uid, pod in self._pods.get(f"{namespace}/{backend.revision}", {}).items():
                yield uid, pod, backend

    def _replicas(self, lane: Lane) -> None:
        """Make a lane's replicas those that take requests now, and send what waits."""
        serving: dict[str, Replica] = {}
        for uid, pod, backend in self._of(lane):
            answers = pods.ready(pod) or (uid in self._proven and not pods.going(pod))
            if answers and pod.status.pod_ip:
                serving[uid] = lane.replicas.get(uid) or Replica(
                    uid,
                    backend.revision,
                    Pool(pod.status.pod_ip, backend.port),
                    grpc_port=backend.grpc_port,
                )
        for uid, replica in lane.replicas.items():
            if uid not in serving:
                lane.prefixes.forget(uid)
                replica.gone = True
                replica.pool.close()
        lane.replicas = serving
        lane.dispatch()


def _was_ready(change: Change[Pod]) -> bool:
    """Return whether a replica was ready before this change."""
    return change.old is not None and pods.ready(change.old)
