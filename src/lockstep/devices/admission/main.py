"""The process ``lockstep admission``: the webhook for pods with shares of GPUs.

It has no rights that a caller could use: it answers what becomes of the pod that it is shown.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
from aiohttp import web

from lockstep.api import names
from lockstep.api.core import CONFIG_MAPS, NODES, ConfigMap, Node
from lockstep.api.devices import Device
from lockstep.compat.shares.settings import SETTINGS_MAP, Settings, settings
from lockstep.devices.admission.certificate import keep, keys
from lockstep.devices.admission.objects import PATH
from lockstep.devices.admission.review import review
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.informer import Informer
from lockstep.kube.tls import load_pair

MOST_BODY: Final = 8 << 20
"""Bytes of the largest review: a pod of the largest size, twice."""
INVALID: Final = 422


async def run(
    *, kubeconfig: Path | None, host: str, port: int, namespace: str, ready: Callable[[str], None]
) -> None:
    """Answer the API server until cancelled.

    Raises:
        ConfigError: when no cluster is configured.
        ApiError: when the certificate can neither be read nor made.
        OSError: when *port* is taken.
    """
    async with Client(ClusterConfig.load(kubeconfig)) as client:
        used = await keys(client, namespace)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        load_pair(context, used.certificate, used.key)
        webhook = _Webhook(client, namespace)
        runner = web.AppRunner(webhook.app(), access_log=None)
        async with asyncio.TaskGroup() as group:
            await webhook.start(group)
            await runner.setup()
            try:
                await web.TCPSite(runner, host, port, ssl_context=context).start()
                group.create_task(keep(client, namespace, context, used))
                ready(f"ready https://{host}:{runner.addresses[0][1]}{PATH}")
                await asyncio.Event().wait()
            finally:
                await runner.cleanup()


class _Webhook:
    """Reviews pods by what the cluster says of its cards and of other systems' words."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._nodes: Informer[Node] = Informer(client, NODES)
        self._maps: Informer[ConfigMap] = Informer(
            client,
            CONFIG_MAPS,
            namespace=namespace,
            field_selector=f"metadata.name={SETTINGS_MAP}",
        )

    async def start(self, group: asyncio.TaskGroup) -> None:
        """Follow the cluster; return when it is known."""
        for one in (self._nodes, self._maps):
            group.create_task(one.run())
        await asyncio.gather(self._nodes.wait_synced(), self._maps.wait_synced())

    def app(self) -> web.Application:
        """Return the application."""
        app = web.Application(client_max_size=MOST_BODY)
        app.add_routes([web.post(PATH, self._review), web.get("/healthz", _healthy)])
        return app

    async def _review(self, request: web.Request) -> web.Response:
        try:
            body = await request.json()
            asked: dict[str, Any] = body["request"]
            uid = asked["uid"]
        except (ValueError, KeyError, TypeError):
            return web.Response(status=400, text="an AdmissionReview is needed\n")
        patch, refusal = review(asked, self._card_memory, self._settings)
        answer: dict[str, Any] = {"uid": uid, "allowed": not refusal}
        if refusal:
            answer["status"] = {"code": INVALID, "reason": "Invalid", "message": refusal}
        elif patch:
            answer["patchType"] = "JSONPatch"
            answer["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
        version = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return web.json_response({**version, "response": answer})

    def _settings(self) -> Settings:
        found = next(iter(self._maps), None)
        return settings(found.data) if found is not None else Settings()

    def _card_memory(self) -> int | None:
        """Return the MiB of the cluster's GPUs, where all have the same."""
        found: set[int] = set()
        for node in self._nodes:
            if told := node.metadata.annotations.get(names.DEVICES_ANNOTATION):
                devices = msgspec.json.decode(told, type=list[Device])
                found |= {one.memory for one in devices if one.kind == "gpu"}
        return found.pop() if len(found) == 1 else None


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")
