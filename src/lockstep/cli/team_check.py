"""What ``team check`` tries: each border of a team, as its strongest member would."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import msgspec

from lockstep.api import timestamp
from lockstep.api.core import CONFIG_MAPS, NAMESPACES, PODS, SECRETS
from lockstep.api.gang import GANGS
from lockstep.api.names import GROUP, SYSTEM_NAMESPACE
from lockstep.api.quantity import parse
from lockstep.api.queue import QUEUES
from lockstep.api.resource import Resource
from lockstep.api.team import TEAMS, Team
from lockstep.api.training import TRAINING_JOBS
from lockstep.api.usage_query import USAGE_QUERIES
from lockstep.api.wire import Json
from lockstep.cli.failure import CommandFailed
from lockstep.cli.team_traffic import traffic
from lockstep.kube.client import Client
from lockstep.kube.errors import ApiError, Forbidden, NotFound
from lockstep.tenants.core.objects import (
    DEVICES,
    NETWORK_POLICIES,
    ROLE_BINDINGS,
    namespaces,
    wanted,
)

Result = Literal["held", "OPEN", "not set", "not tried"]
Work = Callable[[Client], Awaitable[Any]]
LABEL: Final = f"{GROUP}/team-check"
"""Bears the Unix time from which on what a check has made may be deleted."""
KEPT: Final = 900
"""Seconds that a check may take; the token of its account ends then, too."""
PATIENCE: Final = 30.0
"""Seconds for which the account's rights are waited for."""
DRY: Final = {"dryRun": "All"}
_LET_THROUGH: Final = (400, 404, 405, 409)
RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Found:
    """What came of one try."""

    border: str
    tried: str
    result: Result
    why: str = ""


@dataclass(frozen=True, slots=True)
class Try:
    """Something that a border must refuse; ``work`` changes nothing where it does not."""

    border: str
    tried: str
    work: Work


@dataclass(frozen=True, slots=True)
class Scene:
    """The team, and the throwaway neighbour whose name its queue and its objects have, too."""

    team: Team
    neighbour: str


async def check(client: Client, team: Team, image: str | None = None) -> list[Found]:
    """Try each border of *team* with a throwaway account that is its admin; it is gone afterwards.

    With *image*, which has Python, pods try the network: no other writes stay.

    Raises:
        CommandFailed: when the account cannot be made, or gets no rights.
        ApiError: when the server does not answer.
    """
    await _sweep(client)
    async with _account(client, team) as (member, scene):
        await _works(member, scene)
        found = [*_not_set(team), *await _network(client, scene, image)]
        for one in [*_tries(scene), *_borders(scene)]:
            found.append(await _tried(member, one))
        for space in namespaces(team):
            found += await _pods(member, team, space)
    return found


async def _tried(member: Client, one: Try) -> Found:
    try:
        await one.work(member)
    except Forbidden as error:
        return Found(one.border, one.tried, "held", str(error))
    except ApiError as error:
        # Rights are asked first: what is missing or malformed was let through to where it would be.
        told: Result = "OPEN" if error.status in _LET_THROUGH else "not tried"
        return Found(one.border, one.tried, told, str(error))
    return Found(one.border, one.tried, "OPEN")


def _not_set(team: Team) -> Iterator[Found]:
    spec = team.spec
    fields = {
        "network": spec.network == "Isolated",
        "podSecurity": spec.pod_security is not None,
        "images": spec.images is not None,
        "devices": spec.devices is not None,
        "quota": bool(spec.quota),
        "queue": spec.queue is not None,
    }
    yield from (
        Found(name, "", "not set", f"spec.{name}") for name, is_set in fields.items() if not is_set
    )


async def _network(client: Client, scene: Scene, image: str | None) -> list[Found]:
    if scene.team.spec.network != "Isolated":
        return []
    what = "a connection from another team's pod"
    if image is None:
        return [Found("network", what, "not tried", "it takes pods: --traffic IMAGE")]
    spaces = namespaces(scene.team)[0], scene.neighbour
    plain = _pod(scene.team, image=image)
    return [Found("network", what, *await traffic(client, plain, spaces, scene.neighbour))]


