"""Whether a pod may run on this node at all: the last word, after the scheduler's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lockstep.api import names, quantity
from lockstep.api.node_terms import term_holds
from lockstep.nodes.process import paths
from lockstep.nodes.process.facts import Role, Verdict, containers_of
from lockstep.nodes.process.spec import Container, Pod
from lockstep.nodes.process.volumes import supported

Amounts = dict[str, int]
SHARES = frozenset({names.GPU_CARDS, names.GPU_COMPUTE, names.GPU_MEMORY})
"""Counted by card, not by node."""


def requests(pod: Pod) -> Amounts:
    """Return what *pod* asks for in thousandths, counted as the scheduler counts it.

    Sidecars add to all that comes after them; an init container counts where it asks for more
    than all that run later together.
    """
    total: Amounts = {}
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container, role in containers_of(pod):
        own = _of(container)
        if role is Role.MAIN:
            _add(total, own)
        elif role is Role.SIDECAR:
            _add(total, own)
            _add(sidecars, own)
        else:
            both = dict(sidecars)
            _add(both, own)
            peak = {key: max(peak.get(key, 0), both.get(key, 0)) for key in {*peak, *both}}
    result = {key: max(total.get(key, 0), peak.get(key, 0)) for key in {*total, *peak}}
    _add(result, {key: quantity.to_milli(value) for key, value in pod.spec.overhead.items()})
    return result | {"pods": 1000}


def _of(container: Container) -> Amounts:
    asked = {**container.resources.limits, **container.resources.requests}
    return {name: quantity.to_milli(value) for name, value in asked.items()}


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


@dataclass(frozen=True, slots=True)
class Room:
    """What the node has, in thousandths, its labels and its name."""

    allocatable: Mapping[str, int]
    labels: Mapping[str, str]
    name: str = ""


def refuse(pod: Pod, room: Room, others: Iterable[Pod]) -> Verdict | None:
    """Return why *pod* cannot run here beside *others*; none when it can."""
    return _malformed(pod) or _elsewhere(pod, room) or _too_big(pod, room, others)


def _malformed(pod: Pod) -> Verdict | None:
    try:
        paths.label(pod.metadata.namespace)
        paths.pod_name(pod.metadata.name)
        paths.uid(pod.metadata.uid)
        for container, _ in containers_of(pod):
            paths.label(container.name)
            for one in container.volume_mounts:
                paths.absolute(one.mount_path)
                if one.sub_path:
                    paths.relative(one.sub_path)
        for volume in pod.spec.volumes:
            paths.label(volume.name)
    except paths.UnsafeName as error:
        return _rejected("InvalidPod", str(error))
    for volume in pod.spec.volumes:
        if not supported(volume):
            kinds = (
                "emptyDir, hostPath, configMap, secret, downwardAPI, projected, "
                "persistentVolumeClaim"
            )
            text = f"volume {volume.name!r} is of a kind that a process node lacks; it has {kinds}"
            return _rejected("UnsupportedVolume", text)
    return None


def _elsewhere(pod: Pod, room: Room) -> Verdict | None:
    if pod.spec.os is not None and pod.spec.os.name not in ("", "linux"):
        return _rejected("PodOSNotSupported", f"the pod is for {pod.spec.os.name}, the node Linux")
    wrong = {k: v for k, v in pod.spec.node_selector.items() if room.labels.get(k) != v}
    if wrong:
        text = ", ".join(f"{key}={value}" for key, value in sorted(wrong.items()))
        return _rejected("NodeAffinity", f"node didn't match the pod's node selector: {text}")
    node = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if node is not None and node.required is not None:
        terms = node.required.node_selector_terms
        if not any(term_holds(term, room.labels, room.name) for term in terms):
            return _rejected("NodeAffinity", "node didn't match the pod's required node affinity")
    return None


def _too_big(pod: Pod, room: Room, others: Iterable[Pod]) -> Verdict | None:
    used: Amounts = {}
    for other in others:
        _add(used, requests(other))
    for name, wanted in sorted(requests(pod).items()):
        if name in SHARES:
            continue
        have = room.allocatable.get(name, 0)
        if wanted > 0 and wanted + used.get(name, 0) > have:
            figures = (wanted, used.get(name, 0), have)
            asked, taken, capacity = (_figure(name, value) for value in figures)
            return _rejected(
                f"OutOf{name}",
                f"Node didn't have enough resource: {name}, requested: {asked},"
                f" used: {taken}, capacity: {capacity}",
            )
    return None


def _figure(name: str, thousandths: int) -> int:
    return thousandths if name == "cpu" else thousandths // 1000


def _rejected(reason: str, message: str) -> Verdict:
    return Verdict(reason, f"Pod was rejected: {message}", admitted=False)


def unhonoured(pod: Pod, *, root: bool) -> list[str]:
    """Return what *pod* asks for that a process node does not do, each in words."""
    found = []
    if pod.spec.host_network:
        found.append("hostNetwork is what every pod has here; the pod keeps its own address")
    security = pod.spec.security_context
    if security.sysctls:
        found.append("sysctls are not set")
    for container, _ in containers_of(pod):
        own = container.security_context
        name = container.name
        if own.privileged or own.capabilities:
            found.append(f"container {name}: capabilities are left as they are")
        if own.read_only_root_filesystem:
            found.append(f"container {name}: the root file system stays writable")
        if own.seccomp_profile or security.seccomp_profile:
            found.append(f"container {name}: no seccomp profile is applied")
        if own.allow_privilege_escalation is False:
            found.append(f"container {name}: privilege escalation is not prevented")
        for probe in (container.liveness_probe, container.readiness_probe, container.startup_probe):
            if probe is not None and probe.grpc is not None:
                found.append(f"container {name}: gRPC probes are not run and count as passed")
    wants_user = security.run_as_user is not None or any(
        one.security_context.run_as_user is not None for one, _ in containers_of(pod)
    )
    if wants_user and not root:
        found.append("runAsUser needs a node that runs as root; the node's own user is used")
    return list(dict.fromkeys(found))
