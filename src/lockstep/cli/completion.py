"""Names of jobs, queues and nodes, completed in the shell from what the server has.

A server that does not answer at once completes nothing: a shell that hangs is worse.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

_SECONDS: Final = 1.5
_MOST: Final = 500
Complete = Callable[[Any, str], list[str]]


def objects(ctx: Any, incomplete: str) -> list[str]:
    """Complete ``NAME`` of a job, or ``KIND/NAME``."""
    from lockstep.cli import kinds

    kind, slash, begun = incomplete.rpartition("/")
    try:
        short, _ = kinds.resource(kind if slash else "job")
    except ValueError:
        return []
    head = f"{kind}/" if slash else ""
    return [f"{head}{name}" for name in _names(ctx, short) if name.startswith(begun)]


def of(kind: str) -> Complete:
    """Return what completes names of one *kind*, such as ``queue``."""

    def complete(ctx: Any, incomplete: str) -> list[str]:
        return [name for name in _names(ctx, kind) if name.startswith(incomplete)]

    return complete


def _names(ctx: Any, kind: str) -> list[str]:
    import asyncio

    from lockstep.cli import kinds
    from lockstep.cli.connect import Session, run
    from lockstep.cli.failure import CommandFailed
    from lockstep.cli.target import Target

    _, res = kinds.resource(kind)

    async def ask(session: Session) -> list[str]:
        async with asyncio.timeout(_SECONDS):
            found = await session.client.list(res, session.scope(res), limit=_MOST)
        return sorted(one.metadata.name for one in found.items)

    kubeconfig = _given(ctx, "kubeconfig")
    target = Target(
        Path(kubeconfig) if kubeconfig else None,
        _given(ctx, "context") or None,
        _given(ctx, "namespace") or None,
    )
    try:
        return run(target, ask)
    except (CommandFailed, TimeoutError, OSError):
        return []


def _given(ctx: Any, name: str) -> Any:
    """Return an option as it stands on the line so far, behind the command or before it."""
    while ctx is not None:
        if value := ctx.params.get(name):
            return value
        ctx = ctx.parent
    return None


Named = Annotated[str, "NAME", "NAME of a job, or KIND/NAME.", objects]
OneNamed = Annotated[list[str], "NAME", "NAME of a job, KIND/NAME, or KIND NAME.", objects]