def _tries(scene: Scene) -> Iterator[Try]:
    """Yield what reaches for another team: its objects, its pods, its queue, its cost."""
    other, own = scene.neighbour, namespaces(scene.team)[0]
    for res in (PODS, CONFIG_MAPS, TRAINING_JOBS, GANGS):
        yield Try("other team's objects", f"list {res.plural} of {other}", _lists(res, other))
        yield Try("other team's objects", f"list all {res.plural}", _lists(res, None))
    yield Try("other team's secrets", f"get secret {other}", lambda c: c.get(SECRETS, other, other))
    yield Try("other team's secrets", "list all secrets", _lists(SECRETS, None))
    for verb, path in (
        ("POST", "pods/none/exec"),
        ("POST", "pods/none/portforward"),
        ("GET", "pods/none/log"),
        ("POST", "serviceaccounts/member/token"),
    ):
        yield Try("other team's pods", f"{path} in {other}", _sends(verb, other, path))
    yield Try("other team's queue", f"get queue {other}", lambda c: c.get(QUEUES, other))
    gang = {"metadata": {"generateName": "check-"}, "spec": {"queue": other, "groups": [_GROUP]}}
    yield Try("queue use", f"a gang of {own} in queue {other}", _makes(GANGS, gang, own))
    for kind in _OF_ALL:
        yield Try("other team's objects", f"list all {kind.plural}", _lists(kind, None))
    asks = {"metadata": {"generateName": "check-"}, "spec": {"by": ["namespace"]}}
    for space in (other, SYSTEM_NAMESPACE):
        yield Try("other team's cost", f"cost of {space}", _makes(USAGE_QUERIES, asks, space))


_GROUP: Final = {"name": "all", "min": 1}
_OF_ALL: Final[tuple[Resource[Any], ...]] = (QUEUES, TEAMS)


def _borders(scene: Scene) -> Iterator[Try]:
    """Yield what would take away, or widen, what isolates the team."""
    team = scene.team
    name = team.metadata.name
    for one in wanted(team):
        if one.resource is NAMESPACES or not one.namespace:
            continue
        what = f"delete {one.resource.kind} {one.namespace}/{one.name}"
        yield Try("what isolates it", what, _deletes(one.resource, one.name, one.namespace))
    for space in namespaces(team):
        if team.spec.network == "Isolated":
            opened = {
                "metadata": {"generateName": "check-"},
                "spec": {"podSelector": {}, "ingress": [{}], "policyTypes": ["Ingress"]},
            }
            what = f"a NetworkPolicy in {space} that lets all in"
            yield Try("what isolates it", what, _makes(NETWORK_POLICIES, opened, space))
        yield Try(
            "what isolates it",
            f"take the labels off namespace {space}",
            _changes(NAMESPACES, space, {"metadata": {"labels": None}}),
        )
        role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
        more = {
            "metadata": {"generateName": "check-"},
            "roleRef": role,
            "subjects": [_subject(scene.neighbour)],
        }
        yield Try("rights", f"bind cluster-admin in {space}", _makes(ROLE_BINDINGS, more, space))
    yield Try("rights", f"change team {name}", _changes(TEAMS, name, {"spec": {"quota": None}}))
    if team.spec.queue is not None:
        change = {"spec": {"limit": None, "allowed": None}}
        yield Try("rights", f"change queue {name}", _changes(QUEUES, name, change))


async def _pods(member: Client, team: Team, space: str) -> list[Found]:
    """Try pods beyond images, devices, amounts and Pod Security, if a plain one is let in."""
    tries = list(_pod_tries(team, space))
    if not tries:
        return []
    try:
        await _makes(PODS, _pod(team), space)(member)
    except ApiError as error:
        why = f"a pod that keeps to all of them is refused: {error}"
        return [Found(one.border, one.tried, "not tried", why) for one in tries]
    return [await _tried(member, one) for one in tries]


def _pod_tries(team: Team, space: str) -> Iterator[Try]:
    spec = team.spec
    if spec.images is not None:
        image = f"lockstep-check-{secrets.token_hex(4)}.invalid/none"
        pod = _pod(team, image=image)
        yield Try("images", f"image {image} in {space}", _makes(PODS, pod, space))
    for device in DEVICES if spec.devices is not None else ():
        if device not in (spec.devices or ()):
            pod = _pod(team, amounts={device: "1"})
            yield Try("devices", f"1 {device} in {space}", _makes(PODS, pod, space))
    for resource, most in spec.quota.items():
        kind, _, name = resource.rpartition(".") if "/" not in resource else resource.partition(".")
        if kind in ("requests", "limits"):
            more = str(int(parse(str(most))) + 1)
            pod = _pod(team, amounts={name: more})
            yield Try("quota", f"{more} of {resource} in {space}", _makes(PODS, pod, space))
    if spec.pod_security in ("Baseline", "Restricted"):
        pod = _pod(team)
        pod["spec"]["hostNetwork"] = True
        yield Try("podSecurity", f"the node's network in {space}", _makes(PODS, pod, space))


