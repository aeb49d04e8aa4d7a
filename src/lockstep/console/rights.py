"""What one user may list, asked of the API server with the user's own credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from lockstep.api.resource import Resource
from lockstep.kube.client import Client

KEPT = 10.0
"""Seconds for which an answer counts."""
AT_ONCE = 16
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Rights:
    """Remembers answers for ``KEPT`` seconds by the event loop's clock."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[tuple[str, str], tuple[float, bool]] = {}
        self._places = asyncio.Semaphore(AT_ONCE)

    async def lister(
        self, res: Resource[Any], namespaces: Callable[[], Iterable[str]]
    ) -> Callable[[str], bool]:
        """Return what tells of which of the *namespaces* the user may list a kind.

        Raises:
            Unauthorized: when the credentials count no more.
            ApiError: when the server does not answer.
        """
        if await self.may_list(res, ""):
            return _everything
        if not res.namespaced:
            return _nothing
        asked = sorted(set(namespaces()))
        answers = await asyncio.gather(*(self.may_list(res, space) for space in asked))
        return {space for space, may in zip(asked, answers, strict=True) if may}.__contains__

    async def may_list(self, res: Resource[Any], namespace: str) -> bool:
        """Tell whether the user may list a kind in a namespace; in all of them where it is empty.

        Raises:
            Unauthorized: when the credentials count no more.
            ApiError: when the server does not answer.
        """
        now = asyncio.get_running_loop().time()
        key = (f"{res.plural}.{res.group}", namespace)
        known = self._known.get(key)
        if known is not None and now - known[0] < KEPT:
            return known[1]
        async with self._places:
            allowed = await self._ask(res, namespace)
        self._known[key] = (now, allowed)
        return allowed

    async def _ask(self, res: Resource[Any], namespace: str) -> bool:
        attributes = {
            "verb": "list",
            "group": res.group,
            "resource": res.plural,
            "namespace": namespace,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = await self._client.request(
            "POST", REVIEWS, body=msgspec.json.encode(review), repeatable=True
        )
        return bool(msgspec.json.decode(answer).get("status", {}).get("allowed", False))


def _everything(namespace: str) -> bool:
    return True


def _nothing(namespace: str) -> bool:
    return False
