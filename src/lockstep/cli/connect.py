"""From a command's options to a client, and from the client's errors to words."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from lockstep.api.resource import Resource
from lockstep.api.wire import Wire
from lockstep.cli.failure import BadInput, CommandFailed
from lockstep.cli.target import Only, Target
from lockstep.kube.client import Client
from lockstep.kube.config import ClusterConfig
from lockstep.kube.errors import (
    ApiError,
    ConfigError,
    Conflict,
    Forbidden,
    NotFound,
    Unauthorized,
    Unreachable,
)

T = TypeVar("T")
W = TypeVar("W", bound=Wire)


before_command = Target()
"""What was given before the command: `lockstep -n team list`."""


@dataclass(frozen=True, slots=True)
class Session:
    """A connection for the time of one command."""

    client: Client
    namespace: str
    all_namespaces: bool

    def scope(self, res: Resource[Any]) -> str | None:
        """Return the namespace to list *res* in; None for all of them, or where there is none."""
        return self.namespace if res.namespaced and not self.all_namespaces else None

    async def find(self, res: Resource[W], name: str) -> W | None:
        """Return an object; None where there is none of this name."""
        try:
            return await self.client.get(res, name, self.home(res))
        except NotFound:
            return None

    async def get(self, res: Resource[W], name: str, kind: str, hint: str) -> W:
        """Return an object.

        Raises:
            CommandFailed: when there is none of this name; *kind* is what people call it.
        """
        found = await self.find(res, name)
        if found is None:
            where = f" in {self.namespace}" if res.namespaced else ""
            raise CommandFailed(f"there is no {kind} {name}{where}", hint)
        return found

    def home(self, res: Resource[Any]) -> str | None:
        """Return the namespace of one object of *res*."""
        return self.namespace if res.namespaced else None


OfCluster = Annotated[Session, Only("kubeconfig", "context")]
InNamespace = Annotated[Session, Only("namespace", "kubeconfig", "context")]
Anywhere = Annotated[Session, Only("namespace", "all_namespaces", "kubeconfig", "context")]
"""What a command that is a coroutine function takes first: the connection, and by which options."""


def run(target: Target, work: Callable[[Session], Awaitable[T]]) -> T:
    """Run *work* with a connection to *target* and return its result.

    Raises:
        BadInput: when no cluster is named, or the kubeconfig cannot be used.
        CommandFailed: when the cluster cannot be reached or refuses.
    """
    target = _complete(target)
    try:
        config = ClusterConfig.load(target.kubeconfig, target.context)
        return asyncio.run(_with_client(config, target, work))
    except ConfigError as error:
        raise BadInput(str(error)) from error
    except ApiError as error:
        raise CommandFailed(_words(error), _hint(error)) from error


def _complete(target: Target) -> Target:
    """Fill in what was given before the command and not behind it."""
    everywhere = target.all_namespaces
    return Target(
        target.kubeconfig or before_command.kubeconfig,
        target.context or before_command.context,
        target.namespace or (None if everywhere else before_command.namespace),
        everywhere,
    )


async def _with_client(
    config: ClusterConfig, target: Target, work: Callable[[Session], Awaitable[T]]
) -> T:
    async with Client(config) as client:
        namespace = target.namespace or config.namespace or "default"
        return await work(Session(client, namespace, target.all_namespaces))


def _words(error: ApiError) -> str:
    return error.message or error.reason or f"the API server answered {error.status}"


def _hint(error: ApiError) -> str:
    if isinstance(error, Unreachable):
        return "is it running? `lockstep up` starts one here; --kubeconfig chooses another"
    if isinstance(error, Unauthorized):
        return "the credentials are not accepted; check the kubeconfig and its context"
    if isinstance(error, Forbidden):
        return "your user lacks the permission; ask for it, or use another --context"
    if isinstance(error, NotFound):
        return "`lockstep list` shows what there is; -n chooses the namespace"
    if isinstance(error, Conflict):
        return "another client changed it meanwhile; try again"
    return ""