def _pod(team: Team, image: str = "", amounts: dict[str, str] | None = None) -> Json:
    """Return a pod that keeps to each border but those that are asked for."""
    usual = next(iter(team.spec.images or ()), "none").replace("*", "check")
    asked = {"cpu": "1m", "memory": "1Mi", **(amounts or {})}
    container = {
        "name": "main",
        "image": image or usual,
        "resources": {"requests": asked, "limits": asked},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {"metadata": {"generateName": "check-"}, "spec": {"containers": [container]}}


def _lists(res: Resource[Any], space: str | None) -> Work:
    return lambda client: client.list(res, space, limit=1)


def _makes(res: Resource[Any], body: Json, space: str) -> Work:
    return lambda client: client.create(res, body, space, dry_run=True)


def _changes(res: Resource[Any], name: str, patch: Json) -> Work:
    return lambda client: client.patch(res, name, patch, dry_run=True)


def _deletes(res: Resource[Any], name: str, space: str) -> Work:
    return lambda client: client.request("DELETE", res.path(space, name), params=DRY)


def _sends(method: str, space: str, path: str) -> Work:
    params = {"command": "true"} if path.endswith("exec") else None
    body = b"{}" if path.endswith("token") else None
    at = f"/api/v1/namespaces/{space}/{path}"
    return lambda client: client.request(method, at, params=params, body=body)


def _subject(space: str) -> Json:
    return {"kind": "ServiceAccount", "name": "member", "namespace": space}


@asynccontextmanager
async def _account(client: Client, team: Team) -> AsyncIterator[tuple[Client, Scene]]:
    """Make a neighbour with an account that is an admin of the team; delete all of it at the end.

    The account stands in the neighbour's namespace: no member of the team can make its tokens.
    """
    name = f"lockstep-check-{secrets.token_hex(4)}"
    labels = {LABEL: str(int(time.time()) + KEPT)}
    meta: Json = {"name": name, "labels": labels}
    made = await client.create(NAMESPACES, {"metadata": meta})
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": name, "uid": made.metadata.uid}
    try:
        await client.create(SECRETS, {"metadata": meta, "stringData": {"value": name}}, name)
        await client.create(
            QUEUES, {"metadata": {**meta, "ownerReferences": [owner]}, "spec": {"allowed": {}}}
        )
        token = await _token(client, name)
        role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "admin"}
        binding: Json = {"roleRef": role, "subjects": [_subject(name)]}
        for space in namespaces(team):
            body = {"metadata": {**meta, "ownerReferences": [owner]}, **binding}
            await client.create(ROLE_BINDINGS, body, space)
        config = replace(
            client.config,
            token=token,
            token_file=None,
            client_certificate=None,
            client_key=None,
            username=None,
            password=None,
            exec_plugin=None,
            acts_as="",
        )
        async with Client(config) as member:
            yield member, Scene(team, name)
    finally:
        await asyncio.shield(asyncio.ensure_future(_remove(client, name, namespaces(team))))


async def _token(client: Client, space: str) -> str:
    accounts = f"/api/v1/namespaces/{space}/serviceaccounts"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "member"}}
    await client.request("POST", accounts, body=msgspec.json.encode(account))
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": KEPT},
    }
    answer = await client.request(
        "POST", f"{accounts}/member/token", body=msgspec.json.encode(asked)
    )
    return str(msgspec.json.decode(answer)["status"]["token"])


async def _remove(client: Client, name: str, spaces: list[str]) -> None:
    for space in spaces:
        with suppress(NotFound):
            await client.delete(ROLE_BINDINGS, name, space)
    left: tuple[Resource[Any], ...] = (QUEUES, NAMESPACES)
    for res in left:
        with suppress(NotFound):
            await client.delete(res, name)


async def _sweep(client: Client) -> None:
    """Delete what checks have left that were killed; what they made goes with their namespace."""
    for one in (await client.list(NAMESPACES, label_selector=LABEL)).items:
        until = one.metadata.labels.get(LABEL, "")
        born = timestamp.read(one.metadata.creation_timestamp) or 0.0
        if (float(until) if until.isdigit() else born + KEPT) < time.time():
            await _remove(client, one.metadata.name, [])


async def _works(member: Client, scene: Scene) -> None:
    """Wait until the account has its rights: without them every border would seem to hold.

    Raises:
        CommandFailed: when it gets none.
    """
    waiting = set(namespaces(scene.team))
    end = time.monotonic() + PATIENCE
    while waiting:
        for space in sorted(waiting):
            with suppress(ApiError):
                await member.list(PODS, space, limit=1)
                waiting.discard(space)
        if waiting and time.monotonic() > end:
            raise CommandFailed(
                f"the throwaway account gets no rights in namespace {min(waiting)}: nothing was "
                f"tried; is team {scene.team.metadata.name} Ready?",
                f"kubectl describe team {scene.team.metadata.name}",
            )
        await asyncio.sleep(0.2 if waiting else 0)
