"""The statuses of pods on simulated nodes, as strategic merge patches. Pure."""

from __future__ import annotations

import ipaddress
from typing import Any

from lockstep.api.containers import Container
from lockstep.api.core import Pod
from lockstep.api.timestamp import show

OWN_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
_FIRST_POD_ADDRESS = int(ipaddress.IPv4Address("10.128.0.1"))
_POD_ADDRESSES = (1 << 23) - 2


class PodAddresses:
    """Addresses that no two pods have at a time."""

    def __init__(self) -> None:
        self._by_uid: dict[str, str] = {}
        self._taken: set[str] = set()
        self._next = 0

    def of(self, uid: str) -> str:
        """Return the address of a pod, a new one where it has none yet."""
        found = self._by_uid.get(uid)
        while found is None:
            candidate = str(ipaddress.IPv4Address(_FIRST_POD_ADDRESS + self._next))
            self._next = (self._next + 1) % _POD_ADDRESSES
            if candidate not in self._taken:
                found = candidate
                self.keep(uid, found)
        return found

    def keep(self, uid: str, address: str) -> None:
        """Note the address that a pod has already."""
        if uid not in self._by_uid:
            self._by_uid[uid] = address
            self._taken.add(address)

    def release(self, uid: str) -> None:
        """Take a pod's address back."""
        address = self._by_uid.pop(uid, None)
        if address is not None:
            self._taken.discard(address)


def running(pod: Pod, *, address: str, host: str, now: float) -> dict[str, Any]:
    """Return the status of a *pod* that runs since *now*."""
    started = show(now)
    return {
        "phase": "Running",
        "startTime": started,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": _conditions(pod, now, ready=True),
        "initContainerStatuses": [
            _container(pod, one, _init_state(one, started), ready=True)
            for one in pod.spec.init_containers
        ],
        "containerStatuses": [
            _container(pod, one, {"running": {"startedAt": started}}, ready=True)
            for one in pod.spec.containers
        ],
    }


def ended(pod: Pod, *, exit_code: int, why: str, started_at: float, now: float) -> dict[str, Any]:
    """Return the status of an ended *pod*: its first container with *exit_code*, others with 0."""
    codes = [exit_code] + [0] * (len(pod.spec.containers) - 1)
    return {
        "phase": "Failed" if exit_code else "Succeeded",
        "message": why or None,
        "conditions": _conditions(pod, now, ready=False),
        "initContainerStatuses": [
            _ended_init(pod, one, started_at, now) for one in pod.spec.init_containers
        ],
        "containerStatuses": [
            _container(pod, one, _terminated(pod, one, code, started_at, now), ready=False)
            for one, code in zip(pod.spec.containers, codes, strict=True)
        ],
    }


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _init_state(container: Container, started: str) -> dict[str, Any]:
    if _is_sidecar(container):
        return {"running": {"startedAt": started}}
    return {
        "terminated": {
            "exitCode": 0,
            "reason": "Completed",
            "startedAt": started,
            "finishedAt": started,
        }
    }


def _ended_init(pod: Pod, container: Container, started_at: float, now: float) -> dict[str, Any]:
    if _is_sidecar(container):
        state = _terminated(pod, container, 0, started_at, now)
        return _container(pod, container, state, ready=False)
    return _container(pod, container, _init_state(container, show(started_at)), ready=True)


def _terminated(
    pod: Pod, container: Container, exit_code: int, started_at: float, now: float
) -> dict[str, Any]:
    return {
        "terminated": {
            "exitCode": exit_code,
            "reason": "Error" if exit_code else "Completed",
            "startedAt": show(started_at),
            "finishedAt": show(now),
            "containerID": _container_id(pod, container),
        }
    }


def _container(
    pod: Pod, container: Container, state: dict[str, Any], *, ready: bool
) -> dict[str, Any]:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": f"simulated://{container.image}",
        "containerID": _container_id(pod, container),
        "ready": ready,
        "started": "running" in state,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }


def _container_id(pod: Pod, container: Container) -> str:
    return f"simulated://{pod.metadata.uid}/{container.name}"


def _conditions(pod: Pod, now: float, *, ready: bool) -> list[dict[str, Any]]:
    """Return the conditions that are ours; the server keeps those of others beside them."""
    before = {one.type: one for one in pod.status.conditions}
    found = []
    for type_ in OWN_CONDITIONS:
        holds = ready or type_ == "Initialized"
        status = "True" if holds else "False"
        old = before.get(type_)
        same = old is not None and old.status == status
        since = old.last_transition_time if old is not None and same else show(now)
        condition: dict[str, Any] = {"type": type_, "status": status, "lastTransitionTime": since}
        if not holds:
            condition["reason"] = "PodCompleted"
        elif old is not None and old.reason:
            condition["reason"] = None
        found.append(condition)
    return found
