"""Tokens of service accounts, for the pods that want one as a file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from lockstep.kube.client import Client
from lockstep.kube.errors import NotFound
from lockstep.nodes.process.account_access import DEFAULT
from lockstep.nodes.process.spec import Pod, TokenProjection

KEPT = 0.8
"""Part of a token's life after which a new one is asked for."""


class _Status(msgspec.Struct):
    token: str


class _Request(msgspec.Struct):
    status: _Status


class _Account(msgspec.Struct):
    automount: bool | None = msgspec.field(default=None, name="automountServiceAccountToken")


@dataclass(frozen=True, slots=True)
class _Held:
    token: str
    until: float


def projections(pod: Pod) -> Iterator[TokenProjection]:
    """Return the tokens that the volumes of *pod* want."""
    for volume in pod.spec.volumes:
        for source in volume.projected.sources if volume.projected else []:
            if source.service_account_token is not None:
                yield source.service_account_token


class Tokens:
    """Asks the API server for tokens, and again when they grow old."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._held: dict[tuple[str, str, int], _Held] = {}

    async def of(self, pod: Pod) -> dict[tuple[str, int], str]:
        """Return the tokens of *pod* by audience and life.

        The one that it did not ask for is empty where its account mounts none.

        Raises:
            ApiError: when the server issues none.
        """
        found = {}
        for one in projections(pod):
            key = (pod.metadata.uid, one.audience, one.expiration_seconds)
            held = self._held.get(key)
            if held is None or time.time() >= held.until:
                until = time.time() + one.expiration_seconds * KEPT
                asked = one != DEFAULT or await self._mounted(pod)
                token = await self._ask(pod, one) if asked else ""
                held = self._held[key] = _Held(token, until)
            found[one.audience, one.expiration_seconds] = held.token
        return found

    def forget(self, uid: str) -> None:
        """Drop the tokens of the pod *uid*."""
        self._held = {key: held for key, held in self._held.items() if key[0] != uid}

    async def _mounted(self, pod: Pod) -> bool:
        """Tell whether the account of *pod* lets its token be mounted by default."""
        if pod.spec.automount_service_account_token:
            return True
        try:
            raw = await self._client.get_raw(_path(pod))
        except NotFound:
            return False
        return msgspec.json.decode(raw, type=_Account).automount is not False

    async def _ask(self, pod: Pod, wanted: TokenProjection) -> str:
        meta = pod.metadata
        spec = {
            "audiences": [wanted.audience] if wanted.audience else [],
            "expirationSeconds": wanted.expiration_seconds,
            "boundObjectRef": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": meta.name,
                "uid": meta.uid,
            },
        }
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        data = msgspec.json.encode(body)
        answer = await self._client.request("POST", f"{_path(pod)}/token", body=data)
        return msgspec.json.decode(answer, type=_Request).status.token


def _path(pod: Pod) -> str:
    account = pod.spec.service_account_name or "default"
    return f"/api/v1/namespaces/{pod.metadata.namespace}/serviceaccounts/{account}"
