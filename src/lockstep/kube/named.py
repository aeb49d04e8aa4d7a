"""What a user may read who may not list all of a kind.

A member of a team reads its queue and those above it by their names, and lists what is in the
namespaces of the team.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

from lockstep.api.resource import Resource
from lockstep.api.team import TEAMS
from lockstep.api.wire import Json, Wire
from lockstep.kube.client import Client
from lockstep.kube.errors import Forbidden, NotFound

T = TypeVar("T", bound=Wire)
REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


async def names(client: Client, res: Resource[Any]) -> frozenset[str]:
    """Return the names of the objects of *res* that the user may get by a rule that names them.

    Raises:
        ApiError: when the server does not answer.
    """
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": "default"},
    }
    body = msgspec.json.encode(review)
    answer = msgspec.json.decode(await client.request("POST", REVIEWS, body=body, repeatable=True))
    rules: list[Json] = answer.get("status", {}).get("resourceRules") or []
    return frozenset(
        name
        for rule in rules
        if {"get", "*"} & set(rule.get("verbs") or ())
        and {res.group, "*"} & set(rule.get("apiGroups") or ())
        and {res.plural, "*"} & set(rule.get("resources") or ())
        for name in rule.get("resourceNames") or ()
    )


async def readable(client: Client, res: Resource[T]) -> list[T]:
    """Return all objects of a kind without namespaces, or those that the user may read by name.

    Raises:
        Forbidden: when the user may read none.
        ApiError: when the server does not answer.
    """
    try:
        return list((await client.list(res)).items)
    except Forbidden:
        known = sorted(await names(client, res))
        if not known:
            raise
    found: list[T] = []
    for one in await asyncio.gather(*(_found(client, res, name) for name in known)):
        found += one
    return found


async def _found(client: Client, res: Resource[T], name: str) -> list[T]:
    try:
        return [await client.get(res, name)]
    except (Forbidden, NotFound):
        return []


async def team_namespaces(client: Client, own: str) -> list[str]:
    """Return the namespaces of the teams that the user may read, and the namespace *own*.

    Raises:
        ApiError: when the server does not answer.
    """
    try:
        teams = await readable(client, TEAMS)
    except Forbidden:
        teams = []
    found = [space for team in teams for space in team.spec.namespaces or [team.metadata.name]]
    return list(dict.fromkeys([*found, own]))


async def in_all_or_own(client: Client, res: Resource[T], own: str) -> list[T]:
    """Return the objects of all namespaces, or of the user's teams' and the namespace *own*.

    Raises:
        Forbidden: when the user may list them in none.
        ApiError: when the server does not answer.
    """
    try:
        return list((await client.list(res)).items)
    except Forbidden as error:
        refusal = error
    found: list[T] = []
    listed = 0
    for space in await team_namespaces(client, own):
        with suppress(Forbidden):
            found += (await client.list(res, space)).items
            listed += 1
    if not listed:
        raise refusal
    return found
