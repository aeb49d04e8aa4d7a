"""What one user may do, asked of the API server with the user's own credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from lockstep.api.resource import Resource
from lockstep.kube.client import Client
from lockstep.kube.named import names

KEPT = 4.0
"""Seconds for which an answer counts; with what looks again, a right that goes is gone in 10 s."""
AT_ONCE = 16
MOST_KNOWN = 20_000
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Ask(NamedTuple):
    """One question; the namespace is empty for all of them."""

    verb: str
    group: str
    plural: str
    namespace: str = ""
    subresource: str = ""


class Rights:
    """Remembers answers for ``KEPT`` seconds by the event loop's clock."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[Ask, tuple[float, bool]] = {}
        self._names: dict[str, tuple[float, frozenset[str]]] = {}
        self._asking: dict[Ask, asyncio.Future[bool]] = {}
        self._places = asyncio.Semaphore(AT_ONCE)

    async def lister(
        self, res: Resource[Any], namespaces: Callable[[], Iterable[str]]
    ) -> Callable[[str], bool]:
        """Return what tells of which of the *namespaces* the user may list a kind.

        Of a kind without namespaces it tells of which names the user may read the object.

        Raises:
            Unauthorized: when the credentials count no more.
            ApiError: when the server does not answer.
        """
        if await self.may_list(res, ""):
            return _everything
        if not res.namespaced:
            return (await self._named(res)).__contains__
        asked = sorted(set(namespaces()))
        may = await self.may_all([Ask("list", res.group, res.plural, space) for space in asked])
        return {space for space, allowed in zip(asked, may, strict=True) if allowed}.__contains__

    async def only(
        self, res: Resource[Any], namespaces: Callable[[], Iterable[str]]
    ) -> Callable[[str], bool] | None:
        """Return the same as ``lister``; None where the user may list all.

        Raises:
            Unauthorized: when the credentials count no more.
            ApiError: when the server does not answer.
        """
        return None if await self.may_list(res, "") else await self.lister(res, namespaces)

    async def _named(self, res: Resource[Any]) -> frozenset[str]:
        now = asyncio.get_running_loop().time()
        asked, known = self._names.get(res.plural, (now - KEPT, frozenset()))
        if now - asked >= KEPT:
            known = await names(self._client, res)
            self._names[res.plural] = (now, known)
        return known

    async def may_list(self, res: Resource[Any], namespace: str) -> bool:
        """Tell whether the user may list a kind in a namespace; in all of them where it is empty.

        Raises:
            Unauthorized: when the credentials count no more.
            ApiError: when the server does not answer.
        """
        return await self.may(Ask("list", res.group, res.plural, namespace))

    async def lists(self, res: Resource[Any], namespace: str) -> bool:
        """Tell whether the user may list a kind there, by a right of the namespace or of all."""
        return await self.may_list(res, "") or (
            res.namespaced and await self.may_list(res, namespace)
        )

    async def may_all(self, asks: Iterable[Ask]) -> list[bool]:
        """Answer many questions at once, in their order."""
        return list(await asyncio.gather(*map(self.may, asks)))

    async def may(self, ask: Ask) -> bool:
        """Answer one question; two that are alike at the same time are asked once.

        Raises:
            Unauthorized: when the credentials count no more.
            ApiError: when the server does not answer.
        """
        now = asyncio.get_running_loop().time()
        known = self._known.get(ask)
        if known is not None and now - known[0] < KEPT:
            return known[1]
        if ask not in self._asking:
            task = asyncio.ensure_future(self._answer(ask))
            self._asking[ask] = task
            task.add_done_callback(lambda _: self._asking.pop(ask, None))
        return await asyncio.shield(self._asking[ask])

    async def _answer(self, ask: Ask) -> bool:
        async with self._places:
            # It counts from when it was asked: the server may have answered a while later.
            now = asyncio.get_running_loop().time()
            allowed = await self._ask(ask)
        if len(self._known) >= MOST_KNOWN:
            self._known = {a: k for a, k in self._known.items() if now - k[0] < KEPT}
        self._known[ask] = (now, allowed)
        return allowed

    async def _ask(self, ask: Ask) -> bool:
        attributes = {
            "verb": ask.verb,
            "group": ask.group,
            "resource": ask.plural,
            "namespace": ask.namespace,
            "subresource": ask.subresource,
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
