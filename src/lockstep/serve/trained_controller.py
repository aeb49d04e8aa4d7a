"""The shell around TrainedModels: replicas load and unload them by the v2 repository's calls."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lockstep.api.core import CONFIG_MAPS, PODS, Pod
from lockstep.api.meta import ObjectMeta
from lockstep.api.names import ROUTE_LABEL
from lockstep.api.resource import Resource
from lockstep.compat.kserve import trained
from lockstep.compat.kserve.objects import INFERENCE_SERVICES, TRAINED_MODELS
from lockstep.kube.events import reference
from lockstep.kube.informer import Informer
from lockstep.runtime.controller import Controller, Key
from lockstep.runtime.manager import Manager
from lockstep.runtime.reconciler import Writer
from lockstep.runtime.status import write_status
from lockstep.serve.core import pods
from lockstep.serve.core.gangs import is_worker
from lockstep.serve.core.service_state import replica_of
from lockstep.serve.core.trained import Order, SeenModels, decide_models
from lockstep.serve.router.calls import Asked, Call
from lockstep.serve.router.upstream import Pool

_AGAIN: Final = 0.5
_INDEX_SECONDS: Final = 5.0
_LOAD_SECONDS: Final = 600.0
"""Longest time that a replica may take to load a model."""


@dataclass
class TrainedModelController:
    """Brings the TrainedModels of a service into its replicas; keys are those of the service."""

    writer: Writer
    caches: Mapping[Resource[Any], Informer[Any]]
    clock: Callable[[], float] = time.time
    _loaded: dict[Key, dict[tuple[str, str], str]] = field(default_factory=dict)
    """What each replica was told last, by service."""
    _indexed: dict[str, asyncio.Task[list[str]]] = field(default_factory=dict)
    """What each replica had when it was first seen."""
    _asked: dict[Order, asyncio.Task[str]] = field(default_factory=dict)

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step for the service at *key*; return when to look again.

        Raises:
            ApiError: when the server cannot be used now; the caller tries again later.
        """
        namespace, name = key
        models = [
            one
            for one in self.caches[TRAINED_MODELS]
            if one.metadata.namespace == namespace
            and trained.parent(one) == name
            and one.metadata.deletion_timestamp is None
        ]
        loaded = self._loaded.get(key, {})
        config = self.caches[CONFIG_MAPS].get(namespace, trained.config_name(name))
        if not models and config is None:
            self._loaded.pop(key, None)
            return None
        replicas = {one.metadata.uid: one for one in self._replicas(key)}
        loaded = {pair: uri for pair, uri in loaded.items() if pair[0] in replicas}
        unknown = [uid for uid in replicas if not self._knows(replicas[uid], loaded)]
        seen = SeenModels(
            self.caches[INFERENCE_SERVICES].get(namespace, name),
            models,
            config,
            list(replicas),
            loaded,
        )
        decided = decide_models(seen, self.clock())
        about = ObjectMeta(namespace=namespace, name=name)
        if seen.service is not None:
            about = seen.service.metadata
        await self.writer.act(reference(INFERENCE_SERVICES, about), decided.actions)
        for one in models:
            status = decided.statuses[one.metadata.name]
            await write_status(self.writer.client, TRAINED_MODELS, one, status)
        for order in decided.orders:
            if order.pod not in unknown:
                self._carry(order, replicas[order.pod], loaded)
        self._loaded[key] = loaded
        return _AGAIN if decided.orders or unknown else None

    def _knows(self, pod: Pod, loaded: dict[tuple[str, str], str]) -> bool:
        """Tell whether a replica's models are known; ask it for them where they are not."""
        uid = pod.metadata.uid
        task = self._indexed.get(uid)
        if task is None:
            self._indexed[uid] = asyncio.ensure_future(_index(pod))
            return False
        if task.done() and not task.cancelled() and (names := task.result()):
            # What it has is told it again, and costs it nothing; what is not wanted goes.
            for name in names:
                loaded.setdefault((uid, name), "?")
            names.clear()
        return task.done()

    def _replicas(self, key: Key) -> Iterable[Pod]:
        namespace, name = key
        prefix = f"{name}-predictor-"
        for pod in self.caches[PODS].by_index(ROUTE_LABEL, f"{namespace}/{name}"):
            mine = replica_of(pod)[0].startswith(prefix)
            if mine and pods.ready(pod) and not is_worker(pod):
                yield pod

    def _carry(self, order: Order, pod: Pod, loaded: dict[tuple[str, str], str]) -> None:
        """Ask the replica, or take its answer; what failed is asked again."""
        task = self._asked.get(order)
        if task is None:
            self._asked[order] = asyncio.ensure_future(_tell(order, pod))
        elif task.done():
            del self._asked[order]
            pair, said = (order.pod, order.model), task.result()
            if said:
                loaded[pair] = f"!{said}"
            elif order.uri:
                loaded[pair] = order.uri
            else:
                loaded.pop(pair, None)


def _port(pod: Pod) -> int:
    return next((one.container_port for box in pod.spec.containers for one in box.ports), 8080)


async def _index(pod: Pod) -> list[str]:
    """Return the models that a replica serves."""
    pool = Pool(pod.status.pod_ip, _port(pod))
    answer = await Call(Asked(b"POST", b"/v2/repository/index")).at(pool, _INDEX_SECONDS)
    pool.close()
    try:
        told = json.loads(answer.body)
        return [str(one["name"]) for one in told if one.get("state") == "READY"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


async def _tell(order: Order, pod: Pod) -> str:
    """Have a replica load or unload a model; return why it did not."""
    verb = "load" if order.uri else "unload"
    body = {"parameters": {"storage_uri": order.uri}} if order.uri else {}
    target = f"/v2/repository/models/{order.model}/{verb}".encode()
    headers = [(b"Content-Type", b"application/json")]
    pool = Pool(pod.status.pod_ip, _port(pod))
    answer = await Call(Asked(b"POST", target, headers, json.dumps(body).encode())).at(
        pool, _LOAD_SECONDS
    )
    pool.close()
    if answer.status == 200 or (not order.uri and answer.status == 404):
        return ""
    try:
        return str(json.loads(answer.body)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the replica answered {answer.status} to {target.decode()}"


def add_trained(manager: Manager, caches: Mapping[Resource[Any], Informer[Any]]) -> None:
    """Run the controller of TrainedModels while *manager* leads."""
    models = manager.informer(TRAINED_MODELS, optional=True)
    known = {
        **caches,
        TRAINED_MODELS: models,
        CONFIG_MAPS: manager.informer(CONFIG_MAPS, label_selector=ROUTE_LABEL),
    }
    shell = TrainedModelController(manager.writer(), known)

    def of_pod(pod: Pod) -> Iterable[Key]:
        meta = pod.metadata
        return [(meta.namespace, meta.labels.get(ROUTE_LABEL, meta.name))]

    controller = Controller("trainedmodel", shell.reconcile)
    controller.follow(models, lambda one: [(one.metadata.namespace, trained.parent(one))])
    controller.follow(known[INFERENCE_SERVICES])
    controller.follow(known[PODS], of_pod)
    manager.add(controller)
