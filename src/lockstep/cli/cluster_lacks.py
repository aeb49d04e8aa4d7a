"""What a cluster lacks for Lockstep, and what is there already that does the same work."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from lockstep.api.dataset_cache import NO_VIEWS_ANNOTATION
from lockstep.api.names import NODES_NAMESPACE, SYSTEM_NAMESPACE
from lockstep.api.wire import Json
from lockstep.cli.cluster_install import default_class
from lockstep.cli.connect import Session
from lockstep.kube.errors import Forbidden, NotFound

OLDEST: Final = (1, 31)
CDI_FROM: Final[Mapping[str, tuple[int, int]]] = {"containerd": (1, 7), "cri-o": (1, 23)}
ENFORCE: Final = "pod-security.kubernetes.io/enforce"
_PLUGINS: Final = {
    "nvidia-device-plugin": "NVIDIA's device plugin",
    "hami-device-plugin": "HAMi's device plugin",
    "volcano-device-plugin": "Volcano's device plugin",
    "gpushare-device-plugin": "gpushare's device plugin",
}
_SCHEDULERS: Final = {
    "hami-scheduler": "HAMi's scheduler",
    "volcano-scheduler": "Volcano's scheduler",
    "kai-scheduler": "KAI's scheduler",
}


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment or DaemonSet of any namespace."""

    kind: str
    namespace: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return how it is called."""
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a cluster before anything is installed."""

    version: tuple[int, int] = OLDEST
    runtimes: Mapping[str, str] = field(default_factory=dict)
    """By node: its container runtime, as ``containerd://2.1.4``."""
    no_views: Mapping[str, str] = field(default_factory=dict)
    """By node: why its data cache can show no views."""
    levels: Mapping[str, str] = field(default_factory=dict)
    """By namespace: the Pod Security level that it enforces."""
    workloads: Sequence[Workload] = ()
    storage: bool = True
    """Whether there is a default class of storage."""


def lacks(seen: Seen) -> Iterator[Finding]:
    """Yield what is missing or in the way, each with what mends it."""
    if seen.version < OLDEST:
        have, need = (".".join(map(str, one)) for one in (seen.version, OLDEST))
        yield Finding(f"Kubernetes is {have}, and Lockstep needs {need}", "upgrade the cluster")
    for node, runtime in sorted(seen.runtimes.items()):
        if words := _without_cdi(runtime):
            yield Finding(f"node {node}: {words}", f"upgrade the container runtime of {node}")
    for node, why in sorted(seen.no_views.items()):
        yield Finding(f"node {node} shows no datasets: {why}", f"on {node}: modprobe fuse")
    level = seen.levels.get(NODES_NAMESPACE, "privileged")
    if level != "privileged":
        yield Finding(
            f"namespace {NODES_NAMESPACE} enforces Pod Security {level}: agent and data cache "
            "change their node",
            f"kubectl label namespace {NODES_NAMESPACE} {ENFORCE}=privileged --overwrite",
        )
    if not seen.storage:
        yield Finding(
            "no default class of storage: the record of usage goes with the recorder's pod",
            "mark a StorageClass as the default one, or install with Helm and "
            "--set recorder.volume.storageClass=CLASS",
        )
    yield from _others(seen.workloads)


def _others(workloads: Sequence[Workload]) -> Iterator[Finding]:
    """Yield who else does Lockstep's work."""
    for one in workloads:
        ours = one.labels.get("app.kubernetes.io/name") == "lockstep"
        if ours and one.namespace not in (SYSTEM_NAMESPACE, NODES_NAMESPACE):
            yield Finding(
                f"another Lockstep is there: {one}; two count the same cards twice",
                f"helm uninstall it: helm list -n {one.namespace}",
            )
        for name, words in _PLUGINS.items():
            if name in one.name and one.kind == "DaemonSet":
                yield Finding(
                    f"{words} is there: {one}; Lockstep's agent stands back from the resources "
                    "that it hands out, and gives no shares of those cards",
                    f"kubectl -n {one.namespace} delete daemonset {one.name}, and then restart "
                    f"the agent: kubectl -n {NODES_NAMESPACE} rollout restart ds/lockstep-agent",
                )
        for name, words in _SCHEDULERS.items():
            if name in one.name and one.kind == "Deployment":
                yield Finding(
                    f"{words} is there: {one}; pods that it places take cards without asking "
                    "Lockstep",
                    "give both nodes of their own, or take it off and start the scheduler with "
                    "--serve NAME for pods that name it",
                )


def _without_cdi(runtime: str) -> str:
    """Return why containers get no CDI devices from a runtime; empty where they do, or may."""
    name, _, version = runtime.partition("://")
    found = re.match(r"v?(\d+)\.(\d+)", version)
    need = CDI_FROM.get(name)
    if need is None or found is None or (int(found[1]), int(found[2])) >= need:
        return ""
    from_ = ".".join(map(str, need))
    return f"{name} {version} knows no CDI, which ResourceClaims need: {name} {from_} does"


async def look(session: Session) -> Seen:
    """Return what is known of the cluster; what this user may not see counts as good."""
    version, nodes, spaces, deployments, daemons = await asyncio.gather(
        _raw(session, "/version"),
        _items(session, "/api/v1/nodes"),
        _items(session, "/api/v1/namespaces"),
        _items(session, "/apis/apps/v1/deployments"),
        _items(session, "/apis/apps/v1/daemonsets"),
    )
    return Seen(
        _version(version),
        {_name(one): one["status"].get("nodeInfo", {}).get("containerRuntimeVersion", "")
         for one in nodes},
        {_name(one): why for one in nodes
         if (why := (one["metadata"].get("annotations") or {}).get(NO_VIEWS_ANNOTATION))},
        {_name(one): level for one in spaces
         if (level := (one["metadata"].get("labels") or {}).get(ENFORCE))},
        [*_workloads("Deployment", deployments), *_workloads("DaemonSet", daemons)],
        await _storage(session),
    )  # fmt: skip


async def _storage(session: Session) -> bool:
    try:
        return await default_class(session)
    except (Forbidden, NotFound):
        return True


def _version(told: Json) -> tuple[int, int]:
    numbers = re.findall(r"\d+", f"{told.get('major', '')}.{told.get('minor', '')}")
    return (int(numbers[0]), int(numbers[1])) if len(numbers) >= len(OLDEST) else OLDEST


def _workloads(kind: str, items: Sequence[Json]) -> Iterator[Workload]:
    for one in items:
        meta = one["metadata"]
        yield Workload(kind, meta["namespace"], meta["name"], meta.get("labels") or {})


def _name(one: Json) -> str:
    return str(one["metadata"]["name"])


async def _items(session: Session, path: str) -> list[Json]:
    return list((await _raw(session, path)).get("items") or ())


async def _raw(session: Session, path: str) -> Json:
    try:
        return dict(json.loads(await session.client.get_raw(path)))
    except (Forbidden, NotFound):
        return {}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is missing, and the command or page that mends it."""

    what: str
    remedy: str

    def lines(self) -> list[str]:
        """Return it as it is printed."""
        return [f"  missing: {self.what}", f"     mend: {self.remedy}"]


def told(findings: Iterable[Finding]) -> list[str]:
    """Return findings as they are printed, or that there are none."""
    return [line for one in findings for line in one.lines()] or ["  nothing is missing"]
