"""Random clusters, queues and jobs as plain objects, the same from the same seed everywhere.

Nothing here knows the scheduler: it reads these objects as it reads those of a user.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any

from lockstep.api import timestamp
from lockstep.api.names import (
    ALIGN_PREFERRED_ANNOTATION,
    ALIGN_REQUIRED_ANNOTATION,
    API_VERSION,
    ARRIVAL_ANNOTATION,
    CHECKPOINT_ANNOTATION,
    DEVICES_ANNOTATION,
    GPU,
    GPU_CARDS,
    GPU_COMPUTE,
    GPU_MEMORY,
    GPU_MODEL_LABEL,
    GPUS_ANNOTATION,
    HOSTNAME_LABEL,
    LEAF_LABEL,
    NICS,
    NUMA_NODES_ANNOTATION,
    RUNTIME_ANNOTATION,
    SCHEDULER_NAME,
    SPINE_LABEL,
)

Json = dict[str, Any]
EPOCH = timestamp.parse("2026-01-01T00:00:00Z")
MODELS = ("A100", "H100")
STRATEGIES = ("Binpack", "Spread", "Fragmentation")
RELATIONS = ("nvlink", "pcie", "numa", "nvlink,pcie")


@dataclass(slots=True)
class Drawn:
    """The objects of one run: what is there at the start, and the jobs that come."""

    cluster: list[Json]
    jobs: list[Json]
    until: float
    """Seconds after which the run is broken off."""


def draw(seed: int) -> Drawn:
    """Return the world of a seed."""
    return _Maker(Random(seed)).drawn()  # noqa: S311 - a test's chance, not a secret


class _Maker:
    """Draws one world; what all of it has in common is drawn first."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.gpus = chance.choice((2, 4, 4, 8, 8))
        """GPUs of most nodes."""
        self.devices = self.often(0.4)
        """Whether nodes describe their devices."""
        self.shares = self.often(0.3)
        self.ranked = self.often(0.3)
        self.models = self.often(0.3)
        self.queues: list[str] = []
        self.total = 0

    def often(self, part: float) -> bool:
        return self.chance.random() < part

    def drawn(self) -> Drawn:
        nodes = [self.node(i) for i in range(self.chance.choice((2, 3, 4, 5, 6, 8)))]
        cluster: list[Json] = [*nodes, *self.priorities(), *self.queue_tree()]
        if self.often(0.3):
            cluster.append(self.node_policy())
        if self.often(0.3):
            cluster.append(self.topology())
        if self.often(0.2):
            cluster.append(self.budget())
        if self.often(0.4):
            cluster += self.standing(nodes)
        jobs, asked, at = [], 0, 0.0
        load = self.chance.choice((1, 2, 3)) * self.total
        while (asked <= load or len(jobs) < 5) and len(jobs) < 12:
            made, gpus = self.job(f"job{len(jobs)}", at)
            jobs.append(made)
            asked += max(1, gpus)
            at += self.chance.choice((0, 0, 7, 40, 90))
        return Drawn(cluster, jobs, until=self.chance.choice((600.0, 1800.0, 3600.0)))

    # The cluster.

    def node(self, number: int) -> Json:
        gpus = self.chance.choice((self.gpus, self.gpus, self.gpus, self.gpus // 2, 0))
        self.total += gpus
        leaf = number // 3
        labels = {
            HOSTNAME_LABEL: f"n{number}",
            LEAF_LABEL: f"l{leaf}",
            SPINE_LABEL: f"s{leaf // 2}",
        }
        if self.models and gpus:
            labels[GPU_MODEL_LABEL] = self.chance.choice(MODELS)
        if self.often(0.3):
            labels["spot"] = "true"
        annotations = {}
        if gpus and (self.devices or self.shares):
            annotations[DEVICES_ANNOTATION] = json.dumps(self.device_list(gpus))
            if self.devices:
                sockets = [{"index": i, "cpus": 16, "memory": "64Gi"} for i in range(2)]
                annotations[NUMA_NODES_ANNOTATION] = json.dumps(sockets)
        capacity = {"cpu": 32, "memory": "128Gi", "pods": 20}
        capacity |= {GPU: gpus} if gpus else {}
        capacity |= {NICS: max(1, gpus // 2)} if gpus and self.devices else {}
        taints = [{"key": "tainted", "effect": "NoSchedule"}] if self.often(0.06) else []
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"n{number}", "labels": labels, "annotations": annotations},
            "spec": {"taints": taints, "unschedulable": self.often(0.04)},
            "status": {
                "allocatable": capacity,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }

    def device_list(self, gpus: int) -> list[Json]:
        half = max(1, gpus // 2)
        cards = [
            {"index": i, "nvlink": i // half, "numa": i // half, "pcie": i // 2, "memory": 81920}
            for i in range(gpus)
        ]
        if not self.devices:
            return cards
        wires = range(max(1, gpus // 2))
        return cards + [
            {"index": i, "kind": "nic", "numa": 2 * i // gpus, "pcie": i, "name": f"mlx5_{i}"}
            for i in wires
        ]

    def priorities(self) -> list[Json]:
        return [
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "preemptionPolicy": policy,
            }
            for name, value, policy in (
                ("low", -10, "PreemptLowerPriority"),
                ("high", 100, "PreemptLowerPriority"),
                ("patient", 100, "Never"),
            )
        ]

    def queue_tree(self) -> list[Json]:
        if self.often(0.15):
            return []
        self.queues = [f"q{i}" for i in range(self.chance.randint(1, 4))]
        parents = ["org"] if self.often(0.4) else []
        made = [_object("Queue", name, self.queue()) for name in [*parents, *self.queues]]
        for one in made[1:] if parents else ():
            one["spec"] |= {"parent": "org"} if self.often(0.8) else {}
        return made

    def queue(self) -> Json:
        spec: Json = {"guaranteed": self.amounts(2)} if self.often(0.5) else {}
        if spec and self.often(0.3):
            lent = {GPU: self.chance.randint(0, 3)}
            spec |= {"lending": "Never"} if self.often(0.4) else {"lendingLimit": lent}
        if spec and self.often(0.2):
            spec["borrowingLimit"] = {GPU: self.chance.randint(0, self.gpus)}
        optional = {
            "limit": (0.4, self.amounts(1)),
            "weight": (0.3, self.chance.randint(0, 4)),
            "preemption": (0.2, "Never"),
            "strategy": (0.3, self.chance.choice(STRATEGIES)),
            "defragmentation": (0.5, self.moves()),
            "usageHalfLife": (0.2, self.chance.choice(("5m", "1h"))),
        }
        return spec | {key: value for key, (part, value) in optional.items() if self.often(part)}

    def moves(self) -> Json:
        return {
            "after": self.chance.choice(("5s", "60s", "5m")),
            "maxPrice": self.chance.choice(("10m", "8h", "100h")),
            "coolDown": self.chance.choice(("1s", "5m")),
        }

    def amounts(self, least: int) -> Json:
        found: Json = {GPU: self.chance.randint(least, max(least, self.total))}
        if self.models and self.often(0.4):
            found[f"{GPU}/{self.chance.choice(MODELS)}"] = self.chance.randint(1, self.gpus)
        if self.often(0.15):
            found["cpu"] = self.chance.randint(8, 120)
        return found

    def node_policy(self) -> Json:
        spot, rest = {"matchLabels": {"spot": "true"}}, {"matchLabels": {LEAF_LABEL: "l0"}}
        tiers = [{"name": "spot", "selector": spot}, {"name": "first", "selector": rest}]
        self.chance.shuffle(tiers)
        queues = [name for name in self.queues if self.often(0.5)]
        return _object("NodePolicy", "order", {"tiers": tiers, "queues": queues})

    def topology(self) -> Json:
        tiers: list[Json] = [
            {"name": "leaf", "label": LEAF_LABEL, "nvlink": self.often(0.3)},
            {"name": "node", "label": HOSTNAME_LABEL},
        ]
        if self.often(0.6):
            tiers.insert(0, {"name": "spine", "label": SPINE_LABEL, "bandwidth": 20})
        return _object("Topology", "default", {"tiers": tiers})

    def budget(self) -> Json:
        made = _object("PodDisruptionBudget", "few", {"selector": {"matchLabels": {"kept": "yes"}}})
        made["spec"] |= {"maxUnavailable": self.chance.randint(0, 2)}
        made["status"] = {"disruptionsAllowed": self.chance.randint(0, 2), "expectedPods": 4}
        return made | {"apiVersion": "policy/v1"}

    def standing(self, nodes: list[Json]) -> list[Json]:
        """Pods that stand there already: of other schedulers, and of this one."""
        made = []
        for number, node in enumerate(nodes):
            gpus = node["status"]["allocatable"].get(GPU, 0)
            if not gpus or not self.often(0.4):
                continue
            held = ",".join(map(str, sorted(self.chance.sample(range(gpus), gpus // 2))))
            one = self.pod(f"old{number}", {GPU: gpus // 2})
            one["spec"] |= {"nodeName": node["metadata"]["name"]}
            one["status"] = {"phase": "Running"}
            meta = one["metadata"]
            if self.often(0.5):
                meta["annotations"][GPUS_ANNOTATION] = held
                meta["annotations"][RUNTIME_ANNOTATION] = str(self.chance.randint(20, 900))
                one["status"]["startTime"] = timestamp.show(EPOCH - self.chance.randint(0, 500))
            else:
                one["spec"]["schedulerName"] = "another"
            made.append(one)
        return made

    # What comes.

    def pod(self, name: str, asked: Json) -> Json:
        spec: Json = {"containers": [_container(asked)], "schedulerName": SCHEDULER_NAME}
        labels = {"kept": "yes"} if self.often(0.2) else {}
        meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels}
        meta |= {"annotations": {}, "creationTimestamp": timestamp.show(EPOCH - 600)}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}

    def job(self, name: str, at: float) -> tuple[Json, int]:
        """Return a job, and the GPUs that it asks for at most."""
        runs = self.chance.choice((None, 15, 60, 200, 200, 700, 3000))
        annotations = {ARRIVAL_ANNOTATION: str(at)}
        annotations |= {} if runs is None else {RUNTIME_ANNOTATION: str(runs)}
        if self.often(0.5):
            annotations[CHECKPOINT_ANNOTATION] = timestamp.show(EPOCH)
        groups, gpus = [], 0
        for number in range(2 if self.often(0.2) else 1):
            group, most = self.group(f"g{number}")
            groups.append(group)
            gpus += most
        spec: Json = {"groups": groups}
        if self.queues and self.often(0.95):
            spec["queue"] = self.chance.choice(self.queues)
        if self.often(0.4):
            spec["priorityClassName"] = self.chance.choice(("low", "high", "high", "patient"))
        if self.often(0.3):
            kind = self.chance.choice(("required", "preferred"))
            spec["topology"] = {kind: self.chance.choice(("leaf", "leaf", "node"))}
        if self.devices and self.often(0.3):
            kind = self.chance.choice(("required", "preferred"))
            spec["alignment"] = {kind: self.chance.choice(RELATIONS).split(",")}
        if self.often(0.15):
            spec["strategy"] = self.chance.choice(STRATEGIES)
        if self.often(0.1):
            spec["maxWait"] = self.chance.choice(("30s", "5m"))
        if self.ranked and self.often(0.6):
            self.split(spec)
        if self.often(0.5):
            spec["checkpoint"] = {"interval": self.chance.choice(("20s", "5m"))}
        made = _object("Gang", name, spec)
        made["metadata"]["annotations"] = annotations
        return made, gpus

    def split(self, spec: Json) -> None:
        """Say how the ranks of a gang are split, where its members are of one kind and fixed."""
        (first, *others) = spec["groups"]
        request = first["template"]["spec"]["containers"][0]["resources"]["requests"]
        gpus = request.get(GPU, 0)
        if others or not gpus or first["min"] != first["desired"]:
            return
        world = gpus * first["min"]
        tensor = self.chance.choice([n for n in (1, 2, 4) if world % n == 0])
        pipeline = self.chance.choice([n for n in (1, 2) if (world // tensor) % n == 0])
        spec["parallelism"] = {"tensor": tensor, "pipeline": pipeline}
        if self.often(0.3):
            spec["parallelism"]["model"] = {"sharded": True, "layers": 24}

    def group(self, name: str) -> tuple[Json, int]:
        members = self.chance.choice((1, 1, 2, 2, 3, 4))
        asked, gpus = self.request()
        least = self.chance.randint(1, members) if self.often(0.3) else members
        spec: Json = {"containers": [_container(asked)]}
        if self.often(0.1):
            spec["tolerations"] = [{"key": "tainted", "operator": "Exists"}]
        if self.models and self.often(0.3):
            spec["nodeSelector"] = {GPU_MODEL_LABEL: self.chance.choice(MODELS)}
        if self.often(0.1):
            term = {"matchExpressions": [{"key": "spot", "operator": "DoesNotExist"}]}
            preferred = [{"weight": self.chance.choice((1, 50)), "preference": term}]
            key = "preferredDuringSchedulingIgnoredDuringExecution"
            spec["affinity"] = {"nodeAffinity": {key: preferred}}
        meta: Json = {"labels": {"kept": "yes"} if self.often(0.2) else {}, "annotations": {}}
        if self.devices and self.often(0.2):
            kinds = (ALIGN_REQUIRED_ANNOTATION, ALIGN_PREFERRED_ANNOTATION)
            meta["annotations"][self.chance.choice(kinds)] = self.chance.choice(RELATIONS)
        made = {
            "name": name,
            "min": least,
            "desired": members,
            "template": {"metadata": meta, "spec": spec},
        }
        if self.often(0.1):
            made["topology"] = {"required": self.chance.choice(("leaf", "node"))}
        return made, members * gpus

    def request(self) -> tuple[Json, int]:
        """Return what one pod asks for, and how many GPUs that is, rounded up."""
        asked: Json = {"cpu": self.chance.choice((1, 2, 4))}
        if self.shares and self.often(0.5):
            if self.often(0.7):
                asked[GPU_COMPUTE] = self.chance.choice((10, 25, 30, 50, 70))
            else:
                asked[GPU_MEMORY] = self.chance.choice((8192, 20480, 40960))
            if self.often(0.15):
                asked[GPU_CARDS] = 2
            return asked, asked.get(GPU_CARDS, 1)
        gpus = self.chance.choice((0, 1, 1, 2, self.gpus // 2, self.gpus))
        asked |= {GPU: gpus} if gpus else {"memory": "8Gi"}
        if gpus and self.devices and self.often(0.3):
            asked[NICS] = 1
        return asked, gpus


def _object(kind: str, name: str, spec: Json) -> Json:
    meta: Json = {"name": name}
    if kind in ("Gang", "PodDisruptionBudget"):
        meta["namespace"] = "default"
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": spec}


def _container(asked: Json) -> Json:
    return {"name": "main", "resources": {"requests": asked, "limits": asked}}
